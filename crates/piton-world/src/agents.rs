//! The agents of running attempts: their streams are followed from where each attempt began, and the
//! files in which some programs record their sessions beside that.
//!
//! Reading begins anew with every driver: counts are those of the process since its beginning. What the
//! streams mean is told by `piton-agents`; what follows from it is decided elsewhere.

mod call;
mod life;
mod lock;
mod tail;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use piton_agents::verdict::{Clock, Exit};
use piton_agents::{Halt, Program, Reader, Said};
use piton_core::agent::{Agent, Heard};
use piton_core::{Millis, Timestamp};
use piton_engine::order::Order;
use piton_engine::world::{Attempt, Ended, Happening, Judged};

pub(crate) use self::call::{Called, call, stop_file};
use self::life::Life;
use self::lock::Lock;
use self::tail::Tail;
use super::{Running, lane_logs};

/// How often a session's record is looked for that is not there yet: a program writes it after a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Bytes at the beginning of standard error in which a program says what it lacks.
const ASIDE_BYTES: u64 = 64 << 10;

/// The agents of a run's attempts.
#[derive(Default)]
pub(crate) struct Agents {
    followed: BTreeMap<Attempt, Followed>,
}

/// An agent as far as its stream was read.
struct Followed {
    agent: Agent,
    program: &'static dyn Program,
    reader: Box<dyn Reader>,
    stream: Option<Tail>,
    record: Option<Tail>,
    /// Where its own lines begin in the record of a session that continues.
    record_from: u64,
    looked: Option<Instant>,
    heard: Heard,
    /// Whether it is interrupted as soon as no operation is under way.
    interrupts: bool,
    /// Its signs of life.
    life: Life,
    /// Keeps other processes out of its session.
    lock: Option<Lock>,
}

impl Followed {
    fn new(agent: &Agent) -> Option<Self> {
        let program = piton_agents::find(&agent.program)?;
        let heard =
            Heard { window: agent.window.unwrap_or_else(|| program.window()), ..Heard::default() };
        Some(Self {
            agent: agent.clone(),
            program,
            reader: program.reader(),
            stream: None,
            record: None,
            record_from: 0,
            looked: None,
            heard,
            interrupts: false,
            life: Life::default(),
            lock: None,
        })
    }

    fn take(&mut self, said: Vec<Said>) {
        for said in said {
            match said {
                Said::Session(id) => self.heard.session = Some(id),
                Said::Doing(line) => self.heard.doing = line,
                Said::Retrying(why) => self.heard.doing = format!("retrying: {why}"),
                Said::Denied(what) => self.heard.doing = format!("not allowed: {what}"),
                Said::Compacted => "compacted its context".clone_into(&mut self.heard.doing),
                Said::Limit { is_reached: true, until } => self.heard.limited_until = until,
                Said::Limit { .. } | Said::Model(_) | Said::Context(_) | Said::Finished => {}
            }
        }
    }

    /// Reads what is new; whether that changed anything.
    fn read(&mut self, until: Option<u64>, record: impl FnOnce(&str) -> Option<PathBuf>) -> bool {
        let before = self.heard.clone();
        let lines = self.stream.as_mut().map(|tail| tail.lines(until)).unwrap_or_default();
        for line in lines {
            let said = self.reader.line(&line);
            self.take(said);
        }
        self.find_record(until.is_some(), record);
        let lines = self.record.as_mut().map(|tail| tail.lines(None)).unwrap_or_default();
        for line in lines {
            let said = self.reader.record(&line);
            self.take(said);
        }
        self.heard.totals = self.reader.totals();
        let told = self.agent.window.or(self.heard.totals.window);
        self.heard.window = told.unwrap_or_else(|| self.program.window());
        self.heard.in_flight = self.reader.in_flight();
        self.heard != before
    }

    /// For how long it has shown no sign of life, once that is too long.
    fn silence(&mut self, attempt: &Attempt, around: &Around<'_>) -> Option<Millis> {
        if !self.agent.is_known() {
            return None;
        }
        let (stdout, stderr) = lane_logs(around.run_dir, &attempt.step);
        let record = self.record.as_ref().map(Tail::path);
        let streams = [Some(stdout.as_path()), Some(stderr.as_path()), record];
        let activity = || piton_process::activity::of_attempt(around.mark, &attempt.to_string());
        self.life.silence(self.agent.silence, &streams, activity)
    }

