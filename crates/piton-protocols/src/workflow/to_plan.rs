//! Implementation plans and task lists as plans to run.
//!
//! What all phases have in common is written as a small `plan.toml` and read by the reader of plans,
//! which checks the settings; the phases are copies of it. So a plan of thousands of phases costs
//! little more than reading its Markdown.

use std::collections::HashMap;
use std::fmt::Write as _;

use piton_core::Plan;
use piton_core::lane::LaneRules;
use piton_core::plan::{self, Command, IMPLICIT_LANE, Lane, Step, Work};
use piton_core::refusal::Refusal;
use piton_formats::diagnostic::{Diagnostic, Severity, code};
use piton_formats::plan::{STEPS_MAX, toml};
use piton_formats::sink::Sink;
use piton_formats::template::escape;
use piton_formats::{Input, read_plan};
use serde_json::{Map, Value, json};

use super::phase_id::PhaseId;
use super::plan::{Phase, TestCommand};
use super::prompt::{self, Names, filled, unmarked};
use super::record;
use super::settings::Settings;
use super::tasks::TaskList;
use super::{lanes, plan as markdown, tasks};
use crate::protocol::{Reading, Source, Unreadable};

/// The phase that the others are copies of.
const COMMON: &str = "common";
/// Keys that say what a step does.
const WORK_KEYS: [&str; 3] = ["run", "prompt", "prompt_file"];

/// Reads a plan or a task list.
pub(super) fn read(source: &Source<'_>) -> Result<Reading, Unreadable> {
    let text = source.text.unwrap_or_default();
    let common = if tasks::is_task_list(text) { prompt::TASK } else { prompt::PHASE };
    let is_list = common == prompt::TASK;
    let common = Common::read(source, common)?;
    let (plan, warnings) =
        if is_list { of_tasks(source, text, &common)? } else { of_phases(source, text, &common)? };
    let steps = plan.steps().count();
    if steps > STEPS_MAX {
        let cause =
            format!("{} has {steps} steps, and a plan has at most {STEPS_MAX}", source.file);
        let refusal = Refusal::new("plan-unreadable", cause).or("split it into several plans");
        return Err(Unreadable::Refused(refusal));
    }
    let mut reading = Reading::new(plan, warnings);
    reading.plan.record = Some(record::find(source).path);
    reading.name = Some(run_name(source.path));
    Ok(reading)
}

/// What runs of a plan are called: after its topic and itself.
fn run_name(path: &str) -> String {
    let mut folders: Vec<&str> = path.split('/').collect();
    let file = folders.pop().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let topic = folders.into_iter().rev().find(|folder| *folder != "plans");
    topic.map_or_else(|| stem.to_owned(), |topic| format!("{topic}-{stem}"))
}

/// What phases have in common.
struct Common {
    /// A plan with the limits and settings, and no phases.
    plan: Plan,
    /// What steps are copies of.
    usual: Step,
    /// Those that the settings describe, by the key of their ids.
    own: HashMap<String, Step>,
    /// The template of prompts.
    template: String,
}

impl Common {
    fn read(source: &Source<'_>, template: &str) -> Result<Self, Unreadable> {
        let settings = Settings::of(source.settings);
        let template = template_of(source, &settings, template)?;
        let base: Map<String, Value> =
            settings.step().map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut text = phase_text(COMMON, base.clone(), &template);
        let own: Vec<(String, &Value)> =
            settings.phases().map(|(id, keys)| (id.key(), keys)).collect();
        for (at, (_, keys)) in own.iter().enumerate() {
            let mut all = base.clone();
            all.extend(keys.as_object().cloned().unwrap_or_default());
            text.push_str(&phase_text(&format!("{COMMON}-{at}"), all, &template));
        }
        let Source { file, settings, git, read, .. } = *source;
        let input = Input { file, text: &text, settings, git, read };
        let (mut plan, _) = read_plan(&input).map_err(|problems| refused(&problems))?;
        // Failed tests of a phase ask for another plan, also without settings.
        plan.replan.get_or_insert_default();
        let step = |phase: plan::Phase| phase.lanes.into_iter().next()?.steps.into_iter().next();
        let mut steps = std::mem::take(&mut plan.phases).into_iter().filter_map(step);
        let usual = steps.next().ok_or_else(|| refused(&[]))?;
        let own = own.into_iter().map(|(key, _)| key).zip(steps).collect();
        Ok(Self { plan, usual, own, template })
    }

