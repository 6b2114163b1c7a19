//! A document as a plan: order, evidence, prompts, needs, and what is left to a person.

use piton_core::lane::{Merge, Role};
use piton_core::plan::{Command, Plan, Work};

use super::*;
use piton_formats::settings::Settings;
use piton_formats::template::{self, Vars};

fn defaults() -> PlanDefaults {
    let agent = Some(("coder".to_owned(), Command::Args(vec!["coder".to_owned()])));
    PlanDefaults { agent, ..PlanDefaults::new(&Settings::default()) }
}

#[track_caller]
fn planned_with(text: &str, defaults: &PlanDefaults) -> Planned {
    match to_plan("p.md", text, &inspect("p.md", text).0, defaults) {
        Ok(planned) => planned,
        Err(problems) => panic!("{problems:?}"),
    }
}

fn refused(text: &str, defaults: &PlanDefaults) -> Vec<&'static str> {
    let made = to_plan("p.md", text, &inspect("p.md", text).0, defaults);
    made.err().unwrap_or_default().iter().map(|p| p.code).collect()
}

fn steps(plan: &Plan, lane: usize) -> Vec<&str> {
    plan.phases[0].lanes[lane].steps.iter().map(|s| s.id.as_str()).collect()
}

fn prompt_of(plan: &Plan, lane: usize, step: usize) -> &str {
    match &plan.phases[0].lanes[lane].steps[step].work {
        Work::Prompt { prompt, .. } => prompt,
        other => panic!("{other:?}"),
    }
}

/// The agents of the steps of the first lane, in order.
fn agents(plan: &Plan) -> Vec<&str> {
    let steps = plan.phases[0].lanes[0].steps.iter();
    let agents = steps.filter_map(|step| match &step.work {
        Work::Prompt { agent, .. } => Some(agent.as_str()),
        _ => None,
    });
    agents.collect()
}

#[test]
fn the_usual_document_becomes_lanes_in_worktrees_and_a_validation() {
    let Planned { plan, holds, mixed } = planned_with(USUAL, &defaults());
    assert_eq!((plan.title.as_str(), plan.phases[0].id.as_str()), ("Billing", "P4"));
    assert!(holds.is_empty() && mixed.is_empty());
    assert_eq!(steps(&plan, 0), ["P4-SL-STORE-01", "P4-SL-STORE-02", "P4-SL-STORE-03", "tests"]);
    let [store, api, validation] = plan.phases[0].lanes.as_slice() else { panic!("{plan:?}") };
    assert!(store.needs.is_empty() && !store.rules.isolation.is_in_place());
    assert_eq!(store.rules.provides, ["IF-1-P4-STORE"]);
    // A gate that another lane closes is waited for through that lane.
    assert_eq!(store.rules.frozen, ["IF-0-P4-MODEL"]);
    assert!(api.rules.frozen.is_empty() && api.rules.alone && !store.rules.alone);
    assert_eq!(api.needs.iter().map(ToString::to_string).collect::<Vec<_>>(), ["P4/SL-STORE"]);
    assert_eq!((store.steps[0].retries, api.steps[0].retries), (0, 2));
    assert_eq!(validation.id, "validation");
    assert!(validation.rules.isolation.is_in_place());
    assert_eq!(validation.needs.len(), 2);
    let commands: Vec<String> = validation.steps.iter().map(|s| s.work.display()).collect();
    assert_eq!(commands, ["cargo test --workspace", "cargo clippy"]);
}

#[test]
fn tests_of_code_to_come_prove_the_lane_and_not_their_task() {
    let plan = planned_with(USUAL, &defaults()).plan;
    let store = &plan.phases[0].lanes[0];
    assert_eq!(store.steps[0].test, None);
    let pipe = Command::Shell("cargo test store | tee out".to_owned());
    assert_eq!(store.steps[1].test, Some(pipe));
    let all = ["cargo test store", "cargo test store | tee out", "cargo test"];
    assert_eq!(store.tests(), all, "a later task may break what an earlier one proved");
    let last = &store.steps[3];
    assert_eq!((last.role, last.tests()), (Role::Tests, store.tests()));
    let twice =
        with_tasks("| T1 | impl | - | - | - | `a` |\n| T2 | verify | T1 | - | - | `b`, `a` |");
    assert_eq!(planned_with(&twice, &defaults()).plan.phases[0].lanes[0].tests(), ["a", "b"]);
    // Where no code follows, the tests are the task's own evidence.
    let text = with_tasks("| T1 | test | - | - | - | `a` |\n| T2 | verify | T1 | - | - | - |");
    let plan = planned_with(&text, &defaults()).plan;
    assert_eq!(plan.phases[0].lanes[0].steps[0].test, Some(Command::Shell("a".to_owned())));
}

