//! Errors by their codes: at least one scene for every code that is cheap to reach.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use piton_ledger::DATABASE_FILE;
use rusqlite::Connection;

use super::common::wait_until;
use super::scene::{LaneDoc, Scene, document, lane};
use super::screen::{PLAN, Screen, folder};

/// Codes that no scene reaches: they need a broken machine, another user or another program.
const OUT_OF_REACH: &[&str] = &[
    "demo",
    "detach",
    "disk-low",
    "driver-gone",
    "folder-read-only",
    "gc",
    "interrupted",
    "keeper",
    "keeper-version",
    "ledger",
    "log",
    "no-agent",
    "no-answer",
    "no-home",
    "not-restored",
    "not-rewound",
    // Over MCP only; its tests show the sentence.
    "outside-project",
    "plan-changed",
    "run-taken-over",
    "signals",
    "snapshot",
    "spec-changed",
    "state-read-only",
    "state-unreadable",
    "world",
];

/// Why a lane is blocked: the scenes of lanes show the cause, which stands there without its code.
const OF_LANES: &[&str] = &[
    "bare-repository",
    "base-in-the-way",
    "base-is-behind",
    "base-moved",
    "base-not-checked-out",
    "branch-gone",
    "detached-head",
    "dirty",
    "foreign-owner",
    "git",
    "half-done",
    "index-locked",
    "lane-base-moving",
    "lane-conflict",
    "lane-gates-doubted",
    "lane-gates-open",
    "lane-needs-unmet",
    "lane-no-progress",
    "lane-not-checkpointed",
    "lane-retries-spent",
    "lane-tests-change-files",
    "lane-work-unknown",
    "lane-worktree-lost",
    "merge-undone",
    "no-base",
    "no-commits",
    "not-committable",
    "only-copy",
    "operation-in-progress",
    "repository-note",
    "revert-conflict",
    "run-lock",
    "uncaptured-in-the-way",
    "unsupported-repository",
    "worktree",
    "worktree-left-branch",
];

/// Lost: an error could come that nobody has read as a person meets it.
#[test]
fn every_code_is_met_or_known_to_be_out_of_reach() {
    // While snapshots are written, they can't be read.
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value != "no") {
        return;
    }
    let files = fs::read_dir(folder()).unwrap().flatten().map(|entry| entry.path());
    let snapshots = files.filter(|path| path.extension().is_some_and(|end| end == "snap"));
    let seen: String = snapshots.map(|path| fs::read_to_string(path).unwrap()).collect();
    let is_met = |code: &str| {
        seen.contains(&format!("[{code}]")) || seen.contains(&format!("\"code\": \"{code}\""))
    };
    let codes = || piton_core::error_codes::TABLE.iter().map(|entry| entry.code);
    let unmet: Vec<&str> = codes()
        .filter(|c| !is_met(c) && !OUT_OF_REACH.contains(c) && !OF_LANES.contains(c))
        .collect();
    assert!(unmet.is_empty(), "no scene shows {unmet:?}");
    let stale: Vec<&&str> = OUT_OF_REACH.iter().filter(|code| is_met(code)).collect();
    assert!(stale.is_empty(), "a scene shows {stale:?}");
}

/// Lost: a snapshot that no scene compares would look as if it were true.
#[test]
fn every_snapshot_belongs_to_a_scene() {
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let files = || fs::read_dir(folder()).unwrap().flatten().map(|entry| entry.path());
    let is = |path: &Path, end: &str| path.extension().is_some_and(|e| e == end);
    let scenes: String = files().filter(|p| is(p, "rs")).map(|p| read(&p)).collect();
    for path in files().filter(|path| is(path, "snap")) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        // The test of help knows its own.
        let known = name.starts_with("help-") || scenes.contains(&format!("is(\"{name}\")"));
        assert!(known, "no scene compares {name}.snap");
    }
}

/// Lost: what a mistyped name leads to would be unread.
#[test]
fn names_that_lead_nowhere() {
    let plan =
        PLAN.replace("id = \"compile\"", "id = \"work\"").replace("echo 41 tests passed", "exit 1");
    let mut screen = Screen::with_plan(&plan);
    screen.quietly("run --jobs 1 --run-id nightly");
    screen.piton("retry work --again").piton("retry nothing").piton("skip nightly nothing");
    screen.piton("status nigthly").piton("show nightly/biuld").piton("show nope");
    screen.piton("log --lane nope").piton("log --step nope").piton("log --attempt 7 --step test");
    screen.piton("approve nope").piton("rollback --lane nope").piton("rollback --to nope");
    screen.piton("rollback --lane api").piton("diff nope").piton("restore nope");
    screen.piton("run nope.toml").piton("run README --run-id x").piton("inspect nope.md");
    screen.piton("run --lane nope plan.toml").piton("run --phase nope plan.toml");
    screen.piton("report nope").piton("report --output nope/report.md");
    screen.piton("explain nope").piton("-C nowhere status").is("errors-names");
}

