//! The plain protocol: a `plan.toml` without files of its own.

use piton_core::LanePath;
use piton_core::lane::{TaskOf, TaskWorktrees};
use piton_core::refusal::Refusal;
use piton_formats::{Input, read_plan};

use crate::format::Claim;
use crate::lanes::Lanes;
use crate::protocol::{Names, Protocol, Reading, Source, Unreadable};

/// The plain protocol.
#[derive(Debug)]
pub struct Plain;

impl Protocol for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn plans(&self) -> &'static str {
        "a plan.toml, which lists phases and their steps"
    }

    fn claim(&self, source: &Source<'_>) -> Claim {
        match source.text {
            None => Claim::No,
            Some(_) if source.has_extension("toml") => Claim::Content,
            // Markdown is a plan only if another protocol claims it.
            Some(_) if source.has_extension("md") => Claim::No,
            // A plan may come through a pipe, which has no name; `read` reports what is wrong with it.
            Some(_) => Claim::Name,
        }
    }

    fn around(&self, list: &dyn Fn(&str) -> Vec<String>) -> Option<String> {
        list("").into_iter().find(|name| name == "plan.toml")
    }

    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable> {
        let Source { file, settings, git, read, .. } = *source;
        if source.task_worktrees == Some(TaskWorktrees::On) {
            let cause = format!("{file} has no tasks; only phase documents have them");
            let remedy = "leave out `--task-worktrees on`";
            return Err(Unreadable::Refused(Refusal::new("task-worktrees", cause).or(remedy)));
        }
        let text = source.text.unwrap_or_default();
        let (plan, warnings) = read_plan(&Input { file, text, settings, git, read })?;
        Ok(Reading::new(plan, warnings))
    }

    fn names(&self, lane: &LanePath, task: Option<&TaskOf>) -> Names {
        Lanes.names(lane, task)
    }
}
