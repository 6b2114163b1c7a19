//! Briefs: what they say, and that they never exceed their limit.

use std::fmt::Write as _;

use piton_agents::brief::{Course, Fact, Input, LIMIT_MIN, Section, brief, limit_for};
use piton_agents::tokens::count;
use piton_core::event::{Class, Event, Facts, Outcome, StepFinished, StepSkipped, StepStarted};
use piton_core::hash::Sha;
use piton_core::plan::{Lane, Phase, Plan, Step, Work};
use piton_core::redact::{Names, Redactor};
use piton_core::state::{
    Checkpoint, Decision, FailedAttempt, GateState, LaneState, PhaseState, Progress, Recorded,
    StepState,
};
use piton_core::{GateRef, RunId, RunState, StepPath, Timestamp};
use proptest::prelude::*;

/// A minute in milliseconds.
const MINUTE: i64 = 60_000;
/// When the brief is asked for.
const NOW: Timestamp = Timestamp(600 * MINUTE);

/// A plan with a lane of steps for each entry.
fn plan(title: &str, lanes: &[(&str, Vec<(String, String)>)]) -> Plan {
    let mut text = format!(
        "title = {title:?}\nspec = \"specs/auth.md\"\n[agents.claude]\ncommand = [\"claude\"]\n\
         [[phase]]\nid = \"P1\"\ngate = \"Spec approval\"\n"
    );
    for (lane, steps) in lanes {
        let _ =
            writeln!(text, "[[phase.lane]]\nid = \"{lane}\"\nisolation = \"in-place\"\nsteps = [");
        for (id, prompt) in steps {
            let _ = writeln!(
                text,
                "  {{ id = \"{id}\", agent = \"claude\", prompt = {prompt:?}, test = \"cargo test -p auth\", \
                 artifacts = [\"src/login.rs\"] }},"
            );
        }
        text.push_str("]\n");
    }
    let input = piton_formats::Input {
        file: "plan.toml",
        text: &text,
        settings: &piton_formats::Settings::default(),
        git: false,
        read: &|_| Err(std::io::ErrorKind::NotFound.into()),
    };
    piton_formats::read_plan(&input).unwrap_or_else(|problems| panic!("{problems:?}\n{text}")).0
}

fn step(id: &str, prompt: &str) -> (String, String) {
    (id.to_owned(), prompt.to_owned())
}

/// A run with the same structure, in which nothing has begun.
fn state(plan: &Plan) -> RunState {
    let pending = |step: &Step| StepState { id: step.id.clone(), ..StepState::default() };
    let lane = |lane: &Lane| LaneState {
        id: lane.id.clone(),
        steps: lane.steps.iter().map(pending).collect(),
        ..LaneState::default()
    };
    let phase = |phase: &Phase| PhaseState {
        id: phase.id.clone(),
        gate: phase.gate.clone(),
        lanes: phase.lanes.iter().map(lane).collect(),
        ..PhaseState::default()
    };
    RunState {
        run_id: Some(RunId("r-1".to_owned())),
        title: plan.title.clone(),
        plan_path: "plan.toml".to_owned(),
        last_at: Timestamp(590 * MINUTE),
        phases: plan.phases.iter().map(phase).collect(),
        ..RunState::default()
    }
}

fn path(step: &str) -> StepPath {
    step.parse().expect("a step")
}

