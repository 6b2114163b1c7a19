//! The real world: keeper, files, git, signals, wired for the driver.

mod agents;
mod clock;
mod facts;
mod files;
mod hashing;
mod inherited;
pub mod installed;
mod keeper;
pub mod notes;
pub mod plans;
pub mod read;
mod refusals;
pub mod remarks;
mod run_files;
pub mod run_lock;
mod scratch;
mod signals;
mod tail;
mod text;
pub mod views;
pub mod workspaces;
pub mod write;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use piton_core::agent::{Agent, Heard};
use piton_core::event::FileHash;
use piton_core::evidence::Files;
use piton_core::hash::Sha;
use piton_core::plan::Command;
use piton_core::redact::Redactor;
use piton_core::state::LaneState;
use piton_core::{Millis, Plan, RunState, StepPath, Timestamp};
use piton_engine::order::Order;
use piton_engine::world::{
    Attached, Attempt, Ended, Happening, Hashing, Judged, Notice, Plans, Reported, SealError,
    Views, Workspaces, World,
};
use piton_engine::{Error, Result};
use piton_formats::template::Given;
use piton_process::logs::Selection;
use piton_protocols::Protocol;
use piton_protocols::protocol::Starting;
use piton_workspace::{Project, history};

pub use clock::{fix_clock, now};
pub use inherited::Inherited;
pub use run_files::{lane_logs, last_line, prompt_file};
pub use scratch::folders as scratch_folders;
pub use signals::Signals;

/// Lines at the end of the output that are read for an answer: the last ones may be blank.
const ANSWER_LINES: usize = 20;

/// So many times more lines are read where most are for programs: an agent writes few others.
const STREAM_FACTOR: usize = 5;

/// How often it is checked whether files are hashed.
const HASHES_POLL: Duration = Duration::from_millis(20);
/// How often the progress of that is reported.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Where the output of running steps begins in their lanes' logs, for whoever shows it live.
pub type Running = Rc<RefCell<BTreeMap<StepPath, (u64, u64)>>>;

/// What a terminal knows and shows: libraries neither print nor look up a time zone.
#[derive(Clone, Copy)]
pub struct Terminal {
    /// Shows how far the hashing of files is that a command waits for.
    pub hashing: fn(Hashing),
    /// What the clock on the wall is ahead of UTC at a time, in seconds.
    pub utc_offset_secs: fn(Timestamp) -> i32,
}

/// What the real world is made of.
pub struct RealWorld {
    terminal: Terminal,
    project: Project,
    root: PathBuf,
    run_dir: PathBuf,
    run_id: String,
    /// The person's notify command.
    pub notify: Option<Command>,
    /// What Piton writes in the project itself: no glob means it.
    pub own: Vec<PathBuf>,
    /// The protocol that the run follows.
    pub protocol: Option<&'static dyn Protocol>,
    /// The plan beside which boxes are looked for that people tick; nothing if they do not count.
    pub ticked_plan: Option<String>,
    /// Lets signals reach the driver.
    pub signals: Option<Signals>,
    keeper: keeper::Connection,
    running: Running,
    /// A moment on the clock that stops while the machine sleeps.
    began: Instant,
    /// What attempts that ended wrote about themselves, if they did; until that is recorded.
    outputs: Vec<(Attempt, Option<PathBuf>)>,
    /// What is recorded of that, and can go.
    spent: Vec<PathBuf>,
    /// Signals that came while something else was waited for.
    came: Vec<i32>,
    hasher: hashing::Hasher,
    /// The agents whose streams are followed.
    agents: agents::Agents,
    inherited: Inherited,
    /// What became of starts before anything was started.
    refused: Vec<Happening>,
    /// Worktrees and snapshots, where there is a repository.
    pub workspaces: Option<workspaces::GitWorkspaces>,
    /// The files of the run's protocol, where it keeps some.
    pub views: Option<views::Writer>,
    /// The files of the run's plan, where a replan may write them.
    pub plans: Option<plans::PlanFiles>,
    /// Makes briefs for fresh agents.
    pub briefs: Option<Briefs>,
}

/// Makes the brief for a step of a run, in at most so many tokens.
pub type Briefs = Box<dyn Fn(&Plan, &RunState, &StepPath, usize) -> String>;

