//! Why lanes can't go on: every such sentence of the core and the engine, with what to do.
//!
//! A remedy says what changes the cause. That the run goes on afterwards with `piton resume` is added
//! by whoever shows it.

use crate::id::LanePath;
use crate::refusal::{Refusal, Remedy};
use crate::shell;

/// What a person does about trouble with files or git.
const FIX: &str = "fix this";

/// A person undid the merge of a lane.
pub fn merge_undone() -> Refusal {
    let again = Remedy::piton("undo").words(" to merge it again");
    let over = Remedy::piton("rollback").words(" to start it over");
    Refusal::new("merge-undone", "its merge was undone").or(again).or(over)
}

/// The spec is another than the one that the run knows.
pub fn spec_changed(run: &str, message: &str) -> Refusal {
    let accept = Remedy::from("review it").then_piton(format!("resume {run} --accept-spec"));
    Refusal::new("spec-changed", message).or(accept)
}

/// So many acts for a lane came to nothing.
pub fn no_progress(acts: u32, last: &str) -> Refusal {
    let cause = format!("{acts} acts in a row changed nothing, the last of them {last}");
    Refusal::new("lane-no-progress", cause).or("this is a bug in Piton; please report it")
}

/// A chosen lane needs something that is neither done nor chosen.
pub fn needs_unmet(run: &str, why: String, first: &str) -> Refusal {
    let chosen = Remedy::piton(format!("resume {run} {first}")).words(" runs what it needs");
    let all = Remedy::piton(format!("resume {run}")).words(" runs everything");
    Refusal::new("lane-needs-unmet", why).or(chosen).or(all)
}

/// A run was imported without the plan that says what its lane does.
pub fn work_unknown(run: &str) -> Refusal {
    let cause = "what it does is not known: the run was imported without its plan";
    let again = Remedy::piton(format!("abort {run} --cancel"))
        .words(", import it again with `--plan` and the plan of the lane, and resume that run");
    Refusal::new("lane-work-unknown", cause).or(again)
}

/// Gates of the phase document are open.
pub fn gates_open(gates: &[String]) -> Refusal {
    let cause = format!("open gates: {}", gates.join(", "));
    Refusal::new("lane-gates-open", cause).or("close them in the phase document (`- [x]`)")
}

/// Gates of the phase document were ticked while steps could write it.
pub fn gates_doubted(run: &str, gates: &[String]) -> Refusal {
    let cause = format!("ticked while steps may have been at work: {}", gates.join(", "));
    let accept = Remedy::from("a step may have done it; check that they are right")
        .then_piton(format!("resume {run} --accept-gates"));
    Refusal::new("lane-gates-doubted", cause).or(accept)
}

/// Base moved too often while a lane was being merged.
pub fn base_keeps_moving(rounds: u32) -> Refusal {
    let cause = format!("base moved {rounds} times while it was being merged");
    Refusal::new("lane-base-moving", cause).or("wait until nobody else moves base")
}

/// Lanes in worktrees need git.
pub fn no_repository() -> Refusal {
    let in_place = "let the lane work in place (`isolation = \"in-place\"`)";
    Refusal::new("no-repository", "lanes in worktrees need a git repository")
        .or(Remedy::shell("git init"))
        .or(in_place)
}

/// The files of a lane change whenever its tests run.
pub fn tests_change_files(lane: &LanePath, times: u32) -> Refusal {
    let cause = format!("its files changed {times} times while its tests ran");
    let fix = format!(
        "see what changes them (`piton diff` between two snapshots of {lane}; a file too large for \
         one is named by `piton status`), end it or let git ignore what it writes"
    );
    Refusal::new("lane-tests-change-files", cause).or(fix)
}

/// A lane's work has to go on, and no retry is left.
pub fn retries_spent(cause: String, dir: &str) -> Refusal {
    let fix = format!("no retry is left: fix it in {dir}");
    Refusal::new("lane-retries-spent", cause).or(fix)
}

/// The same after a conflict with base.
pub fn conflict(cause: String, dir: &str, base: &str) -> Refusal {
    let fix = Remedy::from("no retry is left: run ")
        .command(shell::git(Some(dir), &["rebase", base]))
        .words(", resolve the conflict")
        .then_shell(shell::git(Some(dir), &["rebase", "--continue"]));
    Refusal::new("lane-conflict", cause).or(fix)
}

/// A step succeeded and its outcome can't be recorded.
pub fn not_recorded(step: &str, why: &str) -> Refusal {
    let cause = format!("{step} succeeded and does not run again, but {why}");
    Refusal::new("lane-not-checkpointed", cause).or(FIX)
}

/// A step succeeded, and the worktree it worked in is gone.
pub fn worktree_lost(step: &str) -> Refusal {
    let cause = format!(
        "{step} succeeded, but its worktree and everything in it is gone; a resume makes the worktree \
         from its last checkpoint and runs the step again"
    );
    Refusal::new("lane-worktree-lost", cause).or("find out what deleted it")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a person would be told a step that no command follows.
    #[test]
    fn each_command_of_a_remedy_is_named_once_and_follows_its_words() {
        let path = LanePath { phase: "P1".to_owned(), lane: "SL-1".to_owned() };
        let ids = ["IF-0-P1-A".to_owned()];
        let refusals = [
            merge_undone(),
            spec_changed("r", "the spec changed"),
            needs_unmet("r", "why".to_owned(), "--lane a"),
            work_unknown("r"),
            gates_doubted("r", &ids),
            tests_change_files(&path, 2),
            conflict("why".to_owned(), "dir", "main"),
        ];
        for remedy in refusals.iter().flat_map(|refusal| &refusal.remedies) {
            let words = remedy.to_string();
            assert!(!words.contains("run ,") && !words.contains(" ,"), "{words}");
            assert_eq!(words.matches("then run then run").count(), 0, "{words}");
        }
        let words = spec_changed("r", "").remedies.remove(0).to_string();
        assert_eq!(words, "review it, then run `piton resume r --accept-spec`");
    }
}
