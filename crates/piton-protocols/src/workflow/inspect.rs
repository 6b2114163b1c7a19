//! The files of the workflow protocol for `piton inspect`: checkpoints, plans, task lists.

use serde_json::{Map, Value, json};

use super::checkpoint::{self, AutoResume, Checkpoint, VersionedName};
use super::phase_id::PhaseId;
use super::plan::{self, Phase, Plan};
use super::tasks::{self, TaskList};
use crate::format::{Claim, Format, Reading, Source};

/// The formats of the protocol; a task list has phases too, so it is asked before plans.
pub const FORMATS: &[Format] = &[
    Format { name: "workflow/checkpoint", claim: claim_checkpoint, read: read_checkpoint },
    Format { name: "workflow/tasks", claim: claim_tasks, read: read_tasks },
    Format { name: "workflow/plan", claim: claim_plan, read: read_plan },
];

/// How much of a file is read to recognize it: a checkpoint is far shorter.
const HEAD_BYTES: usize = 64 << 10;
/// The folder of checkpoints.
const FOLDER: &str = ".claude/data/checkpoints/";
/// Pairs of fields that only checkpoints of workflows have.
const FIELDS: [(&str, &str); 7] = [
    ("workflow_id", "current_phase"),
    ("workflow_id", "completed_phases"),
    ("workflow_type", "checkpoint_id"),
    ("workflow_type", "completed_phases"),
    ("plan_path", "completed_phases"),
    ("plan_file", "current_phase"),
    ("replan_history", "current_phase"),
];

fn claim_checkpoint(source: &Source<'_>) -> Claim {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    let mut end = text.len().min(HEAD_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    let has = |name: &str| head.contains(&format!("\"{name}\""));
    if head.starts_with('{') && FIELDS.iter().any(|(one, other)| has(one) && has(other)) {
        return Claim::Content;
    }
    let is_possible = head.is_empty() || head.starts_with('{');
    if is_possible && is_checkpoint_name(source) { Claim::Name } else { Claim::No }
}

/// Tells whether a file is named like a checkpoint: what is damaged is known by its name only.
fn is_checkpoint_name(source: &Source<'_>) -> bool {
    let name = source.name();
    let Some(stem) = name.strip_suffix(".json") else { return false };
    // The checkpoints of other protocols.
    if stem == "checkpoints" || stem.starts_with("checkpoint-") || stem == "latest" {
        return false;
    }
    let is_hash = stem.len() == 32 && stem.bytes().all(|b| b.is_ascii_hexdigit());
    source.file.replace('\\', "/").contains(FOLDER)
        || stem.starts_with("implement_")
        || stem.contains("ckpt")
        || stem.contains("checkpoint")
        || is_hash
        || VersionedName::read(&name).is_some()
}

fn read_checkpoint(source: &Source<'_>) -> Reading {
    let (found, problems) = checkpoint::inspect(source.file, source.text);
    let Some(found) = found else {
        return Reading { problems, data: Value::Null, summary: Vec::new() };
    };
    let plan = found.plan_path.as_deref().and_then(|path| (source.around.modified)(path));
    let resume = checkpoint::auto_resume(&found, source.around.now, plan);
    let (safe, reason) = match &resume {
        AutoResume::Safe => (true, None),
        AutoResume::Ask(reason) => (false, Some(reason.to_string())),
    };
    let replans: Map<String, Value> = found
        .replans
        .counts
        .iter()
        .map(|(phase, count)| (phase.to_string(), Value::from(*count)))
        .collect();
    let progress = &found.progress;
    let data = json!({
        "schema": found.schema,
        "status": found.health.status.as_ref().map(checkpoint::Status::as_str),
        "current_phase": progress.current.as_ref().map(PhaseId::to_json),
        "completed_phases": progress.completed.iter().map(PhaseId::to_json).collect::<Vec<_>>(),
        "total_phases": progress.total,
        "replans": replans,
        "auto_resume": { "safe": safe, "reason": reason },
    });
    Reading { problems, data, summary: checkpoint_summary(&found, reason.as_deref()) }
}

