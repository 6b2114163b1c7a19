//! The plan that runs while it is killed, the agent of its phases, and what plans them again.
//!
//! The agent notes when it begins and ends outside of the repository. The second and the third phase
//! ask for another plan until theirs says that it was revised.

use std::fs;
use std::path::Path;

use super::super::{Broken, Round};

/// The plan.
pub(super) const PLAN: &str = "specs/027_auth/plans/001_implementation.md";
/// Its checkpoint.
pub(super) const CHECKPOINT: &str = ".claude/data/checkpoints/implement_027_auth.json";
/// The phases, and whether each asks for another plan.
pub(super) const PHASES: [(&str, bool); 5] =
    [("1", false), ("2", true), ("3", true), ("4", false), ("5", false)];
/// What the box of a phase says, and says once it was planned again.
const TASK: &str = "do it";
const REVISED: &str = "do it, revised";
/// Agent and replan sleep less than so many milliseconds before and after they write.
const SLEEP_MS: u64 = 60;

/// The plan with the boxes and markers of some of its phases.
pub(super) fn plan(is_done: bool) -> String {
    let phase = |(id, asks): (&str, bool)| {
        let (marker, mark) = if is_done { (" [COMPLETED]", "x") } else { ("", " ") };
        let task = if asks && is_done { REVISED } else { TASK };
        format!("## Phase {id}: P{id}{marker}\n\n- [{mark}] {task}\n\n")
    };
    let phases: String = PHASES.into_iter().map(phase).collect();
    format!("# Auth\n\n{phases}## Success Criteria\n\n- [ ] all of it\n")
}

/// What is to happen in a round.
pub(super) struct Story {
    sleeps_ms: (u64, u64),
}

impl Story {
    /// Thinks one up.
    pub(super) fn of(round: &mut Round<'_>) -> Self {
        Self { sleeps_ms: (round.rng.below(SLEEP_MS), round.rng.below(SLEEP_MS)) }
    }

    /// The files of the repository.
    pub(super) fn files(outside: &Path) -> Vec<(&'static str, String)> {
        let outside = outside.display();
        let settings = format!(
            "[agents.bot]\ncommand = [\"sh\", \"{outside}/agent.sh\"]\n\n[workflow]\nagent = \"bot\"\n\n\
             [replan]\nrun = [\"sh\", \"{outside}/replan.sh\"]\n"
        );
        vec![("piton.toml", settings), (PLAN, plan(false))]
    }

    /// Makes the agent and what plans phases again.
    pub(super) fn prepare(&self, outside: &Path) -> Result<(), Broken> {
        let (before, after) = self.sleeps_ms;
        let log = format!("{}/log", outside.display());
        let agent = format!(
            "prompt=$(cat)\nnote() {{ echo \"$PITON_PHASE $PITON_ATTEMPT $1\" >> {log}; }}\n\
             note START\nsleep 0.{before:03}\n\
             case $PITON_PHASE in 2|3)\n\
             case $prompt in *'{REVISED}'*) ;; *) note ASKED; exit 86 ;; esac ;; esac\n\
             echo code >> code-$PITON_PHASE.txt\nsleep 0.{after:03}\necho \"Did $PITON_PHASE.\"\nnote OK\n"
        );
        let replan = format!(
            "sleep 0.{before:03}\n\
             sed -i \"/^## Phase $PITON_PHASE:/,/^## Phase/s/\\] {TASK}\\$/] {REVISED}/\" {PLAN}\n\
             sleep 0.{after:03}\n"
        );
        let write = |name: &str, text: String| {
            fs::write(outside.join(name), text).map_err(|e| e.to_string())
        };
        write("agent.sh", agent).and_then(|()| write("replan.sh", replan))
    }
}
