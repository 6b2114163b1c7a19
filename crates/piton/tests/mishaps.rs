//! Mishaps around a run, on the real program: folders deleted under it, keepers told to go, plans
//! changed under a running step, creators killed before the first event, steps that would drive
//! their own run.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

use common::{Driver, Project, Signal, kill, wait_until};
use piton_core::Event;
use piton_ledger::{Ledger as _, NewRun, Open, Owner, Sqlite};

/// One step that waits for `go` in its first attempt, and one after it.
const HELD: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [
  { id = "one", run = '''
echo one $PITON_ATTEMPT >> ran.txt
[ $PITON_ATTEMPT -gt 1 ] || while [ ! -e go ]; do sleep 0.02; done
echo end $PITON_ATTEMPT >> ended.txt
''' },
  { id = "two", run = "echo two >> ran.txt" },
]
"#;

fn held(project: &Project) -> Driver {
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    wait_until("the first step", || project.lines("ran.txt") == ["one 1"]);
    driver
}

/// Lost: whoever tidies up the state folder would get every running step twice at once.
#[test]
fn what_runs_is_ended_though_the_folder_of_its_run_was_deleted() {
    let project = Project::with_plan(HELD);
    let mut driver = held(&project);
    driver.kill();
    std::fs::remove_dir_all(project.state_dir().join("runs/r")).unwrap();
    project.piton(&["resume"]).exits(0);
    project.write("go", "");
    assert_eq!(project.lines("ran.txt"), ["one 1", "one 2", "two"]);
    assert_eq!(project.lines("ended.txt"), ["end 2"], "the first attempt went on");
}

/// Lost: a keeper told to end, as at the end of a login session, would fail the step after.
#[test]
fn a_keeper_told_to_end_fails_no_step() {
    let project = Project::with_plan(HELD);
    let driver = held(&project);
    kill(project.keepers()[0].pid, Signal::TERM);
    driver.wait().exits(0);
    assert_eq!(project.lines("ran.txt"), ["one 1", "one 2", "two"]);
    project.wait_quiet();
}

/// Lost: whoever waits for a step is never told that nobody limits it, nor hears of its end.
#[test]
fn a_keeper_that_stands_still_is_named_and_nothing_is_lost() {
    let project = Project::with_plan(HELD);
    let driver = held(&project);
    let keeper = project.keepers()[0].pid;
    kill(keeper, Signal::STOP);
    let said = driver.wait().exits(1).says(&format!("the keeper (process {keeper}) is stopped"));
    said.says(&format!("kill -CONT {keeper}"));
    kill(keeper, Signal::CONT);
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one 1", "two"]);
}

/// Lost: a step taken out of the plan would go on beside the one that took its place.
#[test]
fn a_running_step_that_left_the_plan_is_ended() {
    let project = Project::with_plan(HELD);
    let mut driver = held(&project);
    driver.kill();
    project.write(
        "plan.toml",
        &HELD.replace("id = \"one\"", "id = \"uno\"").replace("'''\necho one", "'''\necho uno"),
    );
    let resumed = project.spawn(&["resume"]);
    wait_until("the new step", || project.lines("ran.txt").contains(&"uno 1".to_owned()));
    wait_until("the end of the old one", || {
        let steps = project.processes().into_iter().filter(|p| p.command.contains("echo one"));
        steps.count() == 0
    });
    project.write("go", "");
    resumed.wait().exits(0);
    assert_eq!(project.lines("ended.txt"), ["end 1"]);
    assert_eq!(project.lines("ran.txt"), ["one 1", "uno 1", "two"]);
}

/// Puts a run into the ledger whose creator died before it could record anything.
fn unbegun(project: &Project) {
    let mut ledger = Sqlite::open(&project.state_dir(), Open::ReadWrite).unwrap();
    let root = project.root().to_str().unwrap();
    let new = NewRun { run_id: "dead", plan: "plan.toml", title: "", root, at: 1 };
    let owner = Owner { boot_id: "before".to_owned(), ..Owner::current() };
    ledger.create_run(&new, &owner).unwrap();
}

/// Lost: a run that died in its first moment could be neither replaced nor ended.
#[test]
fn a_run_that_never_began_stands_in_nobodys_way() {
    let project = Project::with_plan("[[phase]]\nid = \"P\"\nrun = \"echo ran >> ran.txt\"\n");
    unbegun(&project);
    project.piton(&["abort", "dead"]).exits(0).says("which had not started");
    unbegun(&project);
    project.piton(&["run", "plan.toml", "--fresh"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["ran"]);
    project.piton(&["doctor"]).exits(0);
    unbegun(&project);
    // It is removed, so its name is free.
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "dead"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["ran", "ran"]);
}

