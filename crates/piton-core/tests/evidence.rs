//! Promise 2, as a table: which finished step runs again after which change, and why.

mod support;

use piton_core::event::{Event, Outcome, StepReset};
use piton_core::evidence::{Files, Inputs, missing, paths_to_see, stale, steps_with_inputs};
use piton_core::hash::Sha;
use piton_core::plan::{Command, Step, Work};
use piton_testkit::plans;
use support::{Run, file, finished, path};

/// `make` makes doc.txt from src.txt; `polish` rewrites doc.txt; `check` reads it.
fn run() -> Run {
    let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<String>>();
    let make = Step {
        inputs: strings(&["src.txt"]),
        artifacts: strings(&["doc.txt"]),
        ..plans::step("make")
    };
    let polish = Step {
        inputs: strings(&["doc.txt"]),
        artifacts: strings(&["doc.txt"]),
        ..plans::step("polish")
    };
    let check = Step { inputs: strings(&["doc.txt"]), ..plans::step("check") };
    let lane = plans::lane("A", vec![make, polish, check]);
    let mut run = Run::new(plans::plan(vec![plans::phase("P", vec![lane])]));
    run.attempt_with(
        "P/A/make",
        Outcome::Succeeded,
        vec![file("src.txt", "src")],
        vec![file("doc.txt", "made")],
    );
    run
}

fn polished() -> Run {
    let mut run = run();
    let made = vec![file("doc.txt", "made")];
    run.attempt_with("P/A/polish", Outcome::Succeeded, made, vec![file("doc.txt", "polished")]);
    run.attempt_with("P/A/check", Outcome::Succeeded, vec![file("doc.txt", "polished")], vec![]);
    run
}

/// What runs again when src.txt and doc.txt hold these texts.
fn reruns(run: &Run, src: Option<&str>, doc: Option<&str>) -> Vec<String> {
    let sha = |text: &str| Sha::of(text.as_bytes());
    let files: Files = [("doc.txt".to_owned(), doc.map(sha))].into();
    let seen = |name: &str, text: Option<&str>| text.map(|t| file(name, t)).into_iter().collect();
    let mut inputs = Inputs::new();
    for (step, patterns) in steps_with_inputs(&run.plan, &run.state) {
        let is_source = patterns[0] == "src.txt";
        inputs.insert(step, if is_source { seen("src.txt", src) } else { seen("doc.txt", doc) });
    }
    let found = stale(&run.plan, &run.state, &files, &inputs);
    found.into_iter().map(|r| format!("{}: {}", r.step.step, r.reason)).collect()
}

#[test]
fn nothing_changed_nothing_runs() {
    assert_eq!(reruns(&run(), Some("src"), Some("made")), Vec::<String>::new());
    let run = polished();
    assert_eq!(reruns(&run, Some("src"), Some("polished")), Vec::<String>::new());
    assert_eq!(paths_to_see(&run.state), ["doc.txt"]);
}

#[test]
fn all_missing_artifacts_are_named_up_to_a_line_or_two() {
    assert_eq!(missing(&["a"]), "artifact a is missing");
    assert_eq!(missing(&["a", "b"]), "artifacts a, b are missing");
    let many: Vec<String> = (0..13).map(|n| n.to_string()).collect();
    let said = "artifacts 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more are missing";
    assert_eq!(missing(&many), said);
}

#[test]
fn an_artifact_that_is_missing_or_edited_is_made_again() {
    let run = run();
    assert_eq!(reruns(&run, Some("src"), None), ["make: artifact doc.txt is missing"]);
    let edited = ["make: artifact doc.txt changed since it was recorded"];
    assert_eq!(reruns(&run, Some("src"), Some("edited")), edited);
}

