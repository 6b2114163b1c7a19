//! Promise 1 on the real machine: nothing is called finished before it is on the disk.
//!
//! The order of system calls is the proof: a simulated power cut can only show that the engine asks
//! for syncs, this shows that the program makes them. It needs `strace`, which `cargo xtask test`
//! installs where it can; without it the test says so and shows nothing.

mod common;

use common::{PITON, Project};

const PLAN: &str = r#"
[[phase]]
id = "P"
run = "mkdir -p out/deep && echo made > out/deep/made.txt"
artifacts = ["out/deep/made.txt"]
"#;

const LANE: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "A"
isolation = "worktree"
run = "echo made > made.txt"
"#;

/// The calls of a run, if there is a program to list them.
fn trace(project: &Project, calls: &str) -> Option<String> {
    let trace_file = project.outside().join("trace");
    let mut command = project.command("strace");
    command.args(["-f", "-y", "-s", "200", "-e", &format!("trace={calls}"), "-o"]);
    command.arg(&trace_file).args([PITON, "run", "plan.toml"]);
    if std::process::Command::new("strace").arg("-V").output().is_err() {
        // There is nobody to ask; `cargo xtask test` names the missing tool.
        return None;
    }
    project.finish(&mut command).exits(0);
    Some(std::fs::read_to_string(&trace_file).unwrap_or_default())
}

/// Where in the trace a call stands whose line has all the words.
fn position(trace: &[&str], from: usize, words: &[&str]) -> Option<usize> {
    let has = |line: &&str| words.iter().all(|word| line.contains(word));
    trace.iter().skip(from).position(has).map(|at| at + from)
}

/// If this fails, a power cut can undo what was acknowledged.
#[test]
fn artifact_then_ledger_then_the_word_that_it_is_finished() {
    let project = Project::with_plan(PLAN);
    let Some(text) = trace(&project, "fsync,fdatasync,write") else { return };
    let trace: Vec<&str> = text.lines().collect();
    let shown = || format!("\n{text}");
    let artifact = position(&trace, 0, &["sync(", "out/deep/made.txt"]);
    let artifact = artifact.unwrap_or_else(|| panic!("the artifact is not synced{}", shown()));
    let folder = position(&trace, artifact, &["sync(", "/out/deep>"]);
    let folder = folder.unwrap_or_else(|| panic!("its folder is not synced{}", shown()));
    let above = position(&trace, artifact, &["sync(", "/out>"]);
    let above = above.unwrap_or_else(|| panic!("the folder above is not synced{}", shown()));
    let ledger = position(&trace, folder.max(above), &["sync(", "ledger.db-wal"]);
    let ledger = ledger.unwrap_or_else(|| panic!("the ledger is not synced{}", shown()));
    let said = position(&trace, 0, &["write(2<", "P/main/work finished"]);
    let said = said.unwrap_or_else(|| panic!("it is never called finished{}", shown()));
    assert!(ledger < said, "it is called finished before it is durable{}", shown());
}

/// If this fails, a power cut can take back a ref that the ledger says was moved: the fence, the
/// branch of a lane, or base.
#[test]
fn moved_refs_are_durable_before_the_ledger_goes_on() {
    let project = Project::with_plan(LANE);
    project.commit();
    let Some(text) = trace(&project, "fsync,fdatasync,rename,renameat,renameat2") else { return };
    let trace: Vec<&str> = text.lines().collect();
    for (moved, folder) in [
        ("/epoch\"", "refs/piton/"),
        ("refs/heads/lane/P/A\"", "refs/heads/lane/P>"),
        ("refs/heads/main\"", "refs/heads>"),
    ] {
        let renamed = position(&trace, 0, &["rename", moved]);
        let renamed = renamed.unwrap_or_else(|| panic!("{moved} is not moved\n{text}"));
        let synced = position(&trace, renamed, &["sync(", folder]);
        let synced = synced.unwrap_or_else(|| panic!("{folder} is not synced\n{text}"));
        let ledger = position(&trace, renamed, &["sync(", "ledger.db-wal"]);
        assert!(ledger.is_none_or(|ledger| synced < ledger), "{moved} is synced late\n{text}");
    }
}

/// If this fails, a power cut in the middle of a merge leaves locks on base that nobody knows to be
/// ours.
#[test]
fn a_move_of_base_is_noted_durably_before_git_locks_it() {
    let project = Project::with_plan(LANE);
    project.commit();
    let Some(text) = trace(&project, "fsync,fdatasync,openat") else { return };
    let trace: Vec<&str> = text.lines().collect();
    let locked = position(&trace, 0, &["openat(", "refs/heads/main.lock", "O_CREAT"]);
    let locked = locked.unwrap_or_else(|| panic!("base is never locked\n{text}"));
    for synced in ["/piton/transactions/", "/piton/transactions>"] {
        let found = position(&trace, 0, &["sync(", synced]);
        assert!(found.is_some_and(|found| found < locked), "{synced} is not synced\n{text}");
    }
}

/// If this fails, a power cut can leave a worktree that nobody knows to be a lane's. The files that
/// git knows it by are not synced one by one: the mark says what they held.
#[test]
fn the_mark_of_a_worktree_is_durable_before_the_ledger_goes_on() {
    let project = Project::with_plan(LANE);
    project.commit();
    let Some(text) = trace(&project, "fsync,fdatasync") else { return };
    let trace: Vec<&str> = text.lines().collect();
    let mark = position(&trace, 0, &["sync(", "worktrees/A/piton>"]);
    let mark = mark.unwrap_or_else(|| panic!("the mark is not synced\n{text}"));
    let folder = position(&trace, mark, &["sync(", "worktrees/A>"]);
    let folder = folder.unwrap_or_else(|| panic!("its folder is not synced\n{text}"));
    let ledger = position(&trace, mark, &["sync(", "ledger.db-wal"]);
    assert!(ledger.is_none_or(|ledger| folder < ledger), "it is synced late\n{text}");
    for file in ["HEAD", "commondir", "gitdir", "locked"] {
        let synced = position(&trace, 0, &["sync(", &format!("worktrees/A/{file}>")]);
        assert_eq!(synced, None, "{file} costs a sync\n{text}");
    }
}
