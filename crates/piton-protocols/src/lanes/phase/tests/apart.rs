//! Tasks in worktrees of their own: which, which at once, and the lanes they become.

use piton_core::lane::{Isolation, Merge, Role, TaskWorktrees};
use piton_core::plan::{Command, Lane, Plan, Work};

use super::*;
use piton_formats::settings::Settings;
use piton_formats::template::{self, Vars};

fn defaults(when: TaskWorktrees) -> PlanDefaults {
    let agent = Some(("coder".to_owned(), Command::Args(vec!["coder".to_owned()])));
    PlanDefaults { agent, task_worktrees: when, ..PlanDefaults::new(&Settings::default()) }
}

fn document(rows: &str) -> String {
    let columns =
        "Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s)";
    let index = with_index("- SL-1 -- One\n");
    format!(
        "{index}\n## Lanes\n### SL-1 -- One\n| {columns} |\n|---|---|---|---|---|---|\n{rows}\n"
    )
}

#[track_caller]
fn planned(rows: &str, defaults: &PlanDefaults) -> Plan {
    let text = document(rows);
    match to_plan("p.md", &text, &inspect("p.md", &text).0, defaults) {
        Ok(planned) => planned.plan,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// The steps of the lane; those that wait for tasks with the tasks in brackets.
fn shown(plan: &Plan) -> String {
    let lane = &plan.phases[0].lanes[0];
    let step = |s: &piton_core::plan::Step| match &s.work {
        Work::Tasks(lanes) => format!("[{}]", lanes.join(" ").replace("SL-1.", "")),
        _ => s.id.clone(),
    };
    lane.steps.iter().map(step).collect::<Vec<_>>().join(" ")
}

fn of(rows: &str, when: TaskWorktrees) -> String {
    shown(&planned(rows, &defaults(when)))
}

const ROWS: &str = "| T1 | test | - | t/a.rs | - | `a` |\n| T2 | test | - | t/b.rs | - | `b` |\n\
                    | T3 | impl | - | a.rs | - | - |\n| T4 | impl | T3 | b.rs | - | - |\n\
                    | T5 | verify | - | - | - | `c` |\n";

#[test]
fn tasks_are_put_together_as_far_as_they_can_run_at_once() {
    assert_eq!(of(ROWS, TaskWorktrees::Off), "T1 T2 T3 T4 T5 tests");
    assert_eq!(of(ROWS, TaskWorktrees::Auto), "[T1 T2] T3 T4 T5 tests");
    assert_eq!(of(ROWS, TaskWorktrees::On), "[T1 T2] [T3] [T4] [T5] mend tests");
    for (files, auto, on) in [
        (["a.rs", "b.rs", "c.rs"], "[T1 T2 T3] mend", "[T1 T2 T3] mend"),
        (["src/", "src/b.rs", "c.rs"], "T1 [T2 T3] mend", "[T1] [T2 T3] mend"),
        (["a.rs", "b.rs", "a.rs"], "[T1 T2] T3", "[T1 T2] [T3] mend"),
        (["a.rs", "-", "c.rs"], "T1 T2 T3", "[T1 T2 T3] mend"),
        (["src/*.rs", "src/b.rs", "docs"], "T1 [T2 T3] mend", "[T1] [T2 T3] mend"),
    ] {
        let row =
            |(n, file): (usize, &&str)| format!("| T{} | impl | - | {file} | - | - |\n", n + 1);
        let rows: String = files.iter().enumerate().map(row).collect();
        assert_eq!(of(&rows, TaskWorktrees::Auto), auto, "{files:?}");
        assert_eq!(of(&rows, TaskWorktrees::On), on, "{files:?}");
    }
    // A test file is a task's own as much as its code is.
    let rows = "| T1 | impl | - | a.rs | t.rs | - |\n| T2 | impl | - | b.rs | t.rs | - |\n";
    assert_eq!(of(rows, TaskWorktrees::Auto), "T1 T2");
}

#[test]
fn a_task_apart_is_a_lane_that_goes_back_to_its_own() {
    let mut defaults = defaults(TaskWorktrees::Auto);
    defaults.rules.merge = Merge::PullRequest;
    defaults.setup = Some(Command::Shell("make deps".to_owned()));
    defaults.rules.copy = vec![".env".to_owned()];
    let rows = "| T1 | impl | - | a.rs | - | `a a.rs` |\n| T2 | impl | - | b.rs | - | `b` |\n";
    let plan = planned(rows, &defaults);
    assert_eq!(plan.task_worktrees, TaskWorktrees::Auto);
    let [whole, first, second] = plan.phases[0].lanes.as_slice() else { panic!("{plan:?}") };
    assert_eq!(shown(&plan), "setup [T1 T2] mend tests pull-request");
    let ids = |lane: &Lane| lane.steps.iter().map(|s| s.id.clone()).collect::<Vec<_>>().join(" ");
    assert_eq!((first.id.as_str(), ids(first).as_str()), ("SL-1.T1", "setup T1 tests"));
    assert_eq!((second.rules.merge, second.rules.isolation), (Merge::Queue, Isolation::Worktree));
    let task = second.rules.task.as_ref().map(|t| (&*t.lane, &*t.step, &*t.task));
    assert_eq!(task, Some(("SL-1", "tasks-1", "T2")));
    assert_eq!(
        (first.tests(), whole.tests()),
        (vec!["a a.rs".to_owned()], vec!["a a.rs".to_owned(), "b".to_owned()])
    );
    assert_eq!(first.rules.copy, [".env"]);
    let mend = &whole.steps[2];
    let Work::Prompt { prompt, .. } = &mend.work else { panic!("{mend:?}") };
    assert_eq!(mend.role, Role::Mend);
    let failed = Vars { failure_context: "conflict with base".to_owned(), ..Vars::default() };
    let told = template::render(prompt, &failed).unwrap_or_default();
    for words in ["# Fix lane SL-1", "- T1 (impl): a.rs", "\n    b\n", "conflict with base"] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn ids_stay_apart_and_short_and_lanes_in_place_have_no_tasks_apart() {
    let long = "x".repeat(70);
    let rows = format!(
        "| T 1 | impl | - | a | - | - |\n| T/1 | impl | - | b | - | - |\n| {long} | impl | - | c | - | - |\n"
    );
    let plan = planned(&rows, &defaults(TaskWorktrees::Auto));
    let ids: Vec<&str> = plan.phases[0].lanes.iter().map(|l| l.id.as_str()).collect();
    assert_eq!(ids[..3], ["SL-1", "SL-1.T-1", "SL-1.T-1-2"]);
    assert!(ids.iter().all(|id| piton_core::id::is_valid_id(id)), "{ids:?}");
    let in_place = |when| {
        let mut defaults = defaults(when);
        defaults.rules.isolation = Isolation::InPlace;
        defaults
    };
    let rows = "| T1 | impl | - | a.rs | - | - |\n| T2 | impl | - | b.rs | - | - |\n";
    let auto = planned(rows, &in_place(TaskWorktrees::Auto));
    assert_eq!((shown(&auto).as_str(), auto.task_worktrees), ("T1 T2", TaskWorktrees::Off));
    let text = document(rows);
    let refused = to_plan("p.md", &text, &inspect("p.md", &text).0, &in_place(TaskWorktrees::On));
    assert_eq!(refused.err().map(|p| p[0].code), Some(code::BAD_VALUE));
}
