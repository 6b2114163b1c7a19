//! The errors a user can meet: code, cause and next step, for `piton explain` and the docs.
//!
//! One table for the whole program, problems of documents included. A test of the program looks
//! through its sources and fails when a code is missing here.

/// One error that a user can meet.
#[derive(Clone, Copy, Debug)]
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

/// The errors of the program, in the order of their codes; those of documents stand with their
/// readers.
pub const TABLE: &[Entry] = &[
    Entry {
        code: "ambiguous-step",
        title: "the name fits several steps",
        cause: "A short name (a step's id, or LANE/STEP) occurs more than once in the run, and Piton does not guess.",
        next: "Write PHASE/LANE/STEP, or as much of its end as occurs once.",
    },
    Entry {
        code: "backup-exists",
        title: "the backup's file exists already",
        cause: "A backup never overwrites anything, least of all an older backup.",
        next: "Name a file that does not exist.",
    },
    Entry {
        code: "backup-folder",
        title: "the backup cannot be written there",
        cause: "The folder of the file that `piton doctor --backup` names does not exist, is no folder, or may not be written.",
        next: "Make the folder, or name a file in one that is there and yours.",
    },
    Entry {
        code: "base-branch",
        title: "the base branch of the records can't be used",
        cause: "The records to be imported name a base branch that is not in this repository, or more than one.",
        next: "Fetch or create the branch, or correct `base_branch` in the file.",
    },
    Entry {
        code: "demo",
        title: "the demo could not go on",
        cause: "A step of the demonstration failed outside of what it wanted to show, for example because git is missing.",
        next: "Do what the message says; `piton doctor` looks at git and the disk.",
    },
    Entry {
        code: "detach",
        title: "no driver started in the background",
        cause: "The background process could not be started, or ended before it had hold of the run.",
        next: "Read the file that the hint names, or run it in the foreground.",
    },
    Entry {
        code: "directory",
        title: "the folder cannot be used",
        cause: "The folder given with `-C` (or the one the command was called in) does not exist or cannot be entered, or the path of the project is no text (UTF-8), which records and commands could not name.",
        next: "Give a folder that exists; give folders names that are text.",
    },
    Entry {
        code: "driver-gone",
        title: "the driver is gone without a word",
        cause: "The process that drove the run was killed or crashed. The steps it had started go on under their limits, and their results are kept.",
        next: "`piton resume RUN` goes on; finished steps are not run again.",
    },
    Entry {
        code: "gc",
        title: "something could not be deleted",
        cause: "A folder of a run that is no longer kept could not be removed: it belongs to somebody else, or the disk refuses.",
        next: "See who owns it, then call `piton gc` again; the rest is deleted already.",
    },
    Entry {
        code: "inside-a-step",
        title: "a step cannot decide about its own run",
        cause: "The command was given by a step of the run, by something it started, or by what it left running; or that can't be told, because the run's keeper was lost while a step ran. Approving, retrying and skipping are a person's decisions.",
        next: "Give the command in a terminal of your own. If the keeper was lost, resume the run first.",
    },
    Entry {
        code: "interrupted",
        title: "a signal ended the waiting",
        cause: "A question was ended with Ctrl-C or the end of the input, or a driver that waited for a former keeper to end its steps.",
        next: "Give the command again. A question can also be answered with an option: the help lists them.",
    },
    Entry {
        code: "keeper",
        title: "the keeper failed",
        cause: "The process that holds the steps of a run could not do its work.",
        next: "Read keeper.log in the run's folder; `piton doctor` says whether anything is left over.",
    },
    Entry {
        code: "keeper-version",
        title: "another version of Piton holds the run's steps",
        cause: "The keeper of the run was started by a version of Piton that speaks another protocol, and it is still at work. Taking the run over would not help.",
        next: "Go on with the version that the message names, or end its steps with the `kill` that it shows and resume.",
    },
    Entry {
        code: "ledger",
        title: "the ledger failed",
        cause: "The database with the history of all runs could not be read or written; the message names the reason.",
        next: "`piton doctor` says what is wrong. Nothing was half done.",
    },
    Entry {
        code: "ledger-behind",
        title: "the ledger is older than it was",
        cause: "Events that were recorded are not in the ledger any more: its write-ahead log was damaged or deleted, or an older copy took its place. Going on would run finished steps again. Nothing was changed.",
        next: "Copy its folder away, then restore the last backup made with `piton doctor --backup` and give `piton doctor --restored`. The same goes for an older copy that you put there on purpose: what was recorded after it was made counts as never done. Or begin a new ledger with `piton doctor --new-ledger`.",
    },
    Entry {
        code: "ledger-content",
        title: "the ledger holds something unreadable",
        cause: "An event or a plan in the ledger cannot be understood: it is damaged.",
        next: "`piton doctor` names the event, or the plan and how it is put back. Copy the ledger's folder away, then restore a backup.",
    },
    Entry {
        code: "ledger-corrupt",
        title: "the ledger is damaged",
        cause: "The database is damaged or is no Piton ledger. It was left exactly as it is.",
        next: "Copy its folder away, then restore a backup made with `piton doctor --backup` and give `piton doctor --restored`, or begin a new ledger with `piton doctor --new-ledger`: the damaged file is kept beside it.",
    },
    Entry {
        code: "ledger-lost",
        title: "the ledger is gone, though there were runs",
        cause: "The file is missing or empty, but folders or snapshots of runs are there. A new ledger would forget what ran.",
        next: "Restore a backup made with `piton doctor --backup` and give `piton doctor --restored`, or begin a new ledger with `piton doctor --new-ledger`: what the runs left stays until `piton gc --unknown`.",
    },
    Entry {
        code: "ledger-newer",
        title: "the ledger was written by a newer Piton",
        cause: "Its format, or an event or the plan of the run, is newer than this program knows. It was not touched.",
        next: "Use the newer Piton.",
    },
    Entry {
        code: "ledger-sound",
        title: "the ledger needs no successor",
        cause: "`piton doctor --new-ledger` sets aside what can't be read; this ledger can.",
        next: "Go on with it, or move its folder away yourself.",
    },
    Entry {
        code: "link-leads-out",
        title: "a link leads out of the project",
        cause: "A folder or file that Piton would write (a view, a worktree, a copy in one) is a link to a place outside of the project, or lies behind one. Such links come with commits, or are made by steps.",
        next: "Remove the link, or let it lead to a place in the project. Then resume.",
    },
    Entry {
        code: "log",
        title: "a log cannot be read",
        cause: "The output of a step lies in files of the run's folder, and one of them cannot be read.",
        next: "See that the folder is yours and the disk is sound.",
    },
    Entry {
        code: "message-too-long",
        title: "the message is too long",
        cause: "Messages are kept for ever with the decision they belong to, so they are bounded.",
        next: "Say it shorter, and put the rest into a file of the project.",
    },
    Entry {
        code: "needs-yes",
        title: "nobody can be asked here",
        cause: "The command deletes for good and wants a yes, but stdin or stderr is no terminal.",
        next: "Add `--yes`, or `--dry-run` to look first.",
    },
    Entry {
        code: "no-answer",
        title: "the driver has not answered yet",
        cause: "A request lies in the run's inbox. The driver still ends its steps, or it is stopped.",
        next: "`piton status RUN` shows what comes of it; a driver that hangs is replaced with `piton resume RUN --takeover`.",
    },
    Entry {
        code: "no-checkpoint",
        title: "there is no such checkpoint",
        cause: "A stage, a checkpoint's name or the beginning of a snapshot's commit was named that the run does not have, or that several lanes have.",
        next: "`piton show RUN` lists the checkpoints; name the lane with `--lane`.",
    },
    Entry {
        code: "no-gate",
        title: "there is no such gate",
        cause: "The run has no gate with that place or text, or several with that text.",
        next: "`piton show RUN` lists the gates of a run; name one by its place (PHASE or PHASE/LANE) or its text.",
    },
    Entry {
        code: "no-lane",
        title: "no lane is meant that has begun",
        cause: "`--lane` and `--phase` leave no lane that could be taken back.",
        next: "`piton status RUN` shows the lanes and where they stand.",
    },
    Entry {
        code: "no-ledger",
        title: "nothing has run here yet",
        cause: "This project has no ledger, so there is nothing to show or to ask.",
        next: "Start a run with `piton run PLAN`; with `-C DIR` you look at another project.",
    },
    Entry {
        code: "no-plan",
        title: "no plan was named",
        cause: "The command starts a run, so it must know of what.",
        next: "Name it: `piton run plan.toml`.",
    },
    Entry {
        code: "no-project",
        title: "the project cannot be found",
        cause: "The folder has a `.git` that does not lead to a repository.",
        next: "If the repository was moved, `git worktree repair PATH` in it helps; else work in another folder.",
    },
    Entry {
        code: "no-repository",
        title: "there is no git repository",
        cause: "Snapshots and worktrees live in a git repository, and this folder belongs to none.",
        next: "`git init` and a first commit, then run the plan anew.",
    },
    Entry {
        code: "no-run",
        title: "there is no such run",
        cause: "No run here has that id or fits what was asked.",
        next: "`piton runs --all` lists all runs of this project.",
    },
    Entry {
        code: "no-step",
        title: "there is no such step",
        cause: "The run has no phase, lane, step or checkpoint with that name, or none that the command could be about.",
        next: "`piton status RUN` shows what there is.",
    },
    Entry {
        code: "not-confirmed",
        title: "nobody said yes",
        cause: "The command changes files or asks about a document, nobody was there to be asked, or the answer was no. Nothing was changed.",
        next: "Look with `--dry-run`, then say `--yes`.",
    },
    Entry {
        code: "not-driven",
        title: "no process drives the run",
        cause: "There is nothing to watch: its driver has ended, and the run is not complete.",
        next: "Type what the hint says; `piton status RUN` tells where it stands.",
    },
    Entry {
        code: "not-restored",
        title: "files could not be put there",
        cause: "A file of the checkpoint could not be read from the repository or written to the folder.",
        next: "See that the folder can be written and the disk has room; `git fsck` looks at the repository.",
    },
    Entry {
        code: "not-rewound",
        title: "nothing was taken back",
        cause: "A rollback, restore or undo was not carried out, and all that it had changed was put back. A merge or a step that was under way may have ended first; the message then says so.",
        next: "Put right what the message names, then try again.",
    },
    Entry {
        code: "nothing-to-undo",
        title: "there is nothing to undo",
        cause: "No rollback, restore, merge, skip or removal of a worktree of this run is left that was not undone already; or the one that was named is undone, or others of its lanes came later.",
        next: "`piton undo --list` numbers what can be undone; `piton rollback` takes lanes back to a checkpoint.",
    },
    Entry {
        code: "phase-unfinished",
        title: "a phase that is depended on is not done",
        cause: "A lane of the document depends on another phase, and the newest run of that phase here is not complete.",
        next: "Finish that run (`piton resume RUN`); if the phase is done all the same, say `--yes`.",
    },
    Entry {
        code: "plan-changed",
        title: "finished steps have changed in the plan",
        cause: "The plan is not the one the run was last driven with, and steps that are finished are defined in another way now.",
        next: "Look at what changed, then `piton resume RUN --accept-plan`: the changed ones run again, the others stay finished.",
    },
    Entry {
        code: "plan-unreadable",
        title: "the plan cannot be read",
        cause: "The file is not there, is no text, or belongs to somebody else.",
        next: "Correct the path.",
    },
    Entry {
        code: "project-moved",
        title: "the project is not where the run began",
        cause: "The project was moved or copied after lanes of the run had got worktrees. They are recorded by their paths, and so does git record them; what is there now may be somebody else's.",
        next: "Go on in the folder it was copied from; move it back, or make the old path a link to the new one; or begin a new run with `--fresh`.",
    },
    Entry {
        code: "refused",
        title: "the request was refused",
        cause: "What was asked does not fit where the run stands: the gate was decided before, the step runs or is finished, or the run is over.",
        next: "The message says why; `piton status RUN` shows where it stands.",
    },
    Entry {
        code: "resume-blocked",
        title: "the world differs from the record",
        cause: "Before anything runs, plan, spec, artifacts and processes are compared with what was recorded; a difference that matters stops.",
        next: "Each difference is named with the option that accepts it; or put back what was changed.",
    },
    Entry {
        code: "run-driven",
        title: "another process drives the run",
        cause: "At most one process advances a run.",
        next: "Watch it with `piton attach RUN`, or take it from a driver that hangs with `--takeover`.",
    },
    Entry {
        code: "run-exists",
        title: "the run id is taken",
        cause: "Another run of this project has that id, and ids are never used twice.",
        next: "Choose another, leave `--run-id` away, or go on with it: `piton resume RUN`.",
    },
    Entry {
        code: "run-id",
        title: "the name cannot be the id of a run",
        cause: "Ids of runs become folder names.",
        next: "Use letters, digits, dots, dashes and underscores, at most 64.",
    },
    Entry {
        code: "run-over",
        title: "the run is over",
        cause: "It is complete or cancelled, and does not go on; or archived, and has to be brought back first.",
        next: "`piton resume RUN` brings an archived one back; `piton run PLAN --fresh` starts anew; `piton retry STEP --again` runs finished work of a complete run again.",
    },
    Entry {
        code: "run-taken-over",
        title: "another driver took the run over",
        cause: "Somebody used `--takeover`. This process can no longer write to the run, and has stopped.",
        next: "Watch it with `piton attach RUN`.",
    },
    Entry {
        code: "run-unfinished",
        title: "a run of this plan is unfinished",
        cause: "Starting another would leave the first behind, and nobody can be asked here.",
        next: "Go on with `piton run PLAN --resume`, or set it aside with `--fresh`.",
    },
    Entry {
        code: "secret-path",
        title: "a path with a secret in it",
        cause: "Paths (of inputs, artifacts, folders, the spec) are recorded as they are, because files are found by them; a secret in one would be recorded with it.",
        next: "Name the file another way.",
    },
    Entry {
        code: "settings",
        title: "the settings cannot be read",
        cause: "piton.toml exists but cannot be opened.",
        next: "See that it is a readable file.",
    },
    Entry {
        code: "shared-folder",
        title: "lanes share a folder",
        cause: "Lanes that work in place share the project's folder: taking one of them back would take back files of the others.",
        next: "Leave out `--lane`, so that they go back together.",
    },
    Entry {
        code: "signals",
        title: "signals cannot be caught",
        cause: "The system refused to let the program listen for Ctrl-C.",
        next: "Try again; if it stays, report it with `piton doctor --json`.",
    },
    Entry {
        code: "snapshot",
        title: "the files could not be looked at",
        cause: "A snapshot could not be taken or read: a git command failed, a limit was reached, or the disk is full.",
        next: "Do what the message says; the limits are in the table `[snapshots]` of piton.toml.",
    },
    Entry {
        code: "spec-changed",
        title: "the spec has changed",
        cause: "The document that the work is measured against is not the one that was recorded.",
        next: "Read what changed, then `piton resume RUN --accept-spec`; both hashes are recorded.",
    },
    Entry {
        code: "spec-missing",
        title: "the spec is not there",
        cause: "The plan names a spec, and that file does not exist.",
        next: "Write it, or take `spec` out of the plan.",
    },
    Entry {
        code: "start-blocked",
        title: "a new run could not begin",
        cause: "It was to take the place of an unfinished run, and its first lanes could not have had worktrees. The unfinished run was not set aside.",
        next: "Do what the message says, such as committing what is at hand, and give the command again.",
    },
    Entry {
        code: "state-read-only",
        title: "the folder with Piton's state cannot be written",
        cause: "The command has something to record, or must read a ledger that was not closed, and the folder or file that the message names is read-only or belongs to somebody else.",
        next: "Make it writable for you, or work in a copy of the project. `status`, `runs`, `show` and `log` also work where nothing can be written.",
    },
    Entry {
        code: "state-unreadable",
        title: "the ledger cannot be read",
        cause: "The ledger, or the folder it lies in, belongs to somebody else or is closed to you. Whether there are runs can't be seen.",
        next: "Work as the user who started the runs, or have the folder that the message names made readable for you.",
    },
    Entry {
        code: "stdout",
        title: "the output cannot be written",
        cause: "Writing to stdout failed for another reason than a closed pipe, for example a full disk.",
        next: "See where stdout goes.",
    },
    Entry {
        code: "task-worktrees",
        title: "there are no tasks to give worktrees to",
        cause: "`--task-worktrees on` was asked for, and the plan is no phase document: its lanes have steps, not tasks.",
        next: "Leave the option out; make steps that can run at once lanes of their own.",
    },
    Entry {
        code: "unknown-code",
        title: "there is no such error code",
        cause: "`piton explain` knows the codes that Piton prints in brackets.",
        next: "`piton explain` lists all.",
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
        cause: "The file to look at is not there, is no file, is too large, or belongs to somebody else.",
        next: "Name a file that exists and that you may read.",
    },
    Entry {
        code: "usage",
        title: "the command line is not understood",
        cause: "A command, an option or an argument is unknown, missing or has a wrong value.",
        next: "`piton --help` lists the commands, `piton COMMAND --help` its options.",
    },
    Entry {
        code: "world",
        title: "the world refused",
        cause: "A file, folder, process or git command that the run needs could not be used; the message names it.",
        next: "Put it right and `piton resume RUN`; finished steps are not run again.",
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
