//! Plans for tests: short to write, every default spelled out once.

use std::collections::BTreeMap;

use piton_core::budget::Budgets;
use piton_core::lane::{
    Isolation, LaneRules, MEND_STEP, Merge, PULL_REQUEST_STEP, Role, TESTS_STEP, TaskOf,
    TaskWorktrees,
};
use piton_core::plan::{Command, Lane, OnFailure, Phase, Step, Work};
use piton_core::{Millis, Plan};

use crate::script::{Behaviour, Script};

/// A step that runs a command named like it; no retries.
pub fn step(id: &str) -> Step {
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
        retries: 0,
        backoff: Millis(100),
        timeout: Millis::from_secs(3600),
        idle_timeout: None,
        grace: Millis::from_secs(1),
        keep: Vec::new(),
        role: piton_core::lane::Role::Work,
    }
}

/// A lane of steps, without gate and needs.
pub fn lane(id: &str, steps: Vec<Step>) -> Lane {
    Lane {
        id: id.to_owned(),
        needs: Vec::new(),
        gate: None,
        steps,
        rules: piton_core::lane::LaneRules::default(),
    }
}

/// A lane of plain steps.
pub fn lane_of(id: &str, steps: &[&str]) -> Lane {
    lane(id, steps.iter().map(|id| step(id)).collect())
}

/// A lane in a worktree of its own whose tests must pass on the tree that is merged.
pub fn apart(id: &str, mut steps: Vec<Step>, tests: &[&str]) -> Lane {
    let tests: Vec<Command> = tests.iter().map(|t| Command::Shell((*t).to_owned())).collect();
    if !tests.is_empty() {
        let (work, role) = (Work::Tests(tests.clone()), Role::Tests);
        steps.push(Step { work, role, ..step(TESTS_STEP) });
    }
    let rules = LaneRules { isolation: Isolation::Worktree, tests, ..LaneRules::default() };
    Lane { rules, ..lane(id, steps) }
}

/// A lane in a worktree of its own that goes to base through a pull request.
pub fn through_pull_request(id: &str, steps: Vec<Step>, tests: &[&str]) -> Lane {
    let mut lane = apart(id, steps, tests);
    lane.rules.merge = Merge::PullRequest;
    lane.steps.push(Step { role: Role::PullRequest, ..step(PULL_REQUEST_STEP) });
    lane
}

/// A lane in a worktree whose step `tasks` waits for tasks in worktrees of their own, with those
/// tasks: all are lanes of one phase. A step before it and the step that mends are there too.
pub fn with_tasks(id: &str, tasks: &[(&str, Step)], retries: u32, tests: &[&str]) -> Vec<Lane> {
    let names = tasks.iter().map(|(task, _)| format!("{id}.{task}")).collect();
    let steps = vec![
        step("first"),
        Step { work: Work::Tasks(names), role: Role::Tasks, ..step("tasks") },
        Step { role: Role::Mend, retries, ..step(MEND_STEP) },
    ];
    let parts = tasks.iter().map(|(task, step)| {
        let mut part = apart(&format!("{id}.{task}"), vec![step.clone()], tests);
        let (lane, step, task) = (id.to_owned(), "tasks".to_owned(), (*task).to_owned());
        part.rules.task = Some(TaskOf { lane, step, task });
        part
    });
    std::iter::once(apart(id, steps, tests)).chain(parts).collect()
}

/// A phase of lanes, without gate and needs.
pub fn phase(id: &str, lanes: Vec<Lane>) -> Phase {
    let (needs, after) = (Vec::new(), Vec::new());
    Phase { id: id.to_owned(), needs, after, gate: None, lanes, complexity: None, tasks: 0 }
}

/// A plan whose phases follow one another unless they name what they need.
pub fn plan(phases: Vec<Phase>) -> Plan {
    let ids: Vec<String> = phases.iter().map(|p| p.id.clone()).collect();
    let ordered = phases.into_iter().enumerate().map(|(index, mut phase)| {
        if phase.needs.is_empty() && index > 0 {
            phase.after = vec![ids[index - 1].clone()];
        }
        phase
    });
    Plan {
        record: None,
        on_change: piton_core::plan::OnChange::default(),
        title: "A plan".to_owned(),
        protocol: None,
        spec: None,
        on_failure: OnFailure::Stop,
        budgets: Budgets::default(),
        phases: ordered.collect(),
        task_worktrees: TaskWorktrees::Off,
        replan: None,
        agents: BTreeMap::new(),
    }
}

/// The plan of the crash scenarios: two phases, three lanes, a retry, a gate, artifacts, an input.
pub fn example() -> (Plan, Script) {
    let build = Step { retries: 1, artifacts: vec!["out/build.txt".to_owned()], ..step("build") };
    let pack = Step {
        inputs: vec!["out/build.txt".to_owned()],
        artifacts: vec!["dist/package.txt".to_owned()],
        ..step("pack")
    };
    let first =
        phase("P1", vec![lane("A", vec![build, step("test")]), lane_of("B", &["lint", "docs"])]);
    let second = Phase {
        gate: Some("Release".to_owned()),
        ..phase("P2", vec![lane("C", vec![pack, step("publish")])])
    };
    let script = Script::default()
        .with(
            "P1/A/build",
            vec![
                Behaviour::fails(1).saying("error: no luck"),
                Behaviour::ok().lasting(Millis(500)).writing("out/build.txt", "built"),
            ],
        )
        .with("P1/B/docs", vec![Behaviour::ok().lasting(Millis(1200))])
        .with("P2/C/pack", vec![Behaviour::ok().writing("dist/package.txt", "packed")]);
    (plan(vec![first, second]), script)
}
