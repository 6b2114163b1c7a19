//! The plan of agents that runs while it is killed, and what its scripted agents do for each step.
//!
//! The program is called `claude` and found on the PATH, as the real one would be. It notes outside of
//! the repository each process that begins, each request before and after it is said, and each end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::super::scratch::Scratch;
use super::super::{Broken, Round};

/// The steps: phase, lane and id, which is unique in the run.
pub(super) const STEPS: [(&str, &str, &str); 5] =
    [("P", "A", "a1"), ("P", "A", "a2"), ("P", "B", "b1"), ("P", "B", "b2"), ("Q", "main", "c1")];
/// How often a step may be handed off; more than stories fill a window.
pub(super) const HANDOFFS: u64 = 4;
/// A story fills the window of a step at most so often: the second time shows that a fresh agent is
/// watched like the first.
const FILLS_MAX: u64 = 2;
/// The window of the model.
const WINDOW: u64 = 100_000;
/// Contexts that fill the window: one that stops the agent, one that ends it.
const FULL: [u64; 2] = [91_000, 98_000];
/// Agents sleep less than so many milliseconds before and after they write.
const SLEEP_MS: u64 = 80;
/// The program.
const CLAUDE: &str = include_str!("claude.sh");

/// The plan: lanes in worktrees of their own, then a step in place. Each step has a test.
pub(super) fn plan() -> String {
    let step = |id: &str| {
        format!(
            "[[phase.lane.step]]\nid = \"{id}\"\nagent = \"claude\"\nprompt = \"Write the file.\"\n\
             retries = 1\nbackoff = \"0s\"\nartifacts = [\"done-{id}.txt\"]\n\
             test = \"grep -q good done-{id}.txt\"\n"
        )
    };
    let mut plan = format!(
        "title = \"Agents\"\n\n[agents.claude]\nwindow = {WINDOW}\nhandoffs = {HANDOFFS}\n"
    );
    let mut last = ("", "");
    for (phase, lane, id) in STEPS {
        if last.0 != phase {
            plan.extend(["\n[[phase]]\nid = \"", phase, "\"\n"]);
        }
        if last != (phase, lane) {
            plan.extend(["\n[[phase.lane]]\nid = \"", lane, "\"\n"]);
        }
        plan.push_str(&step(id));
        last = (phase, lane);
    }
    plan
}

/// What the agents of one step do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Story {
    /// Its step.
    pub(super) step: &'static str,
    /// Agents that fill their window.
    pub(super) fills: u64,
    /// Whether one meets a limit of the account, and how many have filled their window by then.
    pub(super) limit_after: Option<u64>,
    /// Whether the first result fails the test.
    pub(super) is_wrong: bool,
    fill: u64,
    parts: u64,
    sleep_ms: u64,
}

impl Story {
    /// Thinks one up for each step.
    pub(super) fn of_all(round: &mut Round<'_>) -> Vec<Self> {
        STEPS.into_iter().map(|(_, _, step)| Self::of(round, step)).collect()
    }

    fn of(round: &mut Round<'_>, step: &'static str) -> Self {
        let rng = &mut round.rng;
        let fills = rng.below(FILLS_MAX + 1);
        Self {
            step,
            fills,
            limit_after: rng.one_in(3).then(|| rng.below(fills + 1)),
            is_wrong: rng.one_in(3),
            fill: FULL[usize::from(rng.one_in(3))],
            parts: 1 + rng.below(3),
            sleep_ms: rng.below(SLEEP_MS),
        }
    }

    /// How many processes of agents it takes if none is killed.
    pub(super) fn processes(&self) -> u64 {
        1 + self.fills + u64::from(self.limit_after.is_some()) + u64::from(self.is_wrong)
    }

    /// The variables of the script.
    fn text(&self) -> String {
        let after = self.limit_after.map_or("never".to_owned(), |after| after.to_string());
        let parts: Vec<String> = (1..=self.parts).map(|part| part.to_string()).collect();
        format!(
            "fills={} fill={} limit_after={after} wrong={} parts='{}' pause=0.{:03}\n",
            self.fills,
            self.fill,
            u8::from(self.is_wrong),
            parts.join(" "),
            self.sleep_ms
        )
    }
}

/// Makes the program and the stories that it reads.
pub(super) fn prepare(scratch: &Scratch, stories: &[Story]) -> Result<(), Broken> {
    let folder = scratch.outside().join("agents");
    let write = |file: std::path::PathBuf, text: &str| fs::write(file, text);
    let all = || -> std::io::Result<()> {
        fs::create_dir(&folder)?;
        for story in stories {
            write(folder.join(format!("{}.story", story.step)), &story.text())?;
        }
        let program = scratch.base().join("bin/claude");
        let outside = scratch.outside().display().to_string();
        write(program.clone(), &CLAUDE.replace("OUTSIDE", &outside))?;
        fs::set_permissions(program, fs::Permissions::from_mode(0o755))
    };
    all().map_err(|e| e.to_string())
}
