//! The keys of lanes: how one works, and what the settings say about worktrees, merges, snapshots.

use super::{Key, Kind, Section, key};

/// Most rounds of a merge: a base that moves a thousand times meanwhile is never caught.
const MERGE_ROUNDS_MAX: u64 = 1_000;
/// Most files of a snapshot: git itself is unusable long before that many.
const FILES_MAX: u64 = 100_000_000;

/// The choices of `isolation`.
pub const ISOLATION: &[&str] = &["worktree", "in-place"];
/// The choices of `merge`.
pub const MERGE: &[&str] = &["queue", "pr", "none"];
/// The choices of `on_retry`.
pub const ON_RETRY: &[&str] = &["keep", "reset"];
/// The choices of `views`.
pub const VIEWS: &[&str] = &["auto", "on", "off"];

/// The choices of `task_worktrees`.
pub const TASK_WORKTREES: &[&str] = &["off", "auto", "on"];

/// What lanes inherit: on a lane for itself, elsewhere for all lanes below.
pub(crate) const INHERITED: &[Key] = &[
    key(
        "isolation",
        Kind::Choice(ISOLATION),
        "where it works (`worktree` in git when two lanes of the phase have prompts, else `in-place`)",
    ),
    key("merge", Kind::Choice(MERGE), "how the work of a worktree reaches base"),
    key("setup", Kind::Command, "a command that makes a fresh worktree usable"),
    key("copy", Kind::Paths, "files copied from base into a fresh worktree"),
    key("on_retry", Kind::Choice(ON_RETRY), "what an attempt finds of the files of the one before"),
    key(
        "commit_message",
        Kind::Text,
        "the message for work it left uncommitted (`message` of the settings)",
    ),
];

/// What only a lane itself can say.
pub(super) const OWN: &[Key] = &[
    key("alone", Kind::Flag, "whether no other lane may run beside it (false)"),
    key("provides", Kind::Words, "gates of a phase document that it closes when it completes"),
];

/// How lanes reach base through pull requests.
pub static PULL_REQUEST: Section = Section::new(
    "[pull_request]",
    "How lanes with `merge = \"pr\"` open a pull request, and how they find out that it is merged.",
    &[&[
        key("remote", Kind::Text, "the remote that branches are pushed to (`origin`)"),
        key(
            "find",
            Kind::Command,
            "a command that prints the address of the branch's request (`gh pr list`)",
        ),
        key(
            "create",
            Kind::Command,
            "a command that opens one and prints its address (`gh pr create`)",
        ),
        key("merged", Kind::Command, "a command that succeeds once it is merged (`gh pr view`)"),
    ]],
);

/// How lanes work in this project.
pub static LANES: Section = Section::new(
    "[lanes]",
    "How lanes work in this project, and where their views are written.",
    &[&[
        key("base", Kind::Text, "the branch lanes start from and merge into (the current branch)"),
        key("message", Kind::Text, "the message for work a lane left uncommitted (`LANE: TITLE`)"),
        key(
            "merge_rounds",
            Kind::Count(1, MERGE_ROUNDS_MAX),
            "how often a merge begins again because base moved (5)",
        ),
        key("worktrees", Kind::Path, "the folder of the worktrees (`.worktrees`)"),
        key(
            "task_worktrees",
            Kind::Choice(TASK_WORKTREES),
            "whether tasks of a phase document get worktrees of their own (`off`)",
        ),
        key("views", Kind::Choice(VIEWS), "whether the files below are written"),
        key(
            "checkpoints",
            Kind::Path,
            "the file of the checkpoints (`.claude/ai-dev-kit/run-logs/checkpoints.json`)",
        ),
        key("run_logs", Kind::Path, "the folder of the run logs (`.claude/run-logs`)"),
        key("run_reports", Kind::Path, "the folder of the run reports (`.claude/run-reports`)"),
        key(
            "task_prompt",
            Kind::Path,
            "a template for the prompts of tasks of a phase document (built in)",
        ),
    ]],
);

/// What snapshots hold.
pub static SNAPSHOTS: Section = Section::new(
    "[snapshots]",
    "What snapshots of a workspace hold.",
    &[&[
        key(
            "enabled",
            Kind::Flag,
            "whether runs that work in place have checkpoints; lanes in worktrees always do (true)",
        ),
        key("file_max", Kind::Size, "the largest file that is held; larger ones are named (50MB)"),
        key(
            "files_max",
            Kind::Count(1, FILES_MAX),
            "files of a work tree past which no snapshot is taken (1000000)",
        ),
    ]],
);
