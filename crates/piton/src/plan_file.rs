//! Plans as files: reading them, naming them, keeping their secrets out of the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use piton_core::event::ProtocolRef;
use piton_core::lane::{LaneRules, TaskWorktrees};
use piton_core::plan::{Command, Step, Work};
use piton_core::redact::{Names, REPLACEMENT, Redactor, VALUE_BYTES_MIN};
use piton_core::{LanePath, Plan, RunState, StepPath, Timestamp};
use piton_formats::diagnostic::code::BAD_SYNTAX;
use piton_formats::plan::{PLAN_BYTES_MAX, PROMPT_BYTES_MAX};
use piton_formats::{Diagnostic, sink};
use piton_protocols::Protocol;
use piton_protocols::protocol::{Existing, Link, Need, Reading, Source, Unreadable};
use piton_protocols::table::{UnknownProtocol, claimed, followed};

use crate::cli;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use piton_world::read;

mod again;
mod agents;
mod asking;

pub use again::{before_replan, files};

/// Longest part of a run's name that comes from its plan: the time and a number follow.
const NAME_CHARS_MAX: usize = 40;

/// A plan as read from its file.
#[derive(Clone, Debug)]
pub struct PlanFile {
    /// As recorded: relative to the root where it lies below it.
    pub path: String,
    /// What steps start from.
    pub live: Plan,
    /// The same without secrets: what is recorded, hashed and compared.
    pub recorded: Plan,
    /// The protocol that its runs follow.
    pub protocol: ProtocolRef,
    /// The one that read it.
    pub reader: &'static dyn Protocol,
    /// What its runs are called, where its file does not name them.
    name: Option<String>,
    /// Gates that are open, for each lane that waits for them.
    pub open_gates: BTreeMap<LanePath, Vec<String>>,
    /// Work of other plans that lanes depend on.
    pub needs: Vec<Need>,
}

/// How a plan is read.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// The protocol that reads it; the one that is surest of it where none is on record.
    pub reader: Option<&'static dyn Protocol>,
    /// Whether tasks get worktrees of their own, over the settings.
    pub tasks: Option<TaskWorktrees>,
    /// Whether a person may be asked what it leaves open.
    pub asks: bool,
}

/// What plans again, if the plan says it.
fn replans(plan: &mut Plan) -> Option<&mut Step> {
    plan.replan.as_mut()?.by.as_deref_mut()
}

impl PlanFile {
    /// Reads a plan from where the person is.
    pub fn read(context: &Context, path: &Path, how: How) -> Result<Self> {
        let (full, file) = (context.cwd.join(path), path.display().to_string());
        let unreadable = |why: &dyn Display| {
            CommandError::usage("plan-unreadable", format!("{file} {why}"))
                .hint("name a plan file, such as plan.toml")
        };
        let not_a_plan = |what: &str| {
            let kinds = context.table.iter().rev().map(|protocol| protocol.plans());
            let kinds = kinds.filter(|words| !words.is_empty()).enumerate();
            let message = format!("{file} is {what}");
            kinds.fold(CommandError::usage("plan-unreadable", message), |error, (at, words)| {
                error.hint(format!("{} {words}", if at == 0 { "a plan is" } else { "or" }))
            })
        };
        let unopened = |e: std::io::Error| match e.kind() {
            ErrorKind::NotFound => unreadable(&"does not exist"),
            _ => unreadable(&format!("cannot be read: {e}")),
        };
        let opened = File::open(&full).and_then(|file| read::up_to(file, PLAN_BYTES_MAX));
        let text = match opened {
            Err(e) if e.kind() == ErrorKind::IsADirectory => None,
            opened => Some(sink::utf8(&file, opened.map_err(unopened)?)),
        };
        let text = text.transpose().map_err(|found| {
            let redactor = context.redactor_of_text(&found.text);
            ui::document_error(&found.problems, &found.text, context.json, &redactor)
        })?;
        let reading = reading(context, &file, text.as_deref(), how);
        let is_folder = text.is_none();
        let text = text.as_deref().unwrap_or_default();
        // Only made where something is said: it costs more than reading a good plan.
        let redactor = || context.redactor_of_text(text);
        let (reader, reading) = reading.map_err(|why| match why {
            None if is_folder => not_a_plan("a folder, and not that of a feature"),
            None => not_a_plan("not a plan"),
            Some(Unreadable::Problems(found))
                if full.extension() != Some("toml".as_ref())
                    && found.iter().any(|p| p.code == BAD_SYNTAX) =>
            {
                not_a_plan("not a plan")
            }
            Some(Unreadable::Problems(found)) => {
                ui::document_error(&found, text, context.json, &redactor())
            }
            Some(Unreadable::Refused(refusal)) => CommandError::refused(Kind::Usage, refusal),
            Some(Unreadable::Blocked(refusal)) => CommandError::refused(Kind::Blocked, refusal),
        })?;
        for note in reading.notes.iter().filter(|note| is_news((*note).clone())) {
            ui::say(format!("note: {note}"));
        }
        let warnings = new_warnings(&reading.warnings);
        if !warnings.is_empty() {
            ui::diagnostics(&warnings, text, &redactor());
        }
        Self::new(context, &full, reader, asking::answered(context, reading, how.asks)?)
    }

