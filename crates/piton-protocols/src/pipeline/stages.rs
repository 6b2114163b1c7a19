//! The stages of a pipeline as the protocol has them: what each makes, is given and may change, how
//! often it may be tried, and what it is asked to do.
//!
//! Settings change all of it; a stage that is not in the table gets everything from them.

use super::state::BOXES;

/// A built-in stage.
#[derive(Debug)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// Whether it is one of the ten of the protocol, which run unless settings say otherwise.
    pub is_usual: bool,
    /// The files that it makes, in the folder of the feature.
    pub outputs: &'static [&'static str],
    /// The files that it is made from, in the folder of the feature.
    pub inputs: &'static [&'static str],
    /// How often it is tried again.
    pub retries: u32,
    /// The box that a person ticks after it.
    pub checkpoint: Option<&'static str>,
    /// The box that a person ticks if it keeps failing for one reason.
    pub escalation: Option<&'static str>,
    /// Whether it may change nothing but what it makes.
    pub is_read_only: bool,
    /// What it is asked to do.
    pub task: &'static str,
}

const fn stage(name: &'static str, retries: u32, task: &'static str) -> Stage {
    Stage {
        name,
        is_usual: true,
        outputs: &[],
        inputs: &[],
        retries,
        checkpoint: None,
        escalation: None,
        is_read_only: false,
        task,
    }
}

/// The spec of a feature.
pub const SPEC: &str = "feature.spec.md";
/// The decision record of its architecture.
pub const ADR: &str = "adr.md";
/// The articles that it must comply with.
pub const CONSTITUTION: &str = "constitution.md";
/// The findings of the code review.
pub const REVIEW: &str = "code-review.md";
/// The stage that the Constitution Check belongs to.
pub const ARCHITECT: &str = "architect";
/// The stage that resolves what the spec leaves open.
pub const CLARIFY: &str = "clarify";
/// The stage that writes the code: what it leaves is never started over.
pub const PROGRAMMER: &str = "programmer";

/// All built-in stages, in their order.
pub const STAGES: &[Stage] = &[
    Stage {
        outputs: &[SPEC],
        ..stage(
            "spec",
            2,
            "Write the spec of the feature, or complete the one that is there: what it is for, \
             requirements, acceptance criteria, edge cases. Mark what only a person can decide as \
             [NEEDS CLARIFICATION: question].",
        )
    },
    Stage {
        outputs: &[SPEC],
        checkpoint: Some(BOXES[0]),
        ..stage(
            CLARIFY,
            1,
            "Resolve every [NEEDS CLARIFICATION] marker of the spec from what the project says, and \
             leave none. Change nothing else of the spec.",
        )
    },
    Stage {
        is_usual: false,
        outputs: &["red-team-findings.md"],
        inputs: &[SPEC],
        is_read_only: true,
        ..stage("red-team", 1, "Look for what is wrong, missing or dangerous in the spec.")
    },
    Stage {
        outputs: &["research.md", ADR],
        inputs: &[SPEC],
        checkpoint: Some(BOXES[1]),
        ..stage(
            ARCHITECT,
            2,
            "Decide the architecture. Research first (research.md), then write adr.md. It begins with \
             a section `## Constitution Check`: a table `| Article | Status | Notes |` with COMPLIES, \
             EXCEPTION or N/A for each article. Each EXCEPTION needs a row in a Complexity \
             Justification table.",
        )
    },
    Stage {
        outputs: &["tasks.md"],
        inputs: &[ADR],
        ..stage("tasks", 1, "Write tasks.md from adr.md; an older one may be overwritten.")
    },
    Stage {
        outputs: &["test-certification.md"],
        inputs: &[SPEC, "tasks.md"],
        ..stage(
            "tdd",
            3,
            "Write the tests of every acceptance criterion before any code, and test-certification.md, \
             which names them. They must fail for the right reason. Keep tests that are there, and \
             complete them.",
        )
    },
    Stage {
        inputs: &["tasks.md"],
        escalation: Some(BOXES[2]),
        ..stage(
            PROGRAMMER,
            5,
            "Write the code that makes the tests pass. Change no test. Continue from the code that is \
             there and from the failing tests; do not start over.",
        )
    },
    Stage {
        outputs: &["test-report.md"],
        ..stage(
            "testrunner",
            2,
            "Run all tests and write test-report.md: each test, its result, why.",
        )
    },
    Stage {
        outputs: &[REVIEW],
        is_read_only: true,
        ..stage(
            "code-review",
            1,
            "Review the code of the feature. Change no file but code-review.md.",
        )
    },
    Stage {
        outputs: &["security-report.md"],
        checkpoint: Some(BOXES[3]),
        is_read_only: true,
        ..stage(
            "security",
            1,
            "Review the security of the feature. Change no file but security-report.md.",
        )
    },
    Stage {
        is_usual: false,
        outputs: &["qa-report.md"],
        ..stage("qa-e2e", 2, "Test the feature from end to end, as a user would.")
    },
    Stage {
        is_usual: false,
        outputs: &["devops.md"],
        ..stage("devops", 2, "Prepare the release of the feature: build, configuration, rollout.")
    },
    Stage {
        is_usual: false,
        outputs: &["docs-report.md"],
        ..stage("docs", 2, "Bring the documentation up to date with the feature.")
    },
    Stage {
        outputs: &["refactor-proposals.md"],
        inputs: &[REVIEW],
        ..stage(
            "refactor",
            1,
            "Propose what to refactor, from the findings of the code review, in refactor-proposals.md.",
        )
    },
];

