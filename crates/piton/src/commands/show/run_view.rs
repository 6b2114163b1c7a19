//! A run in full: where it stands, what it was made from, what it used, who decided what.

use std::fmt::Write as _;

use piton_core::budget::{dollars, size};
use piton_core::event::{Event, FileHash, GateDecided};
use piton_core::request::gates;
use piton_core::state::RunState;
use piton_core::{Millis, Plan, Timestamp};
use piton_engine::{Loaded, Store};
use piton_workspace::refs;
use piton_workspace::snapshot::{self, Costs};
use serde::Serialize;
use serde_json::json;

use super::point_view;
use crate::context::{Context, now};
use crate::error::Result;
use crate::ui::{self, Look, text, time};

/// Most artifacts that a decision names to a person; `--json` names all.
const ARTIFACTS_NAMED_MAX: usize = 10;

/// A checkpoint as shown.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    pub(super) name: String,
    message: String,
    by: String,
    at: String,
    head: Option<String>,
}

/// A decision as shown.
#[derive(Debug, Serialize)]
struct Decided {
    gate: String,
    approved: bool,
    by: String,
    message: String,
    at: String,
    plan_hash: String,
    artifacts: Vec<FileHash>,
    /// By whom it was taken back, when and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_back: Option<String>,
}

/// A changed plan or spec that was accepted, as shown.
#[derive(Debug, Serialize)]
struct Accepted {
    what: &'static str,
    from: Option<String>,
    to: Option<String>,
    by: String,
    at: String,
}

/// What only the events tell.
#[derive(Default)]
pub(super) struct Told {
    pub(super) points: Vec<Point>,
    decided: Vec<Decided>,
    accepted: Vec<Accepted>,
    ticks: Vec<Ticked>,
}

/// Ticks of a phase document as shown.
#[derive(Debug, Serialize)]
struct Ticked {
    gates: Vec<String>,
    counts: bool,
    by: String,
    at: String,
    document: Option<String>,
}

