//! Phase documents as people write them: tasks as list items, prose where a command could be, and
//! phases that follow each other.

use serde_json::Value;

use super::common::PITON;
use super::scene::{DOCUMENT, Scene, document, lane};

/// Two lanes of list items; `sh check NAME` stands for their tests.
const BULLETS: &str = "\
# P1: Greeting

## Interface Freeze Gates

- [ ] IF-0-P1-GREET — `greet.sh NAME` prints a greeting

## Lane Index & Dependencies

- SL-0 - Contract; Depends on: (none); Blocks: SL-1; Parallel-safe: no
- SL-1 - Greet everybody (author-facing alias: SL-all); Depends on: SL-0; Parallel-safe: yes

Waves:
- **W1**: SL-0
- **W2**: SL-1

## Lanes

### SL-0 - Contract

- **Scope**: Freeze the greeting
  before anybody uses it.
- **Owned files**: `SL-0.test.1.txt`, `SL-0.impl.1.txt`
- **Interfaces provided**: IF-0-P1-GREET
- **Interfaces consumed**: none
- **Parallel-safe**: no
- **Tasks**:
  - test: Prove that the greeting
    is there.
  - impl: Write the greeting.
  - verify: `sh ../../../check.sh
    contract`
  - verify: Look whether it is polite.

### SL-all - Greet everybody

- **Scope**: One greeting for each name.
- **Owned files**: `SL-1.impl.1.txt`, `SL-1.docs.1.txt`
- **Interfaces consumed**: IF-0-P1-GREET
* **Tasks**:
  * impl: Greet.
  * docs: Say how.
  * verify: `sh ../../../check.sh all`

## Verification

- `sh check.sh phase`.
- Compare the two screens by eye.

## Acceptance Criteria

- [ ] Everybody is greeted.
";

fn bullets() -> Scene {
    let scene = Scene::with(BULLETS, "");
    let out = scene.outside("").display().to_string();
    let check = format!("echo \"$1\" >> {out}/checked\n");
    scene.project.write("check.sh", &check);
    scene.project.git(&["add", "check.sh"]);
    scene.project.git(&["commit", "--quiet", "--message", "check"]);
    scene.agent(
        "SL-0.impl.1",
        &format!(
            "cat > {out}/prompt; echo $PITON_DOCUMENT > {out}/document; echo x > SL-0.impl.1.txt\n"
        ),
    );
    scene
}

/// Lost: most real documents could not be run.
#[test]
fn a_document_of_list_items_runs_to_all_merged() {
    let scene = bullets();
    let said = scene.run(&[]).exits(0);
    scene.nothing_left();
    for task in ["SL-0.test.1", "SL-0.impl.1", "SL-1.impl.1", "SL-1.docs.1"] {
        assert!(scene.project.has(&format!("{task}.txt")), "{task}: {}", said.stderr);
    }
    let checked = scene.told("checked");
    for test in ["contract", "all", "phase"] {
        assert!(checked.iter().any(|line| line == test), "{test}: {checked:?}");
    }
    let subjects = scene.subjects("main");
    assert_eq!(subjects[1], "feat(P1-SL-0): Contract", "{subjects:?}");
    assert!(scene.project.read(DOCUMENT).contains("- [x] IF-0-P1-GREET"));
}

/// Lost: a person is told that somebody changed the plan, and it was Piton that ticked a gate.
#[test]
fn our_own_ticks_are_no_change_of_the_plan() {
    let scene = bullets();
    scene.run(&[]).exits(0);
    assert!(scene.project.read(DOCUMENT).contains("- [x] IF-0-P1-GREET"));
    scene.run(&[]).exits(0).silent_about("the plan changed").says("is already complete");
}

/// Lost: an agent would not know what its lane is about, nor where its document is.
#[test]
fn a_task_is_told_of_its_lane_and_its_document() {
    let scene = bullets();
    scene.run(&[]).exits(0);
    let document = scene.project.root().join(DOCUMENT).display().to_string();
    assert_eq!(scene.told("document").concat(), document);
    let prompt = scene.told("prompt").join("\n");
    for words in [
        "# Task SL-0.impl.1 (impl)",
        "lane SL-0 (Contract) of phase P1 (Greeting)",
        "Write the greeting.",
        "Freeze the greeting\nbefore anybody uses it.",
        "- IF-0-P1-GREET: greet.sh NAME prints a greeting",
        "- SL-0.impl.1.txt",
        "- Everybody is greeted.",
        &document,
        ".claude/run-logs/P1-",
    ] {
        assert!(prompt.contains(words), "{words}\n---\n{prompt}");
    }
}