/// Login is built, its tests fail; the mail lane waits.
fn scene() -> (Plan, RunState, Course) {
    let prompt = "Implement the login endpoint of the spec.\n\nPasswords are hashed with argon2.\n\n{{ failure_context }}\n";
    let steps = vec![step("schema", "Write the schema."), step("login", prompt)];
    let plan =
        plan("Authentication", &[("AUTH", steps), ("MAIL", vec![step("send", "Send mail.")])]);
    let mut state = state(&plan);
    let steps = &mut state.phases[0].lanes[0].steps;
    steps[0].progress = Progress::Done;
    (steps[0].attempts, steps[0].done_event) = (1, 4);
    steps[1].progress = Progress::Running { since: Timestamp(588 * MINUTE) };
    steps[1].attempts = 2;
    steps[1].failure_context = vec![FailedAttempt {
        attempt: 1,
        class: Class::Test,
        error: "`cargo test -p auth` failed with exit code 101".to_owned(),
        lines: [
            "running 2 tests",
            "test login::rejects_bad_password ... FAILED",
            "note: see above",
        ]
        .map(str::to_owned)
        .to_vec(),
        budget: None,
        command: None,
        exit_code: None,
    }];
    let approved = Decision {
        approved: true,
        by: "ann".to_owned(),
        message: "argon2, not bcrypt".to_owned(),
        at: Timestamp(60 * MINUTE),
    };
    let asked_at = Timestamp(30 * MINUTE);
    let gate = GateState { name: "Spec approval".to_owned(), asked_at, decision: Some(approved) };
    state.gates.insert(GateRef("P1".to_owned()), gate);
    let by = path("P1/AUTH/schema");
    state.recorded.insert("schema.sql".to_owned(), Recorded { sha256: Sha("a".to_owned()), by });
    state.checkpoints.push(Checkpoint {
        name: "manual-1".to_owned(),
        message: "the schema is final".to_owned(),
        at: Timestamp(200 * MINUTE),
        head: None,
        event: 6,
        snapshots: Vec::new(),
    });
    let mut course = Course::default();
    let start = |step, n| Event::StepStarted(StepStarted::new(path(step), n, Sha("d".to_owned())));
    let mut done = StepFinished::new(path("P1/AUTH/schema"), 1, Outcome::Succeeded);
    done.facts = Facts { notes: vec!["users are keyed by email".to_owned()], ..Facts::default() };
    let skipped = StepSkipped { step: path("P1/MAIL/send"), satisfy: false, by: "bob".to_owned() };
    for (seq, minute, event) in [
        (3, 70, start("P1/AUTH/schema", 1)),
        (4, 100, Event::StepFinished(Box::new(done))),
        (8, 588, start("P1/AUTH/login", 2)),
        (9, 589, Event::StepSkipped(skipped)),
    ] {
        course.take(seq, Timestamp(minute * MINUTE), &event);
    }
    (plan, state, course)
}

fn input<'a>(
    plan: &'a Plan,
    state: &'a RunState,
    course: &'a Course,
    redactor: &'a Redactor,
) -> Input<'a> {
    let (step, more, is_told) = (None, Vec::new(), false);
    Input { state, plan: Some(plan), course, step, more, is_told, now: NOW, redactor }
}

