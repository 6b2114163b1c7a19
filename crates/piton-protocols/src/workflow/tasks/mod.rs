//! Task lists in the form of spec-kit: `- [ ] T001 [P] [US1] text` below `## Phase N: …`.
//!
//! Read into a [`TaskList`], and ticked in place. Boxes without a task id are checklists, not tasks.

mod paths;
mod read;

#[cfg(test)]
mod tests;

pub use paths::paths;
pub use read::{inspect, is_task_list, read, tick, tick_each, untick};

use super::phase_id::PhaseId;

/// Largest task list: a hundred times the longest known; a larger file is the wrong one.
pub const TASKS_BYTES_MAX: usize = 16 << 20;

/// One task list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList {
    /// The text of its first heading; empty if it has none.
    pub title: String,
    /// Its phases, in the order of the document.
    pub phases: Vec<Phase>,
}

impl TaskList {
    /// All tasks, in the order of the document.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.phases.iter().flat_map(|phase| &phase.tasks)
    }

    /// How many tasks are done.
    pub fn done(&self) -> usize {
        self.tasks().filter(|task| task.done).count()
    }

    /// How many tasks are open.
    pub fn open(&self) -> usize {
        self.tasks().filter(|task| !task.done).count()
    }

    /// How many tasks may run beside others.
    pub fn parallel(&self) -> usize {
        self.tasks().filter(|task| task.parallel).count()
    }

    /// The first open task.
    pub fn next(&self) -> Option<&Task> {
        self.tasks().find(|task| !task.done)
    }
}

/// A phase of a task list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its id; `None` for tasks below another heading or none.
    pub id: Option<PhaseId>,
    /// What people call it.
    pub title: String,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// The line of its heading, from 1; 0 if there is none.
    pub line: usize,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Such as `T001`.
    pub id: String,
    /// Whether it is marked `[P]`: it may run beside others.
    pub parallel: bool,
    /// Its user story, such as `US1`.
    pub story: Option<String>,
    /// Its other labels in brackets, such as `Setup`.
    pub labels: Vec<String>,
    /// What is to be done: the first paragraph, on one line.
    pub text: String,
    /// The files that it names, also in the lines below the first paragraph.
    pub paths: Vec<String>,
    /// Whether its box is ticked.
    pub done: bool,
    /// Its line, from 1.
    pub line: usize,
}
