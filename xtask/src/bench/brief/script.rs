//! Scripted runs: what happened up to a cut, as events and as the transcript that an agent would have.
//!
//! Both use the same words for the same facts, so that neither is favoured when they are searched for.
//! Each run follows from its number, so that the same runs are cut at the same places for ever.

use std::fmt::Write as _;

use piton_agents::brief::Course;
use piton_core::event::{
    CheckpointRecorded, Class, FileHash, GateAsked, GateDecided, Next, Outcome, ProtocolRef,
    RunCreated, Shape, StepFinished, StepStarted,
};
use piton_core::hash::Sha;
use piton_core::plan::Plan;
use piton_core::{Event, GateRef, Millis, RunId, RunState, StepPath, Timestamp, apply};

use super::super::fixture;
use crate::rng::Rng;

/// Lines of talk and output that an agent leaves for one step: few for a small change, many otherwise.
const TALK_LINES: (u64, u64) = (10, 60);
/// Milliseconds between two events.
const PAUSE_MS: i64 = 47_000;

/// What a reader should know at the cut, by kind.
#[derive(Default)]
pub(super) struct Truth {
    pub(super) objective: Vec<String>,
    pub(super) task: Vec<String>,
    pub(super) criteria: Vec<String>,
    pub(super) done: Vec<String>,
    pub(super) in_flight: Vec<String>,
    pub(super) failing: Vec<String>,
    pub(super) changed: Vec<String>,
    pub(super) decisions: Vec<String>,
    pub(super) next: Vec<String>,
}

/// A run at its cut.
pub(super) struct Cut {
    pub(super) plan: Plan,
    pub(super) state: RunState,
    pub(super) course: Course,
    pub(super) transcript: String,
    pub(super) truth: Truth,
    pub(super) now: Timestamp,
}

/// What the steps of the runs are about.
const TOPICS: [&str; 8] =
    ["login", "invoice", "search", "upload", "report", "webhook", "cache", "export"];

/// A scripted run: two phases, the second behind a gate; it is cut in the middle of a step whose first
/// attempt failed.
pub(super) fn cut(number: u64) -> Result<Cut, String> {
    let mut rng = Rng::of_round(0, "brief", number);
    let steps = 3 + rng.below(10);
    let topic = |n: u64| TOPICS[usize::try_from((number + n) % 8).unwrap_or(0)];
    let title = format!("Ship the {} service, release {number}", topic(0));
    let plan = plan(&title, steps, &topic)?;
    let mut run = Run::begin(plan, &title)?;
    let cut_at = 2 + rng.below(2 * steps - 3);
    let paths: Vec<StepPath> = run.plan.steps().map(|(path, _)| path).collect();
    for (index, path) in (0..).zip(&paths) {
        if index == steps {
            run.gate(number)?;
        }
        if index == cut_at {
            run.fail(path, &mut rng)?;
            break;
        }
        run.finish(path, &mut rng)?;
        if rng.one_in(5) {
            run.note(&format!("keep {} compatible with version {index}", topic(index)))?;
        }
    }
    let current = usize::try_from(cut_at).unwrap_or(0);
    Ok(run.ends(&paths, current, &title))
}

fn plan(title: &str, steps: u64, topic: &dyn Fn(u64) -> &'static str) -> Result<Plan, String> {
    let mut text = format!(
        "title = \"{title}\"\nspec = \"specs/release.md\"\n[agents.claude]\ncommand = [\"claude\"]\n"
    );
    for phase in 0..2 {
        let gate = if phase == 1 { "gate = \"Design review\"\n" } else { "" };
        let _ = writeln!(
            text,
            "[[phase]]\nid = \"P{phase}\"\n{gate}[[phase.lane]]\nid = \"L\"\nsteps = ["
        );
        for step in 0..steps {
            let (number, topic) = (phase * steps + step, topic(step));
            let _ = writeln!(
                text,
                "  {{ id = \"{topic}-{number}\", agent = \"claude\", prompt = \"Build part {number} of {topic}: \
                 it must keep its data when the process dies.\", test = \"cargo test -p {topic}-{number}\", \
                 artifacts = [\"crates/{topic}/src/part_{number}.rs\"] }},"
            );
        }
        text.push_str("]\n");
    }
    fixture::read(&text)
}

/// A run that goes on.
struct Run {
    plan: Plan,
    state: RunState,
    course: Course,
    transcript: String,
    truth: Truth,
    seq: u64,
    now: Timestamp,
}

impl Run {
    fn begin(plan: Plan, title: &str) -> Result<Self, String> {
        let created = RunCreated {
            run_id: RunId("scripted".to_owned()),
            protocol: ProtocolRef::default(),
            plan_path: "plan.toml".to_owned(),
            plan_hash: plan.hash(),
            title: title.to_owned(),
            spec: None,
            root: "/project".to_owned(),
            linked: false,
            mark: "mark".to_owned(),
            head: None,
            previous: None,
            shape: Shape::from(&plan),
        };
        let (state, now) = (RunState::default(), Timestamp(1_750_000_000_000));
        let (course, truth) = (Course::default(), Truth::default());
        let transcript = format!("user: {title}\n");
        let mut run = Self { plan, state, course, transcript, truth, seq: 0, now };
        run.take(&Event::RunCreated(Box::new(created)))?;
        Ok(run)
    }

    fn take(&mut self, event: &Event) -> Result<(), String> {
        self.seq += 1;
        self.now = Timestamp(self.now.0 + PAUSE_MS);
        apply(&mut self.state, self.now, event).map_err(|e| e.to_string())?;
        self.course.take(self.seq, self.now, event);
        Ok(())
    }