    fn find_record(&mut self, is_last: bool, record: impl FnOnce(&str) -> Option<PathBuf>) {
        let is_due = is_last || self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        if self.record.is_some() || !is_due {
            return;
        }
        let Some(session) = self.heard.session.clone() else { return };
        self.looked = Some(Instant::now());
        self.record = record(&session).map(|path| Tail::new(path, self.record_from));
    }
}

/// What the agents of a run have to know of their surroundings.
pub(crate) struct Around<'a> {
    /// The folder of the run.
    pub(crate) run_dir: &'a Path,
    /// The mark of the run's processes.
    pub(crate) mark: &'a str,
    /// The value of a variable that children inherit.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<PathBuf>,
}

impl Around<'_> {
    /// The file in which a program records a session.
    fn record(&self, agent: &Agent, program: &dyn Program, session: &str) -> Option<PathBuf> {
        let wanted = program.record(session)?;
        let own = |name: &str| agent.env.get(name).map(PathBuf::from);
        let value = |name: &str| own(name).or_else(|| (self.variable)(name));
        let usual = || value("HOME").map(|home| home.join(wanted.usual));
        let root = value(wanted.variable).or_else(usual)?;
        tail::find(root.join(wanted.folder), &wanted.ending)
    }

    /// Where the line of the record is kept with which an attempt began.
    fn record_start(&self, attempt: &Attempt) -> PathBuf {
        self.kept(attempt, "from")
    }

    /// Where the place is kept at which the stream of an attempt begins in the log of its lane. A
    /// keeper says it too, but not when it is dead.
    fn stream_start(&self, attempt: &Attempt) -> PathBuf {
        self.kept(attempt, "stream")
    }

    fn kept(&self, attempt: &Attempt, what: &str) -> PathBuf {
        let name = attempt.to_string().replace(['/', '#'], "~");
        self.run_dir.join("sessions").join(format!("{name}.{what}"))
    }

    /// Keeps that place for an attempt that is about to start: nothing of its lane runs now.
    fn keep_stream_start(&self, attempt: &Attempt) {
        let (stdout, _) = lane_logs(self.run_dir, &attempt.step);
        let start = fs::metadata(stdout).map_or(0, |found| found.len());
        let folder = fs::create_dir_all(self.run_dir.join("sessions"));
        // Without it, an attempt that is lost with its keeper counts as far as it was heard.
        let _ = folder.and_then(|()| fs::write(self.stream_start(attempt), start.to_string()));
    }
}

impl Agents {
    /// Follows an attempt that a driver before this one started.
    pub(crate) fn follow(&mut self, attempt: &Attempt, agent: &Agent, around: &Around<'_>) {
        let Some(mut followed) = Followed::new(agent) else { return };
        let from = fs::read_to_string(around.record_start(attempt)).ok();
        followed.record_from = from.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        self.followed.insert(attempt.clone(), followed);
    }

    /// Follows an attempt that is about to start; why it may not, if another process has its session.
    pub(crate) fn begin(&mut self, order: &Order, around: &Around<'_>) -> Result<(), lock::Error> {
        let Some(of) = &order.agent else { return Ok(()) };
        let Some(mut followed) = Followed::new(&of.agent) else { return Ok(()) };
        if let Some(session) = of.session.as_ref().filter(|_| of.agent.is_known()) {
            followed.lock = Some(Lock::take(&around.run_dir.join("sessions"), session)?);
            followed.heard.session = of.continues.then(|| session.clone());
            let record = around.record(&of.agent, followed.program, session);
            if let Some(path) = record.filter(|_| of.continues) {
                followed.record_from = fs::metadata(&path).map_or(0, |found| found.len());
                let from = followed.record_from.to_string();
                let written = fs::write(around.record_start(&order.attempt), from);
                let session = session.clone();
                written.map_err(|source| lock::Error::Files { session, source })?;
            }
        }
        around.keep_stream_start(&order.attempt);
        self.followed.insert(order.attempt.clone(), followed);
        Ok(())
    }

