//! Phase documents as plans, with what they leave open as questions.

use piton_core::{LanePath, Plan};

use super::phase::{self, HoldKind, Phase, PlanDefaults, Planned};
use crate::protocol::{Need, Otherwise, Question, Reading, Refusal, Source, Unreadable};

/// Reads a phase document.
pub fn read(source: &Source<'_>) -> Result<Reading, Unreadable> {
    let (file, text) = (source.file, source.text.unwrap_or_default());
    let (document, warnings) = phase::read(file, text)?;
    let mut defaults = PlanDefaults::new(source.settings);
    defaults.task_worktrees = source.task_worktrees.unwrap_or(defaults.task_worktrees);
    if let Some(path) = &source.settings.lanes.task_prompt {
        let template = (source.read)(path).map_err(|e| Refusal {
            code: "plan-unreadable",
            blocked: false,
            cause: format!("{path}: {e}"),
            remedies: vec!["it is named by `lanes.task_prompt` in piton.toml".to_owned()],
        });
        defaults.task_prompt = Some(template.map_err(Unreadable::Refused)?);
    }
    let planned = phase::to_plan(file, text, &document, &defaults)
        .map_err(|problems| [warnings.clone(), problems].concat())?;
    let mut lanes = planned.plan.phases.iter().flat_map(|p| &p.lanes);
    if !source.git && lanes.any(|l| !l.rules.isolation.is_in_place()) {
        return Err(Unreadable::Refused(needs_git()));
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

fn needs_git() -> Refusal {
    Refusal {
        code: "needs-git",
        blocked: true,
        cause: "lanes work in git worktrees, and this project has no git".to_owned(),
        remedies: vec![
            "run `git init` and make a first commit".to_owned(),
            "or write isolation = \"in-place\" below [defaults] in piton.toml".to_owned(),
        ],
    }
}

/// A lane by the plan's own names: those of the document may be none that a plan can have.
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
                "{lane} depends on \"{name}\", which is no lane, gate or phase; is it done?"
            ),
            otherwise: Otherwise::Stop { instead: "correct its `Depends on`", unasked },
        });
    }
    for (lane, why) in &planned.mixed {
        let part = format!("{lane} is safe beside other lanes only in part ({why})");
        let (lane, said) = (path(document, lane), format!("{part}: it runs alone"));
        found.push(Question {
            text: format!("{part}. Beside them?"),
            otherwise: Otherwise::Alone { lane, said },
        });
    }
    found
}

/// Gives a plan the needs of the recorded one that a gate, closed since by the lane that provides it,
/// has taken away: a ticked box is no change of the plan.
pub fn with_gates_of(plan: &mut Plan, recorded: &Plan) {
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