/// Lost: a fresh agent does not know what to do, what failed or what was decided.
#[test]
fn a_brief_says_everything_with_its_source_and_age() {
    let (plan, state, course) = scene();
    let redactor = Redactor::default();
    let mut input = input(&plan, &state, &course, &redactor);
    input.more = vec![Fact::new(Section::InFlight, "Bash cargo test", "the agent").at(NOW)];
    let made = brief(&input, 2000);
    let wanted = "\
# Brief of run r-1
## Objective
- Authentication [plan.toml, 10h ago]
## Current task
- P1/AUTH/login: running, 2 attempts so far [the run's state, 10m ago]
- Implement the login endpoint of the spec. [plan.toml, 10h ago]
- Passwords are hashed with argon2. [plan.toml, 10h ago]
## Acceptance
- `cargo test -p auth` must succeed [plan.toml, 10h ago]
- these files must exist: src/login.rs [plan.toml, 10h ago]
- the work is measured against specs/auth.md [plan.toml, 10h ago]
## In flight
- Bash cargo test [the agent, 0s ago]
- P1/AUTH/login: attempt 2 has been running for 12m 00s [event 8, 12m ago]
## Failing
- P1/AUTH/login, attempt 1: `cargo test -p auth` failed with exit code 101 [the run's state, 10m ago]
- output: test login::rejects_bad_password ... FAILED [the run's state, 10m ago]
- output: note: see above [the run's state, 10m ago]
- output: running 2 tests [the run's state, 10m ago]
## Next
- P1/MAIL/send: claude: Send mail. [plan.toml, 10h ago]
## Done
- 1 of 3 steps are complete or skipped [the run's state, 10m ago]
- P1/AUTH/schema is complete [event 4, 8h ago]
## Files changed
- schema.sql [P1/AUTH/schema, 8h ago]
## Decisions
- bob skipped P1/MAIL/send [event 9, 11m ago]
- checkpoint manual-1: the schema is final [event 6, 6h ago]
- P1/AUTH/schema noted: users are keyed by email [event 4, 8h ago]
- ann approved Spec approval (P1): argon2, not bcrypt [the gate, 9h ago]
## Read more
- `piton show r-1/P1/AUTH/login`: the step, its attempts and failures [Piton, 10m ago]
- `piton log r-1 --step P1/AUTH/login`: its output [Piton, 10m ago]
- plan.toml: the plan [Piton, 10m ago]
- `piton status r-1`: where the run stands [Piton, 10m ago]
";
    assert_eq!(made.text, wanted);
    assert_eq!(made.tokens, count(wanted));
}

/// Lost: a short brief leaves out a whole section, because another one is long.
#[test]
fn every_section_keeps_its_most_important_fact() {
    let (plan, mut state, course) = scene();
    let lines: Vec<String> = (0..40).map(|n| format!("failed line {n} of a long output")).collect();
    state.phases[0].lanes[0].steps[1].failure_context[0].lines = lines;
    let redactor = Redactor::default();
    let made = brief(&input(&plan, &state, &course, &redactor), 500);
    assert!(made.tokens <= 500, "{}", made.tokens);
    for section in &made.sections {
        assert!(!section.facts.is_empty(), "{:?} is missing in\n{}", section.section, made.text);
    }
    assert!(made.text.contains("## Failing ("), "{}", made.text);
}

/// Lost: a secret that a prompt or an output holds goes to a model.
#[test]
fn a_brief_holds_no_secret_and_no_escapes() {
    let (plan, mut state, course) = scene();
    let secret = "s3cr3t-value-of-a-token";
    state.phases[0].lanes[0].steps[1].failure_context[0].lines =
        vec![format!("\u{1b}[31mkey {secret} is wrong\u{1b}[0m\rgone")];
    let redactor = Redactor::new([("API_TOKEN", secret)], &Names::default());
    let made = brief(&input(&plan, &state, &course, &redactor), 2000);
    assert!(!made.text.contains(secret) && !made.text.contains('\u{1b}'), "{}", made.text);
    assert!(made.text.contains("[redacted] is wrong"), "{}", made.text);
}

/// Lost: the margin for other models' tokenizers is applied to the wrong ones.
#[test]
fn other_tokenizers_have_a_margin() {
    assert_eq!((limit_for("codex", 2000), limit_for("claude", 2000)), (2000, 1481));
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,200}", "\\PC{0,80}", "[一-龥]{0,300}", "(x|=|\n){0,400}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Lost: a brief is longer than the window that is left for it.
    #[test]
    fn no_brief_exceeds_its_limit(
        texts in prop::collection::vec(words(), 8),
        steps in 1..60_usize,
        done in 0..60_usize,
        files in prop::collection::vec(words(), 0..20),
        limit in LIMIT_MIN..3000_usize,
    ) {
        let planned = (0..steps).map(|n| step(&format!("s{n}"), "Do it.")).collect();
        let mut plan = plan("Title", &[("A", planned)]);
        for (n, step) in plan.phases[0].lanes[0].steps.iter_mut().enumerate() {
            let Work::Prompt { prompt, .. } = &mut step.work else { continue };
            prompt.clone_from(&texts[n % texts.len()]);
        }
        plan.title.clone_from(&texts[0]);
        let mut state = state(&plan);
        for step in state.phases[0].lanes[0].steps.iter_mut().take(done) {
            step.progress = Progress::Done;
        }
        for (n, step) in state.phases[0].lanes[0].steps.iter_mut().enumerate().skip(done) {
            step.failure_context = vec![FailedAttempt {
                attempt: 1,
                class: Class::Test,
                error: texts[n % texts.len()].clone(),
                lines: texts.clone(),
                budget: None,
                command: None,
                exit_code: None,
            }];
        }
        for file in files {
            let by = path("P1/A/s0");
            state.recorded.insert(file, Recorded { sha256: Sha("a".to_owned()), by });
        }
        let (course, redactor) = (Course::default(), Redactor::default());
        let made = brief(&input(&plan, &state, &course, &redactor), limit);
        prop_assert_eq!(made.tokens, count(&made.text));
        prop_assert!(made.tokens <= limit, "{} of {limit}", made.tokens);
        let title = texts[0].split_whitespace().next().is_some();
        prop_assert!(!title || made.text.contains("## Objective"), "{}", made.text);
        prop_assert!(made.text.contains("## Current task") || done >= steps, "{}", made.text);
    }
}
