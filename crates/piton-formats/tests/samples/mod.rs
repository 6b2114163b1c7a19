//! One of everything that the ledger stores: plans, runs, events, requests.
//!
//! The events are runs that can be loaded: each may follow those before it. Every tag stands here at
//! least once with all its fields filled.

mod agents;
mod plan;
mod replans;
pub mod runs;
mod session;

use piton_core::event::{
    ApprovalAsked, BudgetExhausted, ChangesWanted, CheckpointRecorded, Class, Cluster,
    CommandRefused, Comment, DriverAttached, DriverLeft, Facts, FileHash, GateAsked, GateDecided,
    GateReopened, LaneBegun, LaneBlocked, LaneCommitted, LaneForked, LaneImported, LaneJoined,
    LaneKept, LaneMerged, LaneReady, LaneRebased, LaneRemoved, LaneReopened, LogRanges,
    MergeIntended, MergeMissed, MergedBy, Next, Outcome, OutputsAccepted, Outstanding,
    PlanAccepted, ProtocolRef, PullRequestOpened, Revert, Review, RewindIntended, RewindKind,
    RewindWorkspace, Rewound, RunAborted, RunArchived, RunCreated, Shape, SpecAccepted,
    StepFinished, StepImported, StepProven, StepReset, StepRetried, StepSkipped, StepStarted,
    TicksSeen, TimeSkipped, Verdict,
};
use piton_core::hash::Sha;
use piton_core::lane::{Isolation, Missed, SnapshotRef, Stage, StageStatus};
use piton_core::lane_state::StageRecord;
use piton_core::request::Request;
use piton_core::step_state::FailedAttempt;
use piton_core::{Event, GateRef, LanePath, Millis, Plan, RunId, StepPath, Timestamp};

pub use plan::plan;

/// The lane that most of it is about.
const LANE: &str = "P1/A";

fn text(text: &str) -> String {
    text.to_owned()
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| text(one)).collect()
}

fn lane(path: &str) -> LanePath {
    path.parse().expect("a lane")
}

fn step(path: &str) -> StepPath {
    path.parse().expect("a step")
}

fn gate(place: &str) -> GateRef {
    GateRef(text(place))
}

fn sha(of: &str) -> Sha {
    Sha::of(of.as_bytes())
}

fn file(path: &str) -> FileHash {
    FileHash { path: text(path), sha256: sha(path) }
}

fn snapshot(commit: &str) -> SnapshotRef {
    SnapshotRef {
        commit: text(commit),
        tree: format!("{commit}-tree"),
        degraded: vec![Missed { path: text("core.dump"), why: text("it is too large") }],
        head: Some(text("head")),
    }
}

fn started(path: &str, attempt: u32) -> Event {
    Event::StepStarted(StepStarted {
        step: step(path),
        attempt,
        definition: sha(path),
        inputs: vec![file("src/lib.rs")],
        before: Some(snapshot("before")),
        tests_only: true,
        secrets: texts(&["TOKEN"]),
        agent: Some(agents::begun()),
    })
}

fn finished(path: &str, attempt: u32, outcome: Outcome) -> Event {
    Event::StepFinished(Box::new(StepFinished {
        step: step(path),
        attempt,
        outcome,
        exit_code: Some(1),
        signal: Some(15),
        duration_ms: Millis(1_234),
        logs: LogRanges {
            stdout: (10, 20),
            stderr: (30, 40),
            stdout_dropped: Some((12, 13)),
            stderr_dropped: Some((32, 33)),
        },
        artifacts: vec![file("target/out")],
        inputs: Some(vec![file("src/lib.rs")]),
        facts: Facts { tokens: 7, money_micros: 8, notes: texts(&["a note"]) },
        after: Some(snapshot("after")),
        tests: texts(&["make test"]),
        changed_by_tests: true,
        command: Some(text("make all")),
        retries_max: Some(3),
        drifted: texts(&["other.rs"]),
        outside: texts(&["more.rs"]),
        changed: texts(&["made.rs"]),
    }))
}

fn failed(class: Class, next: Next) -> Outcome {
    let (error, lines) = (text("exit code 1"), texts(&["error"]));
    Outcome::Failed {
        class,
        error,
        lines,
        budget: Some(text("attempts")),
        signature: text("0f1e2d3c4b5a6978"),
        next,
    }
}

fn merged(path: &str, by: MergedBy) -> LaneMerged {
    LaneMerged {
        lane: lane(path),
        by,
        from: Some(text("base")),
        to: Some(text("merged")),
        note: text("a note"),
    }
}