    /// What a phase is a copy of.
    fn of(&self, id: &PhaseId) -> &Step {
        self.own.get(&id.key()).unwrap_or(&self.usual)
    }

    /// A step of a phase; its work and test are its own, unless the settings name them.
    fn step(&self, of: &Step, id: &str, names: Names<'_>, tests: &[TestCommand]) -> Step {
        let mut step = Step { id: id.to_owned(), ..of.clone() };
        if let Work::Prompt { prompt, .. } = &mut step.work
            && *prompt == placeholder(&self.template)
        {
            *prompt = filled(&self.template, names);
        }
        let is_of_phase = self.usual.test != step.test;
        if let Some(test) = joined(tests).filter(|_| !is_of_phase) {
            step.test = Some(test);
        }
        step
    }

    fn lane(id: &str, steps: Vec<Step>) -> Lane {
        Lane {
            id: id.to_owned(),
            needs: Vec::new(),
            gate: None,
            steps,
            rules: LaneRules::default(),
        }
    }
}

/// The template of prompts: of the settings, of the file that they name, or the built-in one.
fn template_of(
    source: &Source<'_>,
    settings: &Settings,
    usual: &str,
) -> Result<String, Unreadable> {
    if usual == prompt::TASK {
        return Ok(settings.task_prompt().unwrap_or(usual).to_owned());
    }
    match settings.prompt() {
        (Some(text), _) => Ok(text.to_owned()),
        (None, Some(path)) => (source.read)(path).map_err(|error| {
            let refusal = Refusal::new("plan-unreadable", format!("{path}: {error}"));
            let remedy = "create it, or correct `workflow.prompt_file` in piton.toml";
            Unreadable::Refused(refusal.or(remedy))
        }),
        (None, None) => Ok(usual.to_owned()),
    }
}

/// A template as the reader of plans checks it: the names of a phase are filled in later.
fn placeholder(template: &str) -> String {
    filled(template, Names::default())
}

/// The text of a phase for the reader of plans.
fn phase_text(id: &str, mut keys: Map<String, Value>, template: &str) -> String {
    if !WORK_KEYS.iter().any(|key| keys.contains_key(*key)) {
        keys.insert("prompt".to_owned(), json!(placeholder(template)));
    }
    let mut text = format!("[[phase]]\nid = {}\nisolation = \"in-place\"\n", json!(id));
    for (key, value) in &keys {
        let _ = writeln!(text, "{key} = {}", toml(value));
    }
    text
}

/// The first problem of the settings; places in a text that nobody wrote would lead nowhere.
fn refused(problems: &[Diagnostic]) -> Unreadable {
    let first = problems.iter().find(|problem| problem.severity == Severity::Error);
    let message = first.map_or("", |problem| &problem.message);
    let cause = format!("the settings of workflows cannot be used: {message}");
    let refusal = Refusal::new("plan-unreadable", cause);
    let hint = first.and_then(|problem| problem.hint.clone());
    Unreadable::Refused(hint.into_iter().fold(refusal, Refusal::or))
}

/// Several commands as one that stops at the first failure.
fn joined(tests: &[TestCommand]) -> Option<Command> {
    let line = match tests {
        [] => return None,
        [one] => one.command.clone(),
        many => {
            let each = many.iter().map(|test| format!("(\n{}\n)\n", test.command));
            format!("set -e\n{}", each.collect::<String>())
        }
    };
    Some(Command::Shell(escape(&line)))
}

type Made = Result<(Plan, Vec<Diagnostic>), Unreadable>;

/// A plan with a phase for each of the document's.
fn of_phases(source: &Source<'_>, text: &str, common: &Common) -> Made {
    let (document, mut warnings) = markdown::read(source.file, text)?;
    let mut plan = Plan { title: document.title.clone(), ..common.plan.clone() };
    let mut before: Option<String> = None;
    for phase in &document.phases {
        let id = phase.id.to_string();
        let (needs, after) = match &phase.depends_on {
            Some(ids) => (ids.iter().map(ToString::to_string).collect(), Vec::new()),
            None => (Vec::new(), before.clone().into_iter().collect()),
        };
        let described = Described::of(source, text, phase, &mut warnings);
        let names = Names { plan: source.path, title: &phase.title, section: &described.text };
        let of = common.of(&phase.id);
        let mut step = common.step(of, plan::IMPLICIT_STEP, names, &described.tests);
        if step.scope.is_none() && !phase.files.is_empty() {
            step.scope = Some(phase.files.clone());
        }
        // Agents share one folder: of two at work at once, each would take the other's changes for
        // its own.
        let is_agent = matches!(step.work, Work::Prompt { .. });
        let mut lane = Common::lane(IMPLICIT_LANE, vec![step]);
        lane.rules.alone = is_agent;
        let lanes = vec![lane];
        let (gate, complexity, tasks) = (None, complexity(phase), described.tasks);
        let id = id.clone();
        before = Some(id.clone());
        plan.phases.push(plan::Phase { id, needs, after, gate, lanes, complexity, tasks });
    }
    Ok((plan, warnings))
}