#[test]
fn a_file_that_a_later_step_rewrote_is_measured_by_the_last_record() {
    let run = polished();
    // The first version is an edit now, for those that made it; who reads it waits for them.
    let found = reruns(&run, Some("src"), Some("made"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("make: artifact doc.txt changed"));
}

/// Lost: an agent that edits what it was given, and declares nothing else, would have the maker of
/// that file run again at every resume, and itself after it.
#[test]
fn a_file_that_a_later_step_was_given_and_changed_is_measured_by_how_it_left_it() {
    let mut run = run();
    run.plan.phases[0].lanes[0].steps[1].artifacts.clear();
    let attempt = run.start("P/A/polish", vec![file("doc.txt", "made")]);
    let mut end = finished("P/A/polish", attempt, Outcome::Succeeded, vec![]);
    if let Event::StepFinished(end) = &mut end {
        end.inputs = Some(vec![file("doc.txt", "polished")]);
    }
    run.take(end);
    assert_eq!(reruns(&run, Some("src"), Some("polished")), Vec::<String>::new());
    let edited = reruns(&run, Some("src"), Some("edited"));
    assert_eq!(edited, ["make: artifact doc.txt changed since it was recorded"]);
}

#[test]
fn an_input_that_changed_appeared_or_went_runs_its_reader_again() {
    let run = run();
    assert_eq!(reruns(&run, Some("new"), Some("made")), ["make: input src.txt changed"]);
    assert_eq!(reruns(&run, None, Some("made")), ["make: input src.txt is missing"]);
    let mut empty = Run::new(run.plan.clone());
    empty.attempt_with("P/A/make", Outcome::Succeeded, vec![], vec![file("doc.txt", "made")]);
    assert_eq!(reruns(&empty, Some("src"), Some("made")), ["make: input src.txt is new"]);
}

#[test]
fn what_was_made_anew_upstream_runs_its_readers_again() {
    let mut run = polished();
    run.take(Event::StepReset(StepReset { step: path("P/A/make"), reason: "asked".to_owned() }));
    run.attempt_with(
        "P/A/make",
        Outcome::Succeeded,
        vec![file("src.txt", "src")],
        vec![file("doc.txt", "anew")],
    );
    let found = reruns(&run, Some("src"), Some("anew"));
    // What reads the file that one of them makes again is judged when that is made.
    assert_eq!(found, ["polish: input doc.txt changed"]);
}

/// Lost: a rollback to the end of a step would cost that step too.
#[test]
fn a_file_that_was_taken_back_is_measured_by_those_still_finished() {
    let mut run = polished();
    for step in ["P/A/polish", "P/A/check"] {
        run.take(Event::StepReset(StepReset { step: path(step), reason: "asked".to_owned() }));
    }
    assert_eq!(reruns(&run, Some("src"), Some("made")), Vec::<String>::new());
    assert_eq!(reruns(&run, Some("src"), Some("polished")), Vec::<String>::new());
    let edited = ["make: artifact doc.txt changed since it was recorded"];
    assert_eq!(reruns(&run, Some("src"), Some("edited")), edited);
}

/// Lost: where the document has a phase before the one it needs, its work would be done again for a
/// file that only comes back, and the reader of a file for what was rightly made of it later.
#[test]
fn what_runs_later_is_later_wherever_the_document_has_it() {
    let mut run = polished();
    let steps = std::mem::take(&mut run.plan.phases[0].lanes[0].steps);
    let phase = |step: &Step| plans::phase(&step.id, vec![plans::lane("A", vec![step.clone()])]);
    let mut plan = plans::plan(steps.iter().rev().map(phase).collect());
    for (at, needs) in [(0, "polish"), (1, "make")] {
        plan.phases[at].needs = vec![needs.to_owned()];
    }
    for phase in &mut plan.phases {
        phase.after.clear();
    }
    let mut run = Run::new(plan);
    let (src, made, polished) =
        (file("src.txt", "src"), file("doc.txt", "made"), file("doc.txt", "polished"));
    run.attempt_with("make/A/make", Outcome::Succeeded, vec![src], vec![made.clone()]);
    run.attempt_with("polish/A/polish", Outcome::Succeeded, vec![made], vec![polished.clone()]);
    run.attempt_with("check/A/check", Outcome::Succeeded, vec![polished], vec![]);
    assert_eq!(reruns(&run, Some("src"), Some("polished")), Vec::<String>::new());
    // Both that make the file run again; the reader is judged by what they make of it.
    let missing = ["polish: artifact doc.txt is missing", "make: artifact doc.txt is missing"];
    assert_eq!(reruns(&run, Some("src"), None), missing);
}

#[test]
fn a_changed_definition_runs_again_and_a_changed_limit_does_not() {
    let mut run = run();
    run.plan.phases[0].lanes[0].steps[0].retries = 9;
    assert_eq!(reruns(&run, Some("src"), Some("made")), Vec::<String>::new());
    run.plan.phases[0].lanes[0].steps[0].work = Work::Run(Command::Shell("other".to_owned()));
    let found = reruns(&run, Some("src"), Some("made"));
    assert_eq!(found, ["make: its definition in the plan changed"]);
}

#[test]
fn a_step_that_is_not_finished_or_not_in_the_plan_needs_no_evidence() {
    let mut run = run();
    run.take(Event::StepReset(StepReset { step: path("P/A/make"), reason: "asked".to_owned() }));
    assert_eq!(reruns(&run, None, None), Vec::<String>::new());
    let mut run = polished();
    run.plan.phases[0].lanes[0].steps.truncate(0);
    assert_eq!(reruns(&run, None, None), Vec::<String>::new());
}
