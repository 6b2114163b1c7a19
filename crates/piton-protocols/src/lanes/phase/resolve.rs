//! Resolves the names of a document: which lane waits for which, what blocks it, and cycles.
//!
//! `Blocks: X` makes X wait. A lane waits for the gates, lanes and phases that it or its tasks name.
//! The document does not say which lanes have run, so every lane that is named counts.

use super::draft::{At, Draft};
use super::model::{Dependency, DependencyKind, Gate, Lane, Origin, Task};
use super::names::{Known, gate_ids};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::sink::Sink;

/// Resolves the names of all lanes.
pub(super) fn resolve(
    mut drafts: Vec<Draft>,
    gates: &[Gate],
    from_sections: bool,
    sink: &mut Sink<'_>,
) -> Vec<Lane> {
    let names = super::index::names(&drafts);
    let known = Known { lanes: &names, tasks: &[] };
    for draft in &mut drafts {
        depends_on(draft, known, gates, from_sections, sink);
    }
    blocks(&mut drafts, known, sink);
    from_tasks(&mut drafts);
    check_gates(&drafts, gates, sink);
    find_cycle(&drafts, gates, sink);
    for draft in &drafts {
        find_task_cycle(&draft.lane, sink);
    }
    let mut lanes: Vec<Lane> = drafts.into_iter().map(|draft| draft.lane).collect();
    set_blocked_by(&mut lanes, gates);
    lanes
}

/// Resolves the dependencies that a lane states.
fn depends_on(
    draft: &mut Draft,
    known: Known<'_>,
    gates: &[Gate],
    from_sections: bool,
    sink: &mut Sink<'_>,
) {
    let mut found: Vec<(Dependency, std::ops::Range<usize>)> = Vec::new();
    for At { value, line, span } in &draft.depends_on {
        let read = known.dependencies(value, *line).into_iter();
        found.extend(read.map(|dependency| (dependency, span.clone())));
    }
    // Without an index, only the interfaces that a lane consumes name its gates.
    for At { value, line, span } in draft.consumes.iter().filter(|_| from_sections) {
        let kind = DependencyKind::Gate;
        let gate = |raw| Dependency { raw, kind, origin: Origin::Stated, line: *line };
        // A gate of another phase is frozen already, or that phase would come first.
        let listed = gate_ids(value).into_iter().filter(|id| gates.iter().any(|g| g.id == *id));
        found.extend(listed.map(|raw| (gate(raw), span.clone())));
    }
    for (dependency, span) in found {
        let name = quoted(&dependency.raw);
        let lane = quoted(&draft.lane.id);
        if dependency.kind == DependencyKind::Lane && dependency.raw == draft.lane.id {
            let message = format!("the lane {lane} depends on itself");
            sink.error(code::CYCLE, &span, message, "remove it from `Depends on`");
            continue;
        }
        if dependency.kind == DependencyKind::Unknown {
            let message =
                format!("the lane {lane} depends on {name}, which is not a lane, gate or phase");
            if dependency.raw.to_uppercase().starts_with("SL-") {
                let hint = "correct the id, or add the lane to the index";
                sink.error(code::UNKNOWN_ID, &span, message, hint);
            } else {
                let hint = "name a lane, a gate or a phase, or write `(none)`";
                sink.warn(code::UNKNOWN_ID, &span, message, hint);
            }
        }
        add(&mut draft.lane, dependency);
    }
}

fn add(lane: &mut Lane, dependency: Dependency) {
    if !lane.depends_on.iter().any(|known| known.raw == dependency.raw) {
        lane.depends_on.push(dependency);
    }
}

/// Turns `Blocks: X` into a dependency of X, if X is a lane of this phase.
fn blocks(drafts: &mut [Draft], known: Known<'_>, sink: &mut Sink<'_>) {
    for at in 0..drafts.len() {
        let blocker = drafts[at].lane.id.clone();
        for At { value, line, span } in drafts[at].blocks.clone() {
            for blocked in known.dependencies(&value, line) {
                drafts[at].lane.blocks.push(blocked.raw.clone());
                if blocked.kind == DependencyKind::Lane && blocked.raw != blocker {
                    let target = drafts.iter_mut().find(|draft| draft.lane.id == blocked.raw);
                    let raw = blocker.clone();
                    let (kind, origin) = (DependencyKind::Lane, Origin::Blocks);
                    if let Some(draft) = target {
                        add(&mut draft.lane, Dependency { raw, kind, origin, line });
                    }
                } else if blocked.kind == DependencyKind::Unknown
                    && blocked.raw.to_uppercase().starts_with("SL-")
                {
                    let name = quoted(&blocked.raw);
                    let message = format!("`{blocker}` blocks {name}, which is not a lane here");
                    let hint = "correct the id, or add the lane to the index";
                    sink.warn(code::UNKNOWN_ID, &span, message, hint);
                }
            }
        }
    }
}

/// Makes lanes wait for what their tasks need from other lanes.
fn from_tasks(drafts: &mut [Draft]) {
    let homes: Vec<(String, String)> = drafts
        .iter()
        .flat_map(|d| d.lane.tasks.iter().map(|task| (task.id.clone(), d.lane.id.clone())))
        .collect();
    for draft in drafts {
        let mut wanted: Vec<Dependency> = Vec::new();
        for dependency in draft.lane.tasks.iter().flat_map(|task| &task.depends_on) {
            let mut dependency = Dependency { origin: Origin::Task, ..dependency.clone() };
            if dependency.kind == DependencyKind::Task {
                let home = homes.iter().find(|(task, _)| *task == dependency.raw);
                let Some((_, lane)) = home else { continue };
                dependency.raw.clone_from(lane);
                dependency.kind = DependencyKind::Lane;
            }
            if dependency.raw != draft.lane.id {
                wanted.push(dependency);
            }
        }
        for dependency in wanted {
            add(&mut draft.lane, dependency);
        }
    }
}

