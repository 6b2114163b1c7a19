//! What is sent to a keeper to start attempts, and the start of the keeper itself.

use std::path::{Path, PathBuf};

use piton_engine::Result;
use piton_engine::order::Order;
use piton_process::Keeper;
use piton_process::protocol::{NewFile, Part, Request, Start};

use super::super::agents::{self, Called};
use super::super::installed::Place;
use super::super::{failed, lane_logs, prompt_file, scratch};
use super::{Connection, taken_or_failed};

impl Connection {
    /// Lets the keeper make one attempt ready that nothing runs beside. Only a keeper that is there:
    /// what starts one must be durable first.
    pub fn prepare(&mut self, root: &Path, order: &Order) {
        let Some(scratch) = self.scratch.clone().filter(|known| known.is_dir()) else {
            return;
        };
        if self.keeper.is_none() || self.in_flight > 0 {
            return;
        }
        let start = Start { near: self.tether.hold_here(), ..self.start_of(root, &scratch, order) };
        self.queue.push(Request::Prepare(Box::new(start)));
        self.flush();
        self.prepared = Some(order.attempt.clone());
    }

    /// Starts the attempt that the keeper has made ready; false if it is another, or are several.
    pub fn go(&mut self, orders: &[Order]) -> bool {
        let ready = self.prepared.take().filter(|_| self.keeper.is_some());
        let ([order], Some(attempt)) = (orders, ready) else {
            return false;
        };
        if order.attempt != attempt {
            return false;
        }
        self.in_flight += 1;
        self.queue.push(Request::Go { key: attempt.to_string() });
        self.flush();
        true
    }

    /// Starts attempts, and a keeper for them if there is none.
    pub fn start(&mut self, root: &Path, orders: &[Order]) -> Result<()> {
        self.prepared = None;
        self.ensure()?;
        let scratch = self.scratch()?;
        self.in_flight += orders.len();
        // With one step alone, driver and keeper take turns: beside each other that costs least.
        let near = if self.in_flight == 1 {
            self.tether.hold_here()
        } else {
            self.tether.let_go();
            None
        };
        for order in orders {
            let start = Start { near, ..self.start_of(root, &scratch, order) };
            self.queue.push(Request::Start(Box::new(start)));
        }
        self.flush();
        Ok(())
    }

    fn start_of(&self, root: &Path, scratch: &Path, order: &Order) -> Start {
        let (stdout, stderr) = lane_logs(&self.dir, &order.attempt.step);
        let folder = scratch::attempt_folder(scratch, &order.attempt);
        let home = self.inherited.variable("HOME").map(PathBuf::from);
        let called = order.agent.as_ref();
        let place = Place { inherited: &self.inherited, home: home.as_deref(), root };
        let called = called.and_then(|agent| agents::call(agent, &place, &folder));
        let mut env = order.env.clone();
        let mut files = Vec::new();
        let mut commands = order.commands.clone();
        if let Some(Called { argv, env: own, files: laid }) = called {
            // The step's own variables win.
            env = own.into_iter().chain(env).collect();
            files.extend(laid.into_iter().map(|(path, content)| NewFile { path, content }));
            commands.first_mut().into_iter().for_each(|first| first.clone_from(&argv));
        }
        let mut file = |name: &str, path: PathBuf, content: Option<String>| {
            env.push((name.to_owned(), path.to_string_lossy().into_owned()));
            files.extend(content.map(|content| NewFile { path, content }));
        };
        file("PITON_OUTPUT", scratch::output_file(scratch, &order.attempt), None);
        let failures = match &order.failure_context {
            Some(_) => folder.join("failures.json"),
            None => scratch::no_failures(scratch),
        };
        file("PITON_FAILURE_CONTEXT", failures, order.failure_context.clone());
        if let Some(prompt) = &order.prompt {
            file("PITON_PROMPT_FILE", folder.join("prompt.md"), Some(prompt.clone()));
        }
        if let Some(content) = order.kept_prompt.clone() {
            files.push(NewFile { path: prompt_file(&self.dir, &order.attempt), content });
        }
        let parts = commands
            .into_iter()
            .enumerate()
            .map(|(index, argv)| Part { argv, stdin: order.prompt.clone().filter(|_| index == 0) });
        Start {
            key: order.attempt.to_string(),
            parts: parts.collect(),
            dir: root.join(&order.workspace).join(&order.dir),
            env,
            unset: Vec::new(),
            files,
            stdout,
            stderr,
            timeout_ms: order.timeout_ms,
            idle_timeout_ms: order.idle_timeout_ms,
            grace_ms: order.grace_ms,
            log_bytes_max: order.log_bytes_max,
            keep: order.keep.clone(),
            near: None,
        }
    }

    /// Starts a keeper if there is none.
    pub(super) fn ensure(&mut self) -> Result<()> {
        if self.keeper.is_some() {
            return Ok(());
        }
        let _held = self.starting.hold()?;
        // What a keeper may not do, its children may not either.
        self.let_go();
        scratch::make_private(&self.dir.join("logs")).map_err(failed)?;
        let (exe, environment) = (self.inherited.own_program(), self.inherited.for_children());
        let word = std::ffi::OsStr::new("__keeper");
        let keeper = Keeper::start(&exe, &[word], &self.dir, &self.mark, self.epoch, &environment)
            .map_err(taken_or_failed)?;
        self.keeper = Some(keeper);
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs;

    use piton_engine::Error;

    use super::super::super::Inherited;
    use super::super::FIRST_EPOCH;
    use super::*;

    /// Lost, a driver that was stopped while it started its keeper starts one, and writes into the
    /// folder of the run, after another driver has taken the run over.
    #[test]
    fn one_that_was_taken_over_starts_no_keeper_though_no_fence_stops_it() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("r");
        let attached = |epoch| {
            let mut connection = Connection::new(dir.clone(), Inherited::default());
            let running = super::super::Running::default();
            connection.attach(epoch, "", &[], &running, &mut || false).unwrap();
            connection
        };
        let mut old = attached(FIRST_EPOCH);
        let _new = attached(FIRST_EPOCH + 1);
        // As the old one found it, before it was stopped.
        fs::rename(dir.join("fence.2"), dir.join("fence.1")).unwrap();
        let names = || -> Vec<_> {
            fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        let before = names();
        assert!(matches!(old.ensure(), Err(Error::TakenOver)));
        assert_eq!(names(), before);
    }
}
