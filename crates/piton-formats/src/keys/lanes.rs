//! The keys of lanes, and of the settings for worktrees, merges and snapshots.

use super::{Key, Kind, Section, key};

/// Most rounds of a merge: if base moved a thousand times, the merge will never catch up.
const MERGE_ROUNDS_MAX: u64 = 1_000;
/// Most files of a snapshot: git is unusable with far fewer.
const FILES_MAX: u64 = 100_000_000;

/// The choices of `isolation`.
pub const ISOLATION: &[&str] = &["worktree", "in-place"];
/// The choices of `merge`.
pub const MERGE: &[&str] = &["queue", "pr", "none"];
/// The choices of `on_retry`.
pub const ON_RETRY: &[&str] = &["keep", "reset"];
/// The choices of `commit`.
pub const COMMIT: &[&str] = &["phase", "never"];
/// The choices of `views`.
pub const VIEWS: &[&str] = &["auto", "on", "off"];

/// The choices of `task_worktrees`.
pub const TASK_WORKTREES: &[&str] = &["off", "auto", "on"];

/// Keys that lanes inherit: on a lane they apply to it, elsewhere to all lanes below.
pub(crate) const INHERITED: &[Key] = &[
    key(
        "isolation",
        Kind::Choice(ISOLATION),
        "where the lane works (`worktree` if two lanes of the phase have prompts, else `in-place`)",
    ),
    key("merge", Kind::Choice(MERGE), "how the work in a worktree gets into base"),
    key("setup", Kind::Command, "a command that prepares a new worktree"),
    key("copy", Kind::Paths, "files to copy from the project into a new worktree"),
    key("on_retry", Kind::Choice(ON_RETRY), "keep or reset the files of a failed attempt"),
    key(
        "commit_message",
        Kind::Text,
        "the message for uncommitted work (`message` of the settings)",
    ),
    key(
        "commit",
        Kind::Choice(COMMIT),
        "whether to commit what a lane in place leaves, when its phase ends (`phase` for prompts that are \
         followed by lanes in worktrees, else `never`)",
    ),
];

/// Keys that only a lane can have.
pub(super) const OWN: &[Key] = &[
    key("alone", Kind::Flag, "whether no other lane may run at the same time (false)"),
    key("provides", Kind::Words, "gates of a phase document that close when the lane completes"),
];

/// How lanes reach base through pull requests.
pub static PULL_REQUEST: Section = Section::new(
    "[pull_request]",
    "How lanes with `merge = \"pr\"` open pull requests and check whether they are merged.",
    &[&[
        key("remote", Kind::Text, "the remote that branches are pushed to (`origin`)"),
        key(
            "find",
            Kind::Command,
            "a command that prints the URL of the branch's pull request (`gh pr list`)",
        ),
        key(
            "create",
            Kind::Command,
            "a command that opens a pull request and prints its URL (`gh pr create`)",
        ),
        key("merged", Kind::Command, "a command that succeeds once it is merged (`gh pr view`)"),
    ]],
);

/// Which agents do the tasks of phase documents.
pub static LANE_AGENTS: Section = Section::new(
    "[lanes.agents]",
    "Agents by type of task of a phase document. The first of a list that is defined in `[agents]` does \
     the task; the next ones go on, in order, while it is missing or at a limit.",
    &[&[
        key("test", Kind::Words, "agents for tasks of type `test`"),
        key("impl", Kind::Words, "agents for tasks of type `impl`"),
        key("docs", Kind::Words, "agents for tasks of type `docs`"),
        key("verify", Kind::Words, "agents for tasks of type `verify`"),
    ]],
);

/// How lanes work in this project.
pub static LANES: Section = Section::new(
    "[lanes]",
    "How lanes work in this project, and where their views are written.",
    &[&[
        key("base", Kind::Text, "the branch lanes start from and merge into (the current branch)"),
        key(
            "message",
            Kind::Text,
            "the commit message for uncommitted work (`LANE: TITLE`, in phase documents \
             `feat(PHASE-LANE): NAME`)",
        ),
        key(
            "merge_rounds",
            Kind::Count(1, MERGE_ROUNDS_MAX),
            "how often a merge starts over because base moved (5)",
        ),
        key("worktrees", Kind::Path, "the folder for worktrees (`.worktrees`)"),
        key(
            "task_worktrees",
            Kind::Choice(TASK_WORKTREES),
            "whether tasks of a phase document get their own worktrees (`auto`)",
        ),
        key("agents", Kind::Table(&LANE_AGENTS), "agents by type of task"),
        key("views", Kind::Choice(VIEWS), "whether to write the files below"),
        key(
            "checkpoints",
            Kind::Path,
            "the checkpoints file (`.claude/ai-dev-kit/run-logs/checkpoints.json`)",
        ),
        key("run_logs", Kind::Path, "the folder for run logs (`.claude/run-logs`)"),
        key("run_reports", Kind::Path, "the folder for run reports (`.claude/run-reports`)"),
        key(
            "task_prompt",
            Kind::Path,
            "a template for the prompts of tasks in phase documents (built in)",
        ),
    ]],
);

/// What snapshots hold.
pub static SNAPSHOTS: Section = Section::new(
    "[snapshots]",
    "What snapshots of a workspace contain.",
    &[&[
        key(
            "enabled",
            Kind::Flag,
            "whether runs that work in place get snapshots; lanes in worktrees always do (true)",
        ),
        key("file_max", Kind::Size, "the largest file to include; larger ones are listed (50MB)"),
        key(
            "files_max",
            Kind::Count(1, FILES_MAX),
            "work trees with more files are not snapshotted (1000000)",
        ),
    ]],
);
