//! Which file is the checkpoint of a plan: any of the names that tools give it, if it is about this plan.

use piton_core::Timestamp;
use piton_core::plan::Plan;
use piton_formats::Diagnostic;

use super::checkpoint::{self, Checkpoint, VersionedName, workflow_ids};
use super::settings::Settings;
use crate::protocol::Source;
use crate::time;

/// Most files with the name of an older form that are looked at: the newest are the last by name.
const LOOKED_AT_MAX: usize = 200;

/// The checkpoint of a plan.
#[derive(Debug)]
pub(super) struct Record {
    /// The path to write it to, from the project's root.
    pub(super) path: String,
    /// Where it is, if it has the name of an older form.
    pub(super) from: Option<String>,
    /// What it says, or why it cannot be read; `None` if there is no file.
    pub(super) found: Option<Result<Checkpoint, Box<Diagnostic>>>,
}

/// Finds the checkpoint of a plan; without one, the path to write it to.
pub(super) fn find(source: &Source<'_>) -> Record {
    let settings = Settings::of(source.settings);
    let folder = settings.checkpoints();
    let names = names(source.path, source.file);
    let there = (source.list)(folder);
    let versioned = versioned(&there);
    let mut free = None;
    let mut best: Option<(Option<Timestamp>, String, Checkpoint)> = None;
    for (index, name) in names.iter().chain(&versioned).enumerate() {
        let path = format!("{folder}/{name}");
        let text = there.contains(name).then(|| (source.read)(&path).ok()).flatten();
        let Some(text) = text else {
            free = free.or((index < names.len()).then_some(path));
            continue;
        };
        match checkpoint::read(&path, &text) {
            Ok(found) if is_about(&found, source.path) => {
                let written = found.times.written();
                if best.as_ref().is_none_or(|(newest, ..)| written > *newest) {
                    best = Some((written, path, found));
                }
            }
            // The name says whose it is; of an older form nobody can tell.
            Err(problem) if index < names.len() => {
                return Record { path, from: None, found: Some(Err(problem)) };
            }
            Ok(_) | Err(_) => {}
        }
    }
    let Some((_, path, found)) = best else {
        let path = free.unwrap_or_else(|| unused(folder, &names));
        return Record { path, from: None, found: None };
    };
    let to = free.filter(|_| VersionedName::read(name(&path)).is_some());
    let from = to.is_some().then(|| path.clone());
    Record { path: to.unwrap_or(path), from, found: Some(Ok(found)) }
}

/// The names of the checkpoint of a plan: those of its path, and of the path as it was typed.
fn names(path: &str, typed: &str) -> Vec<String> {
    let mut ids = workflow_ids(path);
    ids.extend(workflow_ids(typed).pop().filter(|id| !ids.contains(id)));
    ids.into_iter().map(|id| format!("{id}.json")).collect()
}

/// Where to write if every name belongs to another plan.
fn unused(folder: &str, names: &[String]) -> String {
    format!("{folder}/{}", names.last().map_or("workflow.json", String::as_str))
}

/// The files with the name of an older form, the newest first.
fn versioned(names: &[String]) -> Vec<String> {
    let stamped = |name: &String| Some((VersionedName::read(name)?.stamp, name.clone()));
    let mut found: Vec<(String, String)> = names.iter().filter_map(stamped).collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.into_iter().take(LOOKED_AT_MAX).map(|(_, name)| name).collect()
}

/// Tells whether a checkpoint is about a plan, by the path that it names.
pub(super) fn is_about(found: &Checkpoint, plan_path: &str) -> bool {
    let Some(named) = found.plan_path.as_deref() else { return false };
    let (named, own) = (named.trim_start_matches("./"), plan_path.trim_start_matches("./"));
    named == own || named.strip_suffix(own).is_some_and(|rest| rest.ends_with('/'))
}

/// The id of the workflow that a checkpoint is named after.
pub(super) fn id(path: &str) -> &str {
    let name = name(path);
    name.strip_suffix(".json").unwrap_or(name)
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The checkpoint of a plan and the name it gets when another takes its place.
pub(super) fn aside(plan: &Plan, at: Timestamp) -> Vec<(String, String)> {
    let renamed = |path: &String| {
        let stem = path.strip_suffix(".json").unwrap_or(path);
        (path.clone(), format!("{stem}.{}.json", time::stamp(at)))
    };
    plan.record.as_ref().map(renamed).into_iter().collect()
}
