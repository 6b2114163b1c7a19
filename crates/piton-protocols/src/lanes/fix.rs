//! The task that fixes a failed validation across lanes: `FIX-<PHASE>-001`.
//!
//! Derived from the state of a run, so it is gone once the validation passes.

use piton_core::RunState;
use piton_core::lane::{Stage, StageStatus};
use piton_core::state::{LaneState, Progress};

use crate::protocol::{Blocker, Fix};

/// How the ids of fix tasks begin.
const PREFIX: &str = "FIX-";
/// How often its agent is asked again while the command still fails: nobody sits beside it.
const FIX_RETRIES: u32 = 2;
/// What stands above the last lines of a failure.
const LAST_LINES: &str = "The last lines of its output, or of the run log if it wrote nothing:";
/// The indent of what belongs to a list item.
const INDENT: &str = "  ";

/// Tells whether an id is that of a fix task.
pub fn is_fix(id: &str) -> bool {
    id.starts_with(PREFIX)
}

/// A phase document with one lane, which does a fix task of a run.
pub fn plan(state: &RunState, task: &str) -> Option<Fix> {
    let blocker = blockers(state).into_iter().find(|blocker| blocker.id == task)?;
    let Blocker { id, phase, command, exit_code } = &blocker;
    let failing = state.phase(phase)?.lanes.iter().filter(|lane| lane.is_validation());
    let failed = failing.flat_map(|lane| &lane.steps).find(|s| s.progress == Progress::Failed);
    let last = failed.and_then(|step| step.failure_context.last());
    let code =
        exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
    let lines: Vec<String> =
        last.iter().flat_map(|f| &f.lines).map(|l| format!("      > {l}\n")).collect();
    // A command over several lines, or with backquotes, cannot stand in a list item.
    let is_plain = !command.is_empty() && !command.contains(['\n', '`']);
    let proof = if is_plain { format!("  - verify: `{command}`\n") } else { String::new() };
    let text = format!(
        "# {phase}: Fix what failed after the last merge\n\n\
         ## Lane Index & Dependencies\n\n\
         - {id} - Fix the validation of {phase}; Depends on: (none); Parallel-safe: no\n\n\
         ## Lanes\n\n\
         ### {id} - Fix the validation of {phase}\n\n\
         - **Scope**: All lanes of phase {phase} are merged, and a test of the whole failed. The phase is\n\
         {INDENT}described in {document}. Its tests run again when this is merged.\n\
         - **Retries**: {FIX_RETRIES}\n\
         - **Tasks**:\n\
         {INDENT}- impl: Make this command pass. It failed with {code}:\n\n\
         {command}\n\n{outcome}{proof}",
        document = state.plan_path,
        command = indented(command),
        outcome = if lines.is_empty() {
            String::new()
        } else {
            format!("    {LAST_LINES}\n\n{}\n", lines.concat())
        },
    );
    Some(Fix { name: format!("{}-{id}.md", state.run_id.as_ref()?), text })
}

/// A command below a list item.
fn indented(command: &str) -> String {
    let lines = command.lines().map(|line| format!("      {line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The fix tasks of a run.
pub fn blockers(state: &RunState) -> Vec<Blocker> {
    let mut found = Vec::new();
    for phase in &state.phases {
        let lanes = phase.lanes.iter().filter(|lane| lane.is_validation());
        for lane in lanes {
            let failed = lane.steps.iter().find(|s| s.progress == Progress::Failed);
            let Some(step) = failed else { continue };
            found.push(Blocker {
                id: format!("FIX-{}-001", phase.id),
                phase: phase.id.clone(),
                command: command_of(lane).unwrap_or_default(),
                exit_code: step.exit_code,
            });
        }
    }
    found
}

/// The command that failed, by the lane's checkpoints.
fn command_of(lane: &LaneState) -> Option<String> {
    let work = lane.work.as_ref()?;
    let stages = [Stage::AfterLaneStart, Stage::AfterLaneTests];
    let records = stages.into_iter().filter_map(|stage| work.record(stage));
    let mut failed = records.filter(|r| r.status == StageStatus::Failed);
    failed.find_map(|r| r.last_command.clone())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use piton_core::RunId;
    use piton_core::event::Class;
    use piton_core::lane::Role;
    use piton_core::state::{FailedAttempt, PhaseState, StepState};

    use super::*;

    fn state(role: Role, progress: Progress) -> RunState {
        let id = "validate-1".to_owned();
        let step = StepState { id, role, progress, exit_code: Some(7), ..StepState::default() };
        let lane =
            LaneState { id: "validation".to_owned(), steps: vec![step], ..LaneState::default() };
        let phase = PhaseState { id: "P1".to_owned(), lanes: vec![lane], ..PhaseState::default() };
        RunState { phases: vec![phase], ..RunState::default() }
    }

    /// Lost: a phase would fail after its merges without a name for what is to be done.
    #[test]
    fn a_failed_validation_names_the_task_that_mends_it() {
        let found = blockers(&state(Role::Validation, Progress::Failed));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].words(), "blocked by FIX-P1-001: validation, exit code 7");
        assert_eq!(blockers(&state(Role::Validation, Progress::Done)), []);
        assert_eq!(blockers(&state(Role::Work, Progress::Failed)), [], "a lane's name is no role");
    }

    /// Lost: the task that a phase is blocked by could not be run.
    #[test]
    fn a_fix_task_is_a_document_with_one_lane() {
        let mut state = state(Role::Validation, Progress::Failed);
        state.run_id = Some(RunId("P1-1".to_owned()));
        let lines = vec!["- impl: not a task".to_owned(), "```".to_owned()];
        let failed = FailedAttempt {
            attempt: 1,
            class: Class::Test,
            error: "exit code 7".to_owned(),
            lines,
            budget: None,
            command: None,
            exit_code: Some(7),
        };
        state.phases[0].lanes[0].steps[0].failure_context = vec![failed];
        assert_eq!(plan(&state, "FIX-P1-002"), None);
        let fix = plan(&state, "FIX-P1-001").unwrap();
        assert_eq!(fix.name, "P1-1-FIX-P1-001.md");
        let (phase, problems) = crate::lanes::phase::read("", &fix.text).unwrap();
        assert_eq!(problems, [], "{}", fix.text);
        let lanes: Vec<(&str, usize)> =
            phase.lanes.iter().map(|l| (l.id.as_str(), l.tasks.len())).collect();
        assert_eq!((phase.id.as_str(), lanes), ("P1", vec![("FIX-P1-001", 1)]), "{}", fix.text);
        assert!(phase.lanes[0].tasks[0].text.contains("> - impl: not a task"));
    }
}
