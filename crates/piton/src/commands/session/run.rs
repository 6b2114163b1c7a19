//! The run of a session: which one it is, how it begins, and how something is recorded in it.

use piton_core::event::{
    Event, LaneBegun, LaneReady, ProtocolRef, RunCreated, SessionOpened, Shape,
};
use piton_core::lane::Isolation;
use piton_core::request::Request;
use piton_core::session_state::{SessionAct, SessionState};
use piton_core::{LanePath, RunId, RunState, Timestamp, apply};
use piton_engine::Store;
use piton_engine::store::{Commit, Loaded};
use piton_formats::{Input, read_plan};
use piton_ledger::{Lease, NewRun, RunRow};
use piton_protocols::session::checkpoint::Checkpoint;
use piton_protocols::session::{ID, LANE, PHASE, PLAN};
use piton_protocols::time;
use piton_view::answers::Outcome;

use super::here::{Here, Note};
use crate::commands::request::{self, Target, unfinished};
use crate::commands::{current_files, run};
use crate::context::{Context, now};
use crate::drive;
use crate::error::{CommandError, Kind, Result};

/// How the names of sessions begin that nobody named.
const UNNAMED: &str = "s-";
/// Sessions that may begin within a second.
const SAME_SECOND_MAX: u32 = 1000;

/// A run that something is recorded in.
pub struct Recording<'c> {
    /// The memory bank.
    pub here: Here<'c>,
    /// The ledger.
    pub store: Store,
    /// The run, as it was loaded last.
    pub loaded: Loaded,
    /// The session.
    pub session: String,
}

impl<'c> Recording<'c> {
    /// The run of a session; it begins here if there is none. Without an id the last one is meant.
    pub fn of(here: Here<'c>, session: Option<&str>) -> Result<Self> {
        let mut store = here.context.write_store()?;
        let known = match session {
            Some(session) => {
                noted(&here, &mut store, session)?
                    .or(found(&here, &mut store, |state| state.session == session)?)
            }
            None => found(&here, &mut store, |_| true)?,
        };
        if let Some(loaded) = known {
            let last = loaded.state.session.as_ref().map(|s| s.session.clone()).unwrap_or_default();
            let session = session.map_or(last, str::to_owned);
            return Ok(Self { here, store, loaded, session });
        }
        let session = session.map_or_else(unnamed, str::to_owned);
        let loaded = create(&here, &mut store)?;
        let mut new = Self { here, store, loaded, session };
        let opened = SessionOpened { session: new.session.clone(), resumed: None, used: None };
        new.record(vec![SessionAct::Open(opened)])?;
        Ok(new)
    }

    /// The run of a checkpoint: the one that it names, or one that met it before. It begins here if
    /// there is none.
    pub fn of_checkpoint(here: Here<'c>, checkpoint: &Checkpoint, session: &str) -> Result<Self> {
        let mut store = here.context.write_store()?;
        let named = checkpoint.owner.as_ref().map(|(run, _)| store.ledger().run(run));
        let named = named.transpose()?.flatten();
        let named =
            named.filter(|row| row.seq > 0 && row.plan == here.plan_path() && unfinished(row));
        let time = Some(&checkpoint.timestamp);
        let met = |state: &SessionState| {
            let resumed = state.resumed.as_ref().map(|resumed| &resumed.timestamp);
            resumed == time || state.not_resumed.as_ref() == time
        };
        let known = match named {
            Some(row) => Some(store.load_row(row)?),
            None => found(&here, &mut store, met)?,
        };
        let loaded = match known {
            Some(loaded) => loaded,
            None => create(&here, &mut store)?,
        };
        Ok(Self { here, store, loaded, session: session.to_owned() })
    }

    /// The state of the session.
    pub fn state(&self) -> &RunState {
        &self.loaded.state
    }

    /// Records what happened, in one commit, and writes the files.
    pub fn record(&mut self, acts: Vec<SessionAct>) -> Result<()> {
        let run_id = self.loaded.row.run_id.clone();
        self.here.begin(&run_id)?;
        let asked = Request::Session { acts };
        let context = self.here.context;
        let sent = request::send(context, &mut self.store, &self.loaded, &asked, Target::Run)?;
        if sent.outcome != Outcome::Done {
            return Err(CommandError::new(Kind::Driven, "run-driven", sent.answer));
        }
        self.here.show(&mut self.store, &run_id)?;
        self.loaded = self.store.load(&run_id)?;
        self.here.read_again()?;
        let (trigger, task, ended) = self
            .state()
            .session
            .as_ref()
            .map(|session| (session.trigger, session.task.clone(), session.ended))
            .unwrap_or_default();
        if ended {
            self.here.forget_note(&self.session);
            return Ok(());
        }
        // No agent is behind a session that nobody named: what it started is anybody's.
        let task = task.filter(|_| !self.session.starts_with(UNNAMED));
        self.here.keep_note(&self.session, &Note { run: run_id, trigger, task })
    }

    /// The task that the session started, and those that others did.
    pub fn tasks(&self) -> (Option<String>, Vec<String>) {
        let own = self.state().session.as_ref().and_then(|session| session.task.clone());
        (own, self.here.claimed(&self.loaded.row.run_id))
    }
}