fn record() -> StageRecord {
    StageRecord {
        notes: text("a note"),
        snapshot: Some(text("snapshot")),
        base_sha: Some(text("base")),
        head_sha: Some(text("head")),
        target_branch: Some(text("main")),
        test_command: Some(text("make test")),
        exit_code: Some(1),
        last_command: Some(text("make all")),
        retry_attempt: Some(1),
        max_retries: Some(3),
        failure_context: texts(&["Attempt 1: error"]),
        assumed: true,
        ..StageRecord::blank(Stage::AfterLaneTests, StageStatus::Failed, Timestamp(5), 6)
    }
}

fn rewind() -> RewindIntended {
    RewindIntended {
        kind: RewindKind::Rollback,
        to: text("after_lane_start"),
        stage: Some(Stage::AfterLaneStart),
        after_event: 9,
        points: vec![(lane(LANE), 8)],
        lanes: vec![lane(LANE)],
        workspaces: vec![RewindWorkspace {
            lane: Some(lane(LANE)),
            dir: text(".worktrees/A"),
            present: snapshot("present"),
            target: text("target"),
            beside: Some(text("beside")),
            paths: texts(&["src"]),
            keep: texts(&["notes.md"]),
            branch: text("lane/P1/A"),
            head_from: Some(text("from")),
            head_to: Some(text("to")),
            large: Some(text("large")),
            goes: true,
            copy: texts(&[".env"]),
        }],
        reverts: vec![Revert {
            lane: lane(LANE),
            base_branch: text("main"),
            merged_from: text("base"),
            merged_to: text("merged"),
            from: text("merged"),
            to: text("reverted"),
        }],
        undoes: Some(4),
        by: text("ada"),
    }
}

fn imported() -> LaneImported {
    LaneImported {
        lane: lane("P1/B"),
        records: vec![record()],
        snapshot: Some(snapshot("found")),
        merged: Some(merged("P1/B", MergedBy::Kept)),
        stays: true,
        base_branch: text("main"),
        outstanding: Some(Outstanding { commit: text("commit"), pull_request: text("of B") }),
        failures: vec![FailedAttempt {
            attempt: 1,
            class: Class::Test,
            error: text("exit code 1"),
            lines: texts(&["error"]),
            budget: Some(text("attempts")),
            command: Some(text("make")),
            exit_code: Some(1),
        }],
        retried: Some(1),
        retries: Some(3),
        note: text("a note"),
    }
}

fn created(run_id: &str, plan: &Plan) -> Event {
    Event::RunCreated(Box::new(RunCreated {
        run_id: RunId(text(run_id)),
        protocol: ProtocolRef { id: text("lanes"), version: 1, reader: text("plain") },
        plan_path: text("plan.toml"),
        plan_hash: plan.hash(),
        title: plan.title.clone(),
        spec: Some(file("spec.md")),
        root: text("/project"),
        linked: true,
        mark: text("mark"),
        head: Some(text("head")),
        previous: Some(text("specs/1/.pipeline-state.20260101-000000.md")),
        shape: Shape::from(plan),
    }))
}

fn attached(epoch: u64) -> Event {
    Event::DriverAttached(DriverAttached {
        epoch,
        pid: 7,
        host: text("host"),
        head: Some(text("head")),
        takeover: true,
        base: Some(text("main")),
        retries: Some(2),
        seed_dirty: true,
        keep_going: true,
        driven_until: Some(Timestamp(3)),
    })
}

fn left(verdict: Verdict) -> Event {
    let (head, signal) = (Some(text("head")), Some(15));
    Event::DriverLeft(DriverLeft { verdict, head, signal, driven_until: Some(Timestamp(4)) })
}

fn begun(path: &str) -> Event {
    Event::LaneBegun(Box::new(LaneBegun {
        lane: lane(path),
        isolation: Isolation::Worktree,
        dir: text(".worktrees/A"),
        branch: text("lane/P1/A"),
        base_branch: text("main"),
        base_sha: Some(text("base")),
        snapshot: Some(snapshot("begun")),
        note: text("a note"),
    }))
}

fn ready(path: &str) -> Event {
    Event::LaneReady(Box::new(LaneReady {
        lane: lane(path),
        dir: text(".worktrees/A"),
        branch: text("lane/P1/A"),
        head: Some(text("head")),
        snapshot: Some(snapshot("ready")),
        note: text("a note"),
    }))
}

fn blocked(path: &str) -> Event {
    Event::LaneBlocked(LaneBlocked {
        lane: lane(path),
        stage: Stage::BeforeLaneStart,
        refusal: piton_core::refusal::Refusal::new("base-dirty", "base is not clean")
            .or("commit it"),
        base_branch: text("main"),
    })
}

fn committed(path: &str) -> Event {
    let (commit, tree) = (text("commit"), text("tree"));
    let (lane, tests) = (lane(path), texts(&["make test"]));
    Event::LaneCommitted(LaneCommitted { lane, commit, tree, changed: true, tests })
}

