//! The variations of the protocol that real features have: dialects of the state file, other stages,
//! outputs and boxes, budgets, and files of another tool in any condition.

use super::scene::{ADR, FOLDER, Feature, SPEC, STAGES, STATE};

/// The boxes of a file whose spec is approved.
const CLEARED: &str =
    "## Human Checkpoints Cleared\n\n- [x] Spec approval\n- [ ] Architecture sign-off\n";

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// A state file of another tool with rows of completed stages.
fn foreign(stage: &str, status: &str, rows: &[(&str, &str)]) -> String {
    let rows = rows.iter().map(|(stage, cell)| format!("| {stage} | 2026-01-02 | {cell} | |\n"));
    format!(
        "# Pipeline State\n\n- current_stage: {stage}\n- status: {status}\n\n## Completed Stages\n\n\
         | Stage | Completed At | Output Artifact | Output Hash |\n|---|---|---|---|\n{}\n{CLEARED}",
        rows.collect::<String>()
    )
}

/// Lost: a state file that people keep in their own way is not understood, or is rewritten in ours.
#[test]
fn every_dialect_of_the_state_file_is_taken_over() {
    let bullets = format!(
        "# Pipeline State\n\n- run_id: other\n- current_stage: architect\n- status: IN_PROGRESS\n\n{CLEARED}"
    );
    let table = "# Pipeline State: CSV\n\n| Field | Value |\n|---|---|\n| run_id | other |\n\
                 | current_stage | architect |\n| status | IN_PROGRESS |\n\n";
    let ledger = "## Stage Ledger\n\n| Stage | Status | Date | Notes |\n|---|---|---|---|\n\
                  | Spec | APPROVED | 2026-01-02 | short |\n| Clarify | DONE | 2026-01-02 | |\n\
                  | Human Spec Checkpoint | **APPROVED** | 2026-01-02 | Ann |\n\
                  | Architect | PENDING | | |\n";
    for text in [
        bullets.clone(),
        format!("{table}{CLEARED}"),
        format!("{table}{ledger}"),
        format!(
            "# Pipeline State\n\nrun_id: other\ncurrent_stage: architect\nstatus: IN_PROGRESS\n\n{CLEARED}"
        ),
        bullets.replace(": IN_PROGRESS", ": **IN_PROGRESS** — since Monday"),
        bullets.replace("current_stage: architect", "stage: Architect"),
        bullets.replace('\n', "\r\n"),
        format!("\u{feff}{bullets}"),
        bullets.trim_end().to_owned(),
    ] {
        let feature = Feature::new();
        feature.project.write(STATE, &text);
        feature.run().exits(3).says("Architecture sign-off");
        assert_eq!(feature.ran(), ["architect"], "{text}");
        let now = feature.state();
        let found = feature.project.piton(&["inspect", STATE, "--json"]).exits(0).json();
        assert_eq!(found["data"]["status"], "WAITING_FOR_HUMAN", "{now}");
        assert_eq!(found["data"]["cleared"][0], "Spec approval", "{now}");
        // Its own lines stay, but for the fields that changed.
        let is_kept =
            |line: &&str| !line.to_lowercase().contains("status") && !line.contains("stage");
        for line in text.lines().filter(is_kept) {
            assert!(now.contains(line), "`{line}` of\n{text}\nis not in\n{now}");
        }
        assert_eq!(now.contains('\r'), text.contains('\r'));
    }
}

/// Lost: stages that only some projects have cannot be used, or come in the wrong place.
#[test]
fn stages_of_other_projects_run_where_they_are_named() {
    let names = ["spec", "red-team", "architect", "qa-e2e", "devops", "docs"];
    let stages = format!(
        "stages = {names:?}\n\n[pipeline.stage.qa-e2e]\ncheckpoint = \"QA approval\"\n\
         outputs = [\"reports/qa.md\"]\n"
    );
    let feature = Feature::with_settings(&stages);
    feature.does("red-team", "echo one > $d/red-team-findings.md");
    feature.does("qa-e2e", "mkdir -p $d/reports; echo fine > $d/reports/qa.md");
    feature.does("devops", "echo ready > $d/devops.md");
    feature.does("docs", "echo written > $d/docs-report.md");
    for (ran, name) in [(3, "Architecture sign-off"), (4, "QA approval")] {
        feature.run().exits(3).says(name);
        assert_eq!(feature.ran().len(), ran);
        feature.tick(name);
    }
    feature.run().exits(0);
    assert_eq!(feature.ran(), names);
    feature.mentions("| qa-e2e | 20");
    feature.mentions(&file("reports/qa.md"));
    assert!(!feature.state().contains("Spec approval"), "{}", feature.state());
}