/// One budget: name, what was used, what is allowed.
type Budget = (&'static str, String, String);

/// Shows a run.
pub fn show(context: &Context, store: &mut Store, loaded: &Loaded) -> Result<()> {
    let told = told(store, loaded)?;
    let plan = store.plan(&loaded.state).ok();
    let lives = Context::driver_lives(&loaded.row);
    if context.json {
        let mut value =
            serde_json::to_value(ui::status_json::status(loaded, lives, &[])).unwrap_or_default();
        let state = &loaded.state;
        value["plan_hash"] = json!(state.plan_hash);
        value["spec"] = json!(state.spec);
        value["root"] = json!(state.root);
        value["head"] = json!(state.head);
        value["checkpoints"] = json!(told.points);
        value["snapshots"] = point_view::all_json(store, loaded)?;
        value["gates"] = json!(gates_json(state, &told));
        value["accepted"] = json!(told.accepted);
        value["ticks"] = json!(told.ticks);
        value["budgets"] = json!(
            budgets(state, plan.as_ref())
                .into_iter()
                .map(|(name, used, limit)| json!({ "name": name, "used": used, "limit": limit }))
                .collect::<Vec<_>>()
        );
        if let Some(costs) = snapshot_costs(context, loaded) {
            value["snapshot_costs"] = json!({ "objects": costs.objects, "bytes": costs.bytes });
        }
        value["logs"] = json!(context.run_dir(&loaded.row.run_id).join("logs"));
        ui::data_json(&value);
        return Ok(());
    }
    let look = Look::stdout();
    let mut out = ui::tree::render(loaded, lives, &[], now(), &look);
    out.push('\n');
    origin(&mut out, context, loaded);
    push_gates(&mut out, &loaded.state, &told);
    for accepted in &told.accepted {
        let _ = writeln!(out, "{}", accepted_line(accepted));
    }
    for tick in &told.ticks {
        let _ = writeln!(out, "ticked {}", tick_line(tick));
    }
    for point in &told.points {
        let _ = writeln!(out, "checkpoint {}", point_line(point));
    }
    point_view::push_all(&mut out, store, loaded)?;
    if let Some(costs) = snapshot_costs(context, loaded) {
        let (objects, bytes) = (costs.objects, size(costs.bytes));
        let _ = writeln!(out, "snapshots take {bytes} ({objects} objects of their own)");
    }
    out.push_str("budgets used\n");
    for (name, used, limit) in budgets(&loaded.state, plan.as_ref()) {
        let _ = writeln!(out, "  {name:14} {used} of {limit}");
    }
    ui::data(out.trim_end());
    Ok(())
}

pub(super) fn told(store: &mut Store, loaded: &Loaded) -> Result<Told> {
    let mut told = Told::default();
    store.each_event(&loaded.row, 0, |_, at, event| match event {
        Event::CheckpointRecorded(e) => told.points.push(Point {
            name: e.name.clone(),
            message: e.message.clone(),
            by: e.by.clone(),
            at: time::rfc3339(at),
            head: e.head.clone(),
        }),
        Event::GateDecided(e) => told.decided.push(decided(e, at)),
        Event::GateReopened(e) => {
            let words = format!("taken back by {} at {}: {}", e.by, time::rfc3339(at), e.why);
            if let Some(last) = told.decided.iter_mut().rev().find(|d| d.gate == e.gate.0) {
                last.taken_back = Some(words);
            }
        }
        Event::PlanAccepted(e) => told.accepted.push(Accepted {
            what: "plan",
            from: Some(e.from.to_string()),
            to: Some(e.to.to_string()),
            by: e.by.clone(),
            at: time::rfc3339(at),
        }),
        Event::SpecAccepted(e) => told.accepted.push(Accepted {
            what: "spec",
            from: e.from.as_ref().map(|f| f.sha256.to_string()),
            to: e.to.as_ref().map(|f| f.sha256.to_string()),
            by: e.by.clone(),
            at: time::rfc3339(at),
        }),
        Event::TicksSeen(e) => told.ticks.push(Ticked {
            gates: e.gates.clone(),
            counts: e.count,
            by: e.by.clone(),
            at: time::rfc3339(at),
            document: e.document.as_ref().map(ToString::to_string),
        }),
        _ => {}
    })?;
    Ok(told)
}

fn decided(e: &GateDecided, at: Timestamp) -> Decided {
    let at = e.at.unwrap_or(at);
    Decided {
        gate: e.gate.to_string(),
        approved: e.approved,
        by: e.by.clone(),
        message: e.message.clone(),
        at: time::rfc3339(at),
        plan_hash: e.plan_hash.to_string(),
        artifacts: e.artifacts.clone(),
        taken_back: None,
    }
}

/// What the snapshots of a run take beyond everything else; nothing where it has none.
fn snapshot_costs(context: &Context, loaded: &Loaded) -> Option<Costs> {
    context.project.git_dir.as_ref()?;
    let prefix = refs::run_prefix(&loaded.row.run_id);
    let costs = snapshot::costs(&context.project.root, &prefix).ok()?;
    (costs.objects > 0).then_some(costs)
}

fn origin(out: &mut String, context: &Context, loaded: &Loaded) {
    let state = &loaded.state;
    let hash = state.plan_hash.as_ref().map(|h| format!(" (sha256 {})", h.short()));
    let path = text::sanitize(&state.plan_path);
    let _ = writeln!(out, "plan   {path}{}", hash.unwrap_or_default());
    if let Some(spec) = &state.spec {
        let _ =
            writeln!(out, "spec   {} (sha256 {})", text::sanitize(&spec.path), spec.sha256.short());
    }
    let _ = writeln!(out, "root   {}", text::sanitize(&state.root));
    if let Some(head) = &state.head {
        let _ = writeln!(out, "head   {head}");
    }
    let _ = writeln!(out, "begun  {}", time::local(state.created_at));
    let logs = context.run_dir(&loaded.row.run_id).join("logs");
    let _ = writeln!(out, "logs   {}", logs.display());
}

fn push_gates(out: &mut String, state: &RunState, told: &Told) {
    for (place, name) in gates(state) {
        let _ = write!(out, "gate   {place} \"{}\": ", text::sanitize(&name));
        let _ = match state.gates.get(&place) {
            None => writeln!(out, "not reached"),
            Some(gate) if gate.decision.is_none() => {
                writeln!(out, "waits since {}", time::local(gate.asked_at))
            }
            Some(_) => writeln!(out, "decided"),
        };
        for decided in told.decided.iter().filter(|d| d.gate == place.0) {
            let verb = if decided.approved { "approved" } else { "rejected" };
            let hash = decided.plan_hash.get(..12).unwrap_or(&decided.plan_hash);
            let by = text::sanitize(&decided.by);
            let _ = write!(out, "       {verb} by {by} at {}, plan {hash}", decided.at);
            let _ = writeln!(out, ", {}", text::count(decided.artifacts.len(), "artifact"));
            for words in Some(&decided.message)
                .filter(|m| !m.is_empty())
                .into_iter()
                .chain(&decided.taken_back)
            {
                let _ = writeln!(out, "       {}", text::sanitize(words));
            }
            for FileHash { path, sha256 } in decided.artifacts.iter().take(ARTIFACTS_NAMED_MAX) {
                let _ = writeln!(out, "       {} {}", sha256.short(), text::sanitize(path));
            }
        }
    }
}

fn gates_json(state: &RunState, told: &Told) -> Vec<serde_json::Value> {
    gates(state)
        .into_iter()
        .map(|(place, name)| {
            let gate = state.gates.get(&place);
            json!({
                "gate": place,
                "name": name,
                "asked_at": gate.map(|g| time::rfc3339(g.asked_at)),
                "approved": gate.and_then(|g| g.decision.as_ref()).map(|d| d.approved),
                "decisions": told.decided.iter().filter(|d| d.gate == place.0).collect::<Vec<_>>(),
            })
        })
        .collect()
}

fn accepted_line(accepted: &Accepted) -> String {
    let hash = |hash: &Option<String>| {
        hash.as_ref().map_or("nothing".to_owned(), |h| h.get(..12).unwrap_or(h).to_owned())
    };
    let (from, to) = (hash(&accepted.from), hash(&accepted.to));
    let by = match text::sanitize(&accepted.by) {
        by if by.is_empty() => "; no finished step changed".to_owned(),
        by => format!(" by {by}"),
    };
    format!("accepted {} {from} -> {to}{by} at {}", accepted.what, accepted.at)
}

fn tick_line(tick: &Ticked) -> String {
    let (gates, by) = (text::sanitize(&tick.gates.join(", ")), text::sanitize(&tick.by));
    let hash = tick.document.as_ref().map_or("", |hash| hash.get(..12).unwrap_or(hash));
    let counts = if tick.counts { "" } else { "; does not count by itself" };
    format!("{gates}: {by}, seen at {}, document {hash}{counts}", tick.at)
}

pub(super) fn point_line(point: &Point) -> String {
    let head =
        point.head.as_ref().map_or(String::new(), |h| format!(" on {}", h.get(..12).unwrap_or(h)));
    let (by, message) = (text::sanitize(&point.by), text::sanitize(&point.message));
    format!("{} by {by} at {}{head}: {message}", point.name, point.at)
}

fn budgets(state: &RunState, plan: Option<&Plan>) -> Vec<Budget> {
    let limits = plan.map(|p| p.budgets.clone()).unwrap_or_default();
    let used = &state.used;
    let time = |ms: Millis| ms.to_string();
    let busiest = state.phases.iter().map(|p| p.driven_ms).max().unwrap_or_default();
    let attempts = state.steps().map(|(_, s)| s.attempts).max().unwrap_or(0);
    vec![
        ("run_time", time(used.driven_ms), time(limits.run_time)),
        ("phase_time", time(busiest), time(limits.phase_time)),
        ("attempts", attempts.to_string(), limits.attempts.to_string()),
        ("tokens", used.tokens.to_string(), limits.tokens.to_string()),
        ("money", dollars(used.money_micros), dollars(limits.money_micros)),
        ("run_log_bytes", size(used.log_bytes), size(limits.run_log_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_stands_beside_what_is_allowed() {
        let mut state = RunState::default();
        state.used.money_micros = 1_250_000;
        let all = budgets(&state, None);
        let money = all.iter().find(|b| b.0 == "money");
        assert_eq!(money, Some(&("money", "$1.25".to_owned(), "$1000.00".to_owned())));
    }
}
