//! Phases that follow each other, the fix task of a failed validation, names of runs, remarks.

use super::common::Output;
use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// The commands after all merges.
fn validation(command: &str) -> String {
    format!("## H. Test Execution Plan\n\n```bash\n{command}\n```\n")
}

fn last_line(output: &Output) -> &str {
    output.stdout.lines().last().unwrap_or_default()
}

/// Lost: whoever runs phase after phase could not tell whether the next one may begin.
#[test]
fn a_complete_phase_names_the_next_and_any_other_says_why_not() {
    let scene = Scene::with(&document("", &[lane("SL-1")], &validation("true")), "");
    let project = &scene.project;
    project.write("plans/phase-2.md", &document("", &[lane("SL-2")], "").replace("# P1", "# P2"));
    project.commit();
    let chain = ["run", DOCUMENT, "--next-phase", "plans/phase-2.md"];
    let done = project.piton(&chain).exits(0);
    assert_eq!(last_line(&done), "PHASE_COMPLETE_CONTINUE: plans/phase-2.md");
    let run_id = project.run_id();
    let stamp = run_id.strip_prefix("P1-").unwrap();
    assert_eq!((stamp.len(), stamp.find('-')), (15, Some(8)), "{run_id}");
    let gone = project.piton(&["run", DOCUMENT, "--next-phase", "plans/none.md"]);
    let line = last_line(&gone).to_owned();
    assert!(line.starts_with("PHASE_COMPLETE_STOP: plans/none.md cannot be read: "), "{line}");
    let plain = project.piton(&["run", DOCUMENT]).exits(0);
    plain.silent_about("PHASE_COMPLETE");
}

/// Lost: a failure across lanes would have no name, and nobody would know what to mend.
#[test]
fn a_failed_validation_blocks_the_phase_with_a_fix_task() {
    let text = document("", &[lane("SL-1")], &validation("test -e nowhere"));
    let scene = Scene::with(&text, "");
    let project = &scene.project;
    let run = project.piton(&["run", DOCUMENT, "--next-phase", "plans/phase-2.md"]).exits(1);
    let words = "blocked by FIX-P1-001: test -e nowhere, exit code 1";
    assert_eq!(last_line(&run), format!("PHASE_COMPLETE_STOP: {words}"));
    assert!(run.stderr.contains(&format!("P1 is {words}")), "{}", run.stderr);
    project.piton(&["status"]).exits(0).says(words);
    let run_id = project.run_id();
    assert_eq!(project.status_json("")["fix_tasks"][0]["id"], "FIX-P1-001");
    let report = project.read(&format!(".claude/run-reports/{run_id}.md"));
    assert!(report.contains("### FIX-P1-001") && report.contains(words), "{report}");
    assert!(report.contains("| `test -e nowhere` | failed (1) |"), "{report}");
    project.write("nowhere", "");
    project.commit();
    project.piton(&["retry", "validate-1"]).exits(0);
    project.piton(&["resume"]).exits(0).silent_about("FIX-P1-001");
    assert_eq!(project.status_json("")["fix_tasks"].as_array().map(Vec::len), Some(0));
}

