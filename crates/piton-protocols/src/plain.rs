//! The plain plan: a `plan.toml` that follows no published protocol, and writes no file.

use piton_core::lane::TaskWorktrees;
use piton_formats::{Input, read_plan};

use crate::protocol::{Claim, Protocol, Reading, Refusal, Source, Unreadable};

/// The plain plan.
#[derive(Debug)]
pub struct Plain;

impl Protocol for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn claim(&self, source: &Source<'_>) -> Claim {
        match source.text {
            None => Claim::No,
            Some(_) if source.has_extension("toml") => Claim::Content,
            // A plan may come through a pipe, which has no name; what it is not is told by its reader.
            Some(_) => Claim::Name,
        }
    }

    fn around(&self, list: &dyn Fn(&str) -> Vec<String>) -> Option<String> {
        list("").into_iter().find(|name| name == "plan.toml")
    }

    fn read(&self, source: &Source<'_>) -> Result<Reading, Unreadable> {
        let Source { file, settings, git, read, .. } = *source;
        if source.task_worktrees == Some(TaskWorktrees::On) {
            let remedy =
                "leave out `--task-worktrees on`; lanes of a plan have worktrees of their own";
            return Err(Unreadable::Refused(Refusal {
                code: "task-worktrees",
                blocked: false,
                cause: format!("{file} has no tasks: they are parts of phase documents"),
                remedies: vec![remedy.to_owned()],
            }));
        }
        let text = source.text.unwrap_or_default();
        let (plan, warnings) = read_plan(&Input { file, text, settings, git, read })?;
        Ok(Reading::new(plan, warnings))
    }
}
