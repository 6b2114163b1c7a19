//! What changed between two plans, step by step.
//!
//! Distinguishes changed definitions (finished work may not count any more) from changed limits (it
//! still counts). The core decides what a change means for a run.

use piton_core::budget::amount;
use piton_core::lane::{LaneRules, TaskOf};
use piton_core::plan::{Command, Lane, Phase, Step, Work};
use piton_core::{Plan, StepPath};

mod phases;

pub use phases::by_phase;

/// Lines shown of each side of a long text that changed: enough to recognize the change.
const LINES_SHOWN_MAX: usize = 3;

/// Everything that differs between two plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanDiff {
    /// Steps that differ, in the order of the new plan; removed ones at the end.
    pub steps: Vec<StepChange>,
    /// Differences outside of steps, as sentences: title, spec, budgets, needs, gates, order, and
    /// the rules of lanes.
    pub other: Vec<String>,
}

/// One step that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepChange {
    /// The step.
    pub path: StepPath,
    /// How it differs.
    pub kind: ChangeKind,
}

/// How a step differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only the new plan has it.
    Added,
    /// Only the old plan has it.
    Removed,
    /// Both have it, with differences.
    Changed {
        /// Whether the work itself differs, not only limits: `Step::definition` of both is unequal.
        definition_changed: bool,
        /// What differs.
        fields: Vec<FieldChange>,
    },
}

/// One field of a step that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The key in the plan.
    pub name: &'static str,
    /// Its old value as text.
    pub old: String,
    /// Its new value as text.
    pub new: String,
}

/// `name: old -> new`, on one line; for long texts, only the lines that differ.
impl std::fmt::Display for FieldChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (self.old.lines().collect(), self.new.lines().collect());
        if old.len() < 2 && new.len() < 2 {
            return write!(f, "{}: {} -> {}", self.name, self.old, self.new);
        }
        if old == new {
            // The difference was redacted from both, as a secret is.
            return write!(f, "{} changed", self.name);
        }
        let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let (old, new) = (&old[same..], &new[same..]);
        let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        let shown = |lines: &[&str]| {
            let lines = &lines[..lines.len() - end];
            let first = lines.iter().map(|l| l.trim()).filter(|l| !l.is_empty());
            let first: Vec<&str> = first.take(LINES_SHOWN_MAX).collect();
            let more = if lines.len() > LINES_SHOWN_MAX { " / …" } else { "" };
            if first.is_empty() { "nothing".to_owned() } else { first.join(" / ") + more }
        };
        write!(f, "{}, line {}: {} -> {}", self.name, same + 1, shown(old), shown(new))
    }
}

impl PlanDiff {
    /// Whether the plans are the same.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.other.is_empty()
    }
}

/// Compares two plans.
pub fn diff(old: &Plan, new: &Plan) -> PlanDiff {
    let before: std::collections::BTreeMap<StepPath, &Step> = old.steps().collect();
    let after: std::collections::BTreeMap<StepPath, &Step> = new.steps().collect();
    let mut found = PlanDiff::default();
    for (path, step) in new.steps() {
        let kind = match before.get(&path) {
            None => ChangeKind::Added,
            Some(was) if *was != step => ChangeKind::Changed {
                definition_changed: was.definition() != step.definition(),
                fields: step_fields(was, step),
            },
            Some(_) => continue,
        };
        found.steps.push(StepChange { path, kind });
    }
    for (path, _) in old.steps().filter(|(path, _)| !after.contains_key(path)) {
        found.steps.push(StepChange { path, kind: ChangeKind::Removed });
    }
    found.other = other(old, new);
    found
}

