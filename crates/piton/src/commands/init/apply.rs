//! The plan of `init`: what each file is and becomes; shown first, then carried out.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use piton_view::answers::FileChange;
use piton_world::{read, write};

use super::edit::{Edit, What};
use super::record::{Places, Record};
use crate::cli::InitArgs;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

/// Most bytes of a file of settings.
const BYTES_MAX: usize = 4 << 20;

/// What happens to a file.
pub(super) struct Step {
    path: PathBuf,
    shown: String,
    before: Option<String>,
    after: Option<String>,
    /// Whether the file is ours as a whole.
    is_own: bool,
    is_undo: bool,
    /// Whether other projects go on using it.
    is_left: bool,
}

impl Step {
    fn change(&self) -> &'static str {
        match (&self.before, &self.after) {
            (before, after) if before == after => "unchanged",
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    fn is_change(&self) -> bool {
        self.before != self.after
    }

    /// What a program is told of it.
    pub(super) fn answer(&self) -> FileChange {
        FileChange { path: self.shown.clone(), change: self.change() }
    }

    /// The change for a person: the file, and its lines that go and come.
    fn words(&self) -> Vec<String> {
        let mut lines = vec![format!("{} {}", self.change(), self.shown)];
        if self.is_own {
            return lines;
        }
        let (old, new) = (self.before.as_deref(), self.after.as_deref());
        let old: Vec<&str> = old.unwrap_or_default().lines().collect();
        let new: Vec<&str> = new.unwrap_or_default().lines().collect();
        let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let (old, new) = (&old[same..], &new[same..]);
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        lines.extend(old[..old.len() - tail].iter().map(|line| format!("  - {line}")));
        lines.extend(new[..new.len() - tail].iter().map(|line| format!("  + {line}")));
        lines
    }
}

/// What setting up changes.
pub(super) fn to_do(context: &Context, places: &Places<'_>, edits: &[Edit]) -> Result<Vec<Step>> {
    edits
        .iter()
        .map(|Edit { path, what }| {
            let (before, shown) = (text(path)?, shown(context, path));
            let record = Record::read(places, path);
            let after = what
                .add(&shown, before.as_deref(), record.as_ref())
                .map_err(|why| odd(&shown, &why))?;
            let is_own = matches!(what, What::Own(_));
            Ok(Step {
                path: path.clone(),
                shown,
                before,
                after: Some(after),
                is_own,
                is_undo: false,
                is_left: false,
            })
        })
        .collect()
}

/// What taking it back changes: exactly what was done, or, if somebody changed a file since, what is
/// ours in it.
pub(super) fn to_undo(context: &Context, places: &Places<'_>, edits: &[Edit]) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for Edit { path, what } in edits {
        let Some(record) = Record::read(places, path) else { continue };
        if !record.is_used_here(places) {
            continue;
        }
        let (before, shown) = (text(path)?, shown(context, path));
        let is_left = record.is_used_elsewhere(places);
        let after = match &before {
            None => None,
            Some(now) if is_left => Some(now.clone()),
            Some(now) if *now == record.after => record.before,
            Some(now) => what
                .take_out(&shown, now, record.before.as_deref())
                .map_err(|why| odd(&shown, &why))?,
        };
        let is_own = matches!(what, What::Own(_));
        if is_left {
            ui::say(format!("kept {shown}, which other projects use"));
        } else if is_own && after.is_some() && after == before {
            ui::say(format!("kept {shown}, which somebody changed"));
        }
        steps.push(Step {
            path: path.clone(),
            shown,
            before,
            after,
            is_own,
            is_undo: true,
            is_left,
        });
    }
    // What was made last goes first, so that folders are empty when their turn comes.
    steps.reverse();
    Ok(steps)
}

/// Shows the plan, asks, and does it; tells whether anything was to be done and is.
pub(super) fn carry_out(
    context: &Context,
    places: &Places<'_>,
    steps: &[Step],
    args: &InitArgs,
) -> Result<bool> {
    let changes = || steps.iter().filter(|step| step.is_change());
    if changes().next().is_none() {
        ui::say("nothing to change");
    }
    changes().flat_map(Step::words).for_each(|line| ui::say(line.as_str()));
    if args.dry_run {
        return Ok(false);
    }
    let is_asked = changes().next().is_some() && !context.yes;
    if is_asked && !context.can_ask() {
        let message = "these changes need your consent";
        return Err(CommandError::new(Kind::Waiting, "not-confirmed", message)
            .hint("add `--yes` to make them, or `--dry-run` to see them only"));
    }
    if is_asked && !context.confirms("Make these changes?") {
        ui::say("nothing was changed");
        return Ok(false);
    }
    for step in steps {
        one(places, step).map_err(|error| {
            CommandError::failed("world", format!("{}: {error}", step.shown))
                .hint("check that you own the folder and that the disk has space")
        })?;
    }
    Ok(true)
}

fn one(places: &Places<'_>, step: &Step) -> io::Result<()> {
    if step.is_change() {
        if let (false, Some(after)) = (step.is_undo, &step.after) {
            Record::begin(places, &step.path, step.before.as_deref(), after)?;
            step.path.parent().map_or(Ok(()), fs::create_dir_all)?;
        }
        match &step.after {
            Some(after) => write::replace(&step.path, after.as_bytes())?,
            None => fs::remove_file(&step.path)?,
        }
    }
    match Record::read(places, &step.path) {
        Some(record) if !step.is_undo => record.used(places, true),
        Some(record) if step.is_left => record.used(places, false),
        Some(record) => record.end(),
        None => Ok(()),
    }
}

fn text(path: &Path) -> Result<Option<String>> {
    match read::text(path, BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(odd(&path.display().to_string(), &error)),
    }
}

fn odd(file: &str, why: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(Kind::Blocked, "agent-settings", format!("{file}: {why}"))
        .hint("fix this file, then run the command again; nothing was changed")
}

/// A path as a person would write it here.
fn shown(context: &Context, path: &Path) -> String {
    let within = path.strip_prefix(&context.project.root).unwrap_or(path);
    within.display().to_string()
}
