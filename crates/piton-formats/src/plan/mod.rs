//! `plan.toml` to a [`Plan`], or to all of its problems at once.
//!
//! In passes: `build` reads the tables and resolves inherited values, `lanes` decides how each lane
//! works, `implicit` adds steps, `check` checks ids and references, `graph` finds cycles and lanes
//! that run at the same time. Nothing here runs or opens anything: the caller reads prompt files.

pub mod build;
mod check;
mod graph;
pub mod implicit;
mod lanes;
pub mod replan;
mod work;

#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod tests;

use std::io;

use piton_core::Plan;
use serde_json::Value;

use crate::diagnostic::{Diagnostic, code};
use crate::keys;
use crate::settings::Settings;
use crate::sink::{Sink, parse};
use crate::toml_reader::Node;

/// Largest plan document: [`STEPS_MAX`] steps fit easily, and a larger file is the wrong one.
pub const PLAN_BYTES_MAX: usize = 16 << 20;
/// Largest prompt file: several times what any agent can read.
pub const PROMPT_BYTES_MAX: usize = 4 << 20;
/// Most phases of a plan: more than a person would read in a list.
pub const PHASES_MAX: usize = 1_000;
/// Most lanes of a plan in all; each has at least one step.
pub const LANES_MAX: usize = STEPS_MAX;
/// Most steps of a plan in all: state, status and views stay fast up to here.
pub const STEPS_MAX: usize = 10_000;

/// What a plan is read from.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The file, as the user named it.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// The settings, for what the plan leaves open.
    pub settings: &'a Settings,
    /// Whether the project is a git repository: worktrees need one.
    pub git: bool,
    /// Reads a prompt file, given its path relative to the project's root.
    pub read: &'a dyn Fn(&str) -> io::Result<String>,
}

/// A text as a plan writes it.
pub fn quoted(text: &str) -> String {
    // What JSON writes between quotes, TOML reads.
    Value::from(text).to_string()
}

/// A value as TOML writes it.
pub fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(table) => {
            let pairs =
                table.iter().map(|(key, value)| format!("{} = {}", quoted(key), toml(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Reads a plan: the plan and its warnings, or all problems (errors and warnings).
pub fn read_plan(input: &Input<'_>) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut sink = Sink::new(input.file, input.text);
    let plan = read(input, &mut sink);
    match plan {
        Some(plan) if !sink.has_errors() => Ok((plan, sink.finish())),
        _ => Err(sink.finish()),
    }
}

fn read(input: &Input<'_>, sink: &mut Sink<'_>) -> Option<Plan> {
    if input.text.len() > PLAN_BYTES_MAX {
        let message = format!("the plan is larger than {PLAN_BYTES_MAX} bytes");
        sink.error(code::TOO_LARGE, &(0..0), message, "split it, or name the right file");
        return None;
    }
    let root = parse(sink)?;
    let node = Node::new(&root, "plan", &keys::PLAN, sink)?;
    let mut draft = build::build(&node, input, sink);
    check::check(&mut draft, sink);
    Some(draft.into_plan())
}
