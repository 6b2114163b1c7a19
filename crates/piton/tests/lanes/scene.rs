//! A repository with a phase document, an agent that is a shell script, and looks at what is left.
//!
//! The agent lies outside the repository. For a step it runs the script of that name, else that of
//! its lane, else it writes `STEP.txt`. So a test says in a line what an agent does.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::common::{Output, PITON, Project};

/// Where the views of a run lie.
pub const CHECKPOINTS: &str = ".claude/ai-dev-kit/run-logs/checkpoints.json";

/// The phase document of every scene.
pub const DOCUMENT: &str = "plans/phase-1.md";

/// The fields that the contract requires of each record.
pub const REQUIRED: [&str; 12] = [
    "run_id",
    "phase",
    "lane",
    "stage",
    "status",
    "base_branch",
    "worktree_path",
    "log_path",
    "timestamp",
    "notes",
    "resume_hint",
    "rollback_hint",
];

/// What the agent does with a step.
const AGENT: &str = r#"#!/bin/sh
at=$(dirname "$0")
for name in "$PITON_STEP" "$PITON_LANE"; do
  if [ -e "$at/agent/$name" ]; then . "$at/agent/$name"; exit; fi
done
read -r first
case "$first" in *"(verify)") exit 0;; esac
echo "work of $PITON_STEP" > "$PITON_STEP.txt"
"#;

/// One lane of a phase document.
#[derive(Clone, Default)]
pub struct LaneDoc {
    /// Its id.
    pub id: &'static str,
    /// Further lines of the lane index.
    pub index: &'static [&'static str],
    /// The test of its one task.
    pub test: String,
    /// What it says below its heading, before the table.
    pub prose: &'static str,
}

/// A lane with one task, `ID-01`, whose test is that its file is there.
pub fn lane(id: &'static str) -> LaneDoc {
    LaneDoc { id, test: format!("test -e {id}-01.txt"), ..LaneDoc::default() }
}

/// A phase document `P1` with these lanes; `more` follows them.
pub fn document(gates: &str, lanes: &[LaneDoc], more: &str) -> String {
    let mut text = vec![format!("# P1: First\n\n{gates}\n## Lane Index & Dependencies\n\n")];
    for lane in lanes {
        text.push(format!("- {} -- Lane {}\n", lane.id, lane.id));
        text.extend(lane.index.iter().map(|line| format!("  - {line}\n")));
    }
    text.push("\n## D. Swim Lanes\n\n".to_owned());
    for lane in lanes {
        let id = lane.id;
        text.push(format!(
            "### {id} -- Lane {id}\n\n{}\n\n\
             | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
             |---|---|---|---|---|---|\n\
             | {id}-01 | impl | - | {id}-01.txt | - | `{}` |\n\n",
            lane.prose,
            lane.test.replace('|', "\\|"),
        ));
    }
    text.push(more.to_owned());
    text.concat()
}

/// A repository with one commit, settings and an agent.
pub struct Scene {
    /// The project.
    pub project: Project,
}

impl Scene {
    /// A scene with a phase document of these lanes.
    pub fn of(lanes: &[LaneDoc]) -> Self {
        Self::with(&document("", lanes, ""), "")
    }

    /// A scene with this phase document; `settings` come before the agent's.
    pub fn with(text: &str, settings: &str) -> Self {
        let scene = Self::bare(settings);
        scene.project.write(DOCUMENT, text);
        scene.project.commit();
        scene
    }

    /// A scene with `plan.toml`, which asks for the files of the lanes protocol.
    pub fn planned(plan: &str) -> Self {
        let scene = Self::bare("");
        scene.project.write("plan.toml", &format!("protocol = \"lanes\"\n{plan}"));
        scene.project.commit();
        scene
    }

    fn bare(settings: &str) -> Self {
        let project = Project::new();
        std::fs::create_dir_all(project.outside().join("agent")).unwrap();
        let agent = project.outside().join("agent.sh");
        std::fs::write(&agent, AGENT).unwrap();
        project.write(
            "piton.toml",
            &format!(
                "{settings}\n[defaults]\nagent = \"writer\"\nbackoff = \"1ms\"\n\
                 [agents.writer]\ncommand = [\"sh\", \"{}\"]\n",
                agent.display()
            ),
        );
        project.write("README", "a project\n");
        Self { project }
    }

    /// Makes the agent do this for a step or a lane.
    pub fn agent(&self, name: &str, script: &str) {
        std::fs::write(self.project.outside().join("agent").join(name), script).unwrap();
    }

