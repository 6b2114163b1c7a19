//! The order to start an attempt: everything filled in, nothing left to decide.

use piton_core::agent::{Agent, STOP_FILE, session_id};
use piton_core::event::Beginning;
use piton_core::lane_state::LaneWork;
use piton_core::plan::{Command, Step, Work};
use piton_core::state::{FailedAttempt, LaneState, StepState};
use piton_core::{Plan, RunState};
use piton_formats::template::{self, Given, Vars};
use serde::Serialize;

use crate::attempt::Attempt;
use crate::prompt;

/// Before the failures at the end of a prompt.
const FAILED: &str = "## What failed before\n\nDo not repeat this:\n\n";
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
    /// The same without secrets, to be kept.
    pub kept_prompt: Option<String>,
    /// The agent that gets the prompt, if it reports on itself.
    pub agent: Option<AgentOrder>,
    /// The worktree of its lane; empty for the root.
    pub workspace: String,
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

/// The agent of an attempt. Of a program that Piton knows, the first command is only its name: the
/// world knows how it is called.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentOrder {
    /// Which.
    pub agent: Agent,
    /// Its session: of a new one the id that it shall have.
    pub session: Option<String>,
    /// Whether the session continues.
    pub continues: bool,
}

#[derive(Serialize)]
struct FailureFile<'a> {
    step: String,
    attempts: &'a [FailedAttempt],
    text: String,
}

/// Fills in the templates of a step for an attempt, with what the protocol of the run gives it.
pub fn order(
    (plan, state): (&Plan, &RunState),
    step: &Step,
    attempt: &Attempt,
    given: Given,
) -> Result<Order, template::Error> {
    let path = &attempt.step;
    let failures = state.failing(path);
    let vars = Vars { context: given.context, ..Vars::new(plan, state, path, attempt.number) };
    let run_id = &vars.run_id;
    let agent = agent_of(plan, state, step, attempt);
    let (mut commands, prompt) = match &step.work {
        _ if failures.is_some_and(|s| s.tests_only) => {
            (vec![NO_WORK.map(str::to_owned).to_vec()], None)
        }
        Work::Run(command) => (vec![fill(command, &vars)?], None),
        Work::Prompt { .. } if agent.as_ref().is_some_and(|agent| agent.continues) => {
            (vec![Vec::new()], state.step(path).map(prompt::continuing))
        }
        Work::Prompt { command, prompt, .. } => {
            // A prompt that does not ask for the failures is told of them all the same.
            let told = template::uses(prompt, "failure_context");
            let failed =
                failures.map(StepState::failure_text).filter(|text| !told && !text.is_empty());
            let failed = failed.map(|text| format!("{FAILED}{text}")).unwrap_or_default();
            let prompt = template::render(prompt, &vars)?;
            let parts = [given.before_prompt, prompt, given.after_prompt, failed];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let own = agent.as_ref().and_then(|agent| agent.agent.command.as_ref());
            (vec![fill(own.unwrap_or(command), &vars)?], Some(parts.join("\n\n")))
        }
        Work::Tasks(_) => (Vec::new(), None),
        Work::Tests(tests) => {
            (tests.iter().map(|t| fill(t, &vars)).collect::<Result<_, _>>()?, None)
        }
    };
    if let Some(test) = &step.test {
        let test = fill(test, &vars)?;
        let is_known = agent.as_ref().is_some_and(|agent| agent.agent.is_known());
        commands.push(if is_known { unless_stopped(test) } else { test });
    }
    // Of two values of a variable the last one counts.
    let mut env: Vec<(String, String)> = given.env.into_iter().collect();
    env.extend(step.env.iter().map(|(name, value)| (name.clone(), value.clone())));
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
        kept_prompt: None,
        agent,
        workspace: lane.map_or("", LaneState::dir).to_owned(),
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

/// The agent of an attempt, as the state says that it begins.
fn agent_of(plan: &Plan, state: &RunState, step: &Step, attempt: &Attempt) -> Option<AgentOrder> {
    let known = state.step(&attempt.step);
    if known.is_some_and(|s| s.tests_only) {
        return None;
    }
    let begun = known.and_then(|s| s.agent.as_deref()).filter(|a| a.attempt == attempt.number);
    let Some(begun) = begun else {
        let agent = plan.agent_of(step)?.into_owned();
        let session = agent.is_known().then(|| session_id(&state.mark, &attempt.to_string()));
        return Some(AgentOrder { agent, session, continues: false });
    };
    let agent = plan.agent(&begun.name).into_owned();
    let continues = begun.how == Beginning::Continued;
    Some(AgentOrder { agent, session: begun.session.clone(), continues })
}

/// A test that does not run if the agent before it was stopped: there is nothing to test yet.
fn unless_stopped(test: Vec<String>) -> Vec<String> {
    let script = format!("[ ! -e \"${STOP_FILE}\" ] || exit 0; exec \"$@\"");
    let shell = ["/bin/sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
    shell.into_iter().chain(test).collect()
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
    let commit = work.committed().map(|c| c.commit.clone());
    [
        ("PITON_ROOT".to_owned(), state.root.clone()),
        ("PITON_BRANCH".to_owned(), work.branch.clone()),
        ("PITON_BASE_BRANCH".to_owned(), work.base_branch.clone()),
        ("PITON_HEAD".to_owned(), commit.unwrap_or_default()),
    ]
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use piton_formats::settings::Settings;
    use piton_formats::{Input, read_plan};

    use super::*;

    /// Lost: a protocol could not hand a stage what came before it.
    #[test]
    fn what_the_protocol_gives_is_in_prompt_and_environment() {
        let text = "[agents.a]\ncommand = \"agent {{ context.stage }}\"\n\
                    [[phase]]\nid = \"P\"\nagent = \"a\"\nenv = { OWN = \"step\" }\n\
                    prompt = \"Go on from {{ context.stage }}.\"\n";
        let (settings, read) = (Settings::default(), |_: &str| Ok(String::new()));
        let input = Input { file: "p.toml", text, settings: &settings, git: false, read: &read };
        let (plan, _) = read_plan(&input).unwrap();
        let (path, step) = plan.steps().next().unwrap();
        let attempt = Attempt { step: path, number: 1 };
        let given = Given {
            context: [("stage".to_owned(), "architect".to_owned())].into(),
            env: ["OWN", "STAGE"].map(|name| (name.to_owned(), "given".to_owned())).into(),
            before_prompt: "Notes: {{ as they are }}".to_owned(),
            after_prompt: String::new(),
        };
        let order = order((&plan, &RunState::default()), step, &attempt, given);
        let order = order.unwrap();
        assert_eq!(order.commands[0][2], "agent architect");
        let prompt = "Notes: {{ as they are }}\n\nGo on from architect.";
        assert_eq!(order.prompt.as_deref(), Some(prompt));
        let value = |name| order.env.iter().rfind(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!((value("OWN"), value("STAGE")), (Some("step"), Some("given")));
    }
}