fn checkpoint_summary(found: &Checkpoint, reason: Option<&str>) -> Vec<String> {
    let plan = found.plan_path.as_deref().unwrap_or("no plan");
    let progress = &found.progress;
    let current = progress.current.as_ref().map_or("-", PhaseId::as_str);
    let total = progress.total.map_or_else(String::new, |total| format!(" of {total}"));
    let ids: Vec<&str> = progress.completed.iter().map(PhaseId::as_str).collect();
    let mut lines = vec![
        format!("checkpoint of {plan}, schema {}", found.schema),
        format!("phase {current}{total}, completed: {}", listed(&ids)),
    ];
    for (phase, count) in &found.replans.counts {
        lines.push(format!("phase {phase}: replanned {count} times"));
    }
    lines.push(match reason {
        None => "resumes without a question".to_owned(),
        Some(reason) => format!("asks before it resumes: {reason}"),
    });
    lines
}

fn listed(ids: &[&str]) -> String {
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

fn claim_plan(source: &Source<'_>) -> Claim {
    plan_claim(source.file, source.text)
}

/// How sure it is that a file is a plan.
pub(super) fn plan_claim(file: &str, text: &str) -> Claim {
    if file.to_lowercase().ends_with("pipeline-state.md") || !plan::is_plan(text) {
        return Claim::No;
    }
    // Such documents belong to features that go through stages, unless nobody claims them.
    let is_of_feature = |line: &str| {
        let title = line.trim_start_matches(['#', ' ']).to_ascii_lowercase();
        let is_one = ["constitution check", "completed stages", "stage ledger", "pipeline state"];
        line.starts_with('#') && is_one.iter().any(|own| title.starts_with(own))
    };
    if text.lines().any(is_of_feature) { Claim::Name } else { Claim::Content }
}

fn read_plan(source: &Source<'_>) -> Reading {
    let (found, problems) = plan::inspect(source.file, source.text);
    // Phases that wait for each other have no order; the problem names them.
    let waves = plan::waves(&found).unwrap_or_default();
    let resume_at = plan::resume_at(&found).unwrap_or_default();
    let ids = |ids: &[PhaseId]| ids.iter().map(PhaseId::to_string).collect::<Vec<_>>();
    let phase = |phase: &Phase| {
        json!({
            "id": phase.id.as_str(),
            "title": phase.title,
            "status": phase.status.as_str(),
            "depends_on": ids(phase.depends_on.as_deref().unwrap_or_default()),
            "tasks_done": phase.tasks_done(),
            "tasks_open": phase.tasks_open(),
        })
    };
    let data = json!({
        "phases": found.phases.iter().map(phase).collect::<Vec<_>>(),
        "waves": waves.iter().map(|wave| ids(wave)).collect::<Vec<_>>(),
        "resume_at": resume_at.as_ref().map(PhaseId::as_str),
    });
    Reading { problems, data, summary: plan_summary(&found, &waves, resume_at.as_ref()) }
}

fn plan_summary(found: &Plan, waves: &[Vec<PhaseId>], resume_at: Option<&PhaseId>) -> Vec<String> {
    let mut lines = vec![format!("plan: {}", found.title)];
    for phase in &found.phases {
        let Phase { id, title, .. } = phase;
        let status = phase.status.as_str().replace('_', " ");
        let (done, all) = (phase.tasks_done(), phase.tasks.len());
        lines.push(format!("  phase {id} ({title}): {status}, {done} of {all} tasks done"));
    }
    let wave = |ids: &Vec<PhaseId>| ids.iter().map(PhaseId::as_str).collect::<Vec<_>>().join(" ");
    lines.push(format!("waves: {}", waves.iter().map(wave).collect::<Vec<_>>().join(" | ")));
    lines.extend(resume_at.map(|id| format!("resumes at phase {id}")));
    lines
}

fn claim_tasks(source: &Source<'_>) -> Claim {
    if tasks::is_task_list(source.text) { Claim::Content } else { Claim::No }
}

fn read_tasks(source: &Source<'_>) -> Reading {
    let (found, problems) = tasks::inspect(source.file, source.text);
    let data = json!({
        "done": found.done(),
        "open": found.open(),
        "parallel": found.parallel(),
        "phases": found.phases.len(),
        "next": found.next().map(|task| &task.id),
    });
    Reading { problems, data, summary: tasks_summary(&found) }
}

fn tasks_summary(found: &TaskList) -> Vec<String> {
    let mut lines = vec![format!("{}: {} done, {} open", found.title, found.done(), found.open())];
    for phase in &found.phases {
        let id = phase.id.as_ref().map_or_else(String::new, |id| format!("phase {id}: "));
        let done = phase.tasks.iter().filter(|task| task.done).count();
        lines.push(format!("  {id}{}: {done} of {} done", phase.title, phase.tasks.len()));
    }
    lines.extend(found.next().map(|task| format!("next: {} {}", task.id, task.text)));
    lines
}