    /// Lets the agent do again what it does for every step.
    pub fn usual_agent(&self, name: &str) {
        std::fs::remove_file(self.project.outside().join("agent").join(name)).unwrap();
    }

    /// A file outside the repository, for scripts that tell tests something.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.project.outside().join(name)
    }

    /// The lines of a file outside.
    pub fn told(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.outside(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs the phase document.
    #[track_caller]
    pub fn run(&self, more: &[&str]) -> Output {
        let args: Vec<&str> = ["run", DOCUMENT].into_iter().chain(more.iter().copied()).collect();
        self.project.piton(&args)
    }

    /// Resumes the newest run.
    #[track_caller]
    pub fn resume(&self, more: &[&str]) -> Output {
        let args: Vec<&str> = ["resume"].into_iter().chain(more.iter().copied()).collect();
        self.project.piton(&args)
    }

    /// A command that finds `piton`, and programs of the scene's own folder first.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.project.command(program);
        let own = self.outside("bin");
        let ours = Path::new(PITON).parent().unwrap();
        let usual = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{}:{usual}", own.display(), ours.display()));
        command
    }

    /// Writes a program into the scene's own folder of programs.
    pub fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.outside("bin").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Pastes a line into a shell.
    #[track_caller]
    pub fn paste(&self, line: &str) -> Output {
        self.project.finish(self.command("sh").args(["-c", line]).current_dir("/"))
    }

    /// The records of `checkpoints.json`.
    #[track_caller]
    pub fn records(&self) -> Vec<Value> {
        serde_json::from_str(&self.project.read(CHECKPOINTS)).unwrap()
    }

    /// The record of a lane at a stage; it has all that the contract requires.
    #[track_caller]
    pub fn record(&self, lane: &str, stage: &str) -> Value {
        let all = self.records();
        let found = all.iter().find(|r| r["lane"] == lane && r["stage"] == stage);
        let record = found.unwrap_or_else(|| panic!("no {lane} {stage} in {all:#?}")).clone();
        for field in REQUIRED {
            assert!(record[field].is_string(), "{field} of {record:#}");
        }
        record
    }

    /// The status of a lane at a stage; empty where it has none.
    pub fn stage_status(&self, lane: &str, stage: &str) -> String {
        let all = self.records();
        let found = all.iter().find(|r| r["lane"] == lane && r["stage"] == stage);
        found.and_then(|r| r["status"].as_str()).unwrap_or_default().to_owned()
    }

    /// The subjects of the commits of a branch, newest first.
    #[track_caller]
    pub fn subjects(&self, branch: &str) -> Vec<String> {
        let text = self.project.git(&["log", "--format=%s", branch, "--"]);
        text.lines().map(str::to_owned).collect()
    }

    /// The branches there are, beside `main`.
    #[track_caller]
    pub fn branches(&self) -> Vec<String> {
        let text = self.project.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
        text.lines().filter(|b| *b != "main").map(str::to_owned).collect()
    }

    /// The worktrees that git knows, beside the first.
    #[track_caller]
    pub fn worktrees(&self) -> Vec<String> {
        let text = self.project.git(&["worktree", "list", "--porcelain"]);
        let paths = text.lines().filter_map(|l| l.strip_prefix("worktree "));
        paths.skip(1).map(str::to_owned).collect()
    }

    /// The folder of a lane's worktree.
    pub fn workspace(&self, lane: &str) -> PathBuf {
        self.project.root().join(".worktrees/P1").join(lane)
    }

    /// Checks that lanes left nothing: no branch, no worktree, a linear history, a clean base.
    #[track_caller]
    pub fn nothing_left(&self) {
        assert_eq!(self.branches(), Vec::<String>::new());
        assert_eq!(self.worktrees(), Vec::<String>::new());
        assert_eq!(self.project.git(&["rev-list", "--merges", "main"]), "");
        let dirt = self.project.git(&["status", "--porcelain", "--", ".", ":!.claude", ":!plans"]);
        assert_eq!(dirt.trim(), "");
        let workspaces = std::fs::read_dir(self.project.root().join(".worktrees"));
        let entries = workspaces.into_iter().flatten().flatten().map(|e| e.path());
        let left: Vec<_> = entries.filter(|path| path.is_dir()).collect();
        assert!(left.is_empty(), "folders are left: {left:?}");
    }
}