#[test]
fn tasks_run_by_dependency_then_type_then_place() {
    let text = with_tasks(
        "| T5 | verify | - | - | - | - |\n| T2 | impl | T1 | - | - | - |\n| T1 | test | - | - | - | - |\n\
         | T4 | impl | T3 | - | - | - |\n| T3 | test | T2 | - | - | - |",
    );
    assert_eq!(steps(&planned_with(&text, &defaults()).plan, 0), ["T1", "T2", "T3", "T4", "T5"]);
}

#[test]
fn several_commands_are_one_and_braces_stay_braces() {
    let text = with_tasks("| T1 | impl | - | - | - | `a # note`, `docker --format '{{.Names}}'` |");
    let plan = planned_with(&text, &defaults()).plan;
    let Some(Command::Shell(line)) = &plan.phases[0].lanes[0].steps[0].test else { panic!() };
    let line = template::render(line, &Vars::default());
    assert_eq!(line.as_deref(), Ok("( a # note\n) && ( docker --format '{{.Names}}'\n)"));
}

#[test]
fn a_prompt_says_the_task_and_leaves_the_attempt_to_the_attempt() {
    let text = USUAL.replace("it passes", "prints {{ failure_context }} {% x");
    let plan = planned_with(&text, &defaults()).plan;
    let prompt = prompt_of(&plan, 0, 1);
    for words in [
        "# Task P4-SL-STORE-02 (impl)",
        "lane SL-STORE (Storage of invoices) of phase P4 (Billing)",
        "- src/store.rs\n- src/lib.rs\n",
        "\n    cargo test store | tee out\n",
    ] {
        assert!(prompt.contains(words), "{words}: {prompt}");
    }
    let first = template::render(prompt, &Vars::default()).unwrap_or_default();
    assert!(first.contains("prints {{ failure_context }} {% x"), "{first}");
    assert!(!first.contains("What failed before"), "{first}");
    let failed =
        Vars { attempt: 2, failure_context: "Attempt 1: boom".to_owned(), ..Vars::default() };
    let again = template::render(prompt, &failed).unwrap_or_default();
    assert!(again.contains("This is attempt 2.") && again.contains("Attempt 1: boom"), "{again}");
    // Each kind has its own words, and columns that are not known are passed on.
    assert!(prompt_of(&plan, 0, 0).contains("Write the tests of this task."));
    assert!(prompt_of(&plan, 0, 2).contains("Verify the work"));
    assert!(prompt_of(&plan, 1, 0).contains("## Risk\n\nlow\n"));
}

#[test]
fn the_template_can_be_replaced_and_its_mistakes_are_told() {
    let own = |text: &str| PlanDefaults { task_prompt: Some(text.to_owned()), ..defaults() };
    let text = with_tasks("| T1 | impl | - | a.rs | - | - |");
    let made = planned_with(&text, &own("{{ task.id }} {{ attempt }} {{ task.files | join }}\n"));
    assert_eq!(prompt_of(&made.plan, 0, 0), "T1 {{ attempt }} a.rs\n");
    for bad in ["{{ task.idd }}", "{{ nothing }}", "{% if %}", "{% raw %}{{ nothing }}{% endraw %}"]
    {
        assert_eq!(refused(&text, &own(bad)), [code::BAD_TEMPLATE], "{bad}");
    }
    // Each name that is documented can be used.
    for (name, _) in super::super::TASK_PROMPT_NAMES {
        planned_with(&text, &own(&format!("{{{{ {name} }}}}")));
    }
}

#[test]
fn what_the_document_cannot_decide_is_handed_out() {
    let gates = "## Interface Freeze Gates\n- [ ] IF-0-P1-A: a\n- [x] IF-0-P1-B: b\n";
    let index = with_index(
        "- SL-1 -- One\n  - Depends on: IF-0-P1-A, IF-0-P1-B, Phase 3, the weather\n  - Parallel-safe: mixed (shares a port)\n",
    );
    let tasks =
        with_tasks("| T1 | impl | - | - | - | - |").replace(&with_index("- SL-1 -- One\n"), "");
    let planned = planned_with(&format!("{index}{gates}{tasks}"), &defaults());
    let holds: Vec<_> = planned.holds.iter().map(|h| (h.name.as_str(), h.kind)).collect();
    assert_eq!(
        holds,
        [
            ("IF-0-P1-A", HoldKind::OpenGate),
            ("Phase 3", HoldKind::Phase),
            ("the weather", HoldKind::Unknown),
        ]
    );
    assert_eq!(planned.mixed, [("SL-1".to_owned(), "shares a port".to_owned())]);
    let rules = &planned.plan.phases[0].lanes[0].rules;
    assert!(rules.alone);
    assert_eq!(rules.frozen, ["IF-0-P1-A", "IF-0-P1-B"]);
}

