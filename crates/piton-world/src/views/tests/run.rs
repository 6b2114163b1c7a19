//! A run in the making, for the tests of views: events in, state out, all remembered.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use piton_core::budget::Budgets;
use piton_core::event::{
    Class, DriverAttached, LaneBegun, LaneCommitted, LaneMerged, LaneReady, LaneRebased,
    LaneRemoved, MergeIntended, MergedBy, Next, Outcome, ProtocolRef, RunCreated, Shape,
    StepFinished, StepStarted,
};
use piton_core::lane::{Isolation, LaneRules, Role, TaskWorktrees};
use piton_core::plan::{Command, Lane, OnFailure, Phase, Step, Work};
use piton_core::{Event, LanePath, Millis, Plan, RunId, RunState, StepPath, Timestamp, apply};

use piton_formats::settings::Settings;
use piton_protocols::TABLE;
use piton_protocols::files;

use super::super::{Place, RunLock, Writer};

pub const RUN: &str = "P1-20251227-103000";
/// The base of times in tests: 2025-12-27T10:30:00Z.
const START: i64 = 1_766_831_400_000;

/// A project with a run of two lanes and their validation.
pub struct Run {
    pub dir: tempfile::TempDir,
    pub plan: Plan,
    pub state: RunState,
    pub events: Vec<(u64, Timestamp, Event)>,
}

fn step(id: &str) -> Step {
    Step {
        escalation: None,
        fallback: Vec::new(),
        writes: None,
        scope: None,
        id: id.to_owned(),
        work: Work::Run(Command::Shell(format!("do {id}"))),
        test: None,
        dir: String::new(),
        env: BTreeMap::new(),
        inputs: Vec::new(),
        artifacts: Vec::new(),
        retries: 1,
        backoff: Millis(100),
        timeout: Millis::from_secs(60),
        idle_timeout: None,
        grace: Millis::from_secs(1),
        keep: Vec::new(),
        role: Role::Work,
    }
}

fn lane(id: &str, isolation: Isolation, provides: &[&str]) -> Lane {
    let provides = provides.iter().map(|gate| (*gate).to_owned()).collect();
    let rules = LaneRules { isolation, provides, ..LaneRules::default() };
    Lane { id: id.to_owned(), needs: Vec::new(), gate: None, steps: vec![step("work")], rules }
}

fn plan() -> Plan {
    let mut lanes = vec![
        lane("SL-1", Isolation::Worktree, &["IF-0-P1-A"]),
        lane("SL-2", Isolation::InPlace, &["IF-0-P1-B"]),
        lane("validation", Isolation::InPlace, &[]),
    ];
    lanes[2].steps[0].role = Role::Validation;
    let phase = Phase {
        id: "P1".to_owned(),
        needs: Vec::new(),
        after: Vec::new(),
        gate: None,
        lanes,
        complexity: None,
        tasks: 0,
    };
    Plan {
        record: None,
        on_change: piton_core::plan::OnChange::default(),
        title: "Foundation".to_owned(),
        protocol: None,
        spec: None,
        on_failure: OnFailure::Stop,
        budgets: Budgets::default(),
        phases: vec![phase],
        task_worktrees: TaskWorktrees::Off,
        replan: None,
        agents: std::collections::BTreeMap::new(),
    }
}

pub fn path(lane: &str) -> LanePath {
    LanePath { phase: "P1".to_owned(), lane: lane.to_owned() }
}

/// The protocol of a run whose plan is called so.
pub fn protocol(plan_path: &str) -> ProtocolRef {
    let reader = if plan_path == "plan.toml" { "plain" } else { "lanes" };
    ProtocolRef { id: "lanes".to_owned(), version: 1, reader: reader.to_owned() }
}

