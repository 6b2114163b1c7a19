//! The table of tools: names, what they are for, what they take and give.

use piton_agents::brief::{LIMIT_MAX, LIMIT_MIN};

/// Longest name of a run, task, phase, checkpoint or session.
const NAME_CHARS_MAX: usize = 200;
/// Longest remark: it is kept for ever, and is no document.
const MESSAGE_CHARS_MAX: usize = 4_000;
/// Longest question: a person reads it in a terminal.
const QUESTION_CHARS_MAX: usize = 1_000;
/// Longest path: what file systems take.
const PATH_CHARS_MAX: usize = 4_096;
/// Parts that a task is split into at most.
const PARTS_MAX: usize = 8;
/// Most entries of a list: an agent reads every one.
pub const LIST_MAX: u64 = 200;
/// Entries of a list unless more are asked for.
pub const LIST_DEFAULT: u64 = 20;
/// Most tokens of a conversation that anybody counts.
const TOKENS_MAX: u64 = 1_000_000_000;

/// A tool.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it does, for a model.
    pub about: &'static str,
    /// Whether it only reads.
    pub reads_only: bool,
    /// Whether a second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// What it takes.
    pub params: &'static [Param],
    /// What it gives.
    pub gives: &'static [Field],
}

/// Something that a tool takes.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Whether it must be given.
    pub required: bool,
    /// What it means.
    pub about: &'static str,
}

/// What something may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text with at most so many characters.
    Text {
        /// The most.
        max: usize,
    },
    /// A whole number.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// One of some words.
    Word(&'static [&'static str]),
    /// Yes or no.
    Flag,
    /// Texts.
    Texts {
        /// How many at most.
        count: usize,
        /// The most characters of each.
        max: usize,
    },
}

/// Something that a tool gives.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// Its types, with `|` between them.
    pub types: &'static str,
    /// What it means.
    pub about: &'static str,
}

const fn needs(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, kind, required: true, about }
}

const fn may(name: &'static str, kind: Kind, about: &'static str) -> Param {
    Param { name, kind, required: false, about }
}

const fn gives(name: &'static str, types: &'static str, about: &'static str) -> Field {
    Field { name, types, about }
}

const NAME: Kind = Kind::Text { max: NAME_CHARS_MAX };
const MESSAGE: Kind = Kind::Text { max: MESSAGE_CHARS_MAX };
const USED: Kind = Kind::Count { min: 0, max: TOKENS_MAX };
const WINDOW: Kind = Kind::Count { min: 1, max: TOKENS_MAX };

const SESSION: Param = may(
    "session",
    NAME,
    "Your session id. Leave it out in Claude Code and Codex, which send it themselves.",
);
const RUN: Param = may("run", NAME, "The run (default: the newest; inside a step its own).");
const TASK: Param = needs("task", NAME, "The id of a task of the board, such as T001.");
const PHASE: Param = needs("phase", NAME, "What the phase is called, such as testing.");
const TOKENS_USED: Param = may("tokens_used", USED, "Tokens of your context in use.");
const TOKENS_WINDOW: Param = may("tokens_window", WINDOW, "Tokens that your context holds.");
const FIND_RUN: Field = gives("run_id", "string", "The run.");
const MAYBE_RUN: Field = gives("run_id", "string|null", "The run.");
const MAYBE_SESSION: Field = gives("session", "string|null", "The session.");
const MAYBE_CHECKPOINT: Field =
    gives("checkpoint", "string|null", "The checkpoint that was recorded.");
const MOVED: &[Field] = &[
    MAYBE_RUN,
    gives("task", "string", "The task."),
    gives(
        "column",
        "string|null",
        "The column of the board that it is in; null if it did not move.",
    ),
    gives("synced", "boolean", "Whether the work of the last checkpoint is finished with it."),
    MAYBE_CHECKPOINT,
    gives("next", "string|null", "The next task."),
];
const PHASED: &[Field] = &[
    FIND_RUN,
    gives("session", "string", "The session."),
    gives("phase", "string", "The phase."),
    gives("ended", "boolean", "Whether it ended."),
    gives("current", "string|null", "The phase under way now."),
];

