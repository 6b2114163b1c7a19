//! The keys of `[agents.NAME]`, `[prices.NAME]` and `[windows.NAME]`.

use piton_core::agent::PROGRAMS;

use super::{COUNT_MAX, Key, Kind, Section, TOKENS_MAX, key};

/// The kinds of agents.
const KINDS: &[&str] = &["command"];
/// What an agent may do without asking.
const PERMISSIONS: &[&str] = &["own", "edits", "all"];
/// What follows a limit of its account.
const ON_LIMIT: &[&str] = &["park", "fallback", "stop"];

/// From here on work is checkpointed.
const WARNING: Key = key(
    "warning",
    Kind::Decimal,
    "percent of the window from which on its work is checkpointed (75)",
);
/// From here on it stops.
const CRITICAL: Key =
    key("critical", Kind::Decimal, "percent from which on it stops and a fresh agent goes on (90)");
/// From here on it is ended.
const HALT: Key = key("halt", Kind::Decimal, "percent from which on it is ended (97.5)");

/// A program that gets prompts.
pub static AGENT: Section = Section::new(
    "an agent",
    "A program that gets prompts, on its standard input and as a file. `claude`, `codex`, `gemini` and \
     `opencode` are known without a table.",
    &[&[
        key("kind", Kind::Choice(KINDS), "the old name of `program = \"command\"`"),
        key(
            "program",
            Kind::Choice(PROGRAMS),
            "which program it is (the agent's name, or `command` with a `command`)",
        ),
        key(
            "command",
            Kind::Command,
            "the program: a shell line, or a list of a program and its arguments; of a known program its path alone (its name)",
        ),
        key("model", Kind::Text, "the model (the program's own choice)"),
        key(
            "permissions",
            Kind::Choice(PERMISSIONS),
            "what it may do without asking: what its own settings say, edit files and run commands, or all (edits)",
        ),
        key("tools", Kind::Words, "tools that are allowed, as the program names them"),
        key("args", Kind::Words, "further arguments"),
        key("env", Kind::Env, "environment variables to add"),
        key("mcp", Kind::Path, "a file with MCP servers, in the form of Claude Code"),
        key(
            "window",
            Kind::Count(1, TOKENS_MAX),
            "the window of its model in tokens (what the program says)",
        ),
        WARNING,
        CRITICAL,
        HALT,
        key(
            "requests",
            Kind::Count(0, COUNT_MAX),
            "requests that one attempt may make; 0 for no limit (1000)",
        ),
        key(
            "handoffs",
            Kind::Count(0, COUNT_MAX),
            "how often a step is handed to a fresh agent; 0 for never (10)",
        ),
        key(
            "silence",
            Kind::Duration,
            "longest time without output, processor time or changed files; `0s` for ever (20m)",
        ),
        key("on_limit", Kind::Choice(ON_LIMIT), "what happens at a limit of its account (park)"),
        key(
            "limit_wait",
            Kind::Duration,
            "a limit that ends within this time is waited for, and no other agent goes on (0s)",
        ),
        key("fallback", Kind::Words, "agents that go on then, with `on_limit = \"fallback\"`"),
    ]],
);

/// What a model costs.
pub static PRICES: Section = Section::new(
    "prices",
    "Dollars for a million tokens, by the name of a model, an agent or a program, if the program does \
     not say what it costs.",
    &[&[
        key("input", Kind::Money, "tokens that are sent (5.00)"),
        key("cached", Kind::Money, "tokens that are read from a cache (0.50)"),
        key("output", Kind::Money, "tokens that are received (25.00)"),
    ]],
);

/// How much a model holds.
pub static WINDOWS: Section = Section::new(
    "windows",
    "How many tokens fit, by the name of a model, an agent or a program, and how full that may be.",
    &[&[
        key("tokens", Kind::Count(1, TOKENS_MAX), "tokens that fit (what the program says)"),
        WARNING,
        CRITICAL,
        HALT,
    ]],
);
