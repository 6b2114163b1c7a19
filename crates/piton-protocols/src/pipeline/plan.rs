//! A feature as a plan: its stages are phases, its boxes are gates, its outputs are artifacts.
//!
//! The plan is written as a `plan.toml` and read by the reader of plans, which checks all of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use piton_core::Plan;
use piton_core::plan::OnChange;
use piton_core::refusal::Refusal;
use piton_formats::diagnostic::{Diagnostic, Severity, code::UNKNOWN_AGENT};
use piton_formats::plan::toml;
use piton_formats::template::escape;
use piton_formats::{Input, read_plan};
use serde_json::{Value, json};

use super::files::{DONE, in_order};
use super::settings::Settings;
use super::stages::{self, Stage};
use super::state;
use crate::format::Claim;
use crate::protocol::{Reading, Source, Unreadable};

/// Where the state file is looked for, in this order.
const STATE_FILES: [&str; 3] = ["pipeline-state.md", "reports/pipeline-state.md", HIDDEN_STATE];
/// The state file of a new feature.
pub(super) const HIDDEN_STATE: &str = ".pipeline-state.md";
/// What to do where no agent is named.
pub(super) const NAME_AGENT: &str =
    "name the agent in piton.toml: [pipeline] agent = \"NAME\", such as \"claude\"";
/// What a checkpoint is called that a stage does not have.
const NO_CHECKPOINT: &str = "none";
/// Keys of a stage that are not keys of a step.
const OWN_KEYS: [&str; 3] = ["outputs", "checkpoint", "read_only"];

/// How sure it is that a folder is that of a feature. One whose spec is gone still is: its run says what
/// follows from that.
pub(super) fn claim(source: &Source<'_>) -> Claim {
    let settings = Settings::of(source.settings);
    let features = format!("{}/", settings.features().trim_end_matches('/'));
    let mut files = state_files(source.path, source.settings);
    files.push(below(source.path, settings.spec()));
    if source.text.is_some() {
        Claim::No
    } else if files.iter().any(|path| (source.read)(path).is_ok()) {
        Claim::Content
    } else if source.path.starts_with(&features) {
        Claim::Name
    } else {
        Claim::No
    }
}

/// Reads the folder of a feature.
pub(super) fn read(source: &Source<'_>) -> Result<Reading, Unreadable> {
    let settings = Settings::of(source.settings);
    let text = plan_text(source, &settings).map_err(Unreadable::Refused)?;
    let input = Input {
        file: source.file,
        text: &text,
        settings: source.settings,
        git: source.git,
        read: source.read,
    };
    let (mut plan, warnings) = read_plan(&input).map_err(|problems| {
        // Places in a text that nobody wrote would lead nowhere.
        let first = problems.iter().find(|problem| problem.severity == Severity::Error);
        let message = first.map_or("", |problem| &problem.message);
        let cause = format!("the stages of {} cannot be used: {message}", source.file);
        let refusal = Refusal::new("pipeline-settings", cause);
        Unreadable::Refused(match first {
            Some(problem) if problem.code == UNKNOWN_AGENT && settings.agent.is_none() => {
                refusal.or(NAME_AGENT)
            }
            Some(Diagnostic { hint: Some(hint), .. }) => refusal.or(hint.clone()),
            _ => refusal,
        })
    })?;
    plan.on_change = OnChange::Ask;
    if let Some(limit) = settings.same_failure {
        plan.budgets.same_failure = limit;
    }
    let (record, other) = record(source, &settings);
    plan.record = Some(record.clone());
    let mut reading = Reading::new(plan, warnings);
    reading.name = Some(feature(source.path).to_owned());
    if let Some(other) = other {
        reading.notes.push(format!("both {record} and {other} exist; {record} is used"));
    }
    Ok(reading)
}