/// All tools.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "checkpoint",
        title: "Create checkpoint",
        about: "Create a checkpoint (\"Create checkpoint\", \"Save progress\"): records the task board, open \
                changes and a snapshot of all files, so that this or a later session can continue from \
                here. Inside a step of a run it records a checkpoint of that run.",
        reads_only: false,
        idempotent: false,
        params: &[
            may("message", MESSAGE, "What a person or the next agent should know."),
            may(
                "parts",
                Kind::Texts { count: PARTS_MAX, max: NAME_CHARS_MAX },
                "What is left to do of the current task, in order.",
            ),
            TOKENS_USED,
            TOKENS_WINDOW,
            may("run", NAME, "A run to checkpoint instead of the session."),
            SESSION,
        ],
        gives: &[
            gives("saved", "boolean", "Whether a checkpoint was recorded."),
            MAYBE_RUN,
            MAYBE_SESSION,
            MAYBE_CHECKPOINT,
            gives("why", "string|null", "Why none was recorded."),
        ],
    },
    Tool {
        name: "list",
        title: "List runs or checkpoints",
        about: "List the runs of this project, or the checkpoints of a run, the newest first.",
        reads_only: true,
        idempotent: true,
        params: &[
            needs("what", Kind::Word(&["runs", "checkpoints"]), "What to list."),
            may("run", NAME, "The run whose checkpoints are listed (default: the newest)."),
            may("limit", Kind::Count { min: 1, max: LIST_MAX }, "How many at most (default: 20)."),
        ],
        gives: &[gives("all", "integer", "How many runs or snapshots there are.")],
    },
    Tool {
        name: "brief",
        title: "Brief",
        about: "Sum up a run for an agent that continues it: what is done, what is in progress, what was \
                decided and what comes next. To continue a session, use `resume`.",
        reads_only: true,
        idempotent: true,
        params: &[
            RUN,
            may(
                "tokens",
                Kind::Count { min: LIMIT_MIN as u64, max: LIMIT_MAX as u64 },
                "How long it may be (default: 2000).",
            ),
        ],
        gives: &[
            FIND_RUN,
            gives("tokens", "integer", "How long it is."),
            gives("text", "string", "The brief."),
        ],
    },
    Tool {
        name: "resume",
        title: "Resume from last checkpoint",
        about: "Resume from the last checkpoint of the session protocol. Gives the context to read first: \
                the current task, the files to load now and those to load later. Open changes of the \
                checkpoint are applied, once. Afterwards finish the task with `task_finish`.",
        reads_only: false,
        idempotent: true,
        params: &[TOKENS_USED, SESSION],
        gives: &[
            gives("start", "string", "fresh, resumed, too_old, failed, disabled or no_bank."),
            MAYBE_RUN,
            MAYBE_SESSION,
            gives("task", "string|null", "The task in progress."),
            gives("applied", "integer", "Changes that were applied."),
            gives("remarks", "array", "What the person should know."),
            gives("context", "string|null", "What to read first."),
        ],
    },
    Tool {
        name: "report_tokens",
        title: "Report tokens",
        about: "Say how full your context is. From 75 % on a checkpoint is recorded, from 90 % on an \
                emergency checkpoint; then `halt` is true: finish the current operation, show the person \
                `talk`, and stop.",
        reads_only: false,
        idempotent: true,
        params: &[
            needs("used", USED, "Tokens of your context in use."),
            may("window", WINDOW, "Tokens that your context holds (default: as set, else 200000)."),
            SESSION,
        ],
        gives: &[
            gives("used", "integer", "Tokens in use."),
            gives("window", "integer", "Tokens that fit."),
            gives("percent", "integer", "How full the context is."),
            gives("halt", "boolean", "Whether to stop after the current operation."),
            MAYBE_CHECKPOINT,
            gives("reason", "string|null", "Why it was recorded."),
            MAYBE_RUN,
            gives("talk", "string", "What to show the person."),
        ],
    },
    Tool {
        name: "task_start",
        title: "Start a task",
        about: "Move a task of the board to those in progress, before you work on it.",
        reads_only: false,
        idempotent: true,
        params: &[TASK, SESSION],
        gives: MOVED,
    },
    Tool {
        name: "task_finish",
        title: "Finish a task",
        about: "Move a task of the board to the finished ones and write all collected changes, after its \
                acceptance criteria are met.",
        reads_only: false,
        idempotent: true,
        params: &[TASK, TOKENS_USED, TOKENS_WINDOW, SESSION],
        gives: MOVED,
    },
    Tool {
        name: "phase_start",
        title: "Start a phase",
        about: "Say which phase of the work begins, such as bootstrap, development or testing; checkpoints \
                name it.",
        reads_only: false,
        idempotent: true,
        params: &[PHASE, SESSION],
        gives: PHASED,
    },
    Tool {
        name: "phase_finish",
        title: "Finish a phase",
        about: "Say that the phase under way has ended.",
        reads_only: false,
        idempotent: true,
        params: &[PHASE, SESSION],
        gives: PHASED,
    },
    Tool {
        name: "record_artifact",
        title: "Record an artifact",
        about: "Record a file of the project that this session made, with the hash of its bytes, so that \
                later sessions and people find it. Files outside of the project are refused.",
        reads_only: false,
        idempotent: true,
        params: &[
            needs("path", Kind::Text { max: PATH_CHARS_MAX }, "The file, from the project's root."),
            may("message", MESSAGE, "What it is."),
            SESSION,
        ],
        gives: &[
            FIND_RUN,
            gives("session", "string", "The session."),
            gives("path", "string", "The file."),
            gives("sha256", "string", "The hash of its bytes."),
            gives("bytes", "integer", "Its size."),
            gives("task", "string|null", "The task that it belongs to."),
            gives("message", "string", "What it is."),
        ],
    },
    Tool {
        name: "request_replan",
        title: "Request a replan",
        about: "Ask for another plan of a phase of a run, because the present one cannot work. Limits of \
                replans hold; the person may be asked.",
        reads_only: false,
        idempotent: true,
        params: &[
            needs("reason", MESSAGE, "Why the plan must change."),
            may("phase", NAME, "The phase (default: the current one)."),
            RUN,
        ],
        gives: &[
            FIND_RUN,
            gives("phase", "string", "The phase."),
            gives("answer", "string", "What came of it."),
            gives("outcome", "string", "done, asked or refused."),
        ],
    },
    Tool {
        name: "ask_approval",
        title: "Ask for approval",
        about: "Ask the person to approve something before you do it. Returns at once and holds nothing up: \
                look for the answer with `approval`. The same question is asked once. Only the person can \
                answer, in a terminal of their own.",
        reads_only: false,
        idempotent: true,
        params: &[
            needs("question", Kind::Text { max: QUESTION_CHARS_MAX }, "What they shall approve."),
            RUN,
            SESSION,
        ],
        gives: APPROVAL,
    },
    Tool {
        name: "approval",
        title: "See an approval",
        about: "See whether the person approved: a question of `ask_approval` or a gate of a run. Without a \
                name it lists all of the run.",
        reads_only: true,
        idempotent: true,
        params: &[
            may("approval", NAME, "What the question or gate is called, such as ask:1."),
            RUN,
            SESSION,
        ],
        gives: &[
            FIND_RUN,
            gives(
                "approvals",
                "array",
                "Gates and questions, each with standing: not_asked, waiting, approved or rejected.",
            ),
        ],
    },
    Tool {
        name: "diff",
        title: "Show differences",
        about: "Show what differs between two checkpoints of a run, or a checkpoint and the files of now.",
        reads_only: true,
        idempotent: true,
        params: &[
            needs("from", NAME, "A checkpoint, `now` or `base`."),
            may("to", NAME, "Another one (default: `now`)."),
            may("stat", Kind::Flag, "Show only which files differ and by how much."),
            may("lane", NAME, "The lane, if several have the checkpoint."),
            RUN,
        ],
        gives: &[
            FIND_RUN,
            gives("from", "string", "The first snapshot."),
            gives("to", "string", "The second snapshot."),
            gives("changes", "array", "Paths that differ, each with its kind."),
            gives("all", "integer", "How many paths differ."),
            gives("text", "string", "What git shows of it."),
            gives("cut", "boolean", "Whether some of it is left out."),
        ],
    },
];

const APPROVAL: &[Field] = &[
    FIND_RUN,
    gives("approval", "string", "What the question is called."),
    gives("question", "string", "The question."),
    gives("standing", "string", "waiting, approved or rejected."),
    gives("by", "string|null", "Who answered."),
    gives("message", "string|null", "What they said."),
    gives("asked_at", "string|null", "When it was asked."),
    gives("decided_at", "string|null", "When it was answered."),
];