    /// A plan of a file, with its secrets taken out of what is recorded.
    fn new(
        context: &Context,
        full: &Path,
        reader: &'static dyn Protocol,
        reading: Reading,
    ) -> Result<Self> {
        let Reading { plan: mut live, name, open_gates, needs, .. } = reading;
        // A title that was not given comes from the path; the same plan named another way is the
        // same plan.
        if live.title.is_empty() {
            live.title = stem(full);
        }
        let protocol = followed(context.table, reader, &live, &context.settings);
        let protocol = protocol.map_err(|UnknownProtocol(name)| {
            let known: Vec<&str> = context.table.iter().map(|p| p.id()).collect();
            CommandError::usage("unknown-protocol", format!("there is no protocol `{name}`"))
                .hint(format!("the plan may name one of: {}", known.join(", ")))
        })?;
        let redactor = knowing(&context.redactor, &live, &context.settings.secrets);
        refuse_secret_paths(&live, &redactor)?;
        let recorded = without_secrets(&live, &redactor);
        let path = recorded_path(&context.project.root, full);
        Ok(Self { path, live, recorded, protocol, reader, name, open_gates, needs })
    }

    /// The plan as a run knows it: without what the run changed in its file, and with the same secrets
    /// taken out.
    #[must_use]
    pub fn like(self, recorded: &Plan) -> Self {
        let mut file = self.masked_like(recorded);
        for plan in [&mut file.recorded, &mut file.live] {
            file.reader.as_recorded(plan, recorded);
        }
        file
    }

    /// Reads the plan of a run again, if its file is still there, by the protocol that read it first.
    pub fn for_run(
        context: &Context,
        state: &RunState,
        tasks: Option<TaskWorktrees>,
    ) -> Result<Option<Self>> {
        let full = context.project.root.join(&state.plan_path);
        // A pipe that a plan came through once says nothing any more, and would be waited for.
        if !full.is_file() && !full.is_dir() {
            return Ok(None);
        }
        let reader = match &state.run_id {
            Some(_) => Some(context.protocol(state, &state.protocol.reader)?),
            None => None,
        };
        let shown = full.strip_prefix(&context.cwd).map(Path::to_owned).unwrap_or(full);
        // What was asked when the run began is on record.
        Self::read(context, &shown, How { reader, tasks, asks: false }).map(Some)
    }

    /// The same with what the recorded plan had taken out taken out too, and with nothing taken out that
    /// it holds: a process that does not know those secrets must neither take the plan for a changed one
    /// nor record them, and one that knows more must not take it for a changed one either.
    #[must_use]
    fn masked_like(mut self, recorded: &Plan) -> Self {
        let Self { recorded: plan, live, .. } = &mut self;
        mask([&mut plan.title], [&mut live.title], [&mut recorded.title.clone()]);
        mask(agents::texts(plan), agents::texts(live), agents::texts(&mut recorded.clone()));
        if let (Some(new), Some(own), Some(old)) =
            (replans(plan), replans(live), replans(&mut recorded.clone()))
        {
            mask(texts(new), texts(own), texts(old));
        }
        for (phase, live) in plan.phases.iter_mut().zip(&mut live.phases) {
            if let Some(mut old) = recorded.phases.iter().find(|p| p.id == phase.id).cloned() {
                mask(&mut phase.gate, &mut live.gate, &mut old.gate);
            }
            for (lane, live) in phase.lanes.iter_mut().zip(&mut live.lanes) {
                let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
                if let Some(mut old) = recorded.lane(&path).cloned() {
                    let live_rules = rule_texts(&mut live.rules);
                    mask(rule_texts(&mut lane.rules), live_rules, rule_texts(&mut old.rules));
                    mask(&mut lane.gate, &mut live.gate, &mut old.gate);
                }
                for (step, live) in lane.steps.iter_mut().zip(&mut live.steps) {
                    let path = StepPath::new(&phase.id, &lane.id, &step.id);
                    if let Some(mut old) = recorded.step(&path).cloned() {
                        mask(texts(step), texts(live), texts(&mut old));
                    }
                }
            }
        }
        self
    }

