//! The prompt of a task, from a template that a person can read and change.
//!
//! The template is filled in twice. Here the fields of the task are filled in, so that a plan shows
//! what the agent will read. What only an attempt knows (`failure_context`, `attempt`, `run.id`, `root`
//! and so on) stays a template for the attempt; conditions about it are between `{% raw %}` and
//! `{% endraw %}`. Texts of the document are escaped and never become templates.

use std::sync::{Arc, LazyLock};

use minijinja::value::Object;
use minijinja::{Environment, Value, context};

use super::model::{Lane, Phase, Task};
use piton_formats::template::{self, Error};

/// The template, unless the settings name another one.
pub const TASK_PROMPT: &str = include_str!("../task_prompt.md");

/// The names that a template of a task's prompt can use, and what they are; those from `run.id` on
/// are filled in by each attempt.
pub const TASK_PROMPT_NAMES: &[(&str, &str)] = &[
    ("task.id", "the task's id"),
    ("task.type", "`test`, `impl` or `verify`"),
    ("task.depends_on", "list: what it depends on"),
    ("task.files", "list: *Files in Scope*"),
    ("task.tests_owned", "list: *Tests Owned Files*"),
    ("task.test_commands", "list: *Test Command(s)*"),
    ("task.acceptance", "*Acceptance Criteria*; may be empty"),
    ("task.extra", "list of further columns, each with `name` and `value`"),
    ("lane.id", "the lane's id"),
    ("lane.name", "the lane's name; may be empty"),
    ("lane.provides", "list: gates it provides"),
    ("phase.id", "the phase's id"),
    ("phase.title", "its title; may be empty"),
    ("run.id", "the run's id; this and all that follow are filled in for each attempt"),
    ("step.id", "the step's id"),
    ("attempt", "the number of the attempt, from 1"),
    ("spec", "the plan's `spec`; may be empty"),
    ("title", "the plan's title"),
    ("root", "the project's folder"),
    ("failure_context", "what failed before; empty in the first attempt"),
    ("context.NAME", "what the run's protocol gives the step as NAME; lanes gives nothing"),
];

/// The template of the step that fixes a lane whose tasks were done in worktrees of their own.
const MEND_PROMPT: &str = include_str!("../mend_prompt.md");

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = template::engine();
    // Texts of the document are escaped; only the names left for the attempt are marked as safe.
    engine.set_formatter(|out, _, value| {
        let text = value.to_string();
        let text = if value.is_safe() { text } else { template::escape(&text) };
        out.write_str(&text).map_err(minijinja::Error::from)
    });
    engine
});

/// A name that is filled in when an attempt starts.
fn later(name: &str) -> Value {
    Value::from_safe_string(format!("{{{{ {name} }}}}"))
}

/// The table `context`, whose names are all filled in when an attempt starts.
#[derive(Debug)]
struct LaterContext;

impl Object for LaterContext {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(later(&format!("context.{}", key.as_str()?)))
    }
}

/// The prompt of one task: a template for its attempts.
pub(super) fn render(text: &str, phase: &Phase, lane: &Lane, task: &Task) -> Result<String, Error> {
    let extra: Vec<Value> =
        task.extra.iter().map(|(name, value)| context! { name, value }).collect();
    let depends_on: Vec<String> = task.depends_on.iter().map(|d| d.raw.clone()).collect();
    let values = context! {
        task => context! {
            id => &task.id,
            type => task.kind.word(),
            depends_on => &depends_on,
            files => &task.files,
            tests_owned => &task.tests_owned,
            test_commands => &task.test_commands,
            acceptance => &task.acceptance,
            extra => extra,
        },
        lane => context! { id => &lane.id, name => &lane.name, provides => &lane.provides },
        phase => context! { id => &phase.id, title => &phase.title },
        run => context! { id => later("run.id") },
        step => context! { id => later("step.id") },
        attempt => later("attempt"),
        spec => later("spec"),
        title => later("title"),
        root => later("root"),
        failure_context => later("failure_context"),
        context => Value::from_object(LaterContext),
    };
    fill(text, values)
}

/// The prompt that fixes a lane: a template for its attempts.
pub(super) fn render_mend(phase: &Phase, lane: &Lane, tasks: &[&Task]) -> Result<String, Error> {
    let task = |task: &&Task| {
        context! { id => &task.id, type => task.kind.word(), files => &task.files }
    };
    let mut commands: Vec<String> = Vec::new();
    for command in tasks.iter().flat_map(|task| task.test_commands.iter()) {
        if !commands.contains(command) {
            commands.push(command.clone());
        }
    }
    let values = context! {
        tasks => tasks.iter().map(task).collect::<Vec<Value>>(),
        test_commands => commands,
        lane => context! { id => &lane.id, name => &lane.name },
        phase => context! { id => &phase.id, title => &phase.title },
    };
    fill(MEND_PROMPT, values)
}

fn fill(text: &str, values: Value) -> Result<String, Error> {
    let filled = ENGINE.render_str(text, values)?;
    match template::check(&filled).into_iter().next() {
        Some(problem) => Err(Error { line: problem.line, message: problem.message }),
        None => Ok(filled),
    }
}