/// Lost: a stage is tried without end, or less often than its budget says.
#[test]
fn each_stage_is_tried_as_often_as_its_budget_says() {
    let budgets = [2, 1, 2, 1, 3, 5, 2, 1, 1, 1];
    for (stage, budget) in STAGES.into_iter().zip(budgets) {
        let feature = Feature::with_settings(&format!("stages = [\"{stage}\"]\n"));
        // Each failure has a reason of its own: none of them escalates.
        feature.does(stage, "echo one two three four five six | cut -d' ' -f$n >&2; exit 1");
        feature.run().exits(1);
        assert_eq!(feature.times(stage), budget + 1, "{stage}");
        feature.shows("- status: WAITING_FOR_HUMAN");
        feature.shows(&format!("- retry_count: {budget}"));
        feature.mentions(&format!("| {stage} | {} | {budget} | EXHAUSTED |", budget + 1));
    }
}

/// Lost: an exception to the constitution passes without a reason.
#[test]
fn an_exception_needs_a_justification() {
    let feature = Feature::at_spec_approval();
    let bare = ADR.replace("COMPLIES", "EXCEPTION");
    let justified = format!(
        "{bare}\n## Complexity Justification\n\n| Article | Why |\n|---|---|\n| I. Simple | speed |\n"
    );
    feature.project.write("../log/bare.md", &bare);
    feature.project.write("../log/justified.md", &justified);
    feature.does(
        "architect",
        "echo R > $d/research.md\nif [ $n = 1 ]; then cp ../log/bare.md $d/adr.md\n\
         else cp ../log/justified.md $d/adr.md; fi\nexit 0",
    );
    feature.tick("Spec approval");
    feature.run().exits(3).says("is not complete").says("Architecture sign-off");
    assert_eq!(feature.times("architect"), 2);
    let found = feature.project.piton(&["inspect", &file("adr.md"), "--json"]).exits(0).json();
    assert_eq!(found["data"]["constitution_check"], "complete");
    assert_eq!(found["data"]["exceptions"], 1);
}

/// Lost: an output that shows code or HTML is taken for half an output.
#[test]
fn placeholders_in_code_and_html_are_complete() {
    let feature = Feature::at_architecture();
    feature.does(
        "tasks",
        "printf 'Run `cut -f <n>`.<br>\\n\\n```\\n<row>\\n```\\n' > $d/tasks.md; touch ../log/at\n\
         while [ -e ../log/at ]; do sleep 0.02; done",
    );
    feature.tick("Architecture sign-off");
    let mut driver = feature.project.spawn(&["run", FOLDER]);
    feature.project.wait_for("../log/at");
    driver.kill();
    feature.project.kill_all();
    feature.project.remove("../log/at");
    feature.run().exits(3).says("Security sign-off");
    assert_eq!(feature.times("tasks"), 1);
}

/// Lost: stages run again because of another one, unasked; or nobody hears that their input changed.
#[test]
fn later_stages_with_another_input_are_named_and_wait_for_a_person() {
    let feature = Feature::at_security();
    feature.project.remove(&file("tasks.md"));
    feature.does("tasks", "echo '- [ ] T001 write other rows' > $d/tasks.md; exit 0");
    let before = feature.ran().len();
    feature.run().exits(3);
    assert_eq!(feature.ran()[before..], ["tasks"]);
    feature.run().exits(3).says("tdd/main/work: input specs/003-csv/tasks.md changed");
    assert_eq!(feature.ran()[before..], ["tasks"]);
    let run = feature.project.run_id();
    feature.project.piton(&["retry", &run, "tdd/main/work", "--again"]).exits(0);
    feature.run().exits(3).silent_about("tdd/main/work: input");
    assert_eq!(feature.ran()[before..], ["tasks", "tdd"]);
}