/// The fields in which two versions of a step differ.
fn step_fields(old: &Step, new: &Step) -> Vec<FieldChange> {
    // Named one by one, so that a new field of a step cannot be forgotten here.
    let fields = |step: &Step| {
        let Step {
            id: _,
            work,
            test,
            dir,
            env,
            inputs,
            artifacts,
            writes,
            scope,
            escalation,
            fallback,
            retries,
            backoff,
            timeout,
            idle_timeout,
            grace,
            keep,
            role,
        } = step;
        let none = || "none".to_owned();
        [
            ("work", work_text(work)),
            ("agent", agent_text(work)),
            ("test", test.as_ref().map_or_else(none, command_text)),
            ("dir", dir.clone()),
            ("env", env_text(env)),
            ("inputs", inputs.join(", ")),
            ("artifacts", artifacts.join(", ")),
            ("writes", writes.as_ref().map_or_else(|| "all".to_owned(), |globs| globs.join(", "))),
            ("scope", scope.as_ref().map_or_else(|| "all".to_owned(), |globs| globs.join(", "))),
            ("escalation", escalation.clone().unwrap_or_else(none)),
            ("fallback", fallback.join(", ")),
            ("retries", retries.to_string()),
            ("backoff", backoff.to_string()),
            ("timeout", timeout.to_string()),
            ("idle_timeout", idle_timeout.map_or_else(none, |time| time.to_string())),
            ("grace", grace.to_string()),
            ("keep", keep.join(", ")),
            ("role", format!("{role:?}")),
        ]
    };
    let pairs = fields(old).into_iter().zip(fields(new));
    let differing = pairs.filter(|((_, old), (_, new))| old != new);
    let change = |((name, was), (_, is))| {
        let name = if name == "work" { work_key(&old.work, &new.work) } else { name };
        FieldChange { name, old: was, new: is }
    };
    differing.map(change).collect()
}

/// The key of the work in the plan.
fn work_key(old: &Work, new: &Work) -> &'static str {
    match (old, new) {
        (Work::Run(_), Work::Run(_)) => "run",
        (Work::Prompt { .. }, Work::Prompt { .. }) => "prompt",
        (Work::Tests(_), Work::Tests(_)) => "tests",
        (Work::Tasks(_), Work::Tasks(_)) => "tasks",
        _ => "work",
    }
}

fn work_text(work: &Work) -> String {
    match work {
        Work::Run(command) => command_text(command),
        Work::Prompt { prompt, .. } => prompt.clone(),
        Work::Tests(_) | Work::Tasks(_) => work.display(),
    }
}

fn agent_text(work: &Work) -> String {
    match work {
        Work::Run(_) | Work::Tests(_) | Work::Tasks(_) => "none".to_owned(),
        Work::Prompt { agent, command, .. } => format!("{agent}: {}", command_text(command)),
    }
}

/// A command so that a shell line and an argument list never look the same.
fn command_text(command: &Command) -> String {
    match command {
        Command::Shell(line) => line.clone(),
        Command::Args(args) => format!("{args:?}"),
    }
}

/// Names and values. The program redacts them before it prints: only it knows which are secret.
fn env_text(env: &std::collections::BTreeMap<String, String>) -> String {
    env.iter().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>().join(" ")
}

/// `NAME: OLD is now NEW`, if the two differ.
fn changed(name: &str, old: &str, new: &str) -> Option<String> {
    (old != new).then(|| format!("{name}: {old} is now {new}"))
}

/// The same for texts that may be missing.
fn changed_text(name: &str, old: Option<&String>, new: Option<&String>) -> Option<String> {
    let text = |value: Option<&String>| value.map_or("none".to_owned(), |v| format!("`{v}`"));
    changed(name, &text(old), &text(new))
}

/// The same for the order of what both have.
fn reordered(name: &str, old: &[String], new: &[String]) -> Option<String> {
    let common = |these: &[String], others: &[String]| -> Vec<String> {
        these.iter().filter(|id| others.contains(id)).cloned().collect()
    };
    let (before, after) = (common(old, new), common(new, old));
    (before != after).then(|| format!("order of {name}: now {}", after.join(", ")))
}

/// Differences outside of steps.
fn other(old: &Plan, new: &Plan) -> Vec<String> {
    let protocol = changed_text("protocol", old.protocol.as_ref(), new.protocol.as_ref());
    let mut found: Vec<String> = [
        changed_text("title", Some(&old.title), Some(&new.title)),
        protocol.map(|changed| format!("{changed}; a run keeps the one it began with")),
        changed_text("spec", old.spec.as_ref(), new.spec.as_ref()),
        changed("on_failure", &word(&old.on_failure), &word(&new.on_failure)),
        changed("on_change", &word(&old.on_change), &word(&new.on_change)),
    ]
    .into_iter()
    .flatten()
    .collect();
    found.extend(budgets(old, new));
    if old.replan != new.replan {
        found.push("replan: the rules changed".to_owned());
    }
    for phase in &new.phases {
        if let Some(was) = old.phases.iter().find(|p| p.id == phase.id) {
            found.extend(phase_changes(was, phase));
        }
    }
    let ids = |plan: &Plan| plan.phases.iter().map(|p| p.id.clone()).collect::<Vec<_>>();
    found.extend(reordered("phases", &ids(old), &ids(new)));
    found
}

