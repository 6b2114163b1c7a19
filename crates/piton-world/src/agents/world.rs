//! What the world does with agents, for the driver.

use std::path::PathBuf;

use piton_core::redact::Redactor;
use piton_engine::Result;
use piton_engine::order::Order;
use piton_engine::world::{Attempt, Ended, Happening, Judged, World as _};
use piton_process::logs::Selection;

use super::{Agents, Around, stop_file};
use crate::{RealWorld, Running, failed, now, tail};

/// Lines at the end of standard error that tell how an agent went.
const ERROR_LINES: usize = 20;

impl RealWorld {
    /// Does something with the agents, which have to know where they are.
    pub(crate) fn with_agents<T>(&mut self, act: impl FnOnce(&mut Agents, &Around<'_>) -> T) -> T {
        let inherited = &self.inherited;
        let variable = |name: &str| inherited.variable(name).map(PathBuf::from);
        let mark = self.keeper.mark();
        let around = Around { run_dir: &self.run_dir, mark, variable: &variable };
        act(&mut self.agents, &around)
    }

    /// What an agent said whose attempt is over, and how it went.
    pub(crate) fn judge_agent(&mut self, ended: &Ended) -> Option<Judged> {
        if self.agents.is_empty() {
            return None;
        }
        let log = crate::run_files::log_of(&self.run_dir, ended);
        // What the program says is redacted where it is recorded.
        let errors = tail::last_lines(&log, Selection::Stderr, ERROR_LINES, &Redactor::default());
        let folder = self.keeper.folder_of(&ended.attempt);
        let is_asked = folder.is_some_and(|folder| stop_file(&folder).exists());
        let errors = errors.unwrap_or_default();
        let clock = (now(), self.utc_offset_secs());
        self.with_agents(|agents, around| agents.judge(ended, (&errors, is_asked), clock, around))
    }

    /// Has an agent stop after the operation under way.
    pub(crate) fn ask_to_stop(&mut self, attempt: &Attempt) -> Result<()> {
        let Some(folder) = self.keeper.folder_of(attempt) else { return Ok(()) };
        let file = stop_file(&folder);
        if file.exists() {
            return Ok(());
        }
        std::fs::write(file, "").map_err(failed)?;
        self.agents.interrupt(attempt);
        Ok(())
    }

    /// Follows the agent of an attempt that is about to start; whether it may.
    pub(crate) fn begin_agent(&mut self, order: &Order) -> bool {
        let Err(error) = self.try_agent(order) else { return true };
        let (attempt, error) = (order.attempt.clone(), error.to_string());
        let refused = Happening::NotStarted { attempt, error, no_such_program: false };
        self.refused.push(refused);
        false
    }

    /// The same, with the reason.
    fn try_agent(&mut self, order: &Order) -> Result<()> {
        let known = order.agent.as_ref().map(|of| &of.agent).filter(|agent| agent.is_known());
        if let Some(agent) = known {
            super::call::servers(agent, &self.root).map_err(failed)?;
            let home = self.inherited.variable("HOME").map(PathBuf::from);
            let warning = super::call::lay_outside(agent, &self.run_dir, home.as_deref());
            self.refused.extend(warning.map(Happening::Warned));
            // A wrapper that was killed may have left the program that it wraps.
            if order.attempt.number > 1 {
                self.keeper.end_left_before(&order.attempt)?;
            }
        }
        self.with_agents(|agents, around| agents.begin(order, around)).map_err(failed)
    }

    /// What agents said since the last look; those that are to be interrupted now are.
    pub(crate) fn listen_to_agents(&mut self) -> Vec<Happening> {
        if self.agents.is_empty() {
            return Vec::new();
        }
        let running = Running::clone(&self.running);
        let (said, interrupts) = self.with_agents(|agents, around| agents.listen(&running, around));
        for attempt in &interrupts {
            self.keeper.interrupt(attempt);
        }
        said
    }
}