/// Lost: what setting up an agent program says would be unread.
#[test]
fn setting_up_an_agent_program() {
    let mut screen = Screen::with_plan(PLAN);
    screen.piton("init claude").piton("init claude --yes").piton("init claude --yes");
    screen.piton("init claude --undo --yes");
    screen.project.write(".mcp.json", "{ // remarks\n}\n");
    screen.piton("init claude --yes").is("init-agents");
}

/// Lost: what the command line refuses would be unread.
#[test]
fn command_lines_that_are_wrong() {
    let mut screen = Screen::with_plan(PLAN);
    screen
        .piton("rnu")
        .piton("rnu --json")
        .piton("run --jbos 2")
        .piton("run --jobs 0")
        .piton("run --jobs many");
    screen
        .piton("run --to before_lane_start")
        .piton("run --resume --fresh")
        .piton("retry --downstream");
    screen
        .piton("checkpoint")
        .piton("run --fresh")
        .piton("run --rollback")
        .piton("run plan.toml --resume");
    screen.piton("run --lane api --phase release/x").piton("run --lane build/api --phase release");
    screen.piton("run plan.toml --run-id 'not an id'").piton("run plan.toml --task-worktrees on");
    screen.piton("run plan.toml --rollback").piton("schema nope").piton("completions");
    screen.quietly("run --jobs 1 --run-id nightly");
    screen.project.write("plan-2.toml", "[[phase]]\nid = \"P1\"\ngate = \"Go\"\nrun = \"true\"\n");
    screen.quietly("run plan-2.toml --run-id two");
    screen.piton("approve two P1 -m \"$(seq 9999)\"");
    screen.piton("runs > /dev/full").is("errors-usage");
}

/// Lost: what does not fit the state of a run would be unread.
#[test]
fn requests_that_do_not_fit() {
    let plan = PLAN.replace("echo 41 tests passed", "test -e fixed");
    let mut screen = Screen::with_plan(&plan);
    screen.quietly("run --jobs 1 --run-id nightly");
    screen.piton("run plan.toml").piton("run plan.toml --fresh --run-id nightly");
    screen.piton("retry compile").piton("undo").piton("attach").piton("rollback");
    screen.piton("gc --keep-runs 0 --keep-days 0").is("errors-failed-run");
    screen.project.write("fixed", "");
    screen.quietly("retry nightly");
    screen.quietly("resume --jobs 1");
    screen
        .piton("rollback --lane api")
        .piton("abort nightly")
        .piton("skip nightly test")
        .piton("checkpoint nightly -m x");
    screen.piton("attach nightly").piton("gc --keep-runs 0 --keep-days 0").piton("retry nightly");
    screen.quietly("abort nightly --cancel");
    screen.piton("gc --keep-runs 0 --keep-days 0 --dry-run").is("errors-complete-run");
}

/// Lost: what is refused because of where a project lies would be unread.
#[test]
fn places_that_cannot_be_used() {
    let mut screen = Screen::without_git();
    screen.project.write("plan.toml", PLAN);
    screen.piton("run --jobs 1 --run-id r1").is("run-without-git");
    screen
        .piton("checkpoint r1 -m x")
        .piton("rollback --dry-run")
        .piton("diff now")
        .piton("doctor");
    screen
        .project
        .write("lanes.toml", "[[phase]]\nid = \"P1\"\nisolation = \"worktree\"\nrun = \"true\"\n");
    screen.piton("run lanes.toml").is("errors-without-git");
    let mut screen = Screen::without_git();
    screen.project.write(".git", "gitdir: /nowhere\n");
    screen.piton("status").is("errors-no-project");
    let mut screen = Screen::with_plan(
        "[[phase]]\nid = \"P1\"\nlane = [{ id = \"L\", isolation = \"worktree\", run = \"exit 1\" }]\n",
    );
    screen.quietly("run --run-id r1");
    screen.project.sh("cp -a . ../copy").exits(0);
    screen.piton("-C ../copy resume").is("errors-moved");
    let mut screen = Screen::with_plan(PLAN);
    screen.project.write("piton.toml/x", "");
    screen.piton("run").is("errors-settings");
    let mut screen = Screen::with_plan(PLAN);
    screen.project.write("plan.toml", &format!("protocol = \"waterfall\"\n{PLAN}"));
    screen.piton("run").is("errors-protocol");
    screen.project.write(
        "plan.toml",
        "[[phase]]\nid = \"A\"\nrun = \"true\"\nartifacts = [\"out/hunter2-hunter2.txt\"]\n",
    );
    screen.project.write("piton.toml", "[secrets]\nvalues_from = [\"DEPLOY_TOKEN\"]\n");
    screen.project.remove("piton.toml");
    screen.with("DEPLOY_TOKEN=hunter2-hunter2", "run").is("errors-secret-path");
}

