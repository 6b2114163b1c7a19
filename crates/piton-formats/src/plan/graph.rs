//! Phases and lanes as one graph of what waits for what, so that cycles across phases are found.
//!
//! A phase is two nodes, its start and its end: its lanes wait for the start, the end waits for its
//! lanes. Walks are loops, not recursion: a plan may be as deep as it is long.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::build::PhaseDraft;

/// Most cycles that are reported: they overlap, and fixing a few mostly fixes all.
const CYCLES_MAX: usize = 20;
/// Most names on the path of a cycle in a message.
const PATH_NAMES_MAX: usize = 12;

/// A cycle.
pub(super) struct Cycle {
    /// Its names, first and last the same: `A -> B -> A`.
    pub(super) path: String,
    /// One of the `needs` on it.
    pub(super) span: Range<usize>,
}

struct Node {
    /// What messages call it.
    name: String,
    waits_for: Vec<Edge>,
}

struct Edge {
    to: usize,
    /// The `needs` it comes from; order and containment have none.
    span: Option<Range<usize>>,
}

/// The graph of a plan.
pub(super) struct Graph {
    nodes: Vec<Node>,
    lanes: BTreeMap<String, usize>,
}

impl Graph {
    /// Builds the graph of resolved phases.
    pub(super) fn new(phases: &[PhaseDraft]) -> Self {
        let mut graph = Self { nodes: Vec::new(), lanes: BTreeMap::new() };
        let mut ends = BTreeMap::new();
        let mut starts = Vec::new();
        for phase in phases {
            starts.push(graph.add(phase.id.value.clone()));
            let end = graph.add(phase.id.value.clone());
            ends.entry(phase.id.value.as_str()).or_insert(end);
            // First, so that a cycle of phases is reported without their lanes.
            graph.wait(end, starts[starts.len() - 1], None);
            for lane in &phase.lanes {
                let path = format!("{}/{}", phase.id.value, lane.id.value);
                let node = graph.add(path.clone());
                graph.lanes.entry(path).or_insert(node);
                graph.wait(node, starts[starts.len() - 1], None);
                graph.wait(end, node, None);
            }
        }
        for (phase, start) in phases.iter().zip(starts) {
            for after in &phase.phase.after {
                if let Some(end) = ends.get(after.as_str()) {
                    graph.wait(start, *end, None);
                }
            }
            for need in phase.needs.iter().flatten() {
                if let Some(end) = ends.get(need.value.as_str()) {
                    graph.wait(start, *end, Some(need.span.clone()));
                }
            }
            for lane in &phase.lanes {
                let Some(node) =
                    graph.lanes.get(&format!("{}/{}", phase.id.value, lane.id.value)).copied()
                else {
                    continue;
                };
                for need in &lane.needs {
                    let local = format!("{}/{}", phase.id.value, need.value);
                    let full = if need.value.contains('/') { &need.value } else { &local };
                    if let Some(to) = graph.lanes.get(full).copied() {
                        graph.wait(node, to, Some(need.span.clone()));
                    }
                }
            }
        }
        graph
    }

    fn add(&mut self, name: String) -> usize {
        self.nodes.push(Node { name, waits_for: Vec::new() });
        self.nodes.len() - 1
    }

    fn wait(&mut self, from: usize, to: usize, span: Option<Range<usize>>) {
        self.nodes[from].waits_for.push(Edge { to, span });
    }

    /// The cycles; empty if the plan can run.
    pub(super) fn cycles(&self) -> Vec<Cycle> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut found = Vec::new();
        for root in 0..self.nodes.len() {
            if marks[root] != Mark::New {
                continue;
            }
            // The path from the root: each node and which of its edges is next.
            let mut path = vec![(root, 0)];
            marks[root] = Mark::Open;
            while let Some((node, next)) = path.last_mut() {
                let Some(edge) = self.nodes[*node].waits_for.get(*next) else {
                    marks[*node] = Mark::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match marks[edge.to] {
                    Mark::New => {
                        marks[edge.to] = Mark::Open;
                        path.push((edge.to, 0));
                    }
                    Mark::Open if found.len() < CYCLES_MAX => {
                        let from = path.iter().position(|(at, _)| *at == edge.to).unwrap_or(0);
                        let cycle = self.cycle(&path[from..]);
                        // There may be one more through each lane of a phase; the fix is the same.
                        if found.iter().all(|known: &Cycle| known.span != cycle.span) {
                            found.push(cycle);
                        }
                    }
                    Mark::Open | Mark::Done => {}
                }
            }
        }
        found
    }

    /// Describes a cycle, given its nodes and the edge (the one before `next`) taken from each.
    fn cycle(&self, path: &[(usize, usize)]) -> Cycle {
        let taken = |(node, next): &(usize, usize)| &self.nodes[*node].waits_for[next - 1];
        // Order and containment alone make no cycle, so one edge has a place.
        let span = path.iter().find_map(|at| taken(at).span.clone()).unwrap_or_default();
        let mut names: Vec<&str> =
            path.iter().map(|(node, _)| self.nodes[*node].name.as_str()).collect();
        names.push(names[0]);
        // Start and end of a phase have one name.
        names.dedup();
        if names.len() == 1 {
            names.push(names[0]);
        }
        if names.len() > PATH_NAMES_MAX {
            let tail = names.len() - PATH_NAMES_MAX / 2;
            let skipped = names.splice(PATH_NAMES_MAX / 2..tail, ["…"]);
            drop(skipped);
        }
        Cycle { path: names.join(" -> "), span }
    }

    /// The names of everything that ends before a lane starts.
    pub(super) fn before(&self, lane: &str) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<usize> = self.lanes.get(lane).into_iter().copied().collect();
        let mut visited = vec![false; self.nodes.len()];
        while let Some(node) = open.pop() {
            for edge in &self.nodes[node].waits_for {
                if !std::mem::replace(&mut visited[edge.to], true) {
                    seen.insert(self.nodes[edge.to].name.as_str());
                    open.push(edge.to);
                }
            }
        }
        seen
    }
}