fn rebased(path: &str) -> Event {
    let (onto, commit, tree) = (text("base"), text("commit"), text("tree"));
    Event::LaneRebased(LaneRebased { lane: lane(path), onto, commit, tree })
}

fn intended(path: &str) -> Event {
    let (from, to) = (text("base"), text("merged"));
    Event::MergeIntended(MergeIntended { lane: lane(path), base_branch: text("main"), from, to })
}

fn removed(path: &str) -> Event {
    Event::LaneRemoved(LaneRemoved {
        lane: lane(path),
        snapshot: Some(snapshot("removed")),
        branch_head: Some(text("head")),
        branch_stays: true,
    })
}

fn kept(path: &str) -> Event {
    Event::LaneKept(LaneKept {
        lane: lane(path),
        refusal: piton_core::refusal::Refusal::new("busy", "a file in it is open").or("close it"),
    })
}

fn aborted(cancel: bool) -> Event {
    Event::RunAborted(RunAborted { by: text("ada"), message: text("enough"), cancel })
}

fn archived() -> Event {
    Event::RunArchived(RunArchived { by: text("ada") })
}

fn command_refused() -> Event {
    let (command, step) = (text("approve"), Some(step("P1/A/work")));
    Event::CommandRefused(CommandRefused { command, step, attempt: Some(2), by: text("ada") })
}

fn skipped(path: &str) -> Event {
    Event::StepSkipped(StepSkipped { step: step(path), satisfy: true, by: text("ada") })
}

fn review() -> Review {
    let comment = Comment { path: text("src/lib.rs"), line: 7, text: text("name the unit") };
    Review { by: text("ada"), message: text("almost"), comments: vec![comment] }
}

fn asked(place: &str, name: &str) -> Event {
    Event::GateAsked(GateAsked { gate: gate(place), name: text(name) })
}