/// Lost: the log and report of a run that was set aside could be taken for those of the next.
#[test]
fn the_views_of_an_archived_run_carry_the_time_in_their_names() {
    let text = document("", &[lane("SL-1")], &validation("test -e nowhere"));
    let scene = Scene::with(&text, "");
    let project = &scene.project;
    project.piton(&["run", DOCUMENT]).exits(1);
    let old = project.run_id();
    project.piton(&["run", DOCUMENT, "--fresh"]).exits(1);
    let new = project.run_id();
    for (folder, end) in [(".claude/run-logs", "jsonl"), (".claude/run-reports", "md")] {
        let names = std::fs::read_dir(project.root().join(folder)).unwrap();
        let names = names.map(|e| e.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.filter(|n| n.ends_with(end)).collect();
        let aside = format!("{old}.archived-20");
        assert!(names.iter().any(|n| n.starts_with(&aside)), "{names:?}");
        assert!(names.contains(&format!("{new}.{end}")), "{names:?}");
        assert!(!names.contains(&format!("{old}.{end}")), "{names:?}");
    }
    let records = project.read(super::scene::CHECKPOINTS);
    assert!(records.contains(&format!("{old}.archived-20")), "{records}");
    project.piton(&["runs"]).exits(0).says(&old).says("archived");
    project.piton(&["resume", &old]).exits(1).says("was archived and is now continued");
    assert!(project.has(&format!(".claude/run-logs/{old}.jsonl")));
    assert!(!project.read(super::scene::CHECKPOINTS).contains(".archived-"));
}

/// Lost: runs of one lane and of the whole phase could not be told apart by their names.
#[test]
fn a_run_of_one_lane_is_named_by_it() {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    let project = &scene.project;
    let chain = ["run", DOCUMENT, "--lane", "SL-2", "--next-phase", DOCUMENT];
    let run = project.piton(&chain).exits(0);
    let run_id = project.run_id();
    assert!(run_id.starts_with("P1-SL-2-20"), "{run_id}");
    assert_eq!(last_line(&run), format!("PHASE_COMPLETE_STOP: run {run_id} is pending"));
    let records = project.read(super::scene::CHECKPOINTS);
    assert!(records.contains(&run_id), "{records}");
}

/// Lost: tasks would silently share a worktree although a person asked for one each.
#[test]
fn worktrees_of_tasks_are_refused_rather_than_left_out() {
    let scene = Scene::planned("[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    let project = &scene.project;
    let asked = |plan, when| ["run", plan, "--task-worktrees", when];
    project.piton(&asked("plan.toml", "on")).exits(2).says("error[task-worktrees]");
    project.piton(&asked("plan.toml", "auto")).exits(0);
    let in_place = "[defaults]\nisolation = \"in-place\"";
    let settings = project.read("piton.toml").replace("[defaults]", in_place);
    project.write("piton.toml", &settings);
    project.write(DOCUMENT, &document("", &[lane("SL-1")], ""));
    project.commit();
    project.piton(&asked(DOCUMENT, "on")).exits(2).says("work in place");
    project.piton(&asked(DOCUMENT, "auto")).exits(0);
}

/// Lost: snapshots would be published by a push to a mirror without a word.
#[test]
fn a_mirror_is_warned_about_once() {
    let scene = Scene::planned("[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    let project = &scene.project;
    project.git(&["remote", "add", "--mirror=push", "backup", "../backup.git"]);
    let warning = "git push backup would publish refs/piton";
    project.piton(&["run", "plan.toml"]).exits(0).says(warning);
    project.piton(&["run", "plan.toml", "--fresh"]).exits(0).silent_about(warning);
    project.git(&["config", "core.hooksPath", "hooks"]);
    project.piton(&["run", "plan.toml", "--fresh"]).exits(0).silent_about(warning);
}

/// Lost: the next phase in the same file would be taken for the one that is complete, and not run.
#[test]
fn a_document_that_holds_the_next_phase_is_another_plan() {
    let scene = Scene::of(&[lane("SL-1")]);
    let project = &scene.project;
    scene.run(&[]).exits(0);
    let first = project.run_id();
    let holds = |phase: &str, id: &'static str| {
        let text = document("", &[lane(id)], "").replace("# P1", &format!("# {phase}"));
        project.write(DOCUMENT, &text);
        project.commit();
    };
    holds("P2", "SL-2");
    scene.agent("SL-2", "exit 1");
    scene.run(&["--resume"]).exits(2).says("this plan has no run to resume");
    scene.run(&[]).exits(1).silent_about(&first);
    let second = project.run_id();
    assert!(second.starts_with("P2-"), "{second}");
    scene.run(&[]).exits(4).says(&format!("run {second} of {DOCUMENT} is unfinished"));
    holds("P3", "SL-3");
    let third = scene.run(&[]).exits(0);
    third.says(&format!("note: run {second} of phase P2, which this document described before"));
    assert!(project.has("SL-3-01.txt") && !project.has("SL-2-01.txt"));
    holds("P1", "SL-1");
    scene.run(&[]).exits(0).says(&format!("run {first} is already complete"));
}

/// Lost: a phase would be built on one that failed.
#[test]
fn a_phase_whose_run_here_is_not_complete_is_not_done() {
    let scene = Scene::of(&[lane("SL-1")]);
    let project = &scene.project;
    let next = "plans/phase-2.md";
    let needs = LaneDoc { index: &["Depends on: P1"], ..lane("SL-2") };
    let text = document("", &[needs, lane("SL-3")], "").replace("# P1", "# P2");
    project.write(next, &text);
    // The same phase by its long name, in a document that has one itself.
    let long = "plans/phase-3.md";
    project.write(long, &text.replace("# P2", "# Phase 2").replace("on: P1", "on: Phase 1"));
    project.commit();
    scene.agent("SL-1", "exit 1");
    scene.run(&[]).exits(1);
    let first = project.run_id();
    let refused = project.piton(&["run", long]).exits(4).says("error[phase-unfinished]");
    refused.says(&format!("Phase-2/SL-2 depends on Phase 1, and run {first} of it is failed"));
    let refused = project.piton(&["run", next]).exits(4).says("error[phase-unfinished]");
    let refused = refused.says(&format!("P2/SL-2 depends on P1, and run {first} of it is failed"));
    refused.says(&format!("piton resume {first}")).says("--yes");
    assert_eq!(project.run_id(), first, "no run was made");
    project.piton(&["run", next, "--lane", "SL-3"]).exits(0);
    project.piton(&["run", next, "--fresh", "--yes"]).exits(0).says("treated as done");
    assert!(project.has("SL-2-01.txt"));
    scene.usual_agent("SL-1");
    project.piton(&["resume", &first]).exits(0);
    project.piton(&["run", next, "--fresh"]).exits(0).silent_about("treated as done");
}