#[test]
fn missing_tasks_and_agents_ask_for_an_update() {
    assert_eq!(refused(&with_index("- SL-1 -- One\n"), &defaults()), [code::MISSING_FIELD]);
    let text = with_tasks("| T1 | impl | - | - | - | - |");
    let nobody = PlanDefaults::new(&Settings::default());
    assert_eq!(refused(&text, &nobody), [code::UNKNOWN_AGENT]);
}

#[test]
fn names_become_ids_and_stay_apart() {
    let text = with_tasks("| T 1 | impl | - | - | - | - |\n| T/1 | impl | - | - | - | - |\n| tests | impl | - | - | - | `x` |")
        .replace("# P1: T", "# Phase 1: T");
    let planned = planned_with(&text, &defaults());
    assert_eq!(planned.plan.phases[0].id, "Phase-1");
    assert_eq!(steps(&planned.plan, 0), ["T-1", "T-1-2", "tests-2", "tests"]);
}

/// Lost: a task that changed the file of its test is said to have left its scope.
#[test]
fn a_test_within_a_file_stands_for_the_file() {
    let text = with_tasks("| T1 | impl | - | a.py | t/a.py::test_b | - |");
    let plan = planned_with(&text, &defaults()).plan;
    let scope = plan.phases[0].lanes[0].steps[0].scope.clone().unwrap_or_default();
    assert!(scope.contains(&"t/a.py".to_owned()), "{scope:?}");
}

#[test]
fn setup_and_pull_request_surround_the_work() {
    let command = |line: &str| Some(Command::Shell(line.to_owned()));
    let mut defaults = defaults();
    defaults.rules.merge = Merge::PullRequest;
    defaults.setup = command("make setup");
    let text = with_tasks("| T1 | impl | - | - | - | `make test` |");
    let plan = planned_with(&text, &defaults).plan;
    assert_eq!(steps(&plan, 0), ["setup", "T1", "tests", "pull-request"]);
    let roles: Vec<Role> = plan.phases[0].lanes[0].steps.iter().map(|s| s.role).collect();
    assert_eq!(roles, [Role::Setup, Role::Work, Role::Tests, Role::PullRequest]);
}

/// Lost: tests and code could not be written by different agents.
#[test]
fn agents_are_chosen_by_the_type_of_a_task_and_the_first_that_is_defined_does_it() {
    let settings = "[agents.coder]\ncommand = \"c\"\n[agents.reader]\ncommand = \"r\"\n\
                    [defaults]\nagent = \"coder\"\n\
                    [lanes.agents]\nverify = [\"missing\", \"reader\"]\n";
    let settings = piton_formats::read_settings("piton.toml", settings).unwrap_or_default();
    let text = with_tasks("| T1 | impl | - | - | - | - |\n| T2 | verify | T1 | - | - | - |");
    let plan = planned_with(&text, &PlanDefaults::new(&settings)).plan;
    assert_eq!(agents(&plan), ["coder", "reader"]);
}

/// Lost: tests and documentation would be written by whoever writes the code.
#[test]
fn tests_and_documentation_have_agents_of_their_own() {
    let settings = "[agents.coder]\ncommand = \"c\"\n[agents.tester]\ncommand = \"t\"\n\
                    [agents.writer]\ncommand = \"w\"\n[defaults]\nagent = \"coder\"\n\
                    [lanes.agents]\ntest = [\"tester\", \"coder\"]\ndocs = [\"writer\"]\n";
    let settings = piton_formats::read_settings("piton.toml", settings).unwrap_or_default();
    let text = with_tasks(
        "| T1 | test | - | - | - | - |\n| T2 | impl | T1 | - | - | - |\n\
         | T3 | docs | T2 | - | - | - |",
    );
    let plan = planned_with(&text, &PlanDefaults::new(&settings)).plan;
    assert_eq!(agents(&plan), ["tester", "coder", "writer"]);
    let steps = &plan.phases[0].lanes[0].steps;
    assert_eq!(steps[0].fallback, ["coder"], "who goes on while the first is at a limit");
    assert!(steps[1].fallback.is_empty() && steps[2].fallback.is_empty());
}

