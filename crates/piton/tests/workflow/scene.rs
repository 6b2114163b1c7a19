//! A repository with one plan and an agent that leaves tracks.
//!
//! The agent is a shell script: it appends its phase (of a task list: its task) to a list, keeps its
//! prompt, and makes a file for it. A test changes what a phase does with a script of its own
//! ([`Scene::does`]) and holds it with a file ([`Scene::hold`]). All of that lies outside of the
//! repository.

use std::fs;

use serde_json::Value;

use super::common::{Output, Project, wait_until};

/// The plan.
pub const PLAN: &str = "specs/027_auth/plans/001_implementation.md";
/// Its checkpoint.
pub const CHECKPOINT: &str = ".claude/data/checkpoints/implement_027_auth.json";
/// The folder of checkpoints.
pub const FOLDER: &str = ".claude/data/checkpoints";
/// Three phases, one after the other.
pub const THREE: &str = "# Auth\n\n- **Research Reports**: [OAuth](../reports/001_oauth.md)\n\n\
    ## Phase 1: Schema\n\nWrite the schema.\n- [ ] table\n- [ ] index\n\n**Testing**:\n```bash\n\
    test -e made/1\n```\n\n## Phase 2: Login [NOT STARTED]\n- [ ] form\n\n## Phase 3: Mail\n- [ ] send\n\n\
    ## Success Criteria\n- [ ] all of it\n";
/// How a project runs its phases.
pub const SETTINGS: &str = "[defaults]\nbackoff = \"1ms\"\n\n[agents.bot]\ncommand = [\"sh\", \"bot.sh\"]\n\n\
    [workflow]\nagent = \"bot\"\n";

/// What the agent does.
const BOT: &str = r#"#!/bin/sh
log=../log
me=$PITON_PHASE
[ "$PITON_STEP" = work ] || me=$PITON_STEP
echo "$me" >> "$log/ran.txt"
n=$(grep -c "^$me\$" "$log/ran.txt")
cat > "$log/$me.$n.txt"
while [ -e "$log/hold-$me" ]; do sleep 0.02; done
mkdir -p made
if [ -e "$log/do-$me.sh" ]; then . "$log/do-$me.sh"; fi
echo "$me" > "made/$me"
echo "Did $me."
"#;

/// A project with a plan.
pub struct Scene {
    /// The project.
    pub project: Project,
    plan: &'static str,
}

impl Scene {
    /// A plan of three phases.
    pub fn new() -> Self {
        Self::with_plan(THREE)
    }

    /// Another plan at the same place.
    pub fn with_plan(text: &str) -> Self {
        Self::with(PLAN, text, "")
    }

    /// A plan anywhere, with more in `piton.toml`.
    pub fn with(plan: &'static str, text: &str, more: &str) -> Self {
        let project = Project::new();
        fs::create_dir(project.outside().join("log")).unwrap();
        project.write("bot.sh", BOT);
        project.write("piton.toml", &format!("{SETTINGS}{more}"));
        project.write(plan, text);
        project.commit();
        Self { project, plan }
    }

    /// Starts or continues the plan.
    #[track_caller]
    pub fn run(&self) -> Output {
        self.run_with(&[])
    }

    /// The same with options.
    #[track_caller]
    pub fn run_with(&self, options: &[&str]) -> Output {
        let mut args = vec!["run", self.plan];
        args.extend(options);
        self.project.piton(&args)
    }

    /// The plan as it is now.
    #[track_caller]
    pub fn text(&self) -> String {
        self.project.read(self.plan)
    }

    /// Whether the plan has a line.
    #[track_caller]
    pub fn shows(&self, line: &str) {
        let text = self.text();
        assert!(text.lines().any(|l| l == line), "no `{line}` in\n{text}");
    }

    /// The checkpoint.
    #[track_caller]
    pub fn checkpoint(&self) -> Value {
        serde_json::from_str(&self.project.read(CHECKPOINT)).unwrap()
    }

    /// What the agent was asked for, in order.
    pub fn ran(&self) -> Vec<String> {
        self.project.lines("../log/ran.txt")
    }

    /// How often it was asked for a phase or task.
    pub fn times(&self, what: &str) -> usize {
        self.ran().iter().filter(|ran| *ran == what).count()
    }

    /// The prompt of an attempt, counted from 1.
    #[track_caller]
    pub fn prompt(&self, what: &str, attempt: u32) -> String {
        self.project.read(&format!("../log/{what}.{attempt}.txt"))
    }

    /// What a phase does first from now on; the shell has `$n`, how often it ran.
    pub fn does(&self, what: &str, script: &str) {
        self.project.write(&format!("../log/do-{what}.sh"), script);
    }

    /// Holds a phase at its beginning until [`Scene::release`].
    pub fn hold(&self, what: &str) {
        self.project.write(&format!("../log/hold-{what}"), "");
    }

    /// Lets a phase go on.
    pub fn release(&self, what: &str) {
        self.project.remove(&format!("../log/hold-{what}"));
    }

    /// Waits until the agent is at a phase.
    #[track_caller]
    pub fn wait_at(&self, what: &str) {
        wait_until(what, || self.ran().last().is_some_and(|last| last == what));
    }

    /// The names of all checkpoints, archived ones included.
    pub fn checkpoints(&self) -> Vec<String> {
        let entries =
            fs::read_dir(self.project.root().join(FOLDER)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
