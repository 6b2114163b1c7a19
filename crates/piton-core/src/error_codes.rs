//! The errors a user can meet: code, cause and next step, for `piton explain` and the docs.
//!
//! One table for the whole program. A test searches the sources and fails if a code is missing.

use serde::Serialize;

/// One error that a user can meet.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    /// The code, as printed.
    pub code: &'static str,
    /// What it says.
    pub title: &'static str,
    /// Why it happens.
    pub cause: &'static str,
    /// What to do.
    pub next: &'static str,
}

/// The errors of the program, sorted by code. The errors of documents are in `piton-formats`.
pub const TABLE: &[Entry] = &[
    Entry {
        code: "ambiguous-step",
        title: "the name fits several steps",
        cause: "The run has more than one step with that name. Piton does not guess which one you mean.",
        next: "Write PHASE/LANE/STEP, or enough of its end to make it unique.",
    },
    Entry {
        code: "backup-exists",
        title: "the backup file already exists",
        cause: "A backup never overwrites a file.",
        next: "Name a file that does not exist.",
    },
    Entry {
        code: "backup-folder",
        title: "the backup cannot be written there",
        cause: "The folder of the file given to `piton doctor --backup` does not exist, is not a folder, or is not writable.",
        next: "Create the folder, or name a file in a folder that you can write to.",
    },
    Entry {
        code: "base-branch",
        title: "the base branch of the records cannot be used",
        cause: "The records to import name a base branch that does not exist in this repository, or they name more than one.",
        next: "Fetch or create the branch, or correct `base_branch` in the file.",
    },
    Entry {
        code: "demo",
        title: "the demo could not continue",
        cause: "Something failed that the demo did not mean to show, for example because git is missing.",
        next: "Follow the message. `piton doctor` checks git and the disk.",
    },
    Entry {
        code: "detach",
        title: "the background driver did not start",
        cause: "The background process could not be started, or it ended before it held the run.",
        next: "Read the file that the hint names, or run the command without `--detach`.",
    },
    Entry {
        code: "directory",
        title: "the folder cannot be used",
        cause: "The folder given with `-C` (or the current one) does not exist or cannot be entered, or the project's path is not valid UTF-8 and could not be recorded.",
        next: "Name a folder that exists, and whose path is valid UTF-8.",
    },
    Entry {
        code: "driver-gone",
        title: "the driver ended unexpectedly",
        cause: "The process that drove the run was killed or crashed. Steps that it had started keep running within their limits, and their results are kept.",
        next: "Run `piton resume RUN`. Finished steps do not run again.",
    },
    Entry {
        code: "gc",
        title: "something could not be deleted",
        cause: "The folder of an old run could not be removed: it belongs to another user, or the disk reported an error.",
        next: "Check who owns the folder, then run `piton gc` again. Everything else is already deleted.",
    },
    Entry {
        code: "inside-a-step",
        title: "a step cannot decide about its own run",
        cause: "The command came from a step of the run, or from a process that a step started. Or Piton cannot rule that out, because the run's keeper was lost while a step ran. Only a person can approve, retry or skip.",
        next: "Run the command in your own terminal. If the keeper was lost, resume the run first.",
    },
    Entry {
        code: "interrupted",
        title: "a signal ended the wait",
        cause: "Ctrl-C or the end of the input ended a question, or ended a driver that was waiting for an earlier keeper to end its steps.",
        next: "Run the command again. Most questions can be answered with an option; see `--help`.",
    },
    Entry {
        code: "keeper",
        title: "the keeper failed",
        cause: "The process that holds the steps of the run failed.",
        next: "Read keeper.log in the run's folder. `piton doctor` shows whether any process is left over.",
    },
    Entry {
        code: "keeper-version",
        title: "the run's keeper is another version of Piton",
        cause: "The keeper of the run was started by a version of Piton with another protocol, and it is still running. Taking over the run does not help.",
        next: "Continue with the version that the message names, or end its steps with the `kill` command that the message shows and resume.",
    },
    Entry {
        code: "ledger",
        title: "the ledger failed",
        cause: "The database with the history of all runs could not be read or written. The message gives the reason. Nothing was left half done.",
        next: "Run `piton doctor` to find out what is wrong.",
    },
    Entry {
        code: "ledger-behind",
        title: "the ledger is older than it was",
        cause: "The ledger lacks events that were recorded: its write-ahead log was damaged or deleted, or an older copy replaced it. Continuing would run finished steps again. Nothing was changed.",
        next: "Copy the ledger's folder away. Then restore the last backup made with `piton doctor --backup` and run `piton doctor --restored`. If you put an older copy there on purpose, run `piton doctor --restored` too: whatever was recorded after that copy counts as never done. Without a backup, start a new ledger with `piton doctor --new-ledger`.",
    },
    Entry {
        code: "ledger-content",
        title: "the ledger has an entry that cannot be read",
        cause: "An event or a plan in the ledger is damaged.",
        next: "Run `piton doctor`: it names the event, or the plan and how to restore it. Copy the ledger's folder away, then restore a backup.",
    },
    Entry {
        code: "ledger-corrupt",
        title: "the ledger is damaged",
        cause: "The database is damaged, or it is not a Piton ledger. It was not changed.",
        next: "Copy its folder away. Then restore a backup made with `piton doctor --backup` and run `piton doctor --restored`. Without a backup, start a new ledger with `piton doctor --new-ledger`, which keeps the damaged file beside it.",
    },
    Entry {
        code: "ledger-lost",
        title: "the ledger is missing, but there were runs",
        cause: "The ledger file is missing or empty, but folders or snapshots of runs exist. A new ledger would not know what already ran.",
        next: "Restore a backup made with `piton doctor --backup` and run `piton doctor --restored`. Without a backup, start a new ledger with `piton doctor --new-ledger`. Files of the old runs stay until `piton gc --unknown`.",
    },
    Entry {
        code: "ledger-newer",
        title: "the ledger was written by a newer Piton",
        cause: "The format of the ledger, or an event or the plan of the run, is newer than this program. The ledger was not changed.",
        next: "Use the newer Piton.",
    },
    Entry {
        code: "ledger-sound",
        title: "the ledger does not need to be replaced",
        cause: "`piton doctor --new-ledger` replaces a ledger that cannot be read. This one can be read.",
        next: "Keep using this ledger, or move its folder away yourself.",
    },
    Entry {
        code: "link-leads-out",
        title: "a link leads out of the project",
        cause: "A path that Piton would write to (a view, a worktree, a copied file) is a link to a place outside of the project, or is behind one. Such links come from commits or steps.",
        next: "Remove the link, or point it to a place in the project. Then resume.",
    },
    Entry {
        code: "log",
        title: "a log cannot be read",
        cause: "The output of steps is kept in files in the run's folder. One of them cannot be read.",
        next: "Check that the folder belongs to you and that the disk works.",
    },
    Entry {
        code: "message-too-long",
        title: "the message is too long",
        cause: "Messages are kept for ever with the decision they belong to, so their length is limited.",
        next: "Write a shorter message, and put the details into a file of the project.",
    },
    Entry {
        code: "needs-yes",
        title: "the command needs a confirmation",
        cause: "The command deletes files for good and asks first, but stdin or stderr is not a terminal.",
        next: "Look with `--dry-run`, then add `--yes`.",
    },
    Entry {
        code: "no-answer",
        title: "the driver has not answered yet",
        cause: "The request is in the run's inbox. The driver is still ending its steps, or it is stopped.",
        next: "`piton status RUN` shows the result. To replace a driver that hangs, run `piton resume RUN --takeover`.",
    },
    Entry {
        code: "no-checkpoint",
        title: "there is no such checkpoint",
        cause: "The run has no such stage, checkpoint or snapshot commit, or several lanes have one of that name.",
        next: "`piton show RUN` lists the checkpoints. Name the lane with `--lane`.",
    },
    Entry {
        code: "no-gate",
        title: "there is no such gate",
        cause: "The run has no gate with that place or text, or several gates have that text.",
        next: "`piton show RUN` lists the gates. Name a gate by its place (PHASE or PHASE/LANE) or its text.",
    },
    Entry {
        code: "no-lane",
        title: "no lane matches that has started",
        cause: "`--lane` and `--phase` match no lane that could be rolled back.",
        next: "`piton status RUN` shows the lanes and their status.",
    },
    Entry {
        code: "no-ledger",
        title: "no runs here yet",
        cause: "This project has no ledger, so there is nothing to show.",
        next: "Start a run with `piton run PLAN`, or name another project with `-C DIR`.",
    },
    Entry {
        code: "no-plan",
        title: "no plan was named",
        cause: "The command starts a run, and there is no plan to run.",
        next: "Name the plan: `piton run plan.toml`.",
    },
    Entry {
        code: "no-project",
        title: "the project cannot be found",
        cause: "The folder has a `.git` that does not point to a repository.",
        next: "If the repository was moved, run `git worktree repair PATH` in it. Otherwise use another folder.",
    },
    Entry {
        code: "no-repository",
        title: "there is no git repository",
        cause: "Snapshots and worktrees need a git repository, and this folder is not in one.",
        next: "Run `git init` and make a first commit, then run the plan again.",
    },
    Entry {
        code: "no-run",
        title: "there is no such run",
        cause: "No run of this project has that id or matches the command.",
        next: "`piton runs --all` lists all runs of this project.",
    },
    Entry {
        code: "no-step",
        title: "there is no such step",
        cause: "The run has no phase, lane, step or checkpoint with that name, or none that the command applies to.",
        next: "`piton status RUN` shows the steps of the run.",
    },
    Entry {
        code: "not-confirmed",
        title: "the command was not confirmed",
        cause: "The command asks before it continues. The answer was no, or there is no terminal to ask on. Nothing was changed.",
        next: "Look with `--dry-run`, then add `--yes`.",
    },
    Entry {
        code: "not-driven",
        title: "no process drives the run",
        cause: "There is nothing to watch: the driver has ended, and the run is not complete.",
        next: "Run the command that the hint names. `piton status RUN` shows the state of the run.",
    },
    Entry {
        code: "not-restored",
        title: "files could not be restored",
        cause: "A file of the checkpoint could not be read from the repository or written to the folder.",
        next: "Check that the folder is writable and the disk has space. `git fsck` checks the repository.",
    },
    Entry {
        code: "not-rewound",
        title: "nothing was rolled back",
        cause: "A rollback, restore or undo failed, and everything that it had changed was put back. If a merge or a step in progress ended first, the message says so.",
        next: "Fix what the message names, then run the command again.",
    },
    Entry {
        code: "nothing-to-undo",
        title: "there is nothing to undo",
        cause: "The run has no rollback, restore, merge, skip or worktree removal left to undo. Or the one you named is already undone, or later ones of its lanes must be undone first.",
        next: "`piton undo --list` lists what can be undone. `piton rollback` takes lanes back to a checkpoint.",
    },
    Entry {
        code: "phase-unfinished",
        title: "a phase that this one depends on is not complete",
        cause: "A lane of the document depends on another phase, and the newest run of that phase here is not complete.",
        next: "Finish that run with `piton resume RUN`. If the phase is done anyway, add `--yes`.",
    },
    Entry {
        code: "plan-changed",
        title: "finished steps have changed in the plan",
        cause: "The plan differs from the one the run used last, and it defines finished steps differently.",
        next: "Look at what changed, then run `piton resume RUN --accept-plan`. The changed steps run again; the others stay finished.",
    },
    Entry {
        code: "plan-unreadable",
        title: "the plan cannot be read",
        cause: "The file does not exist, is not text, or belongs to another user.",
        next: "Correct the path, or make the file readable.",
    },
    Entry {
        code: "project-moved",
        title: "the project is not where the run started",
        cause: "The project was moved or copied after lanes of the run had worktrees. Piton and git record worktrees by their paths, and those paths may belong to something else now.",
        next: "If this is a copy, continue in the original folder. If the project was moved, move it back, or make the old path a link to the new one. Or start a new run with `--fresh`.",
    },
    Entry {
        code: "refused",
        title: "the request was refused",
        cause: "The request does not fit the state of the run: the gate is already decided, the step is running or finished, or the run is over.",
        next: "Read the reason in the message. `piton status RUN` shows the state of the run.",
    },
    Entry {
        code: "resume-blocked",
        title: "something changed since the run stopped",
        cause: "Before a run continues, its plan, spec, artifacts and processes are compared with what was recorded. A difference that matters stops the run.",
        next: "Each difference is listed with the option that accepts it. Use that option, or undo the change.",
    },
    Entry {
        code: "run-driven",
        title: "another process drives the run",
        cause: "At most one process advances a run.",
        next: "Watch it with `piton attach RUN`. If its driver hangs, use `--takeover`.",
    },
    Entry {
        code: "run-exists",
        title: "the run id is already in use",
        cause: "Another run of this project has that id, and ids are never used twice.",
        next: "Choose another id, leave out `--run-id`, or continue that run with `piton resume RUN`.",
    },
    Entry {
        code: "run-id",
        title: "the name cannot be a run id",
        cause: "Run ids become folder names.",
        next: "Use at most 64 letters, digits, dots, dashes and underscores.",
    },
    Entry {
        code: "run-over",
        title: "the run is over",
        cause: "The run is complete or cancelled and cannot continue, or it is archived and must be brought back first.",
        next: "`piton resume RUN` brings back an archived run. `piton run PLAN --fresh` starts a new one. `piton retry STEP --again` runs finished work of a complete run again.",
    },
    Entry {
        code: "run-taken-over",
        title: "another driver took over the run",
        cause: "Somebody used `--takeover`. This process can no longer write to the run, and has stopped.",
        next: "Watch the run with `piton attach RUN`.",
    },
    Entry {
        code: "run-unfinished",
        title: "a run of this plan is unfinished",
        cause: "A new run would leave the unfinished one behind, and there is no terminal to ask on.",
        next: "Continue it with `piton run PLAN --resume`, or set it aside with `--fresh`.",
    },
    Entry {
        code: "secret-path",
        title: "a path contains a secret",
        cause: "Paths of inputs, artifacts, folders and the spec are recorded unredacted, because files are found by them. A secret in a path would be recorded too.",
        next: "Rename the file.",
    },
    Entry {
        code: "settings",
        title: "the settings cannot be read",
        cause: "piton.toml exists but cannot be opened.",
        next: "Check that it is a file and that you can read it.",
    },
    Entry {
        code: "shared-folder",
        title: "lanes share a folder",
        cause: "Lanes that work in place share the project's folder. Rolling back one of them would also roll back files of the others.",
        next: "Leave out `--lane` to roll them back together.",
    },
    Entry {
        code: "signals",
        title: "signals cannot be handled",
        cause: "The system did not let the program handle Ctrl-C.",
        next: "Try again. If it happens again, report it with the output of `piton doctor --json`.",
    },
    Entry {
        code: "snapshot",
        title: "a snapshot failed",
        cause: "A snapshot could not be taken or read: a git command failed, a limit was reached, or the disk is full.",
        next: "Follow the message. The limits are in the `[snapshots]` table of piton.toml.",
    },
    Entry {
        code: "spec-changed",
        title: "the spec has changed",
        cause: "The spec that the work is measured against differs from the one that was recorded.",
        next: "Read what changed, then run `piton resume RUN --accept-spec`. Both hashes are recorded.",
    },
    Entry {
        code: "spec-missing",
        title: "the spec does not exist",
        cause: "The plan names a spec, and there is no such file.",
        next: "Create it, or remove `spec` from the plan.",
    },
    Entry {
        code: "start-blocked",
        title: "a new run could not start",
        cause: "The new run would replace an unfinished one, but worktrees for its first lanes could not be created. The unfinished run was not set aside.",
        next: "Follow the message (for example, commit your changes), then run the command again.",
    },
    Entry {
        code: "state-read-only",
        title: "Piton's state folder is not writable",
        cause: "The command has something to record, or must read a ledger that was not closed. The folder or file that the message names is read-only or belongs to another user.",
        next: "Make it writable, or work in a copy of the project. `status`, `runs`, `show` and `log` also work on read-only state.",
    },
    Entry {
        code: "state-unreadable",
        title: "the ledger cannot be read",
        cause: "The ledger or its folder belongs to another user, or you may not read it. Piton cannot see whether there are runs.",
        next: "Work as the user who started the runs, or make the folder that the message names readable.",
    },
    Entry {
        code: "stdout",
        title: "the output cannot be written",
        cause: "Writing to stdout failed, for example because the disk is full. (A closed pipe is not an error.)",
        next: "Check where stdout goes.",
    },
    Entry {
        code: "task-worktrees",
        title: "the plan has no tasks",
        cause: "`--task-worktrees on` needs a phase document. The lanes of this plan have steps, not tasks.",
        next: "Leave the option out. To run steps at the same time, make them separate lanes.",
    },
    Entry {
        code: "unknown-code",
        title: "there is no such error code",
        cause: "`piton explain` knows the codes that Piton prints in brackets.",
        next: "`piton explain` lists all codes.",
    },
    Entry {
        code: "unknown-protocol",
        title: "a protocol that this piton does not know",
        cause: "A plan names a protocol that there is not, or a run follows one that a newer piton, or one with more protocols, began it with.",
        next: "Correct `protocol` in the plan; go on with a run by the piton that began it.",
    },
    Entry {
        code: "unreadable-file",
        title: "the file cannot be read",
        cause: "The file does not exist, is not a file, is too large, or belongs to another user.",
        next: "Name a file that exists and that you can read.",
    },
    Entry {
        code: "usage",
        title: "the command line is not valid",
        cause: "A command, option or argument is unknown, missing or has an invalid value.",
        next: "`piton --help` lists the commands. `piton COMMAND --help` lists the options of a command.",
    },
    Entry {
        code: "world",
        title: "something that the run needs cannot be used",
        cause: "A file, folder, process or git command that the run needs failed. The message names it.",
        next: "Fix it, then run `piton resume RUN`. Finished steps do not run again.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_each_says_what_to_do() {
        assert!(TABLE.windows(2).all(|pair| pair[0].code < pair[1].code));
        for entry in TABLE {
            let said = [entry.title, entry.cause, entry.next];
            assert!(said.iter().all(|text| !text.is_empty()), "{}", entry.code);
        }
    }
}