/// Lost: what only a person can check would be forgotten, or worse, run by a shell.
#[test]
fn prose_is_a_box_in_the_report_and_never_reaches_a_shell() {
    let rows = document("", &[lane("SL-1")], "").replace("`test -e SL-1-01.txt`", "open the page");
    let scene = Scene::with(&rows, "");
    let out = scene.outside("opened").display().to_string();
    scene.program("open", &format!("#!/bin/sh\necho \"$@\" > {out}\n"));
    let said = scene.project.finish(scene.command(PITON).args(["run", DOCUMENT])).exits(0);
    assert!(said.stderr.contains("is not a command"), "{}", said.stderr);
    assert!(!scene.outside("opened").exists());
    let run = scene.project.run_id();
    let report = scene.project.read(&format!(".claude/run-reports/{run}.md"));
    assert!(report.contains("- [ ] SL-1-01: open the page"), "{report}");
    assert!(report.contains("no command to run after the last merge"), "{report}");
}

/// Lost: a task that is to look only would change what it looks at.
#[test]
fn a_verify_task_that_changes_files_fails() {
    let text = document("", &[lane("SL-1")], "").replace("| impl |", "| verify |");
    let scene = Scene::with(&text, "");
    scene.agent("SL-1", "echo x > SL-1-01.txt");
    let said = scene.run(&[]).exits(1);
    assert!(said.stderr.contains("it may not change these files, and did: SL-1-01.txt"));
}

/// Lost: a task that is to look only would have no place to say what it saw.
#[test]
fn a_verify_task_may_write_its_report() {
    let mut only = lane("SL-1");
    only.test = "test -e README".to_owned();
    let text = document("", &[only], "").replace("| impl |", "| verify |");
    for (file, code) in [(".claude/run-reports/SL-1.md", 0), (".claude/SL-1.md", 1)] {
        let scene = Scene::with(&text, "");
        // Where the project has reports, git sees what is written there.
        scene.project.write(".claude/run-reports/old.md", "old\n");
        scene.project.commit();
        scene.agent("SL-1", &format!("echo seen > {file}"));
        let said = scene.run(&[]).exits(code);
        let words = format!("it may not change these files, and did: {file}");
        assert_eq!(said.stderr.contains(&words), code == 1, "{}", said.stderr);
    }
}

/// A lane of two tasks; the first row has the test of the whole.
fn suite(more: &str) -> String {
    format!(
        "# P1: First\n\n## Lane Index & Dependencies\n\n- SL-1 -- One\n{more}\n\n## Lanes\n\n### SL-1 -- One\n\n\
         | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
         |---|---|---|---|---|---|\n\
         | T1 | impl | - | T1.txt | - | `make` |\n| T2 | impl | T1 | T2.txt | - | - |\n"
    )
}

/// Lost: a task would fail for what a later one of its lane mends.
#[test]
fn the_test_of_the_whole_in_one_row_proves_the_lane_and_not_the_task() {
    let scene = Scene::with(&suite(""), "");
    scene.program("make", "#!/bin/sh\ntest -e T1.txt && test -e T2.txt\n");
    scene.project.finish(scene.command(PITON).args(["run", DOCUMENT])).exits(0);
    let tested = scene.record("SL-1", "after_lane_tests");
    assert_eq!((&tested["test_command"], &tested["exit_code"]), (&"make".into(), &0.into()));
}

/// Lost: a document could not say that its tests are not to stop it.
#[test]
fn tests_that_are_only_reported_do_not_stop_a_lane() {
    for text in [suite("  - Tests: report\n"), format!("---\ntests: report\n---\n{}", suite(""))] {
        let scene = Scene::with(&text, "");
        scene.program("make", "#!/bin/sh\nexit 3\n");
        scene.project.finish(scene.command(PITON).args(["run", DOCUMENT])).exits(0);
        assert!(scene.project.has("T2.txt"));
        let shown = scene.project.piton(&["show", "P1/SL-1/tests-report"]).exits(0).stdout;
        assert!(shown.contains("this test failed: make"), "{shown}");
    }
}