/// A run with every event, that was cancelled in the end.
fn story() -> Vec<Event> {
    let plan = plan();
    let (task, at) = ("P1/A.T1", Timestamp(60_000));
    let mut story = vec![
        created("cancelled", &plan),
        command_refused(),
        archived(),
        attached(1),
        Event::TimeSkipped(TimeSkipped { ms: Millis(5) }),
        Event::SpecAccepted(SpecAccepted {
            from: Some(file("spec.md")),
            to: Some(file("spec.md")),
            by: text("ada"),
        }),
        Event::PlanAccepted(Box::new(PlanAccepted {
            from: plan.hash(),
            to: plan.hash(),
            title: text("A plan"),
            shape: Shape::from(&plan),
            by: text("ada"),
        })),
        asked("P1", "Spec approval"),
        Event::GateDecided(GateDecided {
            gate: gate("P1"),
            approved: true,
            by: text("ada"),
            at: Some(Timestamp(2)),
            message: text("fine"),
            plan_hash: plan.hash(),
            artifacts: vec![file("target/out")],
        }),
        Event::ApprovalAsked(Box::new(ApprovalAsked {
            gate: gate("ask:1"),
            question: text("Delete the old table?"),
            step: Some(step("P1/A/work")),
            session: Some(text("s1")),
        })),
        Event::TicksSeen(Box::new(TicksSeen {
            gates: texts(&["IF-0-P1-A"]),
            count: true,
            by: text("found ticked in the document"),
            document: Some(sha("document")),
            gone: texts(&["IF-0-P1-B"]),
        })),
        Event::LaneImported(Box::new(imported())),
        Event::StepImported(Box::new(StepImported {
            step: step("P1/B/work"),
            attempts: 2,
            failures: 1,
            clusters: vec![Cluster {
                signature: text("0f1e2d3c4b5a6978"),
                error: text("exit code 1"),
                first_at: Timestamp(1),
                count: 1,
            }],
            is_done: true,
            at: Some(Timestamp(2)),
            artifacts: vec![file("target/out")],
            definition: Some(sha("work")),
        })),
        blocked(LANE),
        begun(LANE),
        ready(LANE),
        started("P1/A/setup", 1),
        finished("P1/A/setup", 1, Outcome::Succeeded),
        started("P1/A/work", 1),
        finished("P1/A/work", 1, failed(Class::Command, Next::Retry { at })),
        started("P1/A/work", 2),
        finished("P1/A/work", 2, Outcome::Interrupted { why: text("lost") }),
        started("P1/A/work", 3),
        finished("P1/A/work", 3, failed(Class::RateLimit, Next::Wait { until: at })),
        started("P1/A/work", 4),
        finished("P1/A/work", 4, failed(Class::Test, Next::Fail)),
        Event::StepRetried(StepRetried { step: step("P1/A/work"), by: text("ada") }),
        skipped("P1/A/work"),
        Event::StepReset(StepReset { step: step("P1/A/work"), reason: text("an input changed") }),
        started("P1/A/work", 5),
        finished("P1/A/work", 5, failed(Class::Scope, Next::Escalate)),
        Event::ChangesWanted(Box::new(ChangesWanted {
            gate: gate("P1/A/work"),
            review: review(),
            steps: vec![step("P1/A/work")],
            seen: Some(text("reviewed")),
        })),
        started("P1/A/work", 6),
        finished("P1/A/work", 6, Outcome::Succeeded),
        Event::OutputsAccepted(OutputsAccepted {
            step: step("P1/A/work"),
            files: vec![file("target/out")],
            by: text("ada"),
        }),
        Event::LaneForked(Box::new(LaneForked {
            lane: lane(LANE),
            step: step("P1/A/tasks-1"),
            commit: text("commit"),
            snapshot: Some(snapshot("forked")),
        })),
        begun(task),
        ready(task),
        started("P1/A.T1/work", 1),
        finished("P1/A.T1/work", 1, Outcome::Succeeded),
        committed(task),
        rebased(task),
        intended(task),
        Event::LaneMerged(merged(task, MergedBy::Queue)),
        kept(task),
        Event::LaneJoined(Box::new(LaneJoined {
            lane: lane(LANE),
            step: step("P1/A/tasks-1"),
            definition: Some(sha("tasks-1")),
            snapshot: Some(snapshot("joined")),
        })),
        skipped("P1/A/mend"),
        Event::StepProven(StepProven {
            step: step("P1/A/tests"),
            tree: text("tree"),
            definition: Some(sha("tests")),
            artifacts: vec![file("target/out")],
        }),
        committed(LANE),
        rebased(LANE),
    ];
    story.extend([
        intended(LANE),
        Event::MergeMissed(MergeMissed { lane: lane(LANE), found: text("moved"), by_runs: true }),
        Event::LaneReopened(Box::new(LaneReopened {
            lane: lane(LANE),
            step: step("P1/A/work"),
            class: Class::Conflict,
            error: text("both changed src/lib.rs"),
            lines: texts(&["src/lib.rs"]),
            onto: Some(text("moved")),
            head: Some(text("commit")),
            retries_max: 3,
        })),
        ready(LANE),
        started("P1/A/work", 7),
        finished("P1/A/work", 7, Outcome::Succeeded),
        committed(LANE),
        started("P1/A/pull-request", 1),
        finished("P1/A/pull-request", 1, Outcome::Succeeded),
        Event::PullRequestOpened(PullRequestOpened { lane: lane(LANE), url: text("https://x/1") }),
        Event::LaneMerged(merged(LANE, MergedBy::PullRequest)),
        removed(LANE),
        Event::CheckpointRecorded(CheckpointRecorded {
            name: text("manual-1"),
            message: text("before lunch"),
            by: text("ada"),
            head: Some(text("head")),
            snapshots: vec![(Some(lane(LANE)), snapshot("lane"))],
        }),
        Event::RewindIntended(Box::new(rewind())),
        Event::Rewound(Rewound { reverted: text("a file is in the way") }),
        Event::GateReopened(GateReopened {
            gate: gate("P1"),
            by: text("ada"),
            why: text("a rollback"),
            act: Some(4),
        }),
    ]);
    story.extend(agents::story(7));
    story.extend(replans::story(&plan));
    story.extend(session::story());
    story.extend([
        Event::BudgetExhausted(BudgetExhausted {
            place: text("P1"),
            ..BudgetExhausted::of_run("phase_tokens", 9, 8)
        }),
        left(Verdict::Budget),
        aborted(true),
    ]);
    story
}

/// Every request there is.
pub fn requests() -> Vec<Request> {
    vec![
        Request::Decide { gate: text("P1"), approved: true, message: text("fine") },
        Request::Changes { gate: text("P1"), review: review() },
        Request::Retry { step: step("P1/A/work"), again: true, downstream: true },
        Request::Skip { step: step("P1/A/work"), satisfy: true },
        Request::Abort { cancel: true, message: text("enough") },
        Request::Archive,
        Request::Replan {
            phase: text("P1"),
            reason: text("split it"),
            step: Some(step("P1/A/work")),
            force: true,
        },
        Request::Refused {
            command: text("approve"),
            step: Some(step("P1/A/work")),
            attempt: Some(2),
        },
        Request::Checkpoint {
            message: text("before lunch"),
            head: Some(text("head")),
            snapshots: vec![(Some(lane(LANE)), snapshot("lane")), (None, snapshot("root"))],
        },
        Request::Approval {
            question: text("Delete the old table?"),
            step: Some(step("P1/A/work")),
            session: Some(text("s1")),
        },
        session::request(),
    ]
}
