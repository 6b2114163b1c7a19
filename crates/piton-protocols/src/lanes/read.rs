//! Reads phase documents as plans; what they leave open becomes questions.

use std::path::Path;

use piton_core::refusal::Refusal;
use piton_core::{LanePath, Plan, remedy};
use piton_formats::template::Given;

use super::Lanes;
use super::phase::{self, HoldKind, Phase, PlanDefaults, Planned};
use crate::protocol::{
    Need, Otherwise, Protocol as _, Question, Reading, Source, Starting, Unreadable,
};

/// Reads a phase document.
pub fn read(source: &Source<'_>) -> Result<Reading, Unreadable> {
    let (file, text) = (source.file, source.text.unwrap_or_default());
    let (document, warnings) = phase::read(file, text)?;
    let mut defaults = PlanDefaults::new(source.settings);
    defaults.task_worktrees = source.task_worktrees.unwrap_or(defaults.task_worktrees);
    if let Some(path) = &source.settings.lanes.task_prompt {
        let template = (source.read)(path).map_err(|e| {
            let refusal = Refusal::new("plan-unreadable", format!("{path}: {e}"));
            let remedy = "create it, or correct `lanes.task_prompt` in piton.toml";
            Unreadable::Refused(refusal.or(remedy))
        });
        defaults.task_prompt = Some(template?);
    }
    let planned = phase::to_plan(file, text, &document, &defaults)
        .map_err(|problems| [warnings.clone(), problems].concat())?;
    let mut lanes = planned.plan.phases.iter().flat_map(|p| &p.lanes);
    if !source.git && lanes.any(|l| !l.rules.isolation.is_in_place()) {
        return Err(Unreadable::Blocked(needs_git()));
    }
    let questions = questions(file, &document, &planned);
    let mut reading = Reading::new(planned.plan, warnings);
    for hold in planned.holds {
        let lane = path(&document, &hold.lane);
        match hold.kind {
            HoldKind::OpenGate => reading.open_gates.entry(lane).or_default().push(hold.name),
            HoldKind::Phase => reading.needs.push(Need { lane, name: hold.name }),
            HoldKind::Unknown => {}
        }
    }
    reading.name = Some(document.id);
    reading.questions = questions;
    Ok(reading)
}

/// What the attempts of a phase document are given: where the document is.
pub fn given(starting: &Starting<'_>) -> Given {
    let state = starting.state;
    if state.protocol.reader != Lanes.id() {
        return Given::default();
    }
    let path = Path::new(&state.root).join(&state.plan_path).display().to_string();
    Given {
        context: [("document".to_owned(), path.clone())].into(),
        env: [("PITON_DOCUMENT".to_owned(), path)].into(),
        ..Given::default()
    }
}

fn needs_git() -> Refusal {
    Refusal::new("needs-git", "lanes work in git worktrees, but this is not a git repository")
        .or(remedy![Words "run ", Shell "git init", Words " and make a first commit"])
        .or("set `isolation = \"in-place\"` in [defaults] of piton.toml")
}

/// A lane by its name in the plan, which may differ from the one in the document.
fn path(document: &Phase, lane: &str) -> LanePath {
    LanePath { phase: phase::plan_id(&document.id), lane: lane.to_owned() }
}

fn questions(file: &str, document: &Phase, planned: &Planned) -> Vec<Question> {
    let mut found = Vec::new();
    if document.needs_confirmation {
        let lanes: Vec<&str> = document.lanes.iter().map(|l| l.id.as_str()).collect();
        let instead = "add a `## Lane Index & Dependencies`";
        found.push(Question {
            text: format!("{file} has no lane index; are its lanes {}?", lanes.join(", ")),
            otherwise: Otherwise::Stop { instead, unasked: None },
        });
    }
    for hold in planned.holds.iter().filter(|hold| hold.kind == HoldKind::Unknown) {
        let (lane, name) = (&hold.lane, &hold.name);
        let need = Need { lane: path(document, lane), name: name.clone() };
        let unasked = Some(need.words());
        found.push(Question {
            text: format!(
                "{lane} depends on \"{name}\", which is not a lane, gate or phase. Is it done?"
            ),
            otherwise: Otherwise::Stop { instead: "correct its `Depends on`", unasked },
        });
    }
    for (lane, why) in &planned.mixed {
        let part = format!("{lane} is only partly safe to run beside other lanes ({why})");
        let (lane, said) = (path(document, lane), format!("{part}, so it runs alone"));
        found.push(Question {
            text: format!("{part}. Run it beside them?"),
            otherwise: Otherwise::Alone { lane, said },
        });
    }
    found
}

/// Restores the needs of the recorded plan that are gone because a lane closed its gate since: a
/// ticked box does not change the plan.
pub fn keep_recorded_needs(plan: &mut Plan, recorded: &Plan) {
    let provides =
        |path: &LanePath| recorded.lane(path).is_some_and(|l| !l.rules.provides.is_empty());
    for phase in &mut plan.phases {
        for lane in &mut phase.lanes {
            let path = LanePath { phase: phase.id.clone(), lane: lane.id.clone() };
            let Some(old) = recorded.lane(&path) else { continue };
            let only_less = lane.needs.iter().all(|n| old.needs.contains(n))
                && old.needs.iter().all(|n| lane.needs.contains(n) || provides(n));
            if only_less {
                lane.needs.clone_from(&old.needs);
                lane.rules.frozen.clone_from(&old.rules.frozen);
                lane.rules.alone = old.rules.alone;
            }
        }
    }
}