impl RealWorld {
    /// Makes the world of one run. `root` is where its steps run.
    pub fn new(
        project: &Project,
        root: &Path,
        run_dir: PathBuf,
        run_id: &str,
        terminal: Terminal,
        inherited: &Inherited,
    ) -> Self {
        Self {
            terminal,
            project: project.clone(),
            root: root.to_owned(),
            keeper: keeper::Connection::new(run_dir.clone(), inherited.clone()),
            run_dir,
            run_id: run_id.to_owned(),
            notify: None,
            own: Vec::new(),
            protocol: None,
            ticked_plan: None,
            signals: None,
            running: Running::default(),
            began: Instant::now(),
            outputs: Vec::new(),
            spent: Vec::new(),
            came: Vec::new(),
            hasher: hashing::Hasher::default(),
            agents: agents::Agents::default(),
            inherited: inherited.clone(),
            refused: Vec::new(),
            workspaces: None,
            views: None,
            plans: None,
            briefs: None,
        }
    }

    /// Says which programs steps may leave running.
    pub fn keep(&mut self, plan: &Plan) {
        self.keeper.keep = kept(plan);
    }

    /// Where running steps write, for a live picture.
    pub fn running(&self) -> Running {
        Rc::clone(&self.running)
    }
}

/// The programs that steps of a plan may leave running.
pub fn kept(plan: &Plan) -> Vec<String> {
    plan.steps().flat_map(|(_, step)| step.keep.iter().cloned()).collect()
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::world(error)
}

impl RealWorld {
    /// Waits for hashes that whoever asks can't go on without; a signal ends that.
    fn await_hashes(&mut self, ask: impl Fn(&mut Self) -> Option<Hashing>) -> Result<()> {
        let mut said = None;
        while let Some(hashing) = ask(self) {
            if said.is_none_or(|at: Instant| at.elapsed() > PROGRESS_EVERY) {
                said = Some(Instant::now());
                (self.terminal.hashing)(hashing);
            }
            signals::poll(None, self.signals.as_ref(), HASHES_POLL).map_err(failed)?;
            self.came.extend(self.signals.iter_mut().flat_map(Signals::take));
            if let Some(signal) = self.came.first() {
                return Err(Error::Interrupted(*signal));
            }
        }
        Ok(())
    }
}

impl RealWorld {
    /// Asks the protocol of the run about an attempt.
    fn ask<T: Default>(
        &self,
        plan: &Plan,
        state: &RunState,
        attempt: &Attempt,
        question: impl FnOnce(&dyn Protocol, &Starting<'_>) -> T,
    ) -> T {
        let Some(protocol) = self.protocol else { return T::default() };
        let folder = self.root.join(state.lane(&attempt.step.lane()).map_or("", LaneState::dir));
        let (step, attempt) = (&attempt.step, attempt.number);
        let read = |path: &str| read::protocol_file(&folder, path);
        let left = || left_files(&folder, state, step);
        question(protocol, &Starting { plan, state, step, attempt, read: &read, left: &left })
    }
}

/// The files that differ between what the first attempt of a step found and what the next one finds.
/// What another tool left before is what nobody has committed.
fn left_files(folder: &Path, state: &RunState, step: &StepPath) -> Vec<String> {
    let Some(begun) = state.step(step) else { return Vec::new() };
    let found = begun.before.as_ref().map(|commit| format!("{commit}:tree"));
    let found = if begun.taken_over { Some("HEAD".to_owned()) } else { found };
    let work = state.lane(&step.lane()).and_then(|lane| lane.work.as_ref());
    let Some((found, now)) = found.zip(work.and_then(|work| work.latest.snapshot.as_ref())) else {
        return Vec::new();
    };
    let changed = history::changed(folder, &found, &format!("{now}:tree"));
    let paths = changed.unwrap_or_default().into_iter();
    let paths = paths.map(|path| String::from_utf8_lossy(&path).into_owned());
    paths.filter(|path| folder.join(path).exists()).collect()
}

impl World for RealWorld {
    fn now(&mut self) -> Timestamp {
        now()
    }

