//! The errors a user can meet: code, cause and next step, for `piton explain` and the docs.
//!
//! One table for the program. A test searches the sources and fails if a code is missing.

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

/// Makes a table of [`Entry`] from a row for each code: `"code", title, cause, next;`. A row that begins
/// with `NAME =` also makes a constant of that name.
#[macro_export]
macro_rules! error_codes {
    ($(#[$about:meta])* $table:ident; $($($name:ident =)? $code:literal, $title:literal, $cause:literal, $next:literal;)+) => {
        $($(#[doc = $title] pub const $name: &str = $code;)?)+
        $(#[$about])*
        pub const $table: &[$crate::error_codes::Entry] =
            &[$($crate::error_codes::Entry { code: $code, title: $title, cause: $cause, next: $next }),+];
    };
}

#[rustfmt::skip]
error_codes! {
    /// The errors of the program, sorted by code. The errors of documents are in `piton-formats`.
    TABLE;
    "agent-missing", "the program of an agent is not found", "A step gives its prompt to an agent whose program is neither on the PATH nor where the settings say, and no fallback is there either.", "Install it, or name its path with `command` in `[agents.NAME]`.";
    "agent-not-ready", "an agent cannot work without a person", "Its program does not answer, or its permissions let it change nothing without asking.", "Do what the hint says, then run `piton check PLAN` again.";
    "agent-settings", "a settings file of an agent program cannot be edited", "The file is not valid, has something else where Piton's part belongs, or is somebody else's file with that name.", "Fix the file that the message names, then run `piton init` again. Nothing was changed.";
    "ambiguous-step", "the name fits several steps", "The run has more than one step with that name. Piton does not guess which one you mean.", "Write PHASE/LANE/STEP, or enough of its end to make it unique.";
    "backup-exists", "the backup file already exists", "A backup never overwrites a file.", "Name a file that does not exist.";
    "backup-folder", "the backup cannot be written there", "The folder of the file given to `piton doctor --backup` does not exist, is not a folder, or is not writable.", "Create the folder, or name a file in a folder that you can write to.";
    "bare-repository", "the repository has no work tree", "Lanes need the files of a work tree, and a bare repository has none.", "Run Piton in a clone or a linked worktree of it.";
    "base-branch", "the base branch of the records cannot be used", "The records to import name a base branch that does not exist in this repository, or they name more than one.", "Fetch or create the branch, or correct `base_branch` in the file.";
    "base-in-the-way", "the work tree of base can't be updated", "The work tree that has base checked out must follow a merge or a rollback. Uncommitted changes, a read-only folder or a filter that fails prevent that. Base was not moved.", "Commit, stash or move the changes that the message names, or fix what it names. Then run `piton resume RUN`.";
    "base-is-behind", "base lacks a lane that was merged elsewhere", "A lane needs another one whose pull request is merged, but the local base branch does not have it yet.", "Update the base branch, for example with `git pull`, then run `piton resume RUN`.";
    "base-moved", "base moved in the meantime", "Another run, or somebody else, moved the base branch while the command ran.", "Run the command again.";
    "base-not-checked-out", "another branch than base is checked out", "A lane works in place, validates base or starts again, and needs its base branch. Or the branch that is checked out is not the one that `lanes.base` names.", "Switch to the branch that the message names, or name the base with `--base`.";
    "branch-gone", "a branch that a lane needs does not exist", "The branch of the lane, of its parent or of base was deleted or renamed.", "Create the branch again, then run `piton resume RUN`.";
    "checkpoint-unclear", "the checkpoint of a workflow cannot be read", "The checkpoint file that belongs to this plan is not valid JSON, so nobody can tell how far the workflow came. Nothing was changed.", "Correct the file, or move it away to start anew. `piton inspect FILE` shows what is wrong with it.";
    "demo", "the demo could not continue", "Something failed that the demo did not mean to show, for example because git is missing.", "Follow the message. `piton doctor` checks git and the disk.";
    "detach", "the background driver did not start", "The background process could not be started, or it ended before it held the run.", "Read the file that the hint names, or run the command without `--detach`.";
    "detached-head", "no branch is checked out", "Lanes are merged into the branch that is checked out, and HEAD is detached.", "Check out a branch, or name one with `--base`.";
    "directory", "the folder cannot be used", "The folder given with `-C` (or the current one) does not exist or cannot be entered, or the project's path is not valid UTF-8 and could not be recorded.", "Name a folder that exists, and whose path is valid UTF-8.";
    "dirty", "the work tree has uncommitted changes", "Lanes start from a commit, so they would not have your uncommitted changes.", "Commit or stash them, or start the lanes from them with `--seed-dirty`.";
    "disk-low", "the disk is nearly full", "A run writes its ledger, logs and snapshots, and there is hardly room for an hour of that.", "Free some space; `piton gc` deletes old runs.";
    "driver-gone", "the driver ended unexpectedly", "The process that drove the run was killed or crashed. Steps that it had started keep running within their limits, and their results are kept.", "Run `piton resume RUN`. Finished steps do not run again.";
    "folder-read-only", "the project's folder cannot be written", "Neither agents nor Piton could change files there.", "Make it writable, or run as its owner.";
    "foreign-owner", "the repository belongs to another user", "Git refuses to work in a repository of another user.", "Work as that user, or run the command that the message shows.";
    "gc", "something could not be deleted", "The folder of an old run could not be removed: it belongs to another user, or the disk reported an error.", "Check who owns the folder, then run `piton gc` again. Everything else is already deleted.";
    "git", "a git command failed", "A git command that the run needs failed. The message has the command and what git printed.", "Fix what git reports, then run the command again.";
    "half-done", "an act failed and could not be undone", "Files or a branch were being changed, that failed, and so did putting them back. Snapshots have everything as it was.", "Fix what the message names, then run the command again: what was begun is undone first.";
    "index-locked", "the index of git is locked", "Another git command is running in the work tree, or one was killed and left its lock.", "Wait for it, or delete the lock file if no git command is running.";
    "inside-a-step", "a step cannot decide about its own run", "The command came from a step of the run, or from a process that a step started. Or Piton cannot rule that out, because the run's keeper was lost while a step ran. Only a person can approve, retry or skip.", "Run the command in your own terminal. If the keeper was lost, resume the run first.";
    "interrupted", "a signal ended the wait", "Ctrl-C or the end of the input ended a question, or ended a driver that was waiting for an earlier keeper to end its steps.", "Run the command again. Most questions can be answered with an option; see `--help`.";
    "keeper", "the keeper failed", "The process that holds the steps of the run failed.", "Read keeper.log in the run's folder. `piton doctor` shows whether any process is left over.";
    "keeper-version", "the run's keeper is another version of Piton", "The keeper of the run was started by a version of Piton with another protocol, and it is still running. Taking over the run does not help.", "Continue with the version that the message names, or end its steps with the `kill` command that the message shows and resume.";
    "lane-base-moving", "base moves while the lane is being merged", "Somebody else moved the base branch each time the lane was rebased and tested. Piton stops after the number of rounds in `merge_rounds`.", "Wait until nobody else moves the branch, then run `piton resume RUN`.";
    "lane-conflict", "the lane is in conflict with base", "The lane and its base branch changed the same lines, and no retry is left to resolve them.", "Rebase the branch in the worktree of the lane, resolve the conflict, then run `piton resume RUN`.";
    "lane-gates-doubted", "gates were ticked while steps ran", "A step can write the phase document, so a tick that appeared while steps ran does not count by itself.", "Check the gates, then run `piton resume RUN --accept-gates`.";
    "lane-gates-open", "gates of the phase document are open", "The lane needs gates that are not ticked.", "Tick them in the phase document, then run `piton resume RUN`.";
    "lane-needs-unmet", "what the lane needs is not done", "The command chose a lane, and lanes or phases that it needs are neither done nor chosen.", "Run what it needs first, or run `piton resume RUN` without a choice.";
    "lane-no-progress", "the lane makes no progress", "Piton acted for the lane many times, and nothing changed. This is a bug in Piton.", "Report it with the output of `piton log RUN`.";
    "lane-not-checkpointed", "files of the lane cannot be saved", "A checkpoint or the hash of an artifact could not be written or read, for example because the disk is full.", "Fix it, then run `piton resume RUN`. What succeeded does not run again.";
    "lane-retries-spent", "the work of the lane fails, and no retry is left", "Its tests fail, or a conflict is still in its files.", "Fix it in the worktree of the lane, then run `piton resume RUN`.";
    "lane-tests-change-files", "the tests of the lane change its files", "Only what was tested is merged. Each run of the tests left other files than it found.", "End what changes the files, or let git ignore them, then run `piton resume RUN`.";
    "lane-work-unknown", "nobody knows what the lane does", "The run was imported without the plan of this lane.", "Cancel the run, then import it again with `--plan`.";
    "lane-worktree-lost", "the worktree of the lane is gone", "Something deleted the worktree while a step worked in it.", "Find out what deleted it, then run `piton resume RUN`. The step runs again.";
    "ledger", "the ledger failed", "The database with the history of all runs could not be read or written. The message gives the reason. Nothing was left half done.", "Run `piton doctor` to find out what is wrong.";
    "ledger-behind", "the ledger is older than it was", "The ledger lacks events that were recorded: its write-ahead log was damaged or deleted, or an older copy replaced it. Continuing would run finished steps again. Nothing was changed.", "Copy the ledger's folder away. Then restore the last backup made with `piton doctor --backup` and run `piton doctor --restored`. If you put an older copy there on purpose, run `piton doctor --restored` too: whatever was recorded after that copy counts as never done. Without a backup, start a new ledger with `piton doctor --new-ledger`.";
    "ledger-content", "the ledger has an entry that cannot be read", "An event or a plan in the ledger is damaged.", "Run `piton doctor`: it names the event, or the plan and how to restore it. Copy the ledger's folder away, then restore a backup.";
    "ledger-corrupt", "the ledger is damaged", "The database is damaged, or it is not a Piton ledger. It was not changed.", "Copy its folder away. Then restore a backup made with `piton doctor --backup` and run `piton doctor --restored`. Without a backup, start a new ledger with `piton doctor --new-ledger`, which keeps the damaged file beside it.";
    "ledger-lost", "the ledger is missing, but there were runs", "The ledger file is missing or empty, but folders or snapshots of runs exist. A new ledger would not know what already ran.", "Restore a backup made with `piton doctor --backup` and run `piton doctor --restored`. Without a backup, start a new ledger with `piton doctor --new-ledger`. Files of the old runs stay until `piton gc --unknown`.";
    "ledger-newer", "the ledger was written by a newer Piton", "The format of the ledger, or an event or the plan of the run, is newer than this program. The ledger was not changed.", "Use the newer Piton.";
    "ledger-sound", "the ledger does not need to be replaced", "`piton doctor --new-ledger` replaces a ledger that cannot be read. This one can be read.", "Keep using this ledger, or move its folder away yourself.";
    "link-leads-out", "a link leads out of the project", "A path that Piton would write to (a view, a worktree, a copied file) is a link to a place outside of the project, or is behind one. Such links come from commits or steps.", "Remove the link, or point it to a place in the project. Then resume.";
    "log", "a log cannot be read", "The output of steps is kept in files in the run's folder. One of them cannot be read.", "Check that the folder belongs to you and that the disk works.";
    "merge-undone", "the merge of the lane was undone", "A person undid it, so it is not merged again by itself.", "`piton undo` merges it again. `piton rollback` starts the lane over.";
    "message-too-long", "the message is too long", "Messages are kept for ever with the decision they belong to, so their length is limited.", "Write a shorter message, and put the details into a file of the project.";
    "no-agent", "no agent program was found", "`piton init` sets up the agent programs that are installed, and found none.", "Install one, or name the one to set up: `piton init claude`.";
    "no-answer", "the driver has not answered yet", "The request is in the run's inbox. The driver is still ending its steps, or it is stopped.", "`piton status RUN` shows the result. To replace a driver that hangs, run `piton resume RUN --takeover`.";
    "no-base", "the base branch does not exist", "There is no branch of that name in the repository.", "Create the branch, or name another one with `--base`.";
    "no-checkpoint", "there is no such checkpoint", "The run has no such stage, checkpoint or snapshot commit, or several lanes have one of that name.", "`piton show RUN` lists the checkpoints. Name the lane with `--lane`.";
    "no-commits", "the repository has no commits", "Lanes start from a commit, and the branch has none yet.", "Make a first commit.";
    "no-gate", "there is no such gate", "The run has no gate with that place or text, or several gates have that text.", "`piton show RUN` lists the gates. Name a gate by its place (PHASE or PHASE/LANE) or its text.";
    "no-home", "the home folder is not known", "Some agent programs keep their settings in the home folder, and the variable HOME is not set.", "Set HOME, then run the command again.";
    "no-lane", "no lane matches that has started", "`--lane` and `--phase` match no lane that could be rolled back.", "`piton status RUN` shows the lanes and their status.";
    "no-ledger", "no runs here yet", "This project has no ledger, so there is nothing to show.", "Start a run with `piton run PLAN`, or name another project with `-C DIR`.";
    "no-plan", "no plan was named", "The command starts a run, and there is no plan to run.", "Name the plan: `piton run plan.toml`.";
    "no-project", "the project cannot be found", "The folder has a `.git` that does not point to a repository.", "If the repository was moved, run `git worktree repair PATH` in it. Otherwise use another folder.";
    "no-repository", "there is no git repository", "Snapshots and worktrees need a git repository, and this folder is not in one.", "Run `git init` and make a first commit, then run the plan again.";
    "no-run", "there is no such run", "No run of this project has that id or matches the command.", "`piton runs --all` lists all runs of this project.";
    "no-session", "there is no session to record in", "The session protocol is switched off in its protocol file, or the memory bank has no task board.", "Set `enabled: true` in the protocol file, or name the folder of the memory bank with `session.root` in piton.toml.";
    "no-step", "there is no such step", "The run has no phase, lane, step or checkpoint with that name, or none that the command applies to.", "`piton status RUN` shows the steps of the run.";
    "no-task", "there is no such task", "The task board has no task with that id.", "Name a task of the board. `piton inspect FILE` lists them.";
    "not-committable", "the work of a lane can't be committed", "Files can't be read, their filter fails, git refuses their names, or they changed while they were being committed.", "Fix, rename, ignore or delete the files that the message names, then run `piton resume RUN`.";
    "not-confirmed", "the command was not confirmed", "The command asks before it continues. The answer was no, or there is no terminal to ask on. Nothing was changed.", "Look with `--dry-run`, then add `--yes`.";
    "not-driven", "no process drives the run", "There is nothing to watch: the driver has ended, and the run is not complete.", "Run the command that the hint names. `piton status RUN` shows the state of the run.";
    "not-ready", "several things keep a plan from running", "A plan was checked before its first step, and several things that it needs are missing. The hints have them all.", "Fix each of them. `piton check PLAN` looks again without starting anything.";
    "not-restored", "files could not be restored", "A file of the checkpoint could not be read from the repository or written to the folder.", "Check that the folder is writable and the disk has space. `git fsck` checks the repository.";
    "not-rewound", "nothing was rolled back", "A rollback, restore or undo failed, and everything that it had changed was put back. If a merge or a step in progress ended first, the message says so.", "Fix what the message names, then run the command again.";
    "nothing-to-undo", "there is nothing to undo", "The run has no rollback, restore, merge, skip or worktree removal left to undo. Or the one you named is already undone, or later ones of its lanes must be undone first.", "`piton undo --list` lists what can be undone. `piton rollback` takes lanes back to a checkpoint.";
    "only-copy", "a worktree has the only copy of something", "The worktree has files or commits that neither base nor a snapshot has, so it is not removed.", "Move, push or delete them. Then `piton gc` removes the worktree.";
    "operation-in-progress", "a git operation is in progress", "A merge, rebase, cherry-pick, revert or bisection was started and is not finished.", "Finish or abort it with the command that the message shows, then run `piton resume RUN`.";
    "outside-project", "the path is outside of the project", "An agent can name only files of the project. The path, or a link in it, leads elsewhere.", "Name a file below the root of the project.";
    "phase-unfinished", "a phase that this one depends on is not complete", "A lane of the document depends on another phase, and the newest run of that phase here is not complete.", "Finish that run with `piton resume RUN`. If the phase is done anyway, add `--yes`.";
    "pipeline-settings", "the stages of a pipeline cannot be used", "`[pipeline]` in piton.toml names a stage that neither Piton nor the settings describe, or gives a stage a value that no step can have.", "Correct piton.toml as the message says. `piton run FOLDER --dry-run` shows the stages.";
    "plan-changed", "finished steps have changed in the plan", "The plan differs from the one the run used last, and it defines finished steps differently.", "Look at what changed, then run `piton resume RUN --accept-plan`. The changed steps run again; the others stay finished.";
    "plan-unreadable", "the plan cannot be read", "The file does not exist, is not text, belongs to another user, or is not a plan.", "Correct the path, or make the file readable. The message says what plans are.";
    "project-moved", "the project is not where the run started", "The project was moved or copied after lanes of the run had worktrees. Piton and git record worktrees by their paths, and those paths may belong to something else now.", "If this is a copy, continue in the original folder. If the project was moved, move it back, or make the old path a link to the new one. Or start a new run with `--fresh`.";
    "refused", "the request was refused", "The request does not fit the state of the run: the gate is already decided, the step is running or finished, or the run is over.", "Read the reason in the message. `piton status RUN` shows the state of the run.";
    "report-file", "the report cannot be written", "The file given to `piton report --output` cannot be replaced: its folder does not exist or is not writable, it is a folder itself, or the disk is full.", "Name a file in a folder that you can write to.";
    "repository-note", "something about the repository", "The repository uses something that works with lanes, but that is good to know.", "Follow the note if it names something to do.";
    "resume-blocked", "something changed since the run stopped", "Before a run continues, its plan, spec, artifacts and processes are compared with what was recorded. A difference that matters stops the run.", "Each difference is listed with the option that accepts it. Use that option, or undo the change.";
    "revert-conflict", "a merge can't be reverted", "Later commits changed the same files.", "Revert it with git and resolve the conflict.";
    "roadmap-stopped", "a roadmap stops before its next phase", "The next phase has no document yet, or nothing validates the phase before it, so that a person has to look first.", "Do what the hint says. `piton run ROADMAP` continues with the first phase that is not complete, and `--start-phase PHASE` with the one you name.";
    "run-driven", "another process drives the run", "At most one process advances a run.", "Watch it with `piton attach RUN`. If its driver hangs, use `--takeover`.";
    "run-exists", "the run id is already in use", "Another run of this project has that id, and ids are never used twice.", "Choose another id, leave out `--run-id`, or continue that run with `piton resume RUN`.";
    "run-id", "the name cannot be a run id", "Run ids become folder names.", "Use at most 64 letters, digits, dots, dashes and underscores.";
    "run-lock", "the run lock is not available", "Another process is changing files of the run, or its lock file can't be written.", "Wait for that process or end it, and check that the run's folder is writable.";
    "run-over", "the run is over", "The run is complete or cancelled and cannot continue, or it is archived and must be brought back first.", "`piton resume RUN` brings back an archived run. `piton run PLAN --fresh` starts a new one. `piton retry STEP --again` runs finished work of a complete run again.";
    "run-taken-over", "another driver took over the run", "Somebody used `--takeover`. This process can no longer write to the run, and has stopped.", "Watch the run with `piton attach RUN`.";
    "run-unfinished", "a run of this plan is unfinished", "A new run would leave the unfinished one behind, and there is no terminal to ask on.", "Continue it with `piton run PLAN --resume`, or set it aside with `--fresh`.";
    "secret-path", "a path contains a secret", "Paths of inputs, artifacts, folders and the spec are recorded unredacted, because files are found by them. A secret in a path would be recorded too.", "Rename the file.";
    "session-file", "a file of the memory bank cannot be used", "The task board, the project settings, the active context or the list of changes is damaged, or written in a form that Piton does not read. It was not changed.", "Correct the file at the line that the message names, then run the command again.";
    "session-run", "a session has no steps to run", "The run is the work of an agent that a person talks to. Piton records it, and runs nothing of it.", "Run `piton session start` in a new session of the agent to continue from its checkpoint.";
    "settings", "the settings cannot be read", "piton.toml exists but cannot be opened.", "Check that it is a file and that you can read it.";
    "several-features", "several features are in progress", "`piton run` without a plan continues the feature that is in progress. There is more than one, and no terminal to ask on.", "Name one of the folders that the hints list.";
    "shared-folder", "lanes share a folder", "Lanes that work in place share the project's folder. Rolling back one of them would also roll back files of the others.", "Leave out `--lane` to roll them back together.";
    "signals", "signals cannot be handled", "The system did not let the program handle Ctrl-C.", "Try again. If it happens again, report it with the output of `piton doctor --json`.";
    "snapshot", "a snapshot failed", "A snapshot could not be taken or read: a git command failed, a limit was reached, or the disk is full.", "Follow the message. The limits are in the `[snapshots]` table of piton.toml.";
    "spec-changed", "the spec has changed", "The spec that the work is measured against differs from the one that was recorded.", "Read what changed, then run `piton resume RUN --accept-spec`. Both hashes are recorded.";
    "spec-missing", "the spec does not exist", "The plan names a spec, and there is no such file.", "Create it, or remove `spec` from the plan.";
    "state-read-only", "Piton's state folder is not writable", "The command has something to record, or must read a ledger that lacks its `-shm` file. The folder or file that the message names is read-only or belongs to another user.", "Make it writable, or work in a copy of the project. `status`, `runs`, `show` and `log` also work on read-only state.";
    "state-unclear", "the state file of a feature is unclear", "The file has no status, an unknown one, or a current stage that the pipeline does not have, or it is not a state file at all. Piton neither resumes nor restarts what it does not understand, and changed nothing.", "Correct the line that the message names, or move the file away to start anew. `piton inspect FILE` shows how it is read.";
    "state-unreadable", "the ledger cannot be read", "The ledger or its folder belongs to another user, or you may not read it. Piton cannot see whether there are runs.", "Work as the user who started the runs, or make the folder that the message names readable.";
    "stdout", "the output cannot be written", "Writing to stdout failed, for example because the disk is full. (A closed pipe is not an error.)", "Check where stdout goes.";
    "task-worktrees", "the plan has no tasks", "`--task-worktrees on` needs a phase document. The lanes of this plan have steps, not tasks.", "Leave the option out. To run steps at the same time, make them separate lanes.";
    "uncaptured-in-the-way", "files that no snapshot has are in the way", "Going back would replace files that are too large for a snapshot or can't be read, and that could not be undone.", "Move them out of the worktree or delete them, then run the command again.";
    "unknown-code", "there is no such error code", "`piton explain` knows the codes that Piton prints in brackets.", "`piton explain` lists all codes.";
    "unknown-protocol", "a protocol that this piton does not know", "A plan names a protocol that there is not, or a run follows one that a newer piton, or one with more protocols, began it with.", "Correct `protocol` in the plan; go on with a run by the piton that began it.";
    "unreadable-file", "the file cannot be read", "The file does not exist, is not a file, is too large, or belongs to another user.", "Name a file that exists and that you can read.";
    "unsupported-repository", "lanes do not work in this repository", "Git is too old, or the repository uses SHA-256 object ids.", "Install git 2.40 or newer, or convert the repository.";
    "usage", "the command line is not valid", "A command, option or argument is unknown, missing or has an invalid value.", "`piton --help` lists the commands. `piton COMMAND --help` lists the options of a command.";
    "worktree", "the worktree of a lane can't be used", "A worktree could not be created, found, moved or removed. The message names the file, folder or branch.", "Fix what the message names, then run `piton resume RUN`.";
    "worktree-left-branch", "the worktree of a lane is on another branch", "The lane's commit is on its own branch, but something else is checked out in its worktree.", "Switch back with the command that the message shows, then run `piton resume RUN`.";
    "world", "something that the run needs cannot be used", "A file, folder, process or git command that the run needs failed. The message names it.", "Fix it, then run `piton resume RUN`. Finished steps do not run again.";
}

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
