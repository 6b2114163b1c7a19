//! The feature that goes through its pipeline while it is killed, and the agent of its stages.
//!
//! The agent notes when it begins and ends outside of the repository. It takes its time, and some
//! stages fail once or twice first, each time for another reason: with a message, or with an output
//! that is empty.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use piton_core::hash::Sha;

use super::super::{Broken, Round};

/// The folder of the feature.
pub(super) const FOLDER: &str = "specs/003-csv";
/// Its state file.
pub(super) const RECORD: &str = "specs/003-csv/.pipeline-state.md";
/// Its spec.
const SPEC: &str = "specs/003-csv/feature.spec.md";
/// What the spec says before any stage.
const SPEC_TEXT: &str = "# CSV\n\nExport rows as CSV.\n";
/// The gates, by the stage that they guard, and their boxes.
pub(super) const GATES: [(&str, &str); 3] = [
    ("architect", "Spec approval"),
    ("tasks", "Architecture sign-off (includes Constitution Check)"),
    ("refactor", "Security sign-off"),
];
/// The stages, and how often each may fail here: at most twice, and as often as it is tried again.
pub(super) const STAGES: [(&str, u64); 10] = [
    ("spec", 2),
    ("clarify", 1),
    ("architect", 2),
    ("tasks", 1),
    ("tdd", 2),
    ("programmer", 2),
    ("testrunner", 2),
    ("code-review", 1),
    ("security", 1),
    ("refactor", 1),
];
/// The stages that another tool completed.
const FOREIGN: [&str; 2] = ["spec", "clarify"];
/// The stage that it was at.
const FOREIGN_CURRENT: &str = "architect";
/// The agent sleeps less than so many milliseconds before and after it writes.
const SLEEP_MS: u64 = 60;

/// What is to happen in a round.
pub(super) struct Story {
    /// The retries of the current stage in the state file of another tool, if there is one.
    foreign: Option<u64>,
    /// How often each stage fails, and whether it says why.
    failures: Vec<(&'static str, u64, bool)>,
    sleeps_ms: (u64, u64),
}

impl Story {
    /// Thinks one up.
    pub(super) fn of(round: &mut Round<'_>) -> Self {
        let foreign = round.rng.one_in(3).then(|| round.rng.below(2));
        let failures = STAGES.map(|(stage, most)| {
            let spent = foreign.filter(|_| stage == FOREIGN_CURRENT).unwrap_or(0);
            let count = if round.rng.one_in(3) { 1 + round.rng.below(most - spent) } else { 0 };
            (stage, count, round.rng.one_in(2))
        });
        let sleeps_ms = (round.rng.below(SLEEP_MS), round.rng.below(SLEEP_MS));
        Self { foreign, failures: failures.to_vec(), sleeps_ms }
    }

    /// Whether another tool was here.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Whether another tool completed a stage.
    pub(super) fn is_done_before(&self, stage: &str) -> bool {
        self.is_foreign() && FOREIGN.contains(&stage)
    }

    /// The files of the repository.
    pub(super) fn files(&self, outside: &Path) -> Vec<(&'static str, String)> {
        let settings = format!(
            "[defaults]\nbackoff = \"10ms\"\n\n[agents.bot]\ncommand = [\"sh\", \"{}/agent.sh\"]\n\n\
             [pipeline]\nagent = \"bot\"\n",
            outside.display()
        );
        let mut files = vec![("piton.toml", settings), (SPEC, SPEC_TEXT.to_owned())];
        files.extend(self.foreign.map(|retries| (RECORD, foreign(retries))));
        files
    }

    /// Makes the agent and what tells it to fail.
    pub(super) fn prepare(&self, outside: &Path) -> Result<(), Broken> {
        let write = |name: String, text: &str| {
            fs::write(outside.join(name), text).map_err(|e| e.to_string())
        };
        fs::create_dir(outside.join("fail")).map_err(|e| e.to_string())?;
        for (stage, count, says_why) in &self.failures {
            for number in 1..=*count {
                let how = if *says_why || number > 1 { "say" } else { "empty" };
                write(format!("fail/{stage}.{number}"), how)?;
            }
        }
        write("agent.sh".to_owned(), &self.agent(outside))
    }

