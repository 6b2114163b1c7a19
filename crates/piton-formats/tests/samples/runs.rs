//! A run in each status. Its id begins with the status, so that a ledger of them needs no key.

use piton_core::event::{Class, Event, Next, Outcome, RewindIntended, Rewound, Verdict};
use piton_core::{Plan, Status, Timestamp};

use super::plan::{plan, small};
use super::{
    aborted, archived, asked, attached, begun, blocked, created, failed, finished, left, ready,
    rewind, skipped, started, story,
};

const LANE: &str = "P1/A";
const STEP: &str = "P1/A/work";

/// Every status that a run can have; one whose steps were all skipped is complete.
pub const RUN_STATUSES: &[Status] = &[
    Status::Pending,
    Status::Running,
    Status::Retrying,
    Status::Waiting,
    Status::Parked,
    Status::Failed,
    Status::Blocked,
    Status::Complete,
    Status::Interrupted,
    Status::RolledBack,
    Status::Aborted,
    Status::Cancelled,
    Status::Archived,
];

/// A run as it is recorded.
pub struct Run {
    pub id: &'static str,
    pub plan: Plan,
    pub events: Vec<Event>,
}

impl Run {
    /// The status in its name.
    pub fn status(&self) -> &'static str {
        self.id.split('-').next().unwrap_or_default()
    }

    /// Whether its driver is at work.
    pub fn is_driven(&self) -> bool {
        ["running", "retrying", "parked"].contains(&self.status())
    }
}

/// All of them.
pub fn runs() -> Vec<Run> {
    let until = Timestamp(i64::MAX);
    let ended = |outcome| vec![started(STEP, 1), finished(STEP, 1, outcome)];
    let fails = |class, next| ended(failed(class, next));
    let back = RewindIntended { reverts: Vec::new(), ..rewind() };
    let back = [Event::RewindIntended(Box::new(back)), Event::Rewound(Rewound::default())];
    let and = |events: Vec<Event>, more: &[Event]| [events, more.to_vec()].concat();
    let small_runs = [
        ("pending", vec![left(Verdict::SelectionDone)]),
        ("running", vec![begun(LANE), ready(LANE), started(STEP, 1)]),
        ("retrying", fails(Class::Network, Next::Retry { at: until })),
        ("parked", fails(Class::RateLimit, Next::Wait { until })),
        ("waiting", vec![asked("P1", "Spec approval"), left(Verdict::Waiting)]),
        ("failed", and(fails(Class::Command, Next::Fail), &[left(Verdict::Failed)])),
        ("blocked", vec![blocked(LANE), left(Verdict::Blocked)]),
        ("complete", and(ended(Outcome::Succeeded), &[left(Verdict::Complete)])),
        ("complete-skipped", vec![skipped(STEP), left(Verdict::Complete)]),
        ("interrupted", vec![started(STEP, 1)]),
        ("rolled_back", and(and(vec![begun(LANE)], &back), &[left(Verdict::RolledBack)])),
        ("aborted", vec![aborted(false), left(Verdict::Aborted)]),
        ("archived", vec![left(Verdict::Interrupted), archived()]),
    ];
    let begins = |id| vec![created(id, &small()), attached(1)];
    let small_runs = small_runs.into_iter().map(|(id, events)| {
        let events = and(begins(id), &events);
        Run { id, plan: small(), events }
    });
    let unbegun = Run { id: "pending-unbegun", plan: small(), events: Vec::new() };
    let whole = Run { id: "cancelled", plan: plan(), events: story() };
    small_runs.chain([unbegun, whole]).collect()
}
