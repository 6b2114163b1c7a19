//! Replans of every kind: wanted, refused, begun, ended in each way, taken over.

use piton_core::complexity::Complexity;
use piton_core::event::{
    Equal, Event, ImportedReplan, LogRanges, NewPlan, NoReplan, PhaseChange, PhaseChanged,
    ReplanBegun, ReplanEnded, ReplanOutcome, ReplanRefused, ReplanWanted, ReplansImported, Shape,
    Trigger,
};
use piton_core::plan::{ReplanRules, Step};
use piton_core::{Millis, Plan, Timestamp};

use super::{sha, step, text, texts};

/// Rules with all that they may say.
pub fn rules(by: Step) -> ReplanRules {
    ReplanRules {
        by: Some(Box::new(by)),
        per_phase: 3,
        per_run: 9,
        complexity: Complexity(850),
        tasks: 11,
        test_failures: 3,
        scope_drift: false,
    }
}

fn equal() -> Equal {
    Equal { this: text("the new plan"), that: text("the plan before replan 1 of P1") }
}

fn refused(trigger: Trigger, why: NoReplan) -> Event {
    let (phase, reason) = (text("P1"), text("it is too large"));
    Event::ReplanRefused(Box::new(ReplanRefused { phase, trigger, reason, why }))
}

fn begun(number: u32, attempt: u32) -> Event {
    Event::ReplanBegun(Box::new(ReplanBegun {
        phase: text("P1"),
        trigger: Trigger::TestFailures,
        reason: text("the test failed twice"),
        step: Some(step("P1/A/work")),
        signature: text("0f1e2d3c4b5a6978"),
        forced_by: text("ada"),
        number,
        attempt,
        plan: sha("structure"),
        secrets: texts(&["API_TOKEN"]),
    }))
}

fn ended(attempt: u32, outcome: ReplanOutcome) -> Event {
    let logs = LogRanges { stdout: (1, 2), stderr: (3, 4), ..LogRanges::default() };
    Event::ReplanEnded(Box::new(ReplanEnded {
        phase: text("P1"),
        attempt,
        outcome,
        exit_code: Some(1),
        duration_ms: Millis(1_234),
        logs,
    }))
}

/// What happened, in an order in which it can.
pub fn story(plan: &Plan) -> Vec<Event> {
    let change = |phase: &str, what| PhaseChange {
        phase: text(phase),
        what,
        words: texts(&["main/work: run: a -> b"]),
    };
    let new = NewPlan {
        from: plan.hash(),
        to: plan.hash(),
        title: text("A plan"),
        shape: Shape::from(plan),
        structure: sha("another structure"),
        changes: vec![
            change("P1", PhaseChanged::Changed),
            change("P2", PhaseChanged::Added),
            change("P0", PhaseChanged::Removed),
        ],
    };
    let history = ImportedReplan {
        phase: text("P1"),
        reason: text("complexity_exceeded"),
        at: Some(Timestamp(2)),
    };
    let failed = ReplanOutcome::Failed { error: text("exit code 1"), lines: texts(&["no idea"]) };
    vec![
        Event::ReplansImported(Box::new(ReplansImported {
            counts: [(text("P1"), 1)].into(),
            history: vec![history],
        })),
        Event::ReplanWanted(ReplanWanted {
            phase: text("P1"),
            reason: text("split it"),
            by: text("ada"),
            step: Some(step("P1/A/work")),
            force: true,
        }),
        refused(Trigger::Complexity, NoReplan::Limit { count: 2 }),
        refused(Trigger::Tasks, NoReplan::RunLimit { count: 20 }),
        refused(Trigger::TestFailures, NoReplan::Loop { equal: equal() }),
        refused(Trigger::ScopeDrift, NoReplan::NoCommand),
        refused(Trigger::Requested, NoReplan::Failed { error: text("no plan") }),
        refused(Trigger::Requested, NoReplan::Undone),
        begun(2, 1),
        ended(1, ReplanOutcome::Interrupted { why: text("lost") }),
        begun(2, 2),
        ended(2, failed),
        begun(3, 3),
        ended(3, ReplanOutcome::Looped { equal: equal() }),
        begun(4, 4),
        ended(4, ReplanOutcome::Replanned(Box::new(new))),
    ]
}
