//! What agents leave in place becomes a commit before lanes in worktrees follow.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::common::Project;

const PLAN: &str = r#"title = "Night"
[agents.w]
command = ["sh", "-c", "echo $PITON_LANE >> ../ran; echo by $PITON_PHASE >> $PITON_LANE.txt; touch ../done-$PITON_PHASE"]

[defaults]
agent = "w"

[[phase]]
id = "draft"
prompt = "write"

[[phase]]
id = "build"
[[phase.lane]]
id = "a"
prompt = "a"
test = "test -e main.txt"
[[phase.lane]]
id = "b"
prompt = "b"
"#;

fn project(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.write("README", "one\n");
    project.commit();
    project
}

fn subjects(project: &Project) -> Vec<String> {
    let log = project.git(&["log", "--reverse", "--format=%s"]);
    log.lines().map(str::to_owned).collect()
}

/// Lost: the lanes of the second phase would be refused because the first left uncommitted files.
#[test]
fn what_an_agent_leaves_in_place_is_committed_before_lanes_follow() {
    let project = project(PLAN);
    project.piton(&["run", "plan.toml"]).exits(0);
    let mut made = subjects(&project);
    made[2..].sort();
    assert_eq!(made, ["work", "main: Night", "a: Night", "b: Night"]);
    let files = |commit: &str| project.git(&["show", "--format=", "--name-only", commit]);
    assert_eq!(files("HEAD~2"), "main.txt\n", "only its own files");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    assert_eq!(project.read("main.txt"), "by draft\n");
}

/// Lost: a person who wants to commit by hand could not, or what they had at hand would be committed
/// under the name of a lane.
#[test]
fn it_is_not_committed_where_the_plan_says_never_or_nothing_follows() {
    let alone = PLAN.split("[[phase]]\nid = \"build\"").next().unwrap().to_owned();
    let project = project(&alone);
    project.write("README", "mine\n");
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(subjects(&project), ["work"]);
    project.write("plan.toml", &alone.replace("prompt =", "commit = \"phase\"\nprompt ="));
    project.piton(&["run", "plan.toml", "--fresh"]).exits(0);
    assert_eq!(subjects(&project), ["work", "main: Night"]);
    let dirt = project.git(&["status", "--porcelain"]);
    assert!(dirt.contains("M README"), "what was changed before is left: {dirt}");
    let never = PLAN.replace("prompt = \"write\"", "commit = \"never\"\nprompt = \"write\"");
    let project = self::project(&never);
    project.piton(&["run", "plan.toml"]).exits(4).says("main.txt");
    assert_eq!(subjects(&project), ["work"]);
}

/// Lost: files that a command left before would get to base under the name of an agent.
#[test]
fn files_of_another_phase_are_left_out() {
    let first =
        "[[phase]]\nid = \"notes\"\nrun = \"echo n > notes.txt\"\n\n[[phase]]\nid = \"draft\"";
    let project = project(&PLAN.replace("[[phase]]\nid = \"draft\"", first));
    project.write(".gitignore", "");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(4).says("notes.txt");
    assert_eq!(project.git(&["show", "--format=", "--name-only", "HEAD"]), "main.txt\n");
}

/// Lost: a commit that nobody wants could only be taken back by hand, and the run would not know.
#[test]
fn it_can_be_undone_and_brought_back() {
    let project = project(&PLAN.replace("id = \"build\"", "id = \"build\"\ngate = \"Look\""));
    project.piton(&["run", "plan.toml"]).exits(3);
    assert_eq!(subjects(&project), ["work", "main: Night"]);
    let said = project.piton(&["undo", "--yes"]).exits(0);
    let said = said.says("commit of draft/main");
    assert_eq!(subjects(&project), ["work"], "{}", said.stderr);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(subjects(&project), ["work", "main: Night"]);
    assert_eq!(project.read("main.txt"), "by draft\n");
    project.piton(&["approve", "build"]).exits(0);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// Lost: a lane that is rolled back would leave its commit behind, and the next one on top of it.
#[test]
fn a_rollback_takes_it_out_of_base() {
    let project = project(&PLAN.replace("id = \"build\"", "id = \"build\"\ngate = \"Look\""));
    project.piton(&["run", "plan.toml"]).exits(3);
    project.piton(&["rollback", "--phase", "draft", "--yes"]).exits(0);
    assert!(!project.has("main.txt"));
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    project.piton(&["resume", "--yes"]).exits(3);
    assert_eq!(project.read("main.txt"), "by draft\n");
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// Kills the driver at one call of git that changes something, after the agent has ended.
const SHIM: &str = r#"#!/bin/sh
case "$*" in
  *commit-tree*|*read-tree*|*write-tree*|*update-index*|*update-ref*) changes=1 ;;
esac
if [ -e "$SHIM_DIR/../done-draft" ] && [ -n "$changes" ]; then
  echo "$@" >> "$SHIM_DIR/calls"
  n=$(wc -l < "$SHIM_DIR/calls")
  if [ "$n" = "$SHIM_AT" ] && [ "$SHIM_WHEN" = before ]; then kill -9 $PPID; exit 1; fi
  REAL "$@"; code=$?
  if [ "$n" = "$SHIM_AT" ]; then kill -9 $PPID; fi
  exit $code
fi
exec REAL "$@"
"#;

/// Lost: a power cut around the commit would leave two commits, or none, or files in neither.
#[test]
fn killed_anywhere_around_it_there_is_exactly_one_commit() {
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let draft = PLAN.replace("id = \"build\"", "id = \"build\"\ngate = \"Look\"");
    let mut killed = 0;
    // Every third call is enough to meet each act in time.
    for at in (1..).step_by(3) {
        let project = project(&draft);
        let bin = project.outside().join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("git"), SHIM.replace("REAL", &real.to_string_lossy())).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut run = project.command(super::common::PITON);
        run.args(["run", "plan.toml"]).env("PATH", path).env("SHIM_DIR", &bin);
        let when = if at % 2 == 0 { "before" } else { "after" };
        run.env("SHIM_AT", at.to_string()).env("SHIM_WHEN", when);
        let output = project.finish(&mut run);
        let is_whole = output.code == 3;
        if !is_whole {
            killed += 1;
            // A git of the killed driver may still move a ref: the next driver waits for it.
            project.piton(&["resume"]).exits(3);
        }
        assert_eq!(subjects(&project), ["work", "main: Night"], "killed {when} call {at} of git");
        assert_eq!(project.git(&["status", "--porcelain"]), "", "killed {when} call {at}");
        let ran = fs::read_to_string(project.outside().join("ran")).unwrap();
        assert_eq!(ran, "main\n", "the agent is not paid twice");
        if is_whole {
            break;
        }
    }
    assert!(killed >= 4, "killed only {killed} times");
}