/// Lost: a run that died in its first moment would count as done, of the year 1970.
#[test]
fn a_run_that_never_began_is_pending_and_says_how_it_begins() {
    let project = Project::with_plan("[[phase]]\nid = \"P\"\nrun = \"echo ran >> ran.txt\"\n");
    unbegun(&project);
    let found = project.status_json("dead");
    assert_eq!((&found["status"], &found["plan"]), (&"pending".into(), &"plan.toml".into()));
    assert_eq!(found["protocol"], serde_json::Value::Null);
    project.piton(&["status"]).exits(0).says("pending, not started").says("piton resume dead");
    project.piton(&["show"]).exits(0).says("pending").says("plan   plan.toml\n");
    project.piton(&["runs"]).exits(0).says("pending");
    project.piton(&["log"]).exits(0).says("has not started");
    project.piton(&["checkpoint", "dead", "-m", "x"]).exits(2).says("piton resume dead");
    project.piton(&["resume", "--dry-run"]).exits(0).says("wave 1").says("P/main/work");
    project.piton(&["run", "plan.toml", "--dry-run"]).exits(0).says("wave 1");
    project.piton(&["doctor"]).exits(0);
    project.piton(&["run", "plan.toml"]).exits(4).says("unfinished");
    project.piton(&["resume"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["ran"]);
    assert_eq!(project.status("dead"), "complete");
}

/// Lost: a start that cannot be would cost the unfinished run it was to replace.
#[test]
fn nothing_is_set_aside_for_a_run_that_cannot_start() {
    let project = Project::with_plan(&format!("spec = \"spec.md\"\n{HELD}"));
    project.write("spec.md", "wanted");
    let mut driver = held(&project);
    driver.kill();
    project.remove("spec.md");
    project.piton(&["run", "plan.toml", "--fresh"]).exits(4).says("spec.md");
    project.write("spec.md", "wanted");
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "no/name"]).exits(2);
    let taken = project.piton(&["run", "plan.toml", "--fresh", "--run-id", "r"]).exits(2);
    taken.says("run-exists").says("piton resume r").silent_about("archived");
    assert_ne!(project.status("r"), "archived");
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one 1", "two"]);
}

/// Lost: an agent could accept a changed spec for itself, and push its driver out.
#[test]
fn a_step_cannot_drive_its_own_run() {
    let take = "$PROGRAM resume r --takeover --accept-spec; echo $? >> codes.txt";
    let bare = "env -i PATH=\"$PATH\" HOME=\"$HOME\" setsid -w $PROGRAM run plan.toml --resume \
                --takeover --accept-spec; echo $? >> codes.txt";
    let project = Project::with_plan(&format!(
        "spec = \"spec.md\"\n[[phase]]\nid = \"P\"\nrun = '''\necho mine > spec.md\n{take}\n{bare}\n'''\n"
    ));
    project.write("spec.md", "wanted");
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    assert_eq!(project.lines("codes.txt"), ["4", "4"]);
    let accepted = |e: &Event| matches!(e, Event::SpecAccepted(_));
    assert!(!project.events("r").iter().any(accepted));
    // Nor from a process namespace of its own, from which no keeper can be seen.
    if project.sh("unshare -Upf --mount-proc true").code == 0 {
        let hidden = "env -i unshare -Upf --mount-proc $PROGRAM approve h Q; echo $? > hidden.txt";
        project.write(
            "hidden.toml",
            &format!(
                "[[phase]]\nid = \"P\"\nrun = '''\n{hidden}\n'''\n\
                 [[phase]]\nid = \"Q\"\ngate = \"Go\"\nrun = \"true\"\n"
            ),
        );
        project.piton(&["run", "hidden.toml", "--run-id", "h"]).exits(3);
        assert_eq!(project.read("hidden.txt").trim(), "4");
    }
    // Another run is nobody's own: a step may start one.
    let inner = "[[phase]]\nid = \"P\"\nrun = \"echo inner >> inner.txt\"\n";
    project.write("inner.toml", inner);
    project.write("outer.toml", "[[phase]]\nid = \"P\"\nrun = \"$PROGRAM run inner.toml\"\n");
    project.piton(&["run", "outer.toml"]).exits(0);
    assert_eq!(project.lines("inner.txt"), ["inner"]);
}

