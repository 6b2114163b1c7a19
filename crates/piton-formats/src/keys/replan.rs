//! The keys of `[replan]`.

use super::{COUNT_MAX, Kind, Section, key};

/// When and how phases are planned again.
pub static REPLAN: Section = Section::new(
    "[replan]",
    "When phases are planned again, how and how often. A threshold of 0 never asks for a replan.",
    &[&[
        key("run", Kind::Command, "the command that writes the new plan (a person is asked)"),
        key("agent", Kind::Text, "the agent that writes the new plan, instead of `run`"),
        key("prompt", Kind::Text, "what the agent is told (a built-in prompt)"),
        key("timeout", Kind::Duration, "longest time of a replan (1h)"),
        key("per_phase", Kind::Count(0, COUNT_MAX), "most replans of one phase (2)"),
        key("per_run", Kind::Count(0, COUNT_MAX), "most replans of one run (20)"),
        key("complexity", Kind::Decimal, "a phase with a higher `complexity` is replanned (8)"),
        key("tasks", Kind::Count(0, COUNT_MAX), "a phase with more `tasks` is replanned (10)"),
        key(
            "test_failures",
            Kind::Count(0, COUNT_MAX),
            "after so many test failures of a step in a row, its phase is replanned (2)",
        ),
        key(
            "scope_drift",
            Kind::Flag,
            "if a step changes files outside its `scope`, its phase is replanned (true)",
        ),
    ]],
);
