//! The states of a run that need somebody or something.

use super::screen::{PLAN, Screen};

const GATED: &str = r#"
[[phase]]
id = "build"
run = "echo built"

[[phase]]
id = "release"
gate = "Release approval"
run = "echo released"
"#;

/// Lost: how a run waits for a person, and how that person answers, would be unread.
#[test]
fn a_gate() {
    let mut screen = Screen::with_plan(GATED);
    screen.piton("run --run-id r1").is("run-waiting");
    screen.piton("status").is("status-waiting");
    screen.piton("resume").is("resume-waiting");
    screen
        .piton("approve release -m 'looks good' --no-resume")
        .piton("approve release")
        .is("approve");
    screen.piton("reject release").is("reject-approved");
    screen.piton("resume").is("resume-approved");
}

/// Lost: what a rejection leads to would be unread.
#[test]
fn a_gate_that_is_rejected() {
    let mut screen = Screen::with_plan(GATED);
    screen.asked("run --run-id r1", &["?", "l"]).is("gate-asked");
    screen.asked("resume", &["n"]).piton("status").is("gate-rejected");
    screen.piton("reject release -m 'not yet'").is("reject-again");
    screen.piton("resume").is("resume-rejected");
    let mut screen = Screen::with_plan(GATED);
    screen.quietly("run --run-id r1");
    screen.piton("reject r1 release -m 'not yet'").is("reject");
}

/// Lost: what a budget says when it stops a run would be unread.
#[test]
fn a_budget() {
    let report = r#"echo '{\"tokens\": 5000}' > \"$PITON_OUTPUT\""#;
    let plan = format!("[budgets]\ntokens = 1000\n{GATED}").replace("echo built", report);
    let mut screen = Screen::with_plan(&plan);
    screen.piton("run --run-id r1").is("run-budget");
    screen.piton("status").is("status-budget");
    screen.piton("resume").is("resume-budget");
}

/// Lost: what a change between two drives says would be unread.
#[test]
fn a_resume_that_is_blocked() {
    let failing = PLAN.replace("echo 41 tests passed", "exit 1");
    let mut screen = Screen::with_plan(&failing);
    screen.quietly("run --jobs 1 --run-id nightly");
    screen.project.write("plan.toml", &PLAN.replace("echo compiled", "echo recompiled"));
    screen.note("the plan is changed").piton("resume").is("resume-plan-changed");
    screen.piton("resume --accept-plan --jobs 1").is("resume-plan-accepted");
    screen.project.remove("api.bin");
    screen.project.write("plan.toml", &failing);
    screen.piton("status").is("status-after-change");
}

/// Lost: what a missing artifact and a changed spec lead to would be unread.
#[test]
fn a_spec_and_an_artifact() {
    let plan =
        format!("spec = \"spec.md\"\n{PLAN}").replace("echo 41 tests passed", "test -e fixed");
    let mut screen = Screen::with_plan(&plan);
    screen.piton("run --run-id none").is("spec-missing");
    screen.project.write("spec.md", "be good\n");
    screen.quietly("run --jobs 1 --run-id nightly");
    screen.project.write("spec.md", "be better\n");
    screen.project.remove("api.bin");
    screen.note("the spec is changed, and api.bin is deleted").piton("resume").is("resume-blocked");
    screen.piton("status").is("status-not-resumed");
    screen.project.write("fixed", "");
    screen.piton("resume --accept-spec --jobs 1").is("resume-accepted");
}

/// Lost: what takes a run back, and what undoes that, would be unread.
#[test]
fn rollback_and_undo() {
    let mut screen = Screen::with_plan(PLAN);
    screen.quietly("run --jobs 1 --run-id nightly");
    screen.piton("checkpoint -m 'all is well'").is("checkpoint-complete");
    screen.piton("show").is("show-run-checkpoints");
    screen.piton("rollback --dry-run").is("rollback-dry");
    screen.piton("rollback").is("rollback-unconfirmed");
    screen.asked("rollback", &["n"]).is("rollback-refused");
    screen.piton("rollback --yes").is("rollback");
    screen.piton("status").is("status-rolled-back");
    screen.piton("undo --dry-run").is("undo-dry");
    screen.piton("undo --yes").is("undo");
    screen.piton("undo --yes").is("undo-again");
    screen.piton("status").is("status-undone");
}

/// Lost: how files of a checkpoint are looked at and brought back would be unread.
#[test]
fn files_of_a_checkpoint() {
    let mut screen =
        Screen::with_plan(&PLAN.replace("id = \"release\"", "id = \"release\"\ngate = \"Go\""));
    screen.quietly("run --jobs 1 --run-id nightly");
    screen.piton("checkpoint -m 'before my edits'").is("checkpoint");
    screen.piton("show manual-1").is("show-checkpoint");
    screen.project.write("page.html", "mine\n");
    screen.project.remove("api.bin");
    screen.piton("diff manual-1").is("diff");
    screen.piton("diff manual-1 --stat").is("diff-stat");
    screen.piton("restore manual-1 page.html").is("restore-unconfirmed");
    screen.piton("restore manual-1 page.html --yes").is("restore");
    screen.piton("restore manual-1 --dry-run").is("restore-dry");
    screen.piton("undo --yes").is("undo-restore");
}

/// Lost: what is archived and deleted would be unread.
#[test]
fn old_runs() {
    let mut screen = Screen::with_plan(GATED);
    screen.quietly("run --run-id first");
    screen.piton("run plan.toml --fresh --run-id second").is("run-fresh");
    screen.piton("status first").is("status-archived");
    screen.piton("resume first").is("resume-archived");
    for run in ["first", "second"] {
        screen.quietly(&format!("approve {run} release"));
        screen.quietly(&format!("resume {run}"));
    }
    screen.piton("runs").is("runs-several");
    screen.piton("gc --dry-run --keep-runs 0").is("gc-dry");
    screen.piton("gc --keep-runs 0").is("gc-unconfirmed");
    screen.piton("gc --keep-runs 0 --yes").is("gc");
    screen.project.wait_quiet();
    screen.piton("doctor").is("doctor");
}
