//! The person's own command, called when a run waits, fails or completes.

use super::common::Project;

const SETTINGS: &str =
    r#"notify = 'echo "$PITON_RUN_ID $PITON_STATUS $PITON_MESSAGE" >> notified.txt'"#;

/// Lost: nobody would learn at night that a run waits for them.
#[test]
fn a_person_is_told_when_a_run_waits_fails_or_completes() {
    let plan = "title = \"T\"\n[[phase]]\nid = \"P\"\ngate = \"Go?\"\nrun = \"test -e ok\"\n";
    let project = Project::with_plan(plan);
    project.write("piton.toml", SETTINGS);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.piton(&["approve", "r", "P"]).exits(0);
    project.piton(&["resume", "r"]).exits(1);
    project.write("ok", "");
    project.piton(&["retry", "r", "P/main/work"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    let told = project.lines("notified.txt");
    let statuses: Vec<&str> = told.iter().filter_map(|l| l.split(' ').nth(1)).collect();
    assert_eq!(statuses, ["waiting", "failed", "complete"], "{told:?}");
    assert!(told.iter().all(|l| l.starts_with("r ")), "{told:?}");
    assert!(told[0].contains("waits for a person"), "{told:?}");
}

/// Lost: a broken notify command would break the run it tells of.
#[test]
fn a_notify_command_that_fails_harms_nothing() {
    let project = Project::with_plan("[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    project.write("piton.toml", "notify = [\"no-such-program-here\"]\n");
    let said = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    said.says("warning: the notify command: ").says("no-such-program-here");
    assert_eq!(project.status("r"), "complete");
    project.write("piton.toml", "notify = \"echo loud; exit 3\"\n");
    let said = project.piton(&["run", "plan.toml", "--fresh", "--run-id", "s"]).exits(0);
    said.silent_about("loud").says("warning: the notify command: exit code 3").says("notify.log");
    project.wait_quiet();
}
