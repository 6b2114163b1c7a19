//! The order of phases: waves that can run side by side, and where to resume.
//!
//! A phase that states no dependencies waits for the phase before it, as in a `plan.toml`. The work is
//! linear in phases and dependencies.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;

use super::model::{Phase, Plan};
use crate::workflow::phase_id::PhaseId;

/// Phases that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Each depends on the next, and the last on the first.
    pub phases: Vec<PhaseId>,
    /// The line of the first one's heading.
    pub line: usize,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for phase in &self.phases {
            write!(f, "{phase} -> ")?;
        }
        self.phases.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}

impl std::error::Error for Cycle {}

/// The waves: each holds the phases whose dependencies are all in earlier ones.
pub fn waves(plan: &Plan) -> Result<Vec<Vec<PhaseId>>, Cycle> {
    let graph = Graph::of(plan);
    let mut waiting = graph.counts();
    let ready = |waiting: &[usize]| -> Vec<usize> {
        (0..waiting.len()).filter(|phase| waiting[*phase] == 0).collect()
    };
    let mut wave = ready(&waiting);
    let (mut waves, mut done) = (Vec::new(), 0);
    while !wave.is_empty() {
        done += wave.len();
        let mut next: Vec<usize> = Vec::new();
        for phase in &wave {
            next.extend(graph.release(*phase, &mut waiting));
        }
        next.sort_unstable();
        waves.push(wave.iter().map(|phase| plan.phases[*phase].id.clone()).collect());
        wave = next;
    }
    if done < plan.phases.len() { Err(graph.cycle(plan, &waiting)) } else { Ok(waves) }
}

/// The phases in the order of the document, each after those that it depends on.
pub fn order(plan: &Plan) -> Result<Vec<&Phase>, Cycle> {
    let graph = Graph::of(plan);
    let mut waiting = graph.counts();
    let first = (0..waiting.len()).filter(|phase| waiting[*phase] == 0).map(Reverse);
    let mut ready: BinaryHeap<Reverse<usize>> = first.collect();
    let mut order = Vec::with_capacity(plan.phases.len());
    while let Some(Reverse(phase)) = ready.pop() {
        order.push(&plan.phases[phase]);
        ready.extend(graph.release(phase, &mut waiting).into_iter().map(Reverse));
    }
    if order.len() < plan.phases.len() { Err(graph.cycle(plan, &waiting)) } else { Ok(order) }
}

/// The first phase with work left, in dependency order; `None` if the plan is complete.
pub fn resume_at(plan: &Plan) -> Result<Option<PhaseId>, Cycle> {
    let order = order(plan)?;
    Ok(order.into_iter().find(|phase| !phase.is_settled()).map(|phase| phase.id.clone()))
}

/// Who waits for whom, by position.
struct Graph {
    needs: Vec<Vec<usize>>,
    needed_by: Vec<Vec<usize>>,
}

impl Graph {
    fn of(plan: &Plan) -> Self {
        let places: HashMap<String, usize> =
            plan.phases.iter().enumerate().map(|(at, phase)| (phase.id.key(), at)).collect();
        let mut needed_by = vec![Vec::new(); plan.phases.len()];
        let mut needs = Vec::with_capacity(plan.phases.len());
        for (at, phase) in plan.phases.iter().enumerate() {
            let mut own: Vec<usize> = match &phase.depends_on {
                Some(ids) => ids.iter().filter_map(|id| places.get(&id.key()).copied()).collect(),
                None => at.checked_sub(1).into_iter().collect(),
            };
            own.sort_unstable();
            own.dedup();
            for need in &own {
                needed_by[*need].push(at);
            }
            needs.push(own);
        }
        Self { needs, needed_by }
    }

    /// How many phases each one waits for.
    fn counts(&self) -> Vec<usize> {
        self.needs.iter().map(Vec::len).collect()
    }

    /// The phases that wait for nothing more once a phase is done.
    fn release(&self, phase: usize, waiting: &mut [usize]) -> Vec<usize> {
        let mut free = Vec::new();
        for next in &self.needed_by[phase] {
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                free.push(*next);
            }
        }
        free
    }

    /// A cycle among the phases that are still waiting.
    fn cycle(&self, plan: &Plan, waiting: &[usize]) -> Cycle {
        let mut seen: HashMap<usize, usize> = HashMap::new();
        let mut way = Vec::new();
        let mut at = (0..waiting.len()).find(|phase| waiting[*phase] > 0);
        while let Some(phase) = at {
            if let Some(start) = seen.insert(phase, way.len()) {
                way.drain(..start);
                break;
            }
            way.push(phase);
            // Whoever waits, waits for one that waits too.
            at = self.needs[phase].iter().copied().find(|need| waiting[*need] > 0);
        }
        // Told from the phase that comes first in the plan.
        let first = (0..way.len()).min_by_key(|at| way[*at]).unwrap_or_default();
        way.rotate_left(first);
        let line = way.first().map_or(0, |phase| plan.phases[*phase].line);
        Cycle { phases: way.iter().map(|phase| plan.phases[*phase].id.clone()).collect(), line }
    }
}
