//! `piton init`: sets up agent programs, or makes the files of a new plan.
//!
//! What is set up is first a plan that a person sees. It is merged into what is there, and recorded, so
//! that `--undo` takes back exactly that.

mod apply;
mod claude;
mod codex;
mod edit;
mod gemini;
mod opencode;
mod plan;
mod record;
mod words;

use std::path::PathBuf;

use piton_agents::hook::Caller;
use piton_formats::settings::agents::built_in;
use piton_view::answers::{FileChange, SetUp};
use piton_world::installed;

use crate::cli::InitArgs;
use crate::context::Context;
use crate::environment::{self, environment};
use crate::error::{CommandError, Result};
use crate::ui;
use edit::Edit;

/// The word for all programs.
const ALL: &str = "all";

/// Where programs look for their files.
struct Places {
    /// The project.
    root: PathBuf,
    /// Codex's folder.
    codex: PathBuf,
    /// Gemini CLI's folder.
    gemini: PathBuf,
    /// opencode's folder.
    opencode: PathBuf,
}

/// What a program needs: edits of files, and what a person must still do.
struct Setting {
    edits: Vec<Edit>,
    next: Vec<String>,
}

/// The names of the programs.
fn names() -> Vec<&'static str> {
    Caller::ALL.into_iter().map(Caller::as_str).collect()
}

/// Sets up programs, takes that back, or makes a plan.
pub fn run(context: &Context, args: &InitArgs) -> Result<()> {
    super::request::refuse_any_step(context)?;
    let callers = match args.kind.as_deref() {
        None if args.undo => Caller::ALL.to_vec(),
        None => found(context)?,
        Some(ALL) => Caller::ALL.to_vec(),
        Some(kind) => match Caller::find(kind) {
            Some(caller) => vec![caller],
            None => return plan::run(context, kind, args),
        },
    };
    let places = places(context)?;
    let set_up = |caller: &Caller| match caller {
        Caller::Claude => claude::setting(&places),
        Caller::Codex => codex::setting(&places),
        Caller::Gemini => gemini::setting(&places),
        Caller::Opencode => opencode::setting(&places),
    };
    let settings: Vec<Setting> = callers.iter().map(set_up).collect();
    let edits: Vec<Edit> = settings.iter().flat_map(|setting| setting.edits.clone()).collect();
    let records = record::Places {
        state_dir: &context.project.state_dir,
        shared: vec![places.codex.clone(), places.gemini.clone(), places.opencode.clone()],
    };
    let steps = if args.undo {
        apply::to_undo(context, &records, &edits)?
    } else {
        apply::to_do(context, &records, &edits)?
    };
    let is_done = apply::carry_out(context, &records, &steps, args)?;
    let next: Vec<String> = if args.undo || !is_done {
        Vec::new()
    } else {
        settings.into_iter().flat_map(|setting| setting.next).chain(missing()).collect()
    };
    let changes: Vec<FileChange> = steps.iter().map(apply::Step::answer).collect();
    let programs = callers.into_iter().map(Caller::as_str).collect();
    let (dry_run, undo) = (args.dry_run, args.undo);
    let answer = SetUp { programs, changes: &changes, dry_run, undo, next: next.clone() };
    if context.json {
        ui::data_json(&answer);
    } else {
        for line in &next {
            ui::say(format!("next: {line}"));
        }
    }
    Ok(())
}

/// The programs that are installed.
fn found(context: &Context) -> Result<Vec<Caller>> {
    let environment = environment();
    let place = installed::Place {
        inherited: &environment.inherited,
        home: environment.home.as_deref(),
        root: &context.project.root,
    };
    let known: Vec<_> = built_in().into_values().map(|agent| agent.rules).collect();
    let found = installed::agents(&known, &place, installed::Question::Version)
        .into_iter()
        .map(|found| found.seen);
    let found = found.filter(|seen| seen.path.is_some());
    let found: Vec<Caller> = found.filter_map(|seen| Caller::find(seen.id)).collect();
    if found.is_empty() {
        return Err(CommandError::usage("no-agent", "no agent program was found on this machine")
            .hint(format!("name one: {}, all", names().join(", "))));
    }
    Ok(found)
}

fn places(context: &Context) -> Result<Places> {
    let Some(home) = environment().home.clone() else {
        return Err(CommandError::usage("no-home", "the home folder is not known")
            .hint("set the variable HOME"));
    };
    let folder = |variable: &str, usual: &str| {
        environment::folder(variable).unwrap_or_else(|| home.join(usual))
    };
    Ok(Places {
        root: context.project.root.clone(),
        codex: folder("CODEX_HOME", ".codex"),
        gemini: home.join(".gemini"),
        opencode: folder("XDG_CONFIG_HOME", ".config").join("opencode"),
    })
}

/// What is said if programs would not find Piton.
fn missing() -> Option<String> {
    let is_there = environment::on_path("piton");
    (!is_there).then(|| "put `piton` on your PATH: agent programs call it by that name".to_owned())
}