/// Lost: a feature continues at a stage whose ground is missing.
#[test]
fn the_earliest_stage_whose_output_is_missing_runs_first() {
    let feature = Feature::new();
    let adr = file("adr.md");
    let rows = [("spec", SPEC), ("clarify", SPEC), ("architect", adr.as_str()), ("tasks", "tasks")];
    feature.project.write(&file("tasks.md"), "- [ ] T001 rows\n");
    let text = foreign("tdd", "IN_PROGRESS", &rows).replace("[ ] Arch", "[x] Arch");
    feature.project.write(STATE, &text);
    feature.run().exits(3).says("architect: specs/003-csv/adr.md is missing: it runs again");
    assert_eq!(feature.ran()[..2], ["architect", "tdd"]);
    assert_eq!(feature.times("tasks"), 0);
}

/// Lost: work of another tool is done again because it wrote down prose instead of a path.
#[test]
fn an_artifact_that_is_not_a_path_is_not_missing() {
    let feature = Feature::new();
    let rows =
        [("spec", SPEC), ("clarify", "see the spec"), ("programmer", "code (12 files), PR 7")];
    for name in ["research.md", "tasks.md", "test-certification.md"] {
        feature.project.write(&file(name), "there\n");
    }
    feature.project.write(&file("adr.md"), ADR);
    let text = foreign("testrunner", "IN_PROGRESS", &rows).replace("[ ] Arch", "[x] Arch");
    feature.project.write(STATE, &text);
    feature.run().exits(3).silent_about("missing").says("Security sign-off");
    assert_eq!(feature.ran(), ["testrunner", "code-review", "security"]);
    feature.mentions("| programmer | 2026-01-02 | code (12 files), PR 7 | |");
}

/// Lost: a person is asked about a stage that is behind them, or not about the one they are at.
#[test]
fn the_pending_checkpoint_is_that_of_the_current_stage() {
    let feature = Feature::new();
    let (adr, rows) = (file("adr.md"), [("spec", SPEC), ("clarify", SPEC)]);
    feature.project.write(&file("research.md"), "Known.\n");
    feature.project.write(&adr, ADR);
    feature.project.write(STATE, &foreign("architect", "WAITING_FOR_HUMAN", &rows));
    let said = feature.run().exits(3).says("gate tasks \"Architecture sign-off");
    said.silent_about("gate architect").says(&format!("file {adr}")).says("Constitution Check of");
    assert!(feature.ran().is_empty());
    feature.tick("Architecture sign-off");
    feature.run().exits(3).says("Security sign-off");
    assert_eq!(feature.ran()[0], "tasks");
}

/// Lost: tests that another tool began are written a second time.
#[test]
fn a_stage_that_is_taken_over_is_told_what_was_left() {
    let feature = Feature::new();
    for name in ["research.md", "tasks.md", "constitution.md"] {
        feature.project.write(&file(name), "there\n");
    }
    feature.project.write(&file("adr.md"), ADR);
    feature.project.write("tests/rows.txt", "half a test\n");
    let rows = [("spec", SPEC), ("clarify", SPEC), ("architect", "adr"), ("tasks", "tasks")];
    let text = foreign("tdd", "IN_PROGRESS", &rows).replace("[ ] Arch", "[x] Arch");
    feature.project.write(STATE, &text);
    // What it leaves itself is told as well.
    feature.does("tdd", "[ $n != 1 ] || { echo more > tests/more.txt; exit 1; }");
    feature.run().exits(3).says("Security sign-off");
    for (attempt, names) in
        [(1, &["tests/rows.txt"][..]), (2, &["tests/more.txt", "tests/rows.txt"])]
    {
        let prompt = feature.prompt("tdd", attempt);
        let (_, left) = prompt.split_once("left these files").unwrap_or_default();
        let left: Vec<&str> = left.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert_eq!(left, names, "{prompt}");
    }
    // Later stages are not told that this was theirs.
    assert!(!feature.prompt("programmer", 1).contains("left these files"));
}