    /// The agent: a failure is taken out of its folder first, so that each happens at most once.
    fn agent(&self, outside: &Path) -> String {
        let (before, after) = self.sleeps_ms;
        let outside = outside.display();
        let mut agent = format!(
            "prompt=$(cat)\n\
             stage=${{prompt#*stage \\`}}; stage=${{stage%%\\`*}}\n\
             note() {{ echo \"$stage $PITON_ATTEMPT $1\" >> {outside}/log; }}\n\
             put() {{ if [ -n \"$empty\" ]; then : > {FOLDER}/$1; \
             else printf \"$2\\n\" > {FOLDER}/$1; fi; }}\n\
             note START\n\
             sleep 0.{before:03}\n\
             empty= end=OK\n\
             for number in 1 2; do\n\
             file={outside}/fail/$stage.$number\n\
             how=$(cat $file 2> /dev/null) || continue\n\
             rm $file\n\
             if [ $how = empty ] && [ $stage != programmer ]; then empty=1 end=FAILED; break; fi\n\
             note FAILED\n\
             [ $number = 1 ] && echo 'error: a bracket is missing' || echo 'error: an import is unknown'\n\
             exit $number\n\
             done\n\
             case $stage in\n"
        );
        for (stage, writes) in [
            ("spec", "put feature.spec.md '# CSV\\n\\nExport all rows as CSV.'"),
            ("clarify", "put feature.spec.md '# CSV\\n\\nExport all rows as CSV, with a header.'"),
            (
                "architect",
                "put research.md '# Research\\n\\nDone.'; put adr.md '# ADR: CSV\\n\\n\
                 ## Constitution Check\\n\\n| Article | Status | Notes |\\n|---|---|---|\\n\
                 | I | COMPLIES | yes |\\n\\n## Decision\\n\\nA writer of rows.'",
            ),
            ("tasks", "put tasks.md '# Tasks\\n\\n1. Write rows.'"),
            ("tdd", "put test-certification.md '# Tests\\n\\nAll fail.'"),
            ("programmer", "echo code >> code.txt"),
            ("testrunner", "put test-report.md '# Report\\n\\nAll pass.'"),
            ("code-review", "put code-review.md '# Review\\n\\nFine.'"),
            ("security", "put security-report.md '# Security\\n\\nFine.'"),
            ("refactor", "put refactor-proposals.md '# Proposals\\n\\nNone.'"),
        ] {
            let _ = writeln!(agent, "{stage}) {writes} ;;");
        }
        let _ = write!(agent, "esac\nsleep 0.{after:03}\nnote $end\n");
        agent
    }
}

/// A state file as another tool leaves it: two stages done, the first box ticked.
pub(super) fn foreign(retries: u64) -> String {
    let hash = Sha::of(SPEC_TEXT.as_bytes());
    let row = |stage: &str, at: &str| format!("| {stage} | {at} | {SPEC} | sha256:{hash} |\n");
    let (spec, clarify) =
        (row("spec", "2026-02-22T14:30:00Z"), row("clarify", "2026-02-22T14:40:00Z"));
    format!(
        "# Pipeline State\n\n- run_id: other-1\n- feature: 003-csv\n- coordinator_mode: pipeline\n\
         - debug_mode: off\n- spec_version: 1\n- spec_hash: sha256:{hash}\n\
         - started_at: 2026-02-22T14:00:00Z\n- last_updated_at: 2026-02-22T14:45:00Z\n\
         - current_stage: architect\n- status: IN_PROGRESS\n\n\
         ## Completed Stages\n\n| Stage | Completed At | Output Artifact | Output Hash |\n\
         |-------|--------------|-----------------|-------------|\n{spec}{clarify}\n\
         ## Current Stage Detail\n\n- stage: architect\n- dispatched_at: 2026-02-22T14:41:00Z\n\
         - job_status: RUNNING\n- retry_count: {retries}\n- last_output_summary: N/A\n\n\
         ## Iteration Counts\n\n| Stage | Cycle Count | Budget | Status |\n\
         |-------|-------------|--------|--------|\n| spec | 1 | 2 | WITHIN_BUDGET |\n\n\
         ## Failure Clusters\n\n| Cluster | First Seen | Retry Count | Stage | Notes |\n\
         |---------|------------|-------------|-------|-------|\n\n\
         ## Human Checkpoints Cleared\n\n- [x] Spec approval\n\
         - [ ] Architecture sign-off (includes Constitution Check)\n\
         - [ ] Convergence escalation (if triggered)\n- [ ] Security sign-off\n\n\
         ## Notes\n\nThe other tool stopped here.\n"
    )
}
