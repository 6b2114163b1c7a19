//! A plan with all that a plan may say, and a small one.

use piton_core::budget::Budgets;
use piton_core::complexity::Complexity;
use piton_core::lane::{Isolation, LaneRules, Merge, OnRetry, Role, TaskOf, TaskWorktrees};
use piton_core::plan::{Command, Lane, OnChange, OnFailure, Phase, Step, Work};
use piton_core::{Millis, Plan};

use super::replans;
use super::{lane, text, texts};

fn planned(id: &str, role: Role, work: Work) -> Step {
    Step {
        id: text(id),
        work,
        test: Some(Command::Shell(text("make test"))),
        dir: text("crates"),
        env: [(text("LANG"), text("C"))].into(),
        inputs: texts(&["src/**"]),
        artifacts: texts(&["target/out"]),
        writes: Some(texts(&["docs/**"])),
        scope: Some(texts(&["src/**"])),
        escalation: Some(text("Convergence escalation")),
        fallback: vec![text("other")],
        retries: 3,
        backoff: Millis(100),
        timeout: Millis(60_000),
        idle_timeout: Some(Millis(30_000)),
        grace: Millis(1_000),
        keep: texts(&["postgres"]),
        role,
    }
}

/// A plan with every kind of work and every role.
pub fn plan() -> Plan {
    let run = || Work::Run(Command::Args(texts(&["make", "all"])));
    let prompt = Work::Prompt {
        agent: text("claude"),
        command: Command::Args(texts(&["claude", "-p"])),
        prompt: text("Implement {{ spec }}."),
    };
    let tests = vec![Command::Shell(text("make test"))];
    let rules = LaneRules {
        isolation: Isolation::Worktree,
        merge: Merge::PullRequest,
        copy: texts(&[".env"]),
        on_retry: OnRetry::Reset,
        message: Some(text("{{ lane }}")),
        commits: false,
        alone: true,
        provides: texts(&["IF-0-P1-A"]),
        frozen: texts(&["IF-0-P1-B"]),
        tests: tests.clone(),
        task: None,
    };
    let part = TaskOf { lane: text("A"), step: text("tasks-1"), task: text("T1") };
    let a = Lane {
        id: text("A"),
        needs: vec![lane("P1/B")],
        gate: Some(text("Freeze")),
        steps: vec![
            planned("setup", Role::Setup, run()),
            planned("work", Role::Work, prompt),
            planned("tasks-1", Role::Tasks, Work::Tasks(texts(&["A.T1"]))),
            planned("mend", Role::Mend, run()),
            planned("tests", Role::Tests, Work::Tests(tests)),
            planned("pull-request", Role::PullRequest, run()),
        ],
        rules: rules.clone(),
    };
    let task = Lane {
        id: text("A.T1"),
        steps: vec![planned("work", Role::Work, run())],
        rules: LaneRules { task: Some(part), merge: Merge::Queue, ..rules.clone() },
        ..a.clone()
    };
    let b = Lane {
        id: text("B"),
        needs: Vec::new(),
        steps: vec![planned("work", Role::Work, run())],
        rules: LaneRules { merge: Merge::None, ..rules },
        ..a.clone()
    };
    Plan {
        title: text("A plan"),
        protocol: Some(text("lanes")),
        spec: Some(text("spec.md")),
        on_failure: OnFailure::Continue,
        budgets: Budgets::default(),
        on_change: OnChange::Ask,
        phases: vec![Phase {
            id: text("P1"),
            needs: texts(&["P0"]),
            after: texts(&["P0"]),
            gate: Some(text("Spec approval")),
            lanes: vec![a, task, b],
            complexity: Some(Complexity(725)),
            tasks: 7,
        }],
        record: Some(text("specs/1/.pipeline-state.md")),
        task_worktrees: TaskWorktrees::Auto,
        replan: Some(replans::rules(planned("replan", Role::Work, run()))),
        agents: super::agents::all(),
    }
}

/// A plan of one step in the project's root.
pub fn small() -> Plan {
    let mut plan = plan();
    let lanes = &mut plan.phases[0].lanes;
    lanes.truncate(1);
    (lanes[0].rules, lanes[0].needs) = (LaneRules::default(), Vec::new());
    lanes[0].steps.retain(|step| step.role == Role::Work);
    (plan.phases[0].needs, plan.phases[0].after) = (Vec::new(), Vec::new());
    plan
}
