//! The prompt of a task, from a template that a person can read and change.
//!
//! The template is filled in twice. Here the fields of the task are filled in, so that a plan shows
//! what the agent will read. What only an attempt knows (`failure_context`, `attempt`, `run.id`, `root`
//! and so on) stays a template for the attempt; conditions about it are between `{% raw %}` and
//! `{% endraw %}`. Texts of the document are escaped and never become templates.

use std::sync::{Arc, LazyLock};

use minijinja::value::Object;
use minijinja::{Environment, Value, context};

use super::model::{About, Lane, Phase, Task};
use super::names::gate_ids;
use piton_formats::template::{self, Error};

/// The template, unless the settings name another one.
pub const TASK_PROMPT: &str = include_str!("../task_prompt.md");

/// The names that a template of a task's prompt can use, and what they are; those from `run.id` on
/// are filled in by each attempt.
pub const TASK_PROMPT_NAMES: &[(&str, &str)] = &[
    ("task.id", "the task's id"),
    ("task.type", "`test`, `impl`, `docs`, `verify`, or another word of the document"),
    ("task.text", "what is to be done, in the words of a list item; empty for a row of a table"),
    ("task.depends_on", "list: what it depends on"),
    ("task.files", "list: *Files in Scope*"),
    ("task.tests_owned", "list: *Tests Owned Files*"),
    ("task.test_commands", "list: *Test Command(s)*"),
    ("task.checks", "list: what else is to be tested, in words"),
    ("task.acceptance", "*Acceptance Criteria*; may be empty"),
    ("task.extra", "list of further columns, each with `name` and `value`"),
    ("lane.id", "the lane's id"),
    ("lane.name", "the lane's name; may be empty"),
    ("lane.provides", "list: gates it provides"),
    ("lane.scope", "*Scope*; may be empty"),
    ("lane.owned", "list: *Owned files*, as written"),
    ("lane.provided", "list: *Interfaces provided*, and what the gates in them freeze"),
    ("lane.consumed", "list: *Interfaces consumed*, and what the gates in them freeze"),
    ("lane.acceptance", "list: *Acceptance criteria* of the lane, else those of the phase"),
    ("phase.id", "the phase's id"),
    ("phase.title", "its title; may be empty"),
    ("document", "the path of the document, filled in for each attempt"),
    ("run_log", "the path of the run log, filled in for each attempt"),
    ("run.id", "the run's id; this and all that follow are filled in for each attempt"),
    ("step.id", "the step's id"),
    ("attempt", "the number of the attempt, from 1"),
    ("spec", "the plan's `spec`; may be empty"),
    ("title", "the plan's title"),
    ("root", "the project's folder"),
    ("failure_context", "what failed before; empty in the first attempt"),
    ("context.NAME", "what the run's protocol gives the step as NAME; lanes gives `document`"),
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

/// The entries of an attribute, and the gates in them with what they freeze. Whether they are closed is no
/// part of a task: our own ticks would change it.
fn interfaces(entries: &[String], phase: &Phase) -> Vec<String> {
    let named: Vec<String> = entries.iter().flat_map(|entry| gate_ids(entry)).collect();
    let mut all = vec![entries.join("\n")];
    all.retain(|entry| !entry.is_empty());
    for gate in phase.gates.iter().filter(|gate| named.contains(&gate.id)) {
        all.push(format!("{}: {}", gate.id, gate.text));
    }
    all
}

/// What a prompt says about a lane.
fn about(phase: &Phase, lane: &Lane) -> Value {
    let About { scope, owned, provided, consumed, acceptance } = &lane.about;
    context! {
        id => &lane.id,
        name => &lane.name,
        provides => &lane.provides,
        scope => scope.join("\n"),
        owned => owned,
        provided => interfaces(provided, phase),
        consumed => interfaces(consumed, phase),
        acceptance => if acceptance.is_empty() { &phase.acceptance } else { acceptance },
    }
}

/// The prompt of one task: a template for its attempts; `run_logs` is the folder of the run logs.
pub(super) fn render(
    text: &str,
    run_logs: &str,
    phase: &Phase,
    lane: &Lane,
    task: &Task,
) -> Result<String, Error> {
    let folder = template::escape(run_logs.trim_end_matches('/'));
    let run_log = format!("{{{{ root }}}}/{folder}/{{{{ run.id }}}}.jsonl");
    let extra: Vec<Value> =
        task.extra.iter().map(|(name, value)| context! { name, value }).collect();
    let depends_on: Vec<String> = task.depends_on.iter().map(|d| d.raw.clone()).collect();
    let values = context! {
        task => context! {
            id => &task.id,
            type => &task.kind_word,
            text => &task.text,
            depends_on => &depends_on,
            files => &task.files,
            tests_owned => &task.tests_owned,
            test_commands => &task.test_commands,
            checks => &task.checks,
            acceptance => &task.acceptance,
            extra => extra,
        },
        lane => about(phase, lane),
        document => later("context.document"),
        run_log => Value::from_safe_string(run_log),
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
        context! { id => &task.id, type => &task.kind_word, files => &task.files }
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