    /// What a run of this plan, or of one lane of it, is called before the time is added.
    pub fn name(&self, lane: Option<&str>) -> String {
        if let Some(name) = &self.name {
            let lane = lane.map(|lane| format!("-{lane}")).unwrap_or_default();
            return fit_for_id(&format!("{name}{lane}"));
        }
        let path = Path::new(&self.path);
        let stem = stem(path);
        let folder = path.parent().and_then(Path::file_name).map(|f| f.to_string_lossy());
        let name = match folder {
            Some(folder) if stem == "plan" => folder.into_owned(),
            _ => stem,
        };
        fit_for_id(&name)
    }
}

impl PlanFile {
    /// What the files beside it tell of a run that the ledger does not know.
    pub fn existing(&self, context: &Context, at: Timestamp) -> Existing {
        let file = context.project.root.join(&self.path);
        let file = file.to_string_lossy();
        with_source(context, (&file, None), None, |source| {
            self.reader.existing(source, &self.live, at)
        })
    }
}

/// A plan, and the protocol that read it; no reason where none claims it.
pub fn reading(
    context: &Context,
    file: &str,
    text: Option<&str>,
    how: How,
) -> Result<(&'static dyn Protocol, Reading), Option<Unreadable>> {
    with_source(context, (file, text), how.tasks, |source| {
        let reader = how.reader.or_else(|| claimed(context.table, source)).ok_or(None)?;
        Ok((reader, reader.read(source).map_err(Some)?))
    })
}

/// The phases that a file or folder lists, where it is not a plan itself.
pub fn chain(context: &Context, path: &Path) -> Vec<Link> {
    let (full, file) = (context.cwd.join(path), path.display().to_string());
    // Nothing else is looked at to find that out: a pipe gives its text once.
    let text = if full.is_dir() {
        None
    } else if full.is_file() && full.extension() == Some("md".as_ref()) {
        let Ok(text) = read::text(&full, PLAN_BYTES_MAX) else { return Vec::new() };
        Some(text)
    } else {
        return Vec::new();
    };
    with_source(context, (&file, text.as_deref()), None, |source| {
        if source.text.is_none() && claimed(context.table, source).is_some() {
            return Vec::new();
        }
        let mut chains = context.table.iter().map(|protocol| protocol.chain(source));
        chains.find(|links| !links.is_empty()).unwrap_or_default()
    })
}