/// The feature that a folder is about.
pub(super) fn feature(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// A file in a folder.
pub(super) fn below(folder: &str, file: &str) -> String {
    let folder = folder.trim_end_matches('/');
    if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") }
}

/// The state file of a feature, and another one if there is one.
fn record(source: &Source<'_>, settings: &Settings) -> (String, Option<String>) {
    if let Some(named) = &settings.state {
        return (below(source.path, named), None);
    }
    let paths = STATE_FILES.into_iter().map(|name| below(source.path, name));
    let mut there = paths.filter(|path| (source.read)(path).is_ok());
    let first = there.next().unwrap_or_else(|| below(source.path, HIDDEN_STATE));
    (first, there.next())
}

/// The state files that a feature may have.
pub(super) fn state_files(
    folder: &str,
    settings: &piton_formats::settings::Settings,
) -> Vec<String> {
    let named = Settings::of(settings).state;
    let names = STATE_FILES.map(str::to_owned).into_iter().chain(named);
    names.map(|name| below(folder, &name)).collect()
}

/// The plan of a feature.
fn plan_text(source: &Source<'_>, settings: &Settings) -> Result<String, Refusal> {
    let spec = below(source.path, settings.spec());
    let mut out = format!("title = {}\nspec = {}\n", json!(feature(source.path)), json!(spec));
    let mut gate: Option<String> = None;
    for name in settings.stages() {
        let built_in = stages::find(&name);
        let own = settings.stage.get(&name);
        if built_in.is_none() && own.is_none() {
            let known: Vec<&str> = stages::STAGES.iter().map(|stage| stage.name).collect();
            let cause = format!("`{name}` in pipeline.stages is not a known stage");
            return Err(Refusal::new("pipeline-settings", cause).or(format!(
                "use one of {}, or describe it in [pipeline.stage.{name}]",
                known.join(", ")
            )));
        }
        let _ = write!(out, "\n[[phase]]\nid = {}\n", json!(name));
        if let Some(gate) = gate.take() {
            let _ = writeln!(out, "gate = {}", json!(gate));
        }
        let empty = BTreeMap::new();
        let described =
            Described { built_in, own: own.unwrap_or(&empty), settings, folder: source.path };
        out.push_str(&described.step());
        gate = described.checkpoint();
    }
    if let Some(gate) = gate {
        let _ = write!(
            out,
            "\n[[phase]]\nid = {}\ngate = {}\nrun = [\"true\"]\n",
            json!(DONE),
            json!(gate)
        );
    }
    Ok(out)
}

/// The boxes of a feature that has no plan yet.
pub(super) fn boxes(settings: &Settings) -> Vec<String> {
    let empty = BTreeMap::new();
    let of = |name: &String| {
        let (built_in, own) = (stages::find(name), settings.stage.get(name).unwrap_or(&empty));
        let described = Described { built_in, own, settings, folder: "" };
        described.checkpoint().into_iter().chain(described.escalation())
    };
    in_order(settings.stages().iter().flat_map(of).collect())
}

/// A stage as the protocol and the settings describe it.
struct Described<'a> {
    built_in: Option<&'static Stage>,
    own: &'a BTreeMap<String, Value>,
    settings: &'a Settings,
    folder: &'a str,
}

impl Described<'_> {
    fn own<T: serde::de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.own.get(key).and_then(|value| serde_json::from_value(value.clone()).ok())
    }

    fn checkpoint(&self) -> Option<String> {
        let usual = self.built_in.and_then(|stage| stage.checkpoint).map(str::to_owned);
        let named = self.own::<String>("checkpoint");
        named.or(usual).filter(|text| text != NO_CHECKPOINT)
    }

    /// The box that a person ticks if it keeps failing for one reason.
    fn escalation(&self) -> Option<String> {
        let usual = self.built_in.and_then(|stage| stage.escalation).map(str::to_owned);
        self.own("escalation").or(usual)
    }

    /// Paths from the root.
    fn paths(&self, own: &str, usual: &[&str]) -> Vec<String> {
        let named = self.own::<Vec<String>>(own);
        let names = named.unwrap_or_else(|| usual.iter().map(ToString::to_string).collect());
        names.iter().map(|name| below(self.folder, name)).collect()
    }

    /// The keys of its step.
    fn step(&self) -> String {
        let usual = self.built_in;
        let outputs = self.paths("outputs", usual.map_or(&[], |stage| stage.outputs));
        let mut keys: Vec<(String, Value)> = vec![("artifacts".to_owned(), json!(outputs))];
        let has = |key: &str| self.own.contains_key(key);
        if let Some(stage) = usual {
            if !has("inputs") {
                keys.push(("inputs".to_owned(), json!(self.paths("", stage.inputs))));
            }
            if !has("retries") {
                keys.push(("retries".to_owned(), json!(stage.retries)));
            }
            if let Some(escalation) = self.escalation().filter(|_| !has("escalation")) {
                keys.push(("escalation".to_owned(), json!(escalation)));
            }
            if !["run", "prompt", "prompt_file"].into_iter().any(has) {
                keys.push(("prompt".to_owned(), json!(stages::prompt(&escape(stage.task)))));
            }
        }
        let is_read_only = self.own::<bool>("read_only");
        if is_read_only.unwrap_or(usual.is_some_and(|stage| stage.is_read_only)) && !has("writes") {
            keys.push(("writes".to_owned(), json!([])));
        }
        if let Some(agent) = self.settings.agent.as_ref().filter(|_| !has("agent") && !has("run")) {
            keys.push(("agent".to_owned(), json!(agent)));
        }
        let own = self.own.iter().filter(|(key, _)| !OWN_KEYS.contains(&key.as_str()));
        keys.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        let lines = keys.iter().map(|(key, value)| format!("{key} = {}", toml(value)));
        lines.chain([String::new()]).collect::<Vec<_>>().join("\n")
    }
}

/// The stage of a plan with a name in any spelling.
pub(super) fn stage_in<'p>(plan: &'p Plan, name: &str) -> Option<&'p str> {
    let key = state::stage_key(name);
    let mut ids = plan.phases.iter().map(|phase| phase.id.as_str());
    ids.find(|id| *id != DONE && state::stage_key(id) == key)
}