/// Budgets that differ, by their names in the plan.
fn budgets(old: &Plan, new: &Plan) -> Vec<String> {
    let as_map = |plan: &Plan| serde_json::to_value(&plan.budgets).unwrap_or_default();
    let (before, after) = (as_map(old), as_map(new));
    let names = after.as_object().into_iter().flat_map(serde_json::Map::keys);
    let change = |name: &String| {
        let said = |of: &serde_json::Value| amount(name, of[name].as_u64().unwrap_or_default());
        let plan_name = name.trim_end_matches("_micros");
        changed(&format!("budget {plan_name}"), &said(&before), &said(&after))
    };
    names.filter_map(change).collect()
}

fn phase_changes(old: &Phase, new: &Phase) -> Vec<String> {
    let name = format!("phase {}", new.id);
    let waits = |p: &Phase| list(&[p.needs.clone(), p.after.clone()].concat());
    let needs = changed(&format!("{name} needs"), &waits(old), &waits(new));
    let gate = changed_text(&format!("{name} gate"), old.gate.as_ref(), new.gate.as_ref());
    let said = |p: &Phase| p.complexity.map_or("none".to_owned(), |c| c.to_string());
    let complexity = changed(&format!("{name} complexity"), &said(old), &said(new));
    let tasks = |p: &Phase| p.tasks.to_string();
    let tasks = changed(&format!("{name} tasks"), &tasks(old), &tasks(new));
    let mut found: Vec<String> =
        needs.into_iter().chain(gate).chain(complexity).chain(tasks).collect();
    for lane in &new.lanes {
        if let Some(was) = old.lanes.iter().find(|l| l.id == lane.id) {
            found.extend(lane_changes(&new.id, was, lane));
        }
    }
    found
}

fn lane_changes(phase: &str, old: &Lane, new: &Lane) -> Vec<String> {
    let name = format!("lane {phase}/{}", new.id);
    let needs = |l: &Lane| list(&l.needs.iter().map(ToString::to_string).collect::<Vec<_>>());
    let ids = |l: &Lane| l.steps.iter().map(|s| s.id.clone()).collect::<Vec<_>>();
    let order = reordered(&format!("steps in {name}"), &ids(old), &ids(new));
    let needs = changed(&format!("{name} needs"), &needs(old), &needs(new));
    let gate = changed_text(&format!("{name} gate"), old.gate.as_ref(), new.gate.as_ref());
    let rules = rule_changes(&name, &old.rules, &new.rules);
    needs.into_iter().chain(gate).chain(order).chain(rules).collect()
}

/// How a lane works differently, by the keys of the plan.
fn rule_changes(lane: &str, old: &LaneRules, new: &LaneRules) -> Vec<String> {
    // Named one by one so that a new rule cannot be forgotten here. Every test belongs to a step, and
    // its change is shown there.
    let rules = |rules: &LaneRules| {
        let LaneRules {
            isolation,
            merge,
            copy,
            on_retry,
            message,
            commits,
            alone,
            provides,
            frozen,
            tests: _,
            task,
        } = rules;
        let at = |task: &TaskOf| format!("{} at {}/{}", task.task, task.lane, task.step);
        let none = || "none".to_owned();
        [
            ("isolation", word(isolation)),
            ("merge", word(merge)),
            ("copy", list(copy)),
            ("on_retry", word(on_retry)),
            ("commit_message", message.clone().unwrap_or_else(none)),
            ("commit", if *commits { "phase" } else { "never" }.to_owned()),
            ("alone", alone.to_string()),
            ("provides", list(provides)),
            ("gates it waits for", list(frozen)),
            ("task", task.as_ref().map_or_else(none, at)),
        ]
    };
    let pairs = rules(old).into_iter().zip(rules(new));
    pairs
        .filter_map(|((name, was), (_, is))| changed(&format!("{lane} {name}"), &was, &is))
        .collect()
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}

/// The word for a choice in a plan.
fn word(choice: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(choice).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