/// The name of a session that nobody named.
pub fn unnamed() -> String {
    format!("{UNNAMED}{}", time::stamp(now()))
}

/// The run of a session by its note.
fn noted(here: &Here<'_>, store: &mut Store, session: &str) -> Result<Option<Loaded>> {
    let Some(note) = here.note(session) else { return Ok(None) };
    let row = store.ledger().run(&note.run)?;
    let row = row.filter(|row| row.seq > 0 && unfinished(row) && row.plan == here.plan_path());
    let loaded = row.map(|row| store.load_row(row)).transpose()?;
    // Another session may go on with that run by now.
    Ok(loaded.filter(|l| l.state.session.as_ref().is_some_and(|s| s.session == session)))
}

/// The newest run of this bank whose session fits.
pub fn found(
    here: &Here<'_>,
    store: &mut Store,
    fits: impl Fn(&SessionState) -> bool,
) -> Result<Option<Loaded>> {
    let (plan, root) = (here.plan_path(), &here.context.project.root);
    let is_own = |row: &RunRow| {
        row.plan == plan && unfinished(row) && row.seq > 0 && root.as_os_str() == row.root.as_str()
    };
    for row in store.runs()?.into_iter().filter(is_own) {
        let loaded = store.load_row(row)?;
        let session = loaded.state.session.as_ref();
        if session.is_some_and(|session| fits(session)) {
            return Ok(Some(loaded));
        }
    }
    Ok(None)
}

/// Creates the run of a session, with a snapshot of the files that it begins with.
fn create(here: &Here<'_>, store: &mut Store) -> Result<Loaded> {
    let context = here.context;
    let git = context.project.git_dir.is_some();
    let read = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let input = Input { file: ID, text: PLAN, settings: &context.settings, git, read: &read };
    let (plan, _) = read_plan(&input).map_err(|problems| {
        let words: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
        CommandError::usage("settings", words.join("; "))
            .hint("a session uses the defaults of piton.toml: correct them")
    })?;
    let (row, lease) = named_run(here, store, &plan)?;
    let created = RunCreated {
        run_id: RunId(row.run_id.clone()),
        protocol: ProtocolRef { id: ID.to_owned(), version: 1, reader: ID.to_owned() },
        plan_path: here.plan_path(),
        plan_hash: plan.hash(),
        title: plan.title.clone(),
        spec: None,
        root: context.project.root.to_string_lossy().into_owned(),
        linked: context.project.is_linked(),
        mark: run::create::random_word(),
        head: context.project.head(),
        previous: None,
        shape: Shape::from(&plan),
    };
    let mut events = vec![Event::RunCreated(Box::new(created))];
    let mut state = RunState::default();
    // One time for all: the cached state is what the recorded events add up to.
    let at = now();
    put(&mut state, at, &events[0])?;
    let mut loaded = Loaded { row, state, seq: 0 };
    let snapshots = current_files::all(context, &loaded)?;
    let snapshot = snapshots.into_iter().next().map(|(_, snapshot)| snapshot);
    let lane = LanePath { phase: PHASE.to_owned(), lane: LANE.to_owned() };
    let head = context.project.head();
    let (dir, branch, note) = (String::new(), String::new(), String::new());
    events.push(Event::LaneBegun(Box::new(LaneBegun {
        lane: lane.clone(),
        isolation: Isolation::InPlace,
        dir: dir.clone(),
        branch: branch.clone(),
        base_branch: String::new(),
        base_sha: head.clone(),
        snapshot: snapshot.clone(),
        note: note.clone(),
    })));
    events.push(Event::LaneReady(Box::new(LaneReady { lane, dir, branch, head, snapshot, note })));
    for event in &events[1..] {
        put(&mut loaded.state, at, event)?;
    }
    store.append(&Commit {
        row: &loaded.row,
        epoch: lease.epoch,
        expected_seq: 0,
        at,
        events: &events,
        state: &loaded.state,
        answered: &[],
        release: true,
    })?;
    Ok(store.load(&loaded.row.run_id)?)
}

fn put(state: &mut RunState, at: Timestamp, event: &Event) -> Result<()> {
    apply(state, at, event).map_err(|e| CommandError::failed("ledger", e.to_string()))
}

/// The row of a new run, with its lease.
fn named_run(
    here: &Here<'_>,
    store: &mut Store,
    plan: &piton_core::Plan,
) -> Result<(RunRow, Lease)> {
    let context = here.context;
    let base = format!("session-{}", time::stamp(now()));
    let root = context.project.root.to_string_lossy().into_owned();
    let path = here.plan_path();
    for count in 1..=SAME_SECOND_MAX {
        let run_id = if count == 1 { base.clone() } else { format!("{base}-{count}") };
        let new =
            NewRun { run_id: &run_id, plan: &path, title: &plan.title, root: &root, at: now().0 };
        match store.create(&new, plan, &Context::owner()) {
            Ok(row) => {
                let lease = row.owner.clone();
                let lease = lease.ok_or_else(|| {
                    CommandError::failed("ledger", "a new run came without its lease")
                })?;
                let lease = drive::epoch::lift(context, store, &row, lease)?;
                return Ok((row, lease));
            }
            Err(piton_engine::Error::Ledger(piton_ledger::Error::RunExists { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(CommandError::failed("run-exists", "too many sessions were started this second"))
}
