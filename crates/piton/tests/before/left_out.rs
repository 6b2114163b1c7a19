//! Files of the lanes protocol: never dirt, and not there unless somebody asks for them.

use super::common::Project;

const PLAN: &str = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nrun = \"echo x > made.txt\"\n";

fn project(plan: &str) -> Project {
    let project = Project::with_plan(plan);
    project.commit();
    project
}

/// Lost: a plan.toml of one's own would fill a repository with files of a protocol that nobody uses there.
#[test]
fn a_plan_toml_writes_no_protocol_files_unless_it_asks() {
    let project = project(PLAN);
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(!project.has(".claude"));
    let project = self::project(&format!("protocol = \"lanes\"\n{PLAN}"));
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(project.has(".claude/ai-dev-kit/run-logs/checkpoints.json"));
    let project = self::project(PLAN);
    project.write("piton.toml", "[lanes]\nviews = \"on\"\n");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(project.has(".claude/ai-dev-kit/run-logs/checkpoints.json"));
}

/// Lost: every `git add -A` would commit run logs, and `git status` would never be clean.
#[test]
fn protocol_files_are_kept_out_of_commits_once_and_in_all_worktrees() {
    let project = project(&format!("protocol = \"lanes\"\n{PLAN}"));
    project.write(".git/info/exclude", "*.mine");
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    let told = project.read(".git/info/exclude");
    assert!(told.starts_with("*.mine\n#"), "what was there stays: {told}");
    assert!(told.contains("\n/.claude/run-logs\n"), "{told}");
    project.piton(&["run", "plan.toml", "--fresh"]).exits(0);
    assert_eq!(project.read(".git/info/exclude"), told, "it is said once");
    project.git(&["worktree", "add", "--quiet", "../linked"]);
    let linked = project.outside().join("linked");
    let dirt = project.sh(&format!(
        "mkdir -p {0}/.claude/run-logs && touch {0}/.claude/run-logs/x && git -C {0} status --porcelain",
        linked.display()
    ));
    assert_eq!(dirt.exits(0).stdout, "");
}

/// Lost: a project that commits its run logs would lose the next ones.
#[test]
fn what_the_project_tracks_is_left_to_it() {
    let project = project(&format!("protocol = \"lanes\"\n{PLAN}"));
    project.write(".claude/run-logs/old.jsonl", "{}\n");
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    let dirt = project.git(&["status", "--porcelain"]);
    assert!(dirt.contains(".claude/run-logs/"), "{dirt}");
    assert!(!dirt.contains("run-reports") && !dirt.contains("ai-dev-kit"), "{dirt}");
}