/// Lost: a phase that nothing validated would be taken for validated.
#[test]
fn a_document_without_validation_stops_the_chain_and_ticks_do_not_block_the_next() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-A: it\n";
    let mut first = lane("SL-1");
    first.index = &["Provides: IF-0-P1-A"];
    let scene = Scene::with(&document(gates, &[first.clone()], ""), "");
    let next = document("", &[lane("SL-2")], "").replace("# P1:", "# P2:");
    scene.project.write("plans/phase-2.md", &next);
    scene.project.commit();
    let said = scene.run(&["--next-phase", "plans/phase-2.md"]).exits(0).stdout;
    assert!(
        said.ends_with(
            "PHASE_COMPLETE_STOP: plans/phase-1.md names no command that validates the phase\n"
        ),
        "{said}"
    );
    // The first document is ticked and not committed.
    assert!(scene.project.git(&["status", "--porcelain", "plans"]).contains("phase-1.md"));
    scene.project.piton(&["run", "plans/phase-2.md"]).exits(0);
    let tested = document(gates, &[first], "## Verification\n\n- `test -e SL-1-01.txt`\n");
    let scene = Scene::with(&tested, "");
    scene.project.write("plans/phase-2.md", &next);
    scene.project.commit();
    let said = scene.run(&["--next-phase", "plans/phase-2.md"]).exits(0).stdout;
    assert!(said.ends_with("PHASE_COMPLETE_CONTINUE: plans/phase-2.md\n"), "{said}");
}

/// Lost: tools of the protocol would not see that a phase is done.
#[test]
fn the_run_log_has_the_events_of_the_protocol() {
    let scene = bullets();
    scene.run(&[]).exits(0);
    let log = scene.project.read(&format!(".claude/run-logs/{}.jsonl", scene.project.run_id()));
    for event in [
        "phase_start",
        "task_start",
        "task_done",
        "test_start",
        "test_done",
        "lane_ready_to_merge",
        "merge_start",
        "merge_done",
        "cross_lane_validation",
        "phase_done",
        "phase_chain_signal",
    ] {
        assert!(log.contains(&format!("\"event\":\"{event}\"")), "{event}: {log}");
    }
}

/// Lost: tools of the protocol would begin the next phase while this one still waits for a gate.
#[test]
fn the_run_log_says_that_a_phase_is_done_after_its_last_merge_alone() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-A: it\n\n";
    let mut first = lane("SL-1");
    first.index = &["Depends on: IF-0-P1-A"];
    let scene = Scene::with(&document(gates, &[first, lane("SL-2")], ""), "");
    scene.run(&[]).exits(4);
    let ticked = scene.project.read(DOCUMENT).replace("- [ ] IF-0", "- [x] IF-0");
    scene.project.write(DOCUMENT, &ticked);
    scene.resume(&[]).exits(0);
    let log = scene.project.read(&format!(".claude/run-logs/{}.jsonl", scene.project.run_id()));
    let all = log.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        format!("{} {}", line["event"].as_str().unwrap(), line["status"].as_str().unwrap())
    });
    let events = ["gate_check ", "merge_done ", "phase_done ", "phase_chain_signal "];
    let told: Vec<String> =
        all.filter(|line| events.iter().any(|event| line.starts_with(event))).collect();
    let stopped = ["merge_done ok", "phase_chain_signal blocked"];
    let done = ["gate_check ok", "merge_done ok", "phase_done ok", "phase_chain_signal ok"];
    assert_eq!(told, [&stopped[..], &done[..]].concat(), "{log}");
}

/// Lost: a lane with tasks would be forgotten, or its document refused, for want of a line.
#[test]
fn a_lane_that_the_index_lacks_is_run_if_it_has_tasks() {
    let docs = "\
### SL-docs -- Documentation

- **Depends on**: SL-1

| Task ID | Type | Depends on | Files | Action |
|---|---|---|---|---|
| SL-docs.1 | docs | - | `SL-docs.1.txt` | Say it. |

### SL-0 -- Before all this

Done by hand before the phase begins.
";
    let scene = Scene::with(&document("", &[lane("SL-1")], docs), "");
    let said = scene.run(&[]).exits(0);
    let said =
        said.says("the lane `SL-docs` has tasks, so it is run though the lane index lacks it");
    said.says("the lane `SL-0` is not in the lane index, so it is ignored");
    let subjects = scene.subjects("main");
    assert_eq!(subjects[0], "feat(P1-SL-docs): Documentation", "it comes after SL-1: {subjects:?}");
    assert!(scene.project.has("SL-docs.1.txt"));
}

/// Lost: a script for bash would fail with another shell.
#[test]
fn a_script_for_bash_is_run_by_bash() {
    let more = "## Verification\n\n```bash\nset -euo pipefail\n[[ -e SL-1-01.txt ]]\n```\n";
    let scene = Scene::with(&document("", &[lane("SL-1")], more), "");
    scene.run(&[]).exits(0);
}
