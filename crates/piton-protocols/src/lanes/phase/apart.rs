//! Tasks in worktrees of their own, as lanes of the plan: each starts from the branch of the lane
//! it is a part of, which waits for it.

use piton_core::id::{ID_BYTES_MAX, LanePath};
use piton_core::lane::{Isolation, LaneRules, MEND_STEP, Merge, Role, TaskOf, TaskWorktrees};
use piton_core::plan::{self, Step, Work};

use super::groups::{Group, groups};
use super::ids::{plan_id, unused_id};
use super::model::{Lane, Task};
use super::prompt;
use super::to_plan::Builder;
use piton_formats::diagnostic::code;
use piton_formats::plan::implicit::{self, Frame};

/// The id of a step that waits for tasks begins so; a number follows.
const WAITING_STEP: &str = "tasks-";

/// The steps of a lane, and the lanes that do its tasks.
pub(super) struct Made {
    pub steps: Vec<Step>,
    pub parts: Vec<plan::Lane>,
}

impl Builder<'_> {
    /// Whether tasks get worktrees of their own: only where their lane has one.
    pub(super) fn task_worktrees(&self) -> TaskWorktrees {
        match self.defaults.rules.isolation {
            Isolation::Worktree => self.defaults.task_worktrees,
            Isolation::InPlace => TaskWorktrees::Off,
        }
    }

    /// Refuses worktrees for tasks where their lanes have none.
    pub(super) fn check_task_worktrees(&mut self) {
        let asked = self.defaults.task_worktrees == TaskWorktrees::On;
        if asked && self.defaults.rules.isolation.is_in_place() {
            let message =
                "tasks can have worktrees only if their lanes do, and these lanes work in place"
                    .to_owned();
            let hint = "leave out `--task-worktrees on`, or set isolation = \"worktree\"";
            self.error(code::BAD_VALUE, self.phase.line, message, hint);
        }
    }

    /// The tasks of a lane as its steps, in order, and tasks with worktrees of their own as lanes.
    pub(super) fn tasks(&mut self, lane: &Lane, id: &str, tasks: &[&Task]) -> Made {
        let mut made = Made { steps: Vec::new(), parts: Vec::new() };
        let (mut done, mut waits) = (0, 0);
        let groups = groups(tasks, self.task_worktrees());
        for group in &groups {
            if group.apart {
                waits += 1;
                let step = unused_id(&format!("{WAITING_STEP}{waits}"), &made.steps);
                self.apart(lane, id, &step, group, tasks, done, &mut made);
            } else {
                for at in done..done + group.tasks.len() {
                    let step = self.step(lane, tasks, at, &made.steps);
                    made.steps.push(step);
                }
            }
            done += group.tasks.len();
        }
        if groups.last().is_some_and(|last| last.apart) {
            made.steps.push(self.mend(lane, tasks, &made.steps));
        }
        made
    }

    #[expect(clippy::too_many_arguments, reason = "each is a part of its own, needed once")]
    fn apart(
        &mut self,
        lane: &Lane,
        id: &str,
        waits: &str,
        group: &Group<'_>,
        all: &[&Task],
        done: usize,
        made: &mut Made,
    ) {
        let mut names = Vec::new();
        for at in done..done + group.tasks.len() {
            let step = self.step(lane, all, at, &[]);
            let name = self.part_id(id, &step.id, &made.parts);
            let of = TaskOf { lane: id.to_owned(), step: waits.to_owned(), task: step.id.clone() };
            let part = self.part(lane, name.clone(), of, step);
            made.parts.push(part);
            names.push(name);
        }
        let step = self.defaults.step(waits.to_owned(), Work::Tasks(names), 0);
        made.steps.push(Step { role: Role::Tasks, ..step });
    }

    /// One task as a lane.
    fn part(&self, lane: &Lane, id: String, task: TaskOf, step: Step) -> plan::Lane {
        let rules = LaneRules {
            isolation: Isolation::Worktree,
            merge: Merge::default(),
            message: Some(self.message(lane, &task.task)),
            task: Some(task),
            ..self.defaults.rules.clone()
        };
        let needs: Vec<LanePath> = Vec::new();
        let mut part = plan::Lane { id, needs, gate: None, steps: vec![step], rules };
        implicit::complete(&mut part, &self.frame(lane));
        part
    }

    /// What the implicit steps of a lane are made from.
    pub(super) fn frame(&self, lane: &Lane) -> Frame<'_> {
        let retries = lane.retries.unwrap_or(self.defaults.step.retries);
        Frame {
            pattern: Step { retries, ..self.defaults.step.clone() },
            setup: self.defaults.setup.clone(),
            pull_request: &self.defaults.pull_request,
        }
    }

    /// The id of a task's lane: no other lane of the phase has it.
    fn part_id(&self, lane: &str, task: &str, parts: &[plan::Lane]) -> String {
        let taken = |id: &str| {
            parts.iter().any(|p| p.id == id)
                || self.phase.lanes.iter().any(|l| plan_id(&l.id) == id)
        };
        let full = format!("{lane}.{task}");
        let numbered = |n: usize| {
            let tail = if n == 1 { String::new() } else { format!("-{n}") };
            let head: String = full.chars().take(ID_BYTES_MAX - tail.len()).collect();
            format!("{head}{tail}")
        };
        // One more number than there are ids: one of them is free.
        let mut numbers = 1..parts.len() + self.phase.lanes.len() + 2;
        numbers.find_map(|n| Some(numbered(n)).filter(|id| !taken(id))).unwrap_or(full)
    }

    /// The step that fixes a lane whose last tasks were done in other worktrees.
    fn mend(&mut self, lane: &Lane, tasks: &[&Task], steps: &[Step]) -> Step {
        let prompt = prompt::render_mend(self.phase, lane, tasks);
        let prompt = prompt.unwrap_or_else(|error| error.message);
        let (agent, command) = self.agent();
        let retries = lane.retries.unwrap_or(self.defaults.step.retries);
        let work = Work::Prompt { agent, command, prompt };
        let step = self.defaults.step(unused_id(MEND_STEP, steps), work, retries);
        Step { role: Role::Mend, ..step }
    }
}