/// Finds a built-in stage.
pub fn find(name: &str) -> Option<&'static Stage> {
    STAGES.iter().find(|stage| stage.name == name)
}

/// What every prompt says around its task.
pub const PROMPT: &str = "\
You work on the feature {{ context.feature }} in {{ context.folder }}. This is the stage `{{ phase.id }}` of its pipeline.

TASK
{% if context.outputs %}
Write these files, and say nothing that is not in them:
{{ context.outputs }}{% endif %}{% if context.existing %}
These files are there. Read them first, and continue from them instead of starting over:
{{ context.existing }}{% endif %}{% if context.left %}
An earlier attempt of this stage left these files. Continue them instead of starting over:
{{ context.left }}{% endif %}{% if context.markers %}
Open in the spec:
{{ context.markers }}{% endif %}{% if context.notes %}
An earlier run of this feature failed. Its notes:
{{ context.notes }}{% endif %}{% if failure_context %}
What went wrong before, or is to be changed:
{{ failure_context }}{% endif %}
The file {{ context.record }} is kept by Piton; do not edit it.
";

/// The prompt of a task.
pub fn prompt(task: &str) -> String {
    PROMPT.replacen("TASK", task, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_stages_of_the_protocol_run_in_its_order() {
        let usual: Vec<&str> = STAGES.iter().filter(|s| s.is_usual).map(|s| s.name).collect();
        assert_eq!(
            usual.join(" "),
            "spec clarify architect tasks tdd programmer testrunner code-review security refactor"
        );
        let retries = |name: &str| find(name).map(|stage| stage.retries);
        let budgets = ["spec", "clarify", "architect", "tdd", "programmer", "testrunner"];
        assert_eq!(budgets.map(retries), [2, 1, 2, 3, 5, 2].map(Some));
        assert_eq!(["code-review", "security"].map(retries), [1, 1].map(Some));
    }

    #[test]
    fn each_box_of_the_protocol_belongs_to_a_stage() {
        let boxes =
            STAGES.iter().flat_map(|stage| stage.checkpoint.into_iter().chain(stage.escalation));
        assert_eq!(boxes.collect::<Vec<_>>(), BOXES);
    }
}
