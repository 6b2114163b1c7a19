//! Plans as files: reading them, naming them, keeping their secrets out of the ledger.

use std::path::{Path, PathBuf};

use piton_core::Plan;
use piton_core::plan::{Command, Work};
use piton_core::redact::{REPLACEMENT, Redactor, VALUE_BYTES_MIN, is_secret_name};
use piton_formats::{Input, read_plan};

use crate::commands::document_error;
use crate::context::Context;
use crate::error::{CommandError, Result};

/// A plan as read from its file.
#[derive(Clone, Debug)]
pub struct PlanFile {
    /// As recorded: relative to the root where it lies below it.
    pub path: String,
    /// What steps start from.
    pub live: Plan,
    /// The same without secrets: what is recorded, hashed and compared.
    pub recorded: Plan,
}

impl PlanFile {
    /// Reads a plan from where the person is.
    pub fn read(context: &Context, path: &Path) -> Result<Self> {
        let full = context.cwd.join(path);
        let text = std::fs::read_to_string(&full).map_err(|e| {
            CommandError::usage("plan-unreadable", format!("{}: {e}", path.display()))
                .hint("name the file of a plan, such as plan.toml")
        })?;
        let root = &context.project.root;
        let input = Input {
            file: &path.display().to_string(),
            text: &text,
            settings: &context.settings,
            read: &|name| std::fs::read_to_string(root.join(name)),
        };
        let (mut live, warnings) =
            read_plan(&input).map_err(|problems| document_error(&problems, &text, context.json))?;
        crate::ui::diagnostics(&warnings, &text);
        // A title that was not given comes from the path; the same plan named another way is the
        // same plan.
        if live.title.is_empty() {
            live.title = stem(&full);
        }
        let redactor = knowing(&context.redactor, &live, &context.settings.secret_names);
        let recorded = without_secrets(&live, &redactor);
        Ok(Self { path: recorded_path(root, &full), live, recorded })
    }

    /// Reads the plan of a run, if its file is still there.
    pub fn of_run(context: &Context, recorded_path: &str) -> Result<Option<Self>> {
        let full = context.project.root.join(recorded_path);
        if !full.exists() {
            return Ok(None);
        }
        let shown = full.strip_prefix(&context.cwd).map(Path::to_owned).unwrap_or(full);
        Self::read(context, &shown).map(Some)
    }

    /// What a run of this plan is called before the time is added.
    pub fn name(&self) -> String {
        let path = Path::new(&self.path);
        let stem = stem(path);
        let folder = path.parent().and_then(Path::file_name).map(|f| f.to_string_lossy());
        let name = match folder {
            Some(folder) if stem == "plan" => folder.into_owned(),
            _ => stem,
        };
        let safe: String =
            name.chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '-' }
                })
                .collect();
        let safe = safe.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
        if safe.is_empty() { "plan".to_owned() } else { safe.chars().take(40).collect() }
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The path as recorded: relative to the root, links resolved.
fn recorded_path(root: &Path, full: &Path) -> String {
    let real = full.canonicalize().unwrap_or_else(|_| full.to_owned());
    let root: PathBuf = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    real.strip_prefix(&root).unwrap_or(&real).to_string_lossy().into_owned()
}

/// The redactor that knows the secrets of a plan's own variables too.
pub fn knowing(redactor: &Redactor, plan: &Plan, names: &[String]) -> Redactor {
    let variables = plan.steps().flat_map(|(_, step)| &step.env);
    redactor.clone().and(variables.map(|(name, value)| (name.as_str(), value.as_str())), names)
}

/// The redactor for what a run wrote: it knows what this process knows, and what the plan's file
/// says as far as it can still be read.
pub fn redactor_of_run(context: &Context, recorded_path: &str) -> Redactor {
    let root = &context.project.root;
    let Ok(text) = std::fs::read_to_string(root.join(recorded_path)) else {
        return context.redactor.clone();
    };
    let input = Input {
        file: recorded_path,
        text: &text,
        settings: &context.settings,
        read: &|name| std::fs::read_to_string(root.join(name)),
    };
    match read_plan(&input) {
        Ok((plan, _)) => knowing(&context.redactor, &plan, &context.settings.secret_names),
        Err(_) => context.redactor.clone(),
    }
}

/// The plan with every secret replaced.
pub fn without_secrets(plan: &Plan, redactor: &Redactor) -> Plan {
    let mut plan = plan.clone();
    let clean = |text: &mut String| *text = redactor.redact(text).into_owned();
    let clean_command = |command: &mut Command| match command {
        Command::Shell(line) => clean(line),
        Command::Args(args) => args.iter_mut().for_each(clean),
    };
    for step in plan.phases.iter_mut().flat_map(|p| &mut p.lanes).flat_map(|l| &mut l.steps) {
        match &mut step.work {
            Work::Run(command) => clean_command(command),
            Work::Prompt { command, prompt, .. } => {
                clean_command(command);
                clean(prompt);
            }
        }
        step.test.iter_mut().for_each(clean_command);
        for (name, value) in &mut step.env {
            if is_secret_name(name) && value.len() >= VALUE_BYTES_MIN {
                REPLACEMENT.clone_into(value);
            } else {
                clean(value);
            }
        }
    }
    plan
}