impl Run {
    /// A run that was just created, of a plan with this path.
    pub fn new(plan_path: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan();
        let created = RunCreated {
            previous: None,
            run_id: RunId(RUN.to_owned()),
            protocol: protocol(plan_path),
            plan_path: plan_path.to_owned(),
            plan_hash: plan.hash(),
            title: plan.title.clone(),
            spec: None,
            root: dir.path().display().to_string(),
            mark: "mark".to_owned(),
            head: None,
            linked: false,
            shape: Shape::from(&plan),
        };
        let mut run = Self { dir, plan, state: RunState::default(), events: Vec::new() };
        run.happens(Event::RunCreated(Box::new(created)));
        run.happens(Event::DriverAttached(DriverAttached {
            epoch: 1,
            pid: 1,
            host: "host".to_owned(),
            head: None,
            takeover: false,
            base: None,
            retries: None,
            seed_dirty: false,
            keep_going: false,
            driven_until: None,
        }));
        run
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Who writes the files of the lanes protocol.
    pub fn views(&self) -> Writer {
        let (root, settings, state) = (self.root(), &Settings::default(), &self.state);
        let files = TABLE[0].files(&files::Run { root, settings, state }).unwrap();
        let place = Place {
            root: root.to_owned(),
            state_dir: root.to_owned(),
            run_dir: root.join("run"),
            run_id: RUN.to_owned(),
            ledger: |_| None,
            protocol: "lanes".to_owned(),
        };
        Writer::new(place, files, RunLock::new(root.join("run.lock"), 1))
    }

    /// Brings the files of a run up to its events, as the next driver does.
    pub fn brought_up(&self) -> Writer {
        let mut views = self.views();
        assert_eq!(views.bring_up(&self.events, &self.plan, &self.state), [""; 0]);
        views
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn checkpoints(&self) -> PathBuf {
        self.file(".claude/ai-dev-kit/run-logs/checkpoints.json")
    }

    pub fn report(&self) -> PathBuf {
        self.file(&format!(".claude/run-reports/{RUN}.md"))
    }

    pub fn log(&self) -> PathBuf {
        self.file(&format!(".claude/run-logs/{RUN}.jsonl"))
    }

    pub fn happens(&mut self, event: Event) {
        let seq = self.events.len() as u64 + 1;
        let at = Timestamp(START + i64::try_from(seq).unwrap() * 1000);
        apply(&mut self.state, at, &event).unwrap();
        self.events.push((seq, at, event));
    }

    pub fn begins(&mut self, lane: &str) {
        let isolation = self.state.lane(&path(lane)).unwrap().isolation;
        let own = isolation == Isolation::Worktree;
        let branch = if own { format!("lane/P1/{lane}") } else { String::new() };
        let dir = if own { self.file(".worktrees/P1").join(lane) } else { self.root().to_owned() };
        let dir = dir.display().to_string();
        self.happens(Event::LaneBegun(Box::new(LaneBegun {
            lane: path(lane),
            isolation,
            dir: dir.clone(),
            branch: branch.clone(),
            base_branch: "main".to_owned(),
            base_sha: Some("a".repeat(40)),
            snapshot: None,
            note: String::new(),
        })));
        if own {
            self.happens(Event::LaneReady(Box::new(LaneReady {
                lane: path(lane),
                dir,
                branch,
                head: Some("a".repeat(40)),
                snapshot: None,
                note: String::new(),
            })));
        }
    }

    /// An attempt of a lane's only step.
    pub fn works(&mut self, lane: &str, attempt: u32, outcome: Outcome) {
        let step = StepPath::new("P1", lane, "work");
        let definition = self.plan.step(&step).unwrap().definition();
        self.happens(Event::StepStarted(StepStarted::new(step.clone(), attempt, definition)));
        let ok = outcome == Outcome::Succeeded;
        self.happens(Event::StepFinished(Box::new(StepFinished {
            exit_code: Some(i32::from(!ok)),
            duration_ms: Millis(10),
            tests: if ok { vec!["make test".to_owned()] } else { Vec::new() },
            command: (!ok).then(|| "make test".to_owned()),
            retries_max: (!ok).then_some(1),
            drifted: Vec::new(),
            ..StepFinished::new(step, attempt, outcome)
        })));
    }

    pub fn merges(&mut self, lane: &str) {
        let lane = path(lane);
        self.happens(Event::LaneCommitted(LaneCommitted {
            lane: lane.clone(),
            commit: "b".repeat(40),
            tree: "c".repeat(40),
            changed: true,
            tests: vec!["make test".to_owned()],
        }));
        self.happens(Event::LaneRebased(LaneRebased {
            lane: lane.clone(),
            onto: "a".repeat(40),
            commit: "b".repeat(40),
            tree: "c".repeat(40),
        }));
        self.happens(Event::MergeIntended(MergeIntended {
            lane: lane.clone(),
            base_branch: "main".to_owned(),
            from: "a".repeat(40),
            to: "b".repeat(40),
        }));
        self.happens(Event::LaneMerged(LaneMerged {
            lane: lane.clone(),
            by: MergedBy::Queue,
            from: Some("a".repeat(40)),
            to: Some("b".repeat(40)),
            note: String::new(),
        }));
        let (snapshot, branch_head, branch_stays) = (None, None, false);
        self.happens(Event::LaneRemoved(LaneRemoved { lane, snapshot, branch_head, branch_stays }));
    }
}

pub fn failed(next: Next) -> Outcome {
    Outcome::Failed {
        class: Class::Test,
        error: "exit code 1".to_owned(),
        lines: vec!["no luck".to_owned()],
        budget: None,
        signature: String::new(),
        next,
    }
}

/// A part of a run.
pub type Stretch = Box<dyn Fn(&mut Run)>;

/// Each stretch of a whole run, in order.
pub fn stretches() -> Vec<Stretch> {
    vec![
        Box::new(|run| run.begins("SL-2")),
        Box::new(|run| run.begins("SL-1")),
        Box::new(|run| run.works("SL-1", 1, failed(Next::Retry { at: Timestamp(0) }))),
        Box::new(|run| run.works("SL-2", 1, Outcome::Succeeded)),
        Box::new(|run| run.works("SL-1", 2, Outcome::Succeeded)),
        Box::new(|run| run.merges("SL-1")),
        Box::new(|run| run.begins("validation")),
        Box::new(|run| run.works("validation", 1, failed(Next::Fail))),
    ]
}
