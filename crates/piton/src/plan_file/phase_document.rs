//! Phase documents as plans: what they leave open is asked, or said.

use std::path::Path;

use piton_core::LanePath;
use piton_core::hash::Sha;
use piton_core::lane::TaskWorktrees;
use piton_formats::plan::PROMPT_BYTES_MAX;
use piton_protocols::lanes::phase::{self, HoldKind, PlanDefaults};

use super::{PlanFile, is_news, not_told};
use crate::commands::document_error;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use piton_world::read;

/// Reads a phase document.
pub fn read(
    context: &Context,
    shown: &Path,
    full: &Path,
    text: &str,
    (tasks, asks): (TaskWorktrees, bool),
) -> Result<PlanFile> {
    let file = shown.display().to_string();
    // Only made where something is said: it costs more than reading a good document.
    let redactor = || context.redactor_of_text(text);
    let refused = |problems: Vec<_>| document_error(&problems, text, context.json, &redactor());
    let (document, warnings) = phase::read(&file, text).map_err(refused)?;
    let warnings = not_told(warnings);
    if !warnings.is_empty() {
        ui::diagnostics(&warnings, text, &redactor());
    }
    let mut defaults = PlanDefaults::new(&context.settings);
    defaults.task_worktrees = tasks;
    if let Some(path) = &context.settings.lanes.task_prompt {
        let template = read::text(&context.project.root.join(path), PROMPT_BYTES_MAX);
        defaults.task_prompt = Some(template.map_err(|e| {
            CommandError::usage("plan-unreadable", format!("{path}: {e}"))
                .hint("it is named by `lanes.task_prompt` in piton.toml")
        })?);
    }
    let planned = phase::to_plan(&file, text, &document, &defaults);
    let mut planned = planned.map_err(refused)?;
    let mut lanes = planned.plan.phases.iter().flat_map(|p| &p.lanes);
    if context.project.git_dir.is_none() && lanes.any(|l| !l.rules.isolation.is_in_place()) {
        let message = "lanes work in git worktrees, and this project has no git";
        return Err(CommandError::new(Kind::Blocked, "needs-git", message)
            .hint("run `git init` and make a first commit")
            .hint("or write isolation = \"in-place\" below [defaults] in piton.toml"));
    }
    if document.needs_confirmation && asks {
        let lanes: Vec<&str> = document.lanes.iter().map(|l| l.id.as_str()).collect();
        confirm(
            context,
            &format!("{file} has no lane index; are its lanes {}?", lanes.join(", ")),
            "add a `## Lane Index & Dependencies`",
        )?;
    }
    for hold in planned.holds.iter().filter(|hold| hold.kind == HoldKind::Unknown && asks) {
        let (lane, name) = (&hold.lane, ui::text::sanitize(&hold.name));
        confirm(
            context,
            &format!("{lane} depends on \"{name}\", which is no lane, gate or phase; is it done?"),
            "correct its `Depends on`",
        )?;
    }
    for (lane, why) in planned.mixed.iter().filter(|_| asks) {
        let beside = is_safe_beside(context, lane, why);
        let lanes = planned.plan.phases.iter_mut().flat_map(|p| &mut p.lanes);
        for found in lanes.filter(|l| l.id == *lane) {
            found.rules.alone = !beside;
        }
    }
    let mut plan = PlanFile::of(context, full, planned.plan)?;
    // The plan's own name of the phase: that of the document may be none that a plan can have.
    let phase_id = phase::plan_id(&document.id);
    for hold in planned.holds {
        let lane = LanePath { phase: phase_id.clone(), lane: hold.lane.clone() };
        if hold.kind == HoldKind::Phase {
            plan.needed_phases.push((lane.clone(), hold.name.clone()));
        }
        match hold.kind {
            HoldKind::OpenGate => plan.open_gates.entry(lane).or_default().push(hold.name),
            HoldKind::Unknown if asks => {}
            HoldKind::Phase | HoldKind::Unknown => {
                let name = ui::text::sanitize(&hold.name);
                let line = format!(
                    "{lane} depends on {name}, which this document does not hold: see that it is done"
                );
                if is_news(line.clone()) {
                    ui::say(&line);
                }
            }
        }
    }
    plan.ticked = Some((document.ticked(), Sha::of(text.as_bytes())));
    plan.phase = Some(document.id);
    Ok(plan)
}

fn confirm(context: &Context, question: &str, otherwise: &str) -> Result<()> {
    if context.yes {
        return Ok(());
    }
    if context.interactive && !context.json {
        let answer = ui::ask(question, &[('y', "yes"), ('n', "no")], Some('n'), &mut || false);
        if answer == Some('y') {
            return Ok(());
        }
    }
    Err(CommandError::new(Kind::Waiting, "not-confirmed", question.to_owned())
        .hint(format!("say `--yes`, or {otherwise}")))
}

/// Whether a lane that is safe beside others only in part may run beside them. Alone is always safe.
fn is_safe_beside(context: &Context, lane: &str, why: &str) -> bool {
    let why = ui::text::sanitize(why);
    if context.interactive && !context.json && !context.yes {
        let question =
            format!("{lane} is safe beside other lanes only in part ({why}). Beside them?");
        let answer = ui::ask(&question, &[('y', "yes"), ('n', "no")], Some('n'), &mut || false);
        return answer == Some('y');
    }
    ui::say(&format!("{lane} is safe beside other lanes only in part ({why}): it runs alone"));
    false
}