/// Gives a file or folder to somebody as a protocol sees it.
fn with_source<T>(
    context: &Context,
    (file, text): (&str, Option<&str>),
    task_worktrees: Option<TaskWorktrees>,
    take: impl FnOnce(&Source<'_>) -> T,
) -> T {
    let root = &context.project.root;
    take(&Source {
        file,
        path: &recorded_path(root, &context.cwd.join(file)),
        text,
        read: &|name| read::text(&root.join(name), PROMPT_BYTES_MAX),
        list: &|folder| read::names(&root.join(folder)),
        modified: &|name| read::modified(&root.join(name)),
        settings: &context.settings,
        git: context.project.git_dir.is_some(),
        task_worktrees,
    })
}

impl From<cli::TaskWorktrees> for TaskWorktrees {
    fn from(when: cli::TaskWorktrees) -> Self {
        match when {
            cli::TaskWorktrees::Off => Self::Off,
            cli::TaskWorktrees::Auto => Self::Auto,
            cli::TaskWorktrees::On => Self::On,
        }
    }
}

/// The warnings that were not told yet: a command may read its plan more than once, under several
/// names.
fn new_warnings(warnings: &[Diagnostic]) -> Vec<Diagnostic> {
    let key = |w: &Diagnostic| format!("{}:{}:{}:{}", w.line, w.column, w.code, w.message);
    warnings.iter().filter(|w| is_news(key(w))).cloned().collect()
}

/// Whether something is said for the first time by this process.
fn is_news(text: String) -> bool {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    TOLD.lock().is_ok_and(|mut told| told.insert(text))
}

/// A name as part of a run's: only what is allowed there, and not too long.
pub fn fit_for_id(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let safe: String = name.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let safe = safe.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if safe.is_empty() { "plan".to_owned() } else { safe.chars().take(NAME_CHARS_MAX).collect() }
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The path as recorded: relative to the root, links resolved.
pub fn recorded_path(root: &Path, full: &Path) -> String {
    let real = full.canonicalize().unwrap_or_else(|_| full.to_owned());
    let root: PathBuf = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    real.strip_prefix(&root).unwrap_or(&real).to_string_lossy().into_owned()
}

/// The redactor that knows the secrets of a plan's own variables too.
pub fn knowing(redactor: &Redactor, plan: &Plan, names: &Names) -> Redactor {
    let replan = plan.replan.iter().filter_map(|rules| rules.by.as_deref());
    let variables = plan.steps().map(|(_, step)| step).chain(replan).flat_map(|step| &step.env);
    let variables = variables.chain(plan.agents.values().flat_map(|agent| &agent.env));
    redactor.clone().and(variables.map(|(name, value)| (name.as_str(), value.as_str())), names)
}

/// The redactor for what the steps of a run say: it also knows the secrets of the environment that its
/// living keeper has from the driver that started it. Whoever looks, or goes on, may not.
pub fn redactor_beside_keeper(context: &Context, run_id: &str) -> Redactor {
    let known = piton_process::keeper_environment(&context.run_dir(run_id));
    let known = known.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    context.redactor.clone().and(known, &context.settings.secrets)
}

/// The redactor for what a run wrote: it knows what this process and the run's keeper know, and what
/// the plan's file says as far as it can still be read.
pub fn redactor_of_run(context: &Context, run_id: &str, recorded_path: &str) -> Redactor {
    let full = context.project.root.join(recorded_path);
    let redactor = redactor_beside_keeper(context, run_id);
    let Ok(text) = read::text(&full, PLAN_BYTES_MAX) else {
        return redactor;
    };
    match reading(context, recorded_path, Some(&text), How::default()) {
        Ok((_, reading)) => knowing(&redactor, &reading.plan, &context.settings.secrets),
        Err(_) => redactor,
    }
}

/// The plan with every secret replaced; the redactor knows those of the plan.
pub fn without_secrets(plan: &Plan, redactor: &Redactor) -> Plan {
    let mut plan = plan.clone();
    plan.title = redactor.redact(&plan.title).into_owned();
    for gate in plan.phases.iter_mut().filter_map(|p| p.gate.as_mut()) {
        *gate = redactor.redact(gate).into_owned();
    }
    for lane in plan.phases.iter_mut().flat_map(|p| &mut p.lanes) {
        for text in rule_texts(&mut lane.rules).into_iter().chain(lane.gate.as_mut()) {
            *text = redactor.redact(text).into_owned();
        }
    }
    let steps = plan.phases.iter_mut().flat_map(|p| &mut p.lanes).flat_map(|l| &mut l.steps);
    for step in steps.chain(plan.replan.as_mut().and_then(|rules| rules.by.as_deref_mut())) {
        for text in texts(step) {
            *text = redactor.redact(text).into_owned();
        }
    }
    agents::texts(&mut plan).for_each(|text| *text = redactor.redact(text).into_owned());
    plan
}

/// Refuses paths with a secret in them: the record must hold paths as they are to find the files.
fn refuse_secret_paths(plan: &Plan, redactor: &Redactor) -> Result<()> {
    let lanes = plan.phases.iter().flat_map(|phase| &phase.lanes);
    let of_steps = plan.steps().flat_map(|(path, step)| {
        let all = step.artifacts.iter().chain(&step.inputs).chain([&step.dir]);
        all.map(move |file| (path.to_string(), file))
    });
    let of_lanes =
        lanes.flat_map(|lane| lane.rules.copy.iter().map(|path| (lane.id.clone(), path)));
    let of_plan = plan.spec.iter().map(|path| ("spec".to_owned(), path));
    for (place, path) in of_steps.chain(of_lanes).chain(of_plan) {
        let shown = redactor.redact(path);
        if shown != path.as_str() {
            let message = format!("{place}: the path {shown} contains a secret");
            return Err(CommandError::usage("secret-path", message)
                .hint("rename the file: paths are recorded"));
        }
    }
    Ok(())
}

/// Makes texts as they were recorded, where only what was taken out of them differs: `live` are the
/// same texts with nothing taken out.
fn mask<'t>(
    texts: impl IntoIterator<Item = &'t mut String>,
    live: impl IntoIterator<Item = &'t mut String>,
    recorded: impl IntoIterator<Item = &'t mut String>,
) {
    for ((new, live), old) in texts.into_iter().zip(live).zip(recorded) {
        if new != old && (live == old || is_masked(old, new)) {
            new.clone_from(old);
        }
    }
}

fn command_texts(command: &mut Command) -> Vec<&mut String> {
    match command {
        Command::Shell(line) => vec![line],
        Command::Args(args) => args.iter_mut().collect(),
    }
}

/// The texts of a lane's rules that may hold a secret: its tests are the very ones of its steps.
fn rule_texts(rules: &mut LaneRules) -> Vec<&mut String> {
    rules.tests.iter_mut().flat_map(command_texts).chain(rules.message.as_mut()).collect()
}

/// The texts of a step that may hold a secret, always in the same order.
fn texts(step: &mut Step) -> Vec<&mut String> {
    let mut found = match &mut step.work {
        Work::Run(command) => command_texts(command),
        Work::Prompt { agent, command, prompt } => {
            let mut found = command_texts(command);
            found.extend([prompt, agent]);
            found
        }
        Work::Tests(tests) => tests.iter_mut().flat_map(command_texts).collect(),
        Work::Tasks(_) => Vec::new(),
    };
    found.extend(step.test.iter_mut().flat_map(command_texts));
    found.extend(step.env.iter_mut().map(|(_, value)| value));
    found.extend(&mut step.keep);
    found
}

/// Whether a text is a recorded one with words in the place of what was taken out. A secret with a
/// blank in it is not recognised: what else was added could not be told from it.
fn is_masked(recorded: &str, text: &str) -> bool {
    let mut parts = recorded.split(REPLACEMENT);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    for part in parts {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        // The longest word that leaves the rest as it was recorded.
        let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        let end = ends.rev().find(|at| *at <= word && rest[*at..].starts_with(part));
        match end.filter(|at| *at >= VALUE_BYTES_MIN) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use piton_formats::{Input, read_plan};
    use piton_protocols::plain::Plain;

    use super::*;

    /// Lost: a secret in a test command would reach the ledger by the way of the lane's rules.
    #[test]
    fn the_tests_of_a_lane_are_recorded_without_secrets() {
        let text = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nenv = { API_TOKEN = \"hunter2hunter2\" }\nrun = \"make\"\ntest = \"curl -H hunter2hunter2\"\ncommit_message = \"by hunter2hunter2\"\n";
        let settings = piton_formats::Settings::default();
        let read = |_: &str| Err(std::io::ErrorKind::NotFound.into());
        let input = Input { file: "p.toml", text, settings: &settings, git: true, read: &read };
        let Ok((live, _)) = read_plan(&input) else { panic!("a good plan") };
        let redactor = knowing(&Redactor::default(), &live, &Names::default());
        let recorded = without_secrets(&live, &redactor);
        let json = serde_json::to_string(&recorded).unwrap_or_default();
        assert!(json.contains("curl -H [redacted]") && !json.contains("hunter2"), "{json}");
        let rules = &recorded.phases[0].lanes[0].rules;
        assert_eq!(rules.tests.len(), 1);
        let unknowing = PlanFile {
            path: "p.toml".to_owned(),
            live: live.clone(),
            recorded: live,
            protocol: ProtocolRef::default(),
            reader: &Plain,
            name: None,
            open_gates: BTreeMap::new(),
            needs: Vec::new(),
        };
        assert_eq!(
            unknowing.clone().masked_like(&recorded).recorded.phases[0].lanes[0].rules,
            *rules
        );
        // The other way round: recorded by one that did not know it.
        let knowing = PlanFile { recorded, ..unknowing };
        let live = knowing.live.clone();
        assert_eq!(knowing.masked_like(&live).recorded, live);
    }

    /// Lost: a run could only be resumed from a shell with the same secrets.
    #[test]
    fn a_secret_that_is_not_known_here_stands_where_it_was_taken_out() {
        let recorded = "login [redacted] && curl -u me:[redacted]@host/";
        let with = |a: &str, b: &str| format!("login {a} && curl -u me:{b}@host/");
        assert!(is_masked(recorded, &with("hunter2hunter2", "other2other2")));
        assert!(!is_masked(
            recorded,
            &with("hunter2hunter2", "other2other2").replace("host", "evil")
        ));
        assert!(!is_masked(recorded, &with("hunter2hunter2 now", "other2other2")));
        assert!(is_masked("[redacted]", "hunter2hunter2"));
        assert!(!is_masked("[redacted]", "short"));
        assert!(!is_masked("no secret", "no secret at all"));
    }
}