/// Lost: a full disk at the checkpoint after hours of work would make a failure of them, and the work
/// would be done again.
#[test]
fn a_success_whose_files_can_not_be_held_waits_and_is_not_done_again() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nretries = 3\n[[phase.lane]]\nid = \"L\"\nsteps = [\n\
         { id = \"one\", run = 'echo one >> ran.txt; echo 7 > made.txt; \
         echo \"{\\\"tokens\\\": 5}\" > $PITON_OUTPUT; \
         mv .git/objects/pack away; touch .git/objects/pack', artifacts = [\"made.txt\"] },\n\
         { id = \"two\", run = \"echo two >> ran.txt\" },\n]\n\
         [[phase.lane]]\nid = \"M\"\nrun = \"echo beside >> beside.txt\"\n",
    );
    project.write("file.txt", "so that there is something to hold");
    project.commit();
    let said = project.piton(&["run", "plan.toml", "--run-id", "r", "--jobs", "1"]).exits(4);
    said.says("P/L is blocked: one succeeded and does not run again, but its files could not be")
        .says("next: fix this")
        .says("then piton resume r");
    assert_eq!(project.status("r"), "blocked");
    assert_eq!(project.step_status("P/L/one"), "blocked");
    assert_eq!(project.lines("ran.txt"), ["one"]);
    project.wait_quiet();
    // As long as nothing was put right it stays so.
    project.piton(&["resume", "r"]).exits(4).says("could not be checkpointed");
    project.remove(".git/objects/pack");
    std::fs::rename(project.root().join("away"), project.root().join(".git/objects/pack")).unwrap();
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one", "two"]);
    assert_eq!(project.lines("beside.txt"), ["beside"]);
    let one = project.step("P/L/one");
    assert_eq!((&one["attempts"], &one["artifacts"][0]["path"]), (&1.into(), &"made.txt".into()));
    assert_eq!(project.status_json("r")["used"]["tokens"], 5, "what it said was not lost");
    project.piton(&["doctor"]).exits(0);
}

/// Lost: a run that waits for files to be held could not be ended.
#[test]
fn a_run_that_waits_for_its_files_to_be_held_can_be_aborted() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = 'mv .git/objects/pack away; touch .git/objects/pack; \
         echo x > x'\n",
    );
    project.write("file.txt", "so that there is something to hold");
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(4);
    project.piton(&["abort", "r"]).exits(0);
    assert_eq!(project.status("r"), "aborted");
    assert_ne!(project.step_status("P/main/work"), "running");
    project.wait_quiet();
}

/// Lost: a person would wait for a step that ended long ago.
#[test]
fn a_step_that_ended_while_nobody_drove_is_not_shown_at_work() {
    let project = Project::with_plan(HELD);
    let mut driver = held(&project);
    driver.kill();
    assert_eq!(project.step_status("P/L/one"), "running");
    project.write("go", "");
    wait_until("its end is seen", || project.step_status("P/L/one") != "running");
    assert_eq!(project.step("P/L/one")["exit_code"], 0);
    assert_eq!(project.status("r"), "interrupted");
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["one 1", "two"]);
}

/// Lost: a user who may have few processes is told of a panic, and of nothing else.
#[test]
fn too_few_processes_are_an_error_and_no_panic() {
    // The limit does not bind root, so another user is needed: one that nobody else is.
    let user = 300_000 + std::process::id() % 100_000;
    let as_user = format!("setpriv --reuid {user} --regid {user} --clear-groups");
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"A\"\nisolation = \"worktree\"\n\
         run = \"for i in $(seq 90); do echo $i > new$i; done\"\n",
    );
    (0..600).for_each(|n| project.write(&format!("files/{n}"), "text"));
    project.commit();
    let home = project.outside().display();
    let may = format!("chown -R {user} {home} && chmod 755 {home} && {as_user} $PROGRAM --version");
    if project.sh(&may).code != 0 {
        // Only root becomes somebody else, and whoever that is must be able to reach the program.
        return;
    }
    for most in 1..12 {
        let run = format!("{as_user} prlimit --nproc={most} $PROGRAM run plan.toml --fresh");
        let said = project.sh(&run).silent_about("panicked");
        let told = ["error", "failed"].iter().any(|word| said.stderr.contains(word));
        assert!(said.code == 0 || told, "{most}: {said:?}");
    }
    project.sh(&format!("{as_user} $PROGRAM run plan.toml --fresh")).exits(0);
}