    fn awake(&mut self) -> Millis {
        Millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn ticked(&mut self, plan: &Plan) -> Option<(Vec<String>, Sha)> {
        let read = |path: &str| read::protocol_file(&self.root, path);
        self.protocol?.inputs((self.ticked_plan.as_ref()?, plan), &read)
    }

    fn dispatch(&mut self, plan: &Plan, state: &RunState, attempt: &Attempt) -> Given {
        self.ask(plan, state, attempt, |protocol, starting| protocol.dispatch(starting))
    }

    fn brief(
        &mut self,
        plan: &Plan,
        state: &RunState,
        step: &StepPath,
        tokens_max: usize,
    ) -> String {
        self.briefs.as_ref().map(|make| make(plan, state, step, tokens_max)).unwrap_or_default()
    }

    fn is_complete(&mut self, plan: &Plan, state: &RunState, attempt: &Attempt) -> bool {
        self.ask(plan, state, attempt, |protocol, starting| protocol.is_complete(starting))
    }

    fn rejects(&mut self, plan: &Plan, state: &RunState, attempt: &Attempt) -> Option<String> {
        self.ask(plan, state, attempt, |protocol, ended| protocol.rejects(ended))
    }

    fn sums_up(&mut self, _state: &RunState) -> bool {
        self.protocol.is_some_and(Protocol::sums_up)
    }

    fn utc_offset_secs(&mut self) -> i32 {
        (self.terminal.utc_offset_secs)(now())
    }

    fn files(&mut self, paths: &[String]) -> Result<Files> {
        self.keeper.let_go();
        self.await_hashes(|world| world.hasher.ask(&world.root, paths, &|| Ok(paths.to_vec())))?;
        let (root, known) = (&self.root, &self.hasher.known);
        let hash = |path: &String| files::hash(root, path, known).map_err(failed);
        paths.iter().map(|path| Ok((path.clone(), hash(path)?))).collect()
    }

    fn paths(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<String>> {
        let found = files::expand_all(&self.root.join(dir), patterns, &self.own);
        Ok(found.map_err(failed)?.into_iter().collect())
    }

    fn hashed(&mut self, dir: &str, patterns: &[String]) -> Option<Hashing> {
        self.keeper.let_go();
        let (root, own) = (self.root.join(dir), &self.own);
        let paths = || Ok(files::expand_all(&root, patterns, own)?.into_iter().collect());
        self.hasher.ask(&root, patterns, &paths)
    }

    fn inputs(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<FileHash>> {
        self.await_hashes(|world| world.hashed(dir, patterns))?;
        let root = self.root.join(dir);
        files::observe(&root, patterns, &self.own, &self.hasher.known).map_err(failed)
    }

    fn changed_after(&mut self, dir: &str, path: &str, at: Timestamp) -> bool {
        files::changed_after(&self.root.join(dir).join(path), at)
    }

    fn head(&mut self) -> Option<String> {
        self.keeper.let_go();
        self.project.head()
    }

    fn tail(&mut self, ended: &Ended, lines: usize, redactor: &Redactor) -> Vec<String> {
        let log = run_files::log_of(&self.run_dir, ended);
        let is_stream = self.agents.is_known(&ended.attempt);
        let read = if is_stream { lines.saturating_mul(STREAM_FACTOR) } else { lines };
        let mut last = tail::last_lines(&log, Selection::Both, read, redactor).unwrap_or_default();
        if is_stream {
            // What the program says to Piton is not for people; what a test printed is.
            last.retain(|line| !line.starts_with('{'));
            last.drain(..last.len().saturating_sub(lines));
        }
        last
    }

    fn answer(&mut self, ended: &Ended, redactor: &Redactor) -> Option<String> {
        let log = run_files::log_of(&self.run_dir, ended);
        let lines = tail::last_lines(&log, Selection::Stdout, ANSWER_LINES, redactor);
        lines.unwrap_or_default().pop().map(|line| line.trim_start().to_owned())
    }

    fn reported(&mut self, attempt: &Attempt) -> Reported {
        let path = self.keeper.output_of(attempt);
        let reported = path.as_deref().map(scratch::open_output).map(facts::read);
        self.outputs.retain(|(of, _)| of != attempt);
        self.outputs.push((attempt.clone(), path));
        reported.unwrap_or_default()
    }

    fn attach(&mut self, epoch: u64, mark: &str, in_flight: &[Attempt]) -> Result<Attached> {
        self.keeper.let_go();
        self.running.borrow_mut().clear();
        self.outputs.clear();
        let (signals, came) = (&mut self.signals, &mut self.came);
        let mut stop = || {
            came.extend(signals.iter_mut().flat_map(Signals::take));
            !came.is_empty()
        };
        let attached = self.keeper.attach(epoch, mark, in_flight, &self.running, &mut stop);
        attached.map_err(|error| match (error, self.came.first()) {
            (Error::Interrupted(_), Some(signal)) => Error::Interrupted(*signal),
            (other, _) => other,
        })
    }

    fn has_lost_keeper(&mut self) -> bool {
        self.keeper.fd().is_some_and(signals::is_closed)
    }

    fn prepare(&mut self, order: &Order) {
        self.keeper.prepare(&self.root, order);
    }

    fn follow(&mut self, attempt: &Attempt, agent: &Agent) {
        self.with_agents(|agents, around| agents.follow(attempt, agent, around));
    }

    fn judged(&mut self, ended: &Ended) -> Option<Judged> {
        self.judge_agent(ended)
    }

    fn heard_of_lost(&mut self, attempt: &Attempt) -> Option<Heard> {
        self.with_agents(|agents, around| agents.hear_lost(attempt, around))
    }

    fn stop_agent(&mut self, attempt: &Attempt) -> Result<()> {
        self.ask_to_stop(attempt)
    }

    fn end(&mut self, attempt: &Attempt) -> Result<()> {
        self.keeper.end(attempt);
        Ok(())
    }

    fn start(&mut self, mut orders: Vec<Order>) -> Result<()> {
        orders.retain(|order| self.begin_agent(order));
        if orders.is_empty() {
            return Ok(());
        }
        if self.keeper.go(&orders) {
            return Ok(());
        }
        // One that was taken over must not even start a keeper, which would be refused.
        let _held = self.workspaces.as_mut().map(workspaces::GitWorkspaces::turn).transpose()?;
        self.keeper.start(&self.root, &orders)
    }

    fn acknowledge(&mut self, attempts: &[Attempt]) -> Result<()> {
        for attempt in attempts {
            self.running.borrow_mut().remove(&attempt.step);
            self.with_agents(|agents, around| agents.forget(attempt, around));
            let known = self.outputs.iter().position(|(of, _)| of == attempt);
            let known = known.map(|index| self.outputs.swap_remove(index).1);
            self.spent.extend(known.unwrap_or_else(|| self.keeper.output_of(attempt)));
        }
        self.keeper.acknowledge(attempts);
        Ok(())
    }

    fn end_all(&mut self) -> Result<()> {
        self.keeper.end_all();
        Ok(())
    }

    fn seal(&mut self, dir: &str, patterns: &[String]) -> Result<Vec<FileHash>, SealError> {
        self.keeper.let_go();
        files::seal(&self.root.join(dir), patterns, &self.own, &self.hasher.known)
    }

    fn notify(&mut self, notice: &Notice) -> Result<()> {
        let Some(command) = &self.notify else {
            return Ok(());
        };
        let argv = match command {
            Command::Shell(line) => vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
            Command::Args(args) => args.clone(),
        };
        let (signals, came) = (&mut self.signals, &mut self.came);
        let mut stop = || {
            came.extend(signals.iter_mut().flat_map(Signals::take));
            !came.is_empty()
        };
        self.keeper.notify(&self.root, argv, &self.run_id, notice, &mut stop)
    }

    fn workspaces(&mut self) -> Option<&mut dyn Workspaces> {
        let workspaces = self.workspaces.as_mut()?;
        if !workspaces.is_quick() {
            self.keeper.let_go();
        }
        Some(workspaces)
    }

    fn plans(&mut self) -> Option<&mut dyn Plans> {
        self.keeper.let_go();
        self.plans.as_mut().map(|plans| plans as &mut dyn Plans)
    }

    fn views(&mut self) -> Option<&mut dyn Views> {
        self.views.as_mut().map(|views| views as &mut dyn Views)
    }

    fn leave(&mut self) -> Result<Vec<String>> {
        self.keeper.let_go();
        // What the steps said whose outcome waits is read by the next driver.
        let unread = !self.outputs.is_empty();
        Ok(self.keeper.leave(self.signals.as_mut(), unread))
    }

    fn wait(&mut self, until: Timestamp) -> Result<Vec<Happening>> {
        self.keeper.flush();
        self.hasher.next_turn();
        // Not before the flush: what is recorded has time, the next step has not.
        for path in self.spent.drain(..) {
            let _ = std::fs::remove_file(path);
        }
        let mut timeout = Duration::from_millis(until.since(now()).0);
        if !self.came.is_empty() || !self.refused.is_empty() {
            timeout = Duration::ZERO;
        }
        signals::poll(self.keeper.fd(), self.signals.as_ref(), timeout).map_err(failed)?;
        let mut happened: Vec<Happening> = self.came.drain(..).map(Happening::Signal).collect();
        if let Some(signals) = &mut self.signals {
            happened.extend(signals.take().into_iter().map(Happening::Signal));
        }
        happened.append(&mut self.refused);
        let received = self.keeper.receive(&self.running)?;
        happened.extend(self.listen_to_agents());
        happened.extend(received);
        if happened.is_empty() {
            // No short step: nobody hands over to anybody.
            self.keeper.let_go();
        }
        Ok(happened)
    }
}