/// Reports gates that lanes name and the document does not list.
fn check_gates(drafts: &[Draft], gates: &[Gate], sink: &mut Sink<'_>) {
    let listed = |id: &str| gates.iter().any(|gate| gate.id == id);
    for draft in drafts {
        let named = draft.lane.depends_on.iter().filter(|d| d.kind == DependencyKind::Gate);
        for gate in named.filter(|gate| !listed(&gate.raw)) {
            let (lane, name) = (quoted(&draft.lane.id), quoted(&gate.raw));
            let message =
                format!("the lane {lane} depends on the gate {name}, which is not listed");
            let hint = "add it to `## Interface Freeze Gates`; until then it is open";
            sink.warn(code::UNLISTED_GATE, &draft.span, message, hint);
        }
        for name in draft.lane.provides.iter().filter(|id| !listed(id)) {
            let (lane, name) = (quoted(&draft.lane.id), quoted(name));
            let message = format!("the lane {lane} provides the gate {name}, which is not listed");
            let hint = "add it to `## Interface Freeze Gates`, so that it can be ticked";
            sink.warn(code::UNLISTED_GATE, &draft.span, message, hint);
        }
    }
}

/// The lanes a lane waits for, also through open gates that they provide.
pub(super) fn lanes_before<'l>(lane: &Lane, lanes: &'l [Lane], gates: &[Gate]) -> Vec<&'l Lane> {
    let before = |other: &&Lane| {
        other.id != lane.id
            && lane.depends_on.iter().any(|d| match d.kind {
                DependencyKind::Lane => d.raw == other.id,
                DependencyKind::Gate => {
                    other.provides.contains(&d.raw) && !is_closed(gates, &d.raw)
                }
                _ => false,
            })
    };
    lanes.iter().filter(before).collect()
}

/// Tells whether a gate is listed and ticked.
pub(super) fn is_closed(gates: &[Gate], id: &str) -> bool {
    gates.iter().any(|gate| gate.id == id && gate.closed)
}

/// Refuses tasks of a lane that wait for each other.
fn find_task_cycle(lane: &Lane, sink: &mut Sink<'_>) {
    let mut left: Vec<&Task> = lane.tasks.iter().collect();
    loop {
        let before = left.clone();
        left.retain(|task| task.depends_on.iter().any(|d| before.iter().any(|t| t.id == d.raw)));
        if left.len() == before.len() {
            break;
        }
    }
    let Some(first) = left.first() else { return };
    let names: Vec<&str> = left.iter().map(|task| task.id.as_str()).collect();
    let message = format!("tasks wait for each other: {}", names.join(", "));
    let hint = "remove one of them from `Depends On`";
    sink.error(code::CYCLE, &sink.line_span(first.line), message, hint);
}

/// Refuses lanes that wait for each other.
fn find_cycle(drafts: &[Draft], gates: &[Gate], sink: &mut Sink<'_>) {
    let lanes: Vec<Lane> = drafts.iter().map(|draft| draft.lane.clone()).collect();
    let next: Vec<Vec<usize>> = lanes
        .iter()
        .map(|lane| {
            let before = lanes_before(lane, &lanes, gates);
            let place = |b: &&Lane| lanes.iter().position(|other| other.id == b.id);
            before.iter().filter_map(place).collect()
        })
        .collect();
    // Lanes are removed while none before them is left; what remains is in or behind a cycle.
    let mut left: Vec<usize> = (0..lanes.len()).collect();
    loop {
        let rest: Vec<usize> =
            left.iter().copied().filter(|at| next[*at].iter().any(|b| left.contains(b))).collect();
        if rest.len() == left.len() {
            break;
        }
        left = rest;
    }
    let Some(&start) = left.first() else { return };
    let mut path = vec![start];
    loop {
        let at = path[path.len() - 1];
        let Some(&before) = next[at].iter().find(|b| left.contains(b)) else { return };
        if let Some(first) = path.iter().position(|seen| *seen == before) {
            let mut names: Vec<&str> =
                path[first..].iter().map(|at| lanes[*at].id.as_str()).collect();
            names.push(&lanes[before].id);
            let message = format!("lanes wait for each other: {}", names.join(" -> "));
            let hint = "remove one of them from `Depends on`, `Blocks` or the tasks";
            sink.error(code::CYCLE, &drafts[before].span, message, hint);
            return;
        }
        path.push(before);
    }
}

/// Sets what blocks each lane.
fn set_blocked_by(lanes: &mut [Lane], gates: &[Gate]) {
    let provided: Vec<(String, Vec<String>)> =
        lanes.iter().map(|lane| (lane.id.clone(), lane.provides.clone())).collect();
    for lane in lanes {
        let open = |d: &Dependency| d.kind != DependencyKind::Gate || !is_closed(gates, &d.raw);
        let waiting: Vec<&Dependency> = lane.depends_on.iter().filter(|d| open(d)).collect();
        // A lane behind an open gate that it provides is not named twice.
        let by_gate = |d: &Dependency| {
            let gates = provided.iter().find(|(id, _)| *id == d.raw).map(|(_, gates)| gates);
            d.kind == DependencyKind::Lane
                && d.origin != Origin::Stated
                && gates.is_some_and(|gates| waiting.iter().any(|w| gates.contains(&w.raw)))
        };
        let names = waiting.iter().filter(|d| !by_gate(d)).map(|d| d.raw.clone());
        lane.blocked_by = names.collect();
        lane.ready = lane.blocked_by.is_empty();
    }
}