    fn say(&mut self, line: &str) {
        self.transcript.push_str(line);
        self.transcript.push('\n');
    }

    fn start(&mut self, path: &StepPath, attempt: u32) -> Result<(), String> {
        let step = self.plan.step(path).ok_or("the step is in the plan")?;
        let (definition, prompt) = (step.definition(), step.work.display());
        let tests = step.tests().join(" ");
        self.take(&Event::StepStarted(StepStarted::new(path.clone(), attempt, definition)))?;
        self.say(&format!("{path}: attempt {attempt} started"));
        self.say(&format!("user: {prompt}"));
        self.say(&format!("user: `{tests}` must pass"));
        Ok(())
    }

    /// What an agent says and reads while it works.
    fn talk(&mut self, rng: &mut Rng) {
        let doing = [
            "Let me look at how the module is laid out before I change it.",
            "tool: Read src/lib.rs (210 lines)",
            "    pub fn open(path: &Path) -> Result<Self, Error> {",
            "tool: Bash cargo check",
            "    Checking 14 crates, finished in 3.2s",
            "I will keep the public interface as it is and add the missing case.",
            "tool: Edit, 12 lines added, 3 removed",
            "warning: unused variable: `buffer`",
        ];
        for _ in 0..TALK_LINES.0 + rng.below(TALK_LINES.1 - TALK_LINES.0) {
            let line = doing[usize::try_from(rng.below(doing.len() as u64)).unwrap_or(0)];
            self.say(line);
        }
    }

    fn finish(&mut self, path: &StepPath, rng: &mut Rng) -> Result<(), String> {
        self.start(path, 1)?;
        self.talk(rng);
        let step = self.plan.step(path).ok_or("the step is in the plan")?;
        let made = step.artifacts.clone();
        let hash =
            |path: &String| FileHash { path: path.clone(), sha256: Sha::of(path.as_bytes()) };
        let mut done = StepFinished::new(path.clone(), 1, Outcome::Succeeded);
        done.artifacts = made.iter().map(hash).collect();
        done.duration_ms = Millis(30_000);
        self.take(&Event::StepFinished(Box::new(done)))?;
        self.say(&format!("wrote {}", made.join(", ")));
        let words = format!("{path} is complete");
        self.say(&words);
        self.truth.done.push(words);
        self.truth.changed.extend(made);
        Ok(())
    }

    /// The first attempt fails in its test, the second one is cut.
    fn fail(&mut self, path: &StepPath, rng: &mut Rng) -> Result<(), String> {
        self.start(path, 1)?;
        self.talk(rng);
        let test = format!("{}::keeps_its_data", path.step.replace('-', "_"));
        let line = format!("test {test} ... FAILED");
        let lines = vec!["running 12 tests".to_owned(), line.clone(), "failures: 1".to_owned()];
        let outcome = Outcome::Failed {
            class: Class::Test,
            error: "its test failed with exit code 101".to_owned(),
            lines,
            budget: None,
            signature: String::new(),
            next: Next::Retry { at: self.now },
        };
        self.take(&Event::StepFinished(Box::new(StepFinished::new(path.clone(), 1, outcome))))?;
        self.say(&line);
        self.start(path, 2)?;
        self.talk(rng);
        self.truth.failing.push(test);
        Ok(())
    }

    fn gate(&mut self, number: u64) -> Result<(), String> {
        let (gate, name) = (GateRef("P1".to_owned()), "Design review".to_owned());
        self.take(&Event::GateAsked(GateAsked { gate: gate.clone(), name }))?;
        let message = format!("use format {number}, not the old one");
        let plan_hash = self.plan.hash();
        self.take(&Event::GateDecided(GateDecided {
            gate,
            approved: true,
            by: "ann".to_owned(),
            at: None,
            message: message.clone(),
            plan_hash,
            artifacts: Vec::new(),
        }))?;
        self.say(&format!("ann approved the design review: {message}"));
        self.truth.decisions.push(message);
        Ok(())
    }

    fn note(&mut self, message: &str) -> Result<(), String> {
        self.take(&Event::CheckpointRecorded(CheckpointRecorded {
            name: format!("manual-{}", self.seq),
            message: message.to_owned(),
            by: "agent".to_owned(),
            head: None,
            snapshots: Vec::new(),
        }))?;
        self.say(&format!("checkpoint: {message}"));
        self.truth.decisions.push(message.to_owned());
        Ok(())
    }

    fn ends(mut self, paths: &[StepPath], current: usize, title: &str) -> Cut {
        /// How many of the steps ahead a reader should know.
        const AHEAD: usize = 3;
        let truth = &mut self.truth;
        truth.objective.push(title.to_owned());
        if let Some(path) = paths.get(current) {
            let step = self.plan.step(path);
            truth.task.extend(step.map(|step| step.work.display()).map(|work| {
                work.split_once(": ").map_or(work.clone(), |(_, prompt)| prompt.to_owned())
            }));
            truth.criteria.extend(step.into_iter().flat_map(piton_core::plan::Step::tests));
            truth.in_flight.push(format!("{path}: attempt 2"));
        }
        truth.next.extend(paths.iter().skip(current + 1).take(AHEAD).map(ToString::to_string));
        let Self { plan, state, course, transcript, truth, now, .. } = self;
        Cut { plan, state, course, transcript, truth, now }
    }
}