    /// Reads what agents said since the last look; and whom to interrupt now.
    pub(crate) fn listen(
        &mut self,
        running: &Running,
        around: &Around<'_>,
    ) -> (Vec<Happening>, Vec<Attempt>) {
        let (mut said, mut interrupts) = (Vec::new(), Vec::new());
        for (attempt, followed) in &mut self.followed {
            if followed.stream.is_none() {
                let Some(&(start, _)) = running.borrow().get(&attempt.step) else { continue };
                let (stdout, _) = lane_logs(around.run_dir, &attempt.step);
                followed.stream = Some(Tail::new(stdout, start));
            }
            let (agent, program) = (followed.agent.clone(), followed.program);
            if followed.read(None, |session| around.record(&agent, program, session)) {
                let heard = Box::new(followed.heard.clone());
                said.push(Happening::Said { attempt: attempt.clone(), heard });
            }
            if let Some(silence) = followed.silence(attempt, around) {
                said.push(Happening::Silent { attempt: attempt.clone(), silence });
            }
            if followed.interrupts && followed.heard.in_flight.is_empty() {
                followed.interrupts = false;
                interrupts.push(attempt.clone());
            }
        }
        (said, interrupts)
    }

    /// Whether agents are at work, which are listened to.
    pub(crate) fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Whether an attempt is that of a program that Piton knows: its output is for programs.
    pub(crate) fn is_known(&self, attempt: &Attempt) -> bool {
        self.followed.get(attempt).is_some_and(|followed| followed.agent.is_known())
    }

    /// Has an agent interrupted as soon as it can be; whether that is how it is stopped.
    pub(crate) fn interrupt(&mut self, attempt: &Attempt) {
        let by_interrupt = |followed: &&mut Followed| followed.program.halt() == Halt::Interrupt;
        if let Some(followed) = self.followed.get_mut(attempt).filter(by_interrupt) {
            followed.interrupts = true;
        }
    }

    /// Reads the rest of what an agent said, and judges it. `errors` are the last lines of standard
    /// error; `is_asked` says that we asked it to stop.
    pub(crate) fn judge(
        &mut self,
        ended: &Ended,
        (errors, is_asked): (&[String], bool),
        (now, offset_secs): (Timestamp, i32),
        around: &Around<'_>,
    ) -> Option<Judged> {
        let followed = self.followed.get_mut(&ended.attempt)?;
        let (stdout, stderr) = lane_logs(around.run_dir, &ended.attempt.step);
        let (start, end) = ended.logs.stdout;
        let stream = followed.stream.get_or_insert_with(|| Tail::new(stdout, start));
        stream.dropped = ended.logs.stdout_dropped;
        let (agent, program) = (followed.agent.clone(), followed.program);
        followed.read(Some(end), |session| around.record(&agent, program, session));
        let (start, end) = ended.logs.stderr;
        let end = end.min(start.saturating_add(ASIDE_BYTES));
        Tail::new(stderr, start)
            .lines(Some(end))
            .iter()
            .for_each(|line| followed.reader.aside(line));
        // A test ran after it only because it had ended with 0.
        let code = if ended.part > 0 { Some(0) } else { ended.code };
        let exit = Exit { code, is_asked };
        let clock = Clock { now, offset_secs };
        let verdict = agent.is_known().then(|| followed.reader.verdict(exit, errors, clock));
        Some(Judged { heard: followed.heard.clone(), verdict })
    }

    /// Reads all that an agent said which was lost with its keeper.
    pub(crate) fn hear_lost(&mut self, attempt: &Attempt, around: &Around<'_>) -> Option<Heard> {
        let followed = self.followed.get_mut(attempt)?;
        let (stdout, _) = lane_logs(around.run_dir, &attempt.step);
        let end = fs::metadata(&stdout).ok()?.len();
        if followed.stream.is_none() {
            let start = fs::read_to_string(around.stream_start(attempt)).ok()?.parse().ok()?;
            followed.stream = Some(Tail::new(stdout, start));
        }
        let (agent, program) = (followed.agent.clone(), followed.program);
        followed.read(Some(end), |session| around.record(&agent, program, session));
        Some(followed.heard.clone())
    }

    /// Forgets an attempt whose outcome is recorded.
    pub(crate) fn forget(&mut self, attempt: &Attempt, around: &Around<'_>) {
        if self.followed.remove(attempt).is_some() {
            let _ = fs::remove_file(around.record_start(attempt));
            let _ = fs::remove_file(around.stream_start(attempt));
        }
    }
}
