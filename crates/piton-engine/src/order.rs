//! The order to start an attempt: everything filled in, nothing left to decide.

use piton_core::lane_state::LaneWork;
use piton_core::plan::{Command, Step, Work};
use piton_core::state::{FailedAttempt, LaneState, StepState};
use piton_core::{Plan, RunState};
use piton_formats::template::{self, Vars};
use serde::Serialize;

use crate::world::Attempt;

/// In the place of work that is not to be done.
const NO_WORK: [&str; 3] = ["/bin/sh", "-c", ":"];

/// An attempt to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Which.
    pub attempt: Attempt,
    /// Commands as program and arguments, one after the other.
    pub commands: Vec<Vec<String>>,
    /// The prompt, where the work is one: given on stdin and as a file.
    pub prompt: Option<String>,
    /// The worktree of its lane; empty for the root.
    pub room: String,
    /// Working directory below that; empty for itself.
    pub dir: String,
    /// Variables of the step, and those promised to every attempt.
    pub env: Vec<(String, String)>,
    /// The failed attempts before, as JSON.
    pub failure_context: Option<String>,
    /// Longest time.
    pub timeout_ms: u64,
    /// Longest silence.
    pub idle_timeout_ms: Option<u64>,
    /// Time between polite signal and kill.
    pub grace_ms: u64,
    /// Bytes of log kept per stream.
    pub log_bytes_max: u64,
    /// Programs that may stay.
    pub keep: Vec<String>,
}

#[derive(Serialize)]
struct FailureFile<'a> {
    step: String,
    attempts: &'a [FailedAttempt],
    text: String,
}

/// Fills in the templates of a step for an attempt.
pub fn order(
    plan: &Plan,
    state: &RunState,
    step: &Step,
    attempt: &Attempt,
) -> Result<Order, template::Error> {
    let run_id = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let path = &attempt.step;
    let failures = state.step(path);
    let vars = vars(plan, state, failures, &run_id, attempt);
    let (mut commands, prompt) = match &step.work {
        _ if failures.is_some_and(|s| s.tests_only) => {
            (vec![NO_WORK.map(str::to_owned).to_vec()], None)
        }
        Work::Run(command) => (vec![fill(command, &vars)?], None),
        Work::Prompt { command, prompt, .. } => {
            (vec![fill(command, &vars)?], Some(template::render(prompt, &vars)?))
        }
        Work::Tasks(_) => (Vec::new(), None),
        Work::Tests(tests) => {
            (tests.iter().map(|t| fill(t, &vars)).collect::<Result<_, _>>()?, None)
        }
    };
    if let Some(test) = &step.test {
        commands.push(fill(test, &vars)?);
    }
    let mut env: Vec<(String, String)> =
        step.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    env.extend([
        ("PITON_RUN_ID".to_owned(), run_id.clone()),
        ("PITON_PHASE".to_owned(), path.phase.clone()),
        ("PITON_LANE".to_owned(), path.lane.clone()),
        ("PITON_STEP".to_owned(), path.step.clone()),
        ("PITON_ATTEMPT".to_owned(), attempt.number.to_string()),
        ("PITON_STEP_KEY".to_owned(), format!("{run_id}/{path}")),
    ]);
    let lane = state.lane(&path.lane());
    if let Some(work) = lane.and_then(|l| l.work.as_ref()).filter(|w| !w.branch.is_empty()) {
        env.extend(of_lane(state, work));
    }
    let failure_context = failures.filter(|s| !s.failure_context.is_empty()).map(|s| {
        let file = FailureFile {
            step: path.to_string(),
            attempts: &s.failure_context,
            text: s.failure_text(),
        };
        serde_json::to_string_pretty(&file).unwrap_or_default()
    });
    Ok(Order {
        attempt: attempt.clone(),
        commands,
        prompt,
        room: lane.map_or("", LaneState::dir).to_owned(),
        dir: step.dir.clone(),
        env,
        failure_context,
        timeout_ms: step.timeout.0,
        idle_timeout_ms: step.idle_timeout.map(|t| t.0),
        grace_ms: step.grace.0,
        log_bytes_max: plan.budgets.log_bytes,
        keep: step.keep.clone(),
    })
}

fn vars(
    plan: &Plan,
    state: &RunState,
    failures: Option<&StepState>,
    run_id: &str,
    attempt: &Attempt,
) -> Vars {
    Vars {
        run_id: run_id.to_owned(),
        phase: attempt.step.phase.clone(),
        lane: attempt.step.lane.clone(),
        step: attempt.step.step.clone(),
        attempt: attempt.number,
        spec: plan.spec.clone(),
        title: plan.title.clone(),
        root: state.root.clone(),
        failure_context: failures.map(StepState::failure_text).unwrap_or_default(),
    }
}

fn fill(command: &Command, vars: &Vars) -> Result<Vec<String>, template::Error> {
    match command {
        Command::Shell(line) => {
            Ok(vec!["/bin/sh".to_owned(), "-c".to_owned(), template::render(line, vars)?])
        }
        Command::Args(args) => args.iter().map(|arg| template::render(arg, vars)).collect(),
    }
}

/// What the commands of a lane with a branch find about it.
pub(crate) fn of_lane(state: &RunState, work: &LaneWork) -> [(String, String); 4] {
    let commit = work.committed.as_ref().map(|c| c.commit.clone());
    [
        ("PITON_ROOT".to_owned(), state.root.clone()),
        ("PITON_BRANCH".to_owned(), work.branch.clone()),
        ("PITON_BASE_BRANCH".to_owned(), work.base_branch.clone()),
        ("PITON_HEAD".to_owned(), commit.unwrap_or_default()),
    ]
}