/// What a phase asks for: its section, and the file it is expanded into.
struct Described {
    text: String,
    tests: Vec<TestCommand>,
    /// How many boxes there are.
    tasks: u32,
}

/// How complex a phase is, in the terms of plans.
fn complexity(phase: &Phase) -> Option<plan::Complexity> {
    let score = phase.complexity.as_ref()?.score?;
    format!("{score:.2}").parse().ok()
}

fn count(tasks: &[markdown::Task]) -> u32 {
    u32::try_from(tasks.len()).unwrap_or(u32::MAX)
}

impl Described {
    fn of(source: &Source<'_>, text: &str, phase: &Phase, warnings: &mut Vec<Diagnostic>) -> Self {
        let mut described = Self {
            text: unmarked(phase.text(text)),
            tests: phase.tests.clone(),
            tasks: count(&phase.tasks),
        };
        let Some(link) = &phase.expanded else { return described };
        let path = beside(source.path, link);
        match (source.read)(&path) {
            Ok(more) => {
                let _ = write!(described.text, "\n\nIn full ({path}):\n\n{}", unmarked(&more));
                described.tasks = described.tasks.max(count(&markdown::tasks_of(&more)));
                let (own, _) = markdown::inspect(&path, &more);
                let own = own.phase(&phase.id).map(|own| own.tests.clone()).unwrap_or_default();
                if described.tests.is_empty() {
                    described.tests = own;
                }
            }
            Err(error) => warnings.push(missing(source.file, phase, &path, &error)),
        }
        described
    }
}

fn missing(file: &str, phase: &Phase, path: &str, error: &std::io::Error) -> Diagnostic {
    let mut sink = Sink::new(file, "");
    let message =
        format!("phase {} is described in {path}, which cannot be read: {error}", phase.id);
    let hint = "restore the file, or remove the link";
    sink.warn(code::MISSING, &(0..0), message, hint);
    // The sink has exactly one problem.
    let mut problem = sink.finish().swap_remove(0);
    problem.line = phase.line;
    problem
}

/// A file that a plan links, from the project's root.
pub(super) fn beside(plan: &str, link: &str) -> String {
    let mut parts: Vec<&str> = plan.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// A plan with a step for each task of a list.
fn of_tasks(source: &Source<'_>, text: &str, common: &Common) -> Made {
    let (list, mut warnings): (TaskList, _) = tasks::read(source.file, text)?;
    if warnings.iter().any(|found| found.code == code::DUPLICATE_ID) {
        // Two steps cannot have one name.
        for found in warnings.iter_mut().filter(|found| found.code == code::DUPLICATE_ID) {
            found.severity = Severity::Error;
        }
        return Err(Unreadable::Problems(warnings));
    }
    let mut plan = Plan { title: list.title.clone(), ..common.plan.clone() };
    let mut before: Option<String> = None;
    for (id, phase) in lanes::phases(&list).into_iter().filter(|(_, p)| !p.tasks.is_empty()) {
        let of = PhaseId::read(&id).map_or(&common.usual, |id| common.of(&id));
        let step = |task: &tasks::Task| {
            let section = lanes::words(task);
            let names = Names { plan: source.path, title: &phase.title, section: &section };
            common.step(of, &task.id, names, &[])
        };
        let groups = lanes::groups(&phase.tasks);
        let lanes = lanes::lanes(&id, &groups, |id, tasks| {
            Common::lane(id, tasks.iter().copied().map(step).collect())
        });
        let after = before.clone().into_iter().collect();
        // Its tasks are steps of their own: many of them are no reason to plan it again.
        plan.phases.push(plan::Phase {
            id: id.clone(),
            needs: Vec::new(),
            after,
            gate: None,
            lanes,
            complexity: None,
            tasks: 0,
        });
        before = Some(id);
    }
    Ok((plan, warnings))
}
