//! The checkpoints of a run that hold files: one in full, or all in a line each.

use std::fmt::Write as _;

use piton_engine::{Loaded, Store};
use piton_workspace::snapshot;
use serde_json::{Value, json};

use super::run_view::{point_line, told};
use crate::commands::rewind::{self, Point};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui::{self, text, time};
use piton_core::text::short;

/// Checkpoints that a run is shown with, the newest; the rest is counted.
const LISTED_MAX: usize = 30;

/// Shows one checkpoint.
pub fn show(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    name: &str,
    lane: Option<&str>,
) -> Result<()> {
    let manual = told(store, loaded)?.points.into_iter().find(|p| p.name == name);
    let all = rewind::points(store, loaded)?;
    let found = rewind::named(&all, &loaded.state, name, lane);
    let run = &loaded.row.run_id;
    if manual.is_none() && found.is_empty() {
        let message = format!("run {run} has no checkpoint `{name}`");
        return Err(CommandError::usage("no-step", message)
            .hint(format!("`piton show {run}` lists its checkpoints")));
    }
    if context.json {
        let mut value =
            manual.map_or_else(|| json!({ "name": whole_name(&found, name) }), |m| json!(m));
        value["run_id"] = json!(run);
        let with_gone = |point: &Point| {
            let mut value = point_json(point);
            value["gone"] = json!(is_gone(context, point));
            value
        };
        value["snapshots"] = found.iter().map(with_gone).collect();
        ui::data_json(&value);
        return Ok(());
    }
    let mut out = match &manual {
        Some(point) => format!("checkpoint {}\n", point_line(point)),
        None => format!("checkpoint {}\n", text::sanitize(whole_name(&found, name))),
    };
    let _ = writeln!(out, "run        {run}");
    for point in &found {
        let _ = writeln!(out, "snapshot   {}", line(point));
        for missed in &point.degraded {
            let (path, why) = (text::sanitize(&missed.path), text::sanitize(&missed.why));
            let _ = writeln!(out, "  not in it: {path} ({why})");
        }
        if is_gone(context, point) {
            let _ = writeln!(out, "  gone: its ref was deleted, and git has collected it");
            continue;
        }
        for verb in ["diff", "restore"] {
            let command = format!("piton {verb} {} --run {run}", short(&point.commit));
            let _ = writeln!(out, "  {verb:<10} {}", ui::here::told(&command));
        }
    }
    ui::data(out.trim_end());
    Ok(())
}

/// Whether the repository does not have the files of a checkpoint any more.
fn is_gone(context: &Context, point: &Point) -> bool {
    snapshot::is_there(&context.project.root, &point.commit).is_ok_and(|there| !there)
}

/// What a checkpoint is called in full, whatever part of its name was written.
fn whole_name<'a>(found: &'a [Point], written: &'a str) -> &'a str {
    match found {
        [one] => &one.name,
        _ => written,
    }
}

/// All checkpoints of a run as data.
pub fn all_json(store: &mut Store, loaded: &Loaded) -> Result<Value> {
    Ok(rewind::points(store, loaded)?.iter().map(point_json).collect())
}

/// All checkpoints of a run, a line each; those that do not hold all say so.
pub fn push_all(out: &mut String, store: &mut Store, loaded: &Loaded) -> Result<()> {
    let all = rewind::points(store, loaded)?;
    let older = all.len().saturating_sub(LISTED_MAX);
    if older > 0 {
        let all = ui::here::told("`piton show --json`");
        let _ = writeln!(out, "snapshot {older} older ones ({all} has them all)");
    }
    for point in all.iter().skip(older) {
        let _ = writeln!(out, "snapshot {}", line(point));
    }
    Ok(())
}

fn line(point: &Point) -> String {
    let place = point.lane.as_ref().map_or("the project".to_owned(), ToString::to_string);
    let (name, commit) = (text::sanitize(&point.name), short(&point.commit));
    let degraded = match point.degraded.len() {
        0 => String::new(),
        missed => format!(", degraded: {} not in it", text::count(missed, "path")),
    };
    format!("{name} of {place} at {}: {commit}{degraded}", time::local(point.at))
}

fn point_json(point: &Point) -> Value {
    json!({
        "name": point.name,
        "lane": point.lane.as_ref().map(ToString::to_string),
        "commit": point.commit,
        "at": time::rfc3339(point.at),
        "degraded": point.degraded,
    })
}
