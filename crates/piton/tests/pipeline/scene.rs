//! A repository with one feature and an agent that leaves tracks.
//!
//! The agent is a shell script: it appends its stage to a list, keeps its prompt, and writes what the
//! stage is to make. A test changes what a stage does with a script of its own ([`Feature::does`]) and
//! holds it with a file ([`Feature::hold`]). All of that lies outside of the repository.

use std::fs;

use super::common::{Output, Project, wait_until};

/// The folder of the feature.
pub const FOLDER: &str = "specs/003-csv";
/// Its state file.
pub const STATE: &str = "specs/003-csv/.pipeline-state.md";
/// Its spec.
pub const SPEC: &str = "specs/003-csv/feature.spec.md";
/// The stages, in their order.
pub const STAGES: [&str; 10] = [
    "spec",
    "clarify",
    "architect",
    "tasks",
    "tdd",
    "programmer",
    "testrunner",
    "code-review",
    "security",
    "refactor",
];
/// The boxes of a run in which nothing keeps failing.
pub const BOXES: [&str; 3] = ["Spec approval", "Architecture sign-off", "Security sign-off"];
/// A decision record whose Constitution Check is filled in.
pub const ADR: &str = "# ADR\n\n## Constitution Check\n\n| Article | Status | Notes |\n|---|---|---|\n\
                       | I. Simple | COMPLIES | one file |\n";
/// One whose check is still the template.
pub const UNFILLED: &str = "# ADR\n\n## Constitution Check\n\n| Article | Status | Notes |\n\
                            |---|---|---|\n| I. Simple | | |\n";
/// How a project runs its stages.
pub const SETTINGS: &str = "[defaults]\nbackoff = \"1ms\"\n\n[agents.bot]\ncommand = [\"sh\", \"bot.sh\"]\n\n\
                            [pipeline]\nagent = \"bot\"\n";

/// What the agent does at each stage.
const BOT: &str = r#"#!/bin/sh
log=../log
echo "$PITON_PHASE" >> "$log/ran.txt"
n=$(grep -c "^$PITON_PHASE\$" "$log/ran.txt")
cat > "$log/$PITON_PHASE.$n.txt"
while [ -e "$log/hold-$PITON_PHASE" ]; do sleep 0.02; done
d=$(dirname "$(ls specs/*/feature.spec.md | head -n 1)")
if [ -e "$log/do-$PITON_PHASE.sh" ]; then . "$log/do-$PITON_PHASE.sh"; fi
case $PITON_PHASE in
architect)
  echo "CSV is RFC 4180." > "$d/research.md"
  printf '# ADR\n\n## Constitution Check\n\n| Article | Status | Notes |\n|---|---|---|\n' > "$d/adr.md"
  echo "| I. Simple | COMPLIES | one file |" >> "$d/adr.md" ;;
tasks) echo "- [ ] T001 write rows" > "$d/tasks.md" ;;
tdd) echo "tests/rows covers all" > "$d/test-certification.md" ;;
programmer) echo "rows" > code.txt ;;
testrunner) echo "1 test, passed" > "$d/test-report.md" ;;
code-review) echo "nothing found" > "$d/code-review.md" ;;
security) echo "nothing found" > "$d/security-report.md" ;;
refactor) echo "nothing to do" > "$d/refactor-proposals.md" ;;
esac
"#;

/// A project with a feature.
pub struct Feature {
    /// The project.
    pub project: Project,
}

impl Feature {
    /// A feature whose spec is written, nothing else.
    pub fn new() -> Self {
        Self::with_settings("")
    }

    /// One with more in `piton.toml`.
    pub fn with_settings(more: &str) -> Self {
        let project = Project::new();
        fs::create_dir(project.outside().join("log")).unwrap();
        project.write("bot.sh", BOT);
        project.write("piton.toml", &format!("{SETTINGS}{more}"));
        project.write(SPEC, "# CSV export\n\nRows are exported as CSV.\n");
        project.commit();
        Self { project }
    }

    /// One at work until a person is asked for the first time.
    pub fn at_spec_approval() -> Self {
        let feature = Self::new();
        feature.run().exits(3).says("Spec approval");
        feature
    }

    /// One that waits for the sign-off of its architecture.
    pub fn at_architecture() -> Self {
        let feature = Self::at_spec_approval();
        feature.tick("Spec approval");
        feature.run().exits(3).says("Architecture sign-off");
        feature
    }

    /// One that waits for the sign-off of its security.
    pub fn at_security() -> Self {
        let feature = Self::at_architecture();
        feature.tick("Architecture sign-off");
        feature.run().exits(3).says("Security sign-off");
        feature
    }

    /// Starts or continues the feature.
    #[track_caller]
    pub fn run(&self) -> Output {
        self.project.piton(&["run", FOLDER])
    }

    /// Ticks a box of the state file, as a person in an editor does.
    #[track_caller]
    pub fn tick(&self, name: &str) {
        let text = self.state();
        let ticked = text.replace(&format!("- [ ] {name}"), &format!("- [x] {name}"));
        assert_ne!(text, ticked, "no open box {name}");
        self.project.write(STATE, &ticked);
    }

    /// The state file.
    #[track_caller]
    pub fn state(&self) -> String {
        self.project.read(STATE)
    }

    /// Whether the state file has a line.
    #[track_caller]
    pub fn shows(&self, line: &str) {
        let text = self.state();
        assert!(text.lines().any(|l| l == line), "no `{line}` in\n{text}");
    }

    /// Whether the state file has these words.
    #[track_caller]
    pub fn mentions(&self, words: &str) {
        let text = self.state();
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }

    /// The stages that the agent was asked for, in order.
    pub fn ran(&self) -> Vec<String> {
        self.project.lines("../log/ran.txt")
    }

    /// How often the agent was asked for a stage.
    pub fn times(&self, stage: &str) -> usize {
        self.ran().iter().filter(|ran| *ran == stage).count()
    }

    /// The prompt of an attempt of a stage, counted from 1.
    #[track_caller]
    pub fn prompt(&self, stage: &str, attempt: u32) -> String {
        self.project.read(&format!("../log/{stage}.{attempt}.txt"))
    }

    /// What a stage does first from now on; the shell has `$d`, the folder, and `$n`, how often it ran.
    pub fn does(&self, stage: &str, script: &str) {
        self.project.write(&format!("../log/do-{stage}.sh"), script);
    }

    /// Holds a stage at its beginning until [`Feature::release`].
    pub fn hold(&self, stage: &str) {
        self.project.write(&format!("../log/hold-{stage}"), "");
    }

    /// Lets a stage go on.
    pub fn release(&self, stage: &str) {
        self.project.remove(&format!("../log/hold-{stage}"));
    }

    /// Waits until the agent is at a stage.
    #[track_caller]
    pub fn wait_at(&self, stage: &str) {
        wait_until(stage, || self.ran().last().is_some_and(|last| last == stage));
    }

    /// State files that were renamed.
    pub fn set_aside(&self) -> Vec<String> {
        let entries = fs::read_dir(self.project.root().join(FOLDER)).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|n| n.starts_with(".pipeline-state.") && n != ".pipeline-state.md").collect()
    }
}