/// Lost: what a ledger that is damaged, lost or older says would be unread.
#[test]
fn ledgers_that_cannot_be_used() {
    let begin = || {
        let mut screen = Screen::with_plan(&PLAN.replace("echo 41 tests passed", "exit 1"));
        screen.quietly("run --jobs 1 --run-id nightly");
        screen.project.wait_quiet();
        screen
    };
    let mut screen = begin();
    let ledger = screen.project.state_dir().join(DATABASE_FILE);
    screen.piton("doctor --backup ../copy.db").piton("doctor --backup ../copy.db");
    screen
        .piton("doctor --backup nowhere/copy.db")
        .piton("doctor --new-ledger")
        .is("errors-backup");
    for _ in 0..3 {
        screen.quietly("resume");
    }
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", ledger.display()));
    }
    screen.piton("resume").piton("doctor").is("errors-ledger-lost");
    fs::copy(screen.project.outside().join("copy.db"), &ledger).unwrap();
    screen.piton("resume").piton("doctor").piton("doctor --restored").is("errors-ledger-behind");
    fs::write(&ledger, "x".repeat(9000)).unwrap();
    screen.piton("resume").piton("status").piton("doctor").is("errors-ledger-corrupt");
    for (name, damage) in [("newer", "tag = 'step.dreamt'"), ("content", "body = x'7b'")] {
        let mut screen = begin();
        let path = screen.project.state_dir().join(DATABASE_FILE);
        let sql = format!("UPDATE events SET {damage} WHERE seq = 4");
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        screen.piton("resume").piton("status").piton("doctor");
        if name == "newer" {
            screen.is("errors-ledger-newer");
        } else {
            screen.is("errors-ledger-content");
        }
    }
}

/// Lost: what lanes refuse would be unread.
#[test]
fn lanes_that_are_refused() {
    let mut screen = Screen::with_lanes(|| {
        let scene = Scene::of(&[lane("SL-1")]);
        scene.agent("SL-1", "exit 1");
        let needs = LaneDoc { index: &["Depends on: P1"], ..lane("SL-2") };
        let text = document("", &[needs], "").replace("# P1", "# P2");
        scene.project.write("plans/phase-2.md", &text);
        scene.project.commit();
        scene
    });
    screen.piton("run plans/phase-1.md --run-id r1").is("lanes-failed");
    screen.piton("run plans/phase-2.md --run-id r2").is("errors-phase-unfinished");
    let record = r#"[{"run_id":"old","phase":"P1","lane":"SL-1","stage":"before_lane_start","status":"ready",
        "base_branch":"develop","worktree_path":"","log_path":"","timestamp":"2026-01-01T00:00:00Z",
        "notes":"","resume_hint":"","rollback_hint":""}]"#;
    screen.project.write("old.json", record);
    screen.piton("import old.json").piton("import nope.json").is("errors-import");
    let mut screen = Screen::with_lanes(|| {
        let scene = Scene::of(&[lane("SL-1")]);
        let (folder, worktrees) =
            (scene.outside("folder"), scene.project.root().join(".worktrees"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&worktrees).unwrap();
        symlink(folder, worktrees.join("P1")).unwrap();
        scene.project.git(&["add", "--force", "--all"]);
        scene.project.commit();
        scene
    });
    screen.piton("run plans/phase-1.md --run-id r1").is("errors-link");
}

/// Lost: what a step that decides about its own run is told would be unread.
#[test]
fn a_step_that_decides() {
    // It ends when the refusal is on record, so that the lines come in one order.
    let plan = "[[phase]]\nid = \"P1\"\nrun = \"$PROGRAM approve P2 > said.txt 2>&1; \
                until $PROGRAM report r1 | grep -q 'was refused'; do sleep 0.05; done\"\n\n\
                [[phase]]\nid = \"P2\"\ngate = \"Go\"\nrun = \"true\"\n";
    let mut screen = Screen::with_plan(plan);
    screen.piton("run --run-id r1");
    wait_until("it was told", || !screen.project.read("said.txt").is_empty());
    let said = screen.project.read("said.txt");
    screen.note(&format!("the step was told:\n{said}")).is("errors-inside-a-step");
}

/// Lost: explanations would be unread.
#[test]
fn explanations() {
    let mut screen = Screen::without_git();
    screen.piton("explain resume-blocked").piton("explain bad-duration").is("explain");
    screen.piton("explain").is("explain-all");
}