/// Lost: what only a person or an agent can look at would be looked at by nobody.
#[test]
fn prose_in_a_test_column_is_an_instruction_to_the_agent() {
    let text = with_tasks(
        "| T1 | impl | - | a.rs | - | open the page and look |\n\
         | T2 | impl | T1 | - | - | `make b`; then compare the two screens by eye |",
    );
    let plan = planned_with(&text, &defaults()).plan;
    let wanted = ["open the page and look", "`make b`; then compare the two screens by eye"];
    for (step, check) in wanted.into_iter().enumerate() {
        let prompt = prompt_of(&plan, 0, step);
        let (_, checks) = prompt.split_once("Check this too:").unwrap_or_default();
        assert!(checks.contains(&format!("\n- {check}\n")), "{check}: {prompt}");
    }
    assert!(!prompt_of(&plan, 0, 0).contains("These commands must pass"));
    let lane = &plan.phases[0].lanes[0];
    assert_eq!((steps(&plan, 0), lane.steps[0].test.clone()), (vec!["T1", "T2", "tests"], None));
    assert_eq!(lane.tests(), ["make b"], "a shell gets the command alone");
}

/// Lost: an agent would guess what the interface that it builds on looks like.
#[test]
fn a_prompt_has_the_interfaces_that_its_lane_consumes() {
    let text = "# P1: T\n\n## Interface Freeze Gates\n\n\
                - [ ] IF-0-P1-A — `a.sh NAME` prints it\n- [ ] IF-0-P1-B: of somebody else\n\n\
                ## Lane Index\n\n- SL-1 -- One\n- SL-2 -- Two\n\n## Lanes\n\n\
                ### SL-1 -- One\n\n- **Interfaces provided**: IF-0-P1-A\n- **Tasks**:\n\
                \x20 - impl: a\n\n\
                ### SL-2 -- Two\n\n- **Interfaces consumed**: IF-0-P1-A\n- **Tasks**:\n\
                \x20 - impl: b\n";
    let plan = planned_with(text, &defaults()).plan;
    let (one, two) = (prompt_of(&plan, 0, 0), prompt_of(&plan, 1, 0));
    let (_, used) = two.split_once("Interfaces that it uses").unwrap_or_default();
    assert!(used.contains("\n- IF-0-P1-A: a.sh NAME prints it\n"), "{two}");
    assert!(!two.contains("IF-0-P1-B"), "only its own: {two}");
    assert!(!one.contains("Interfaces that it uses"), "{one}");
    // Our own tick is no other task.
    let ticked = planned_with(&text.replace("- [ ] IF-0-P1-A", "- [x] IF-0-P1-A"), &defaults());
    assert_eq!(prompt_of(&ticked.plan, 1, 0), two);
}

/// Lost: a task that only looks would fail for its report, or might change what it looks at.
#[test]
fn a_verify_task_may_write_reports_and_nothing_else() {
    let text = with_tasks("| T1 | impl | - | a.rs | - | - |\n| T2 | verify | T1 | b.rs | - | - |");
    let own = "[defaults]\nagent = \"a\"\n[agents.a]\ncommand = \"a\"\n\
               [lanes]\nrun_reports = \"reports/\"\n";
    let own = piton_formats::read_settings("piton.toml", own).unwrap_or_default();
    for (defaults, reports) in
        [(defaults(), ".claude/run-reports/**"), (PlanDefaults::new(&own), "reports/**")]
    {
        let plan = planned_with(&text, &defaults).plan;
        let steps = &plan.phases[0].lanes[0].steps;
        assert_eq!((&steps[0].writes, &steps[1].writes), (&None, &Some(vec![reports.to_owned()])));
    }
}

/// Lost: a lane whose tests must pass would be merged although they fail, because others may be.
#[test]
fn what_a_lane_says_of_its_tests_counts_more_than_what_its_document_says() {
    let of = |document: &str, lane: &str| -> (Vec<String>, Vec<String>) {
        let text = with_tasks("| T1 | impl | - | a.rs | - | `make` |");
        let text = text.replace("- SL-1 -- One\n", &format!("- SL-1 -- One\n{lane}"));
        let plan = planned_with(&format!("{document}{text}"), &defaults()).plan;
        let steps = steps(&plan, 0).into_iter().map(str::to_owned).collect();
        (steps, plan.phases[0].lanes[0].tests())
    };
    let gate = (vec!["T1".to_owned(), "tests".to_owned()], vec!["make".to_owned()]);
    let report = (vec!["T1".to_owned(), "tests-report".to_owned()], Vec::<String>::new());
    let document = |word: &str| format!("---\ntests: {word}\n---\n");
    let lane = |word: &str| format!("  - Tests: {word}\n");
    assert_eq!(of(&document("report"), ""), report);
    assert_eq!(of(&document("report"), &lane("gate")), gate);
    assert_eq!(of(&document("gate"), &lane("report")), report);
    assert_eq!(of("", ""), gate);
}
