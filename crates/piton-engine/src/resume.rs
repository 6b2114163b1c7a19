//! The world compared with the record before anything runs.
//!
//! Each difference is named. Which ones stop and which only warn is one table, [`TABLE`], that the
//! docs show and the tests go through.

use piton_core::event::{
    Event, FileHash, Outcome, OutputsAccepted, PlanAccepted, Shape, SpecAccepted, StepFinished,
    StepReset,
};
use piton_core::evidence::{self, Files, Inputs, Rerun, Stale};
use piton_core::plan::OnChange;
use piton_core::refusal::Remedy;
use piton_core::replan::gates_removed;
use piton_core::state::Progress;
use piton_core::{Plan, RunState, StepPath, remedy};
use piton_formats::plan_diff::{ChangeKind, PlanDiff, diff};

use crate::error::Result;
use crate::world::World;

/// How much a difference matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing runs until a person acts: exit 4.
    Stops,
    /// It is said, and the run goes on.
    Warns,
    /// Work runs again because of it.
    RunsAgain,
}

/// A row of the table of differences.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in `--json`.
    pub name: &'static str,
    /// What differs.
    pub what: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What a person does about it.
    pub next: fn(&Commands<'_>) -> Remedy,
    /// The option that accepts it.
    pub accept: Option<&'static str>,
}

impl Row {
    /// What a person does about it.
    pub fn remedy(&self) -> Remedy {
        let option = self.accept.map(|option| format!(" {option}")).unwrap_or_default();
        let resume = &format!("resume RUN{option}");
        (self.next)(&Commands { resume, retry: "retry RUN STEP --again" })
    }
}

const fn row(
    name: &'static str,
    severity: Severity,
    what: &'static str,
    next: fn(&Commands<'_>) -> Remedy,
    accept: Option<&'static str>,
) -> Row {
    Row { name, what, severity, next, accept }
}

/// The commands that a person may choose from, without the program's name.
#[derive(Clone, Copy, Debug)]
pub struct Commands<'c> {
    /// Goes on, and accepts what is named.
    pub resume: &'c str,
    /// Runs the step again that it is about.
    pub retry: &'c str,
}

/// The option that accepts a changed spec.
pub const ACCEPT_SPEC: &str = "--accept-spec";
/// The option that accepts a changed plan.
pub const ACCEPT_PLAN: &str = "--accept-plan";
/// The option that accepts outputs that were changed from outside the run.
pub const ACCEPT_OUTPUTS: &str = "--accept-outputs";

/// Which differences stop, which only warn, and which make work run again.
#[rustfmt::skip]
pub const TABLE: &[Row] = &[
    row("spec-changed", Severity::Stops, "the spec's bytes differ, or it is missing", |Commands { resume, .. }| remedy![Words "review it, then run ", Piton "{resume}"], Some(ACCEPT_SPEC)),
    row("spec-accepted", Severity::Warns, "the spec differs, and `--accept-spec` was given", |_| "nothing: it is recorded with both hashes".into(), None),
    row("plan-changed-finished", Severity::Stops, "a finished step has another definition in the plan", |Commands { resume, .. }| remedy![Words "review it, then run ", Piton "{resume}", Words ": the step runs again"], Some(ACCEPT_PLAN)),
    row("gate-removed", Severity::Stops, "a gate that nobody approved is no longer in the plan", |Commands { resume, .. }| remedy![Words "review it, then run ", Piton "{resume}", Words ": nobody is asked any more"], Some(ACCEPT_PLAN)),
    row("plan-changed", Severity::Warns, "the plan differs, but no finished step does", |_| "nothing: the new plan is recorded and used".into(), None),
    row("plan-missing", Severity::Warns, "the plan's file is gone", |_| "nothing: the recorded plan is used".into(), None),
    row("plan-secret", Severity::Stops, "the plan's file is gone, and the recorded plan had a secret taken out", |_| "bring the plan's file back".into(), None),
    row("artifact-missing", Severity::RunsAgain, "a finished step's artifact is gone", |_| "nothing: the step runs again".into(), None),
    row("artifact-changed", Severity::RunsAgain, "a finished step's artifact differs from what the run last recorded", |_| "nothing: the step runs again".into(), None),
    row("output-changed", Severity::Stops, "a finished step's output was changed from outside the run, and the plan says `on_change = \"ask\"`", |Commands { resume, retry }| remedy![Words "review it, then keep it with ", Piton "{resume}", Words ", or run the step again with ", Piton "{retry}"], Some(ACCEPT_OUTPUTS)),
    row("output-accepted", Severity::Warns, "a finished step's output was changed from outside the run, and `--accept-outputs` was given", |_| "nothing: it is recorded with its hash".into(), None),
    row("input-outdated", Severity::Warns, "a finished step's declared input differs, and the plan says `on_change = \"ask\"`", |Commands { retry, .. }| remedy![Words "nothing, or run the step again with ", Piton "{retry}"], None),
    row("input-changed", Severity::RunsAgain, "a finished step's declared input differs", |_| "nothing: the step runs again".into(), None),
    row("head-moved", Severity::Warns, "another commit is checked out", |_| "nothing, if you meant it".into(), None),
    row("root-moved", Severity::Warns, "the project lies elsewhere", |_| "nothing: steps run where it lies now".into(), None),
    row("worktree-gone", Severity::Stops, "the linked work tree that the run was started in is gone", |_| remedy![Words "bring it back with ", Shell "git worktree add -f PATH BRANCH", Words ", or start over with ", Piton "run PLAN --fresh"], None),
    row("step-running", Severity::Warns, "a step of the run is still at work", |_| "nothing: the driver attaches to it".into(), None),
    row("step-lost", Severity::RunsAgain, "a step was in flight when its keeper fell, or its worktree was deleted", |_| "nothing: what lives of it is ended, and it runs again".into(), None),
    row("step-removed", Severity::Warns, "a step in flight is no longer in the plan", |_| "nothing: what runs of it is ended, and it is recorded as interrupted".into(), None),
    row("strays", Severity::Warns, "processes of the run live without a keeper", |_| "nothing: they are ended before anything starts".into(), None),
    row("protocol-refuses", Severity::Stops, "a file of the run's protocol says that it must not go on", |_| "correct the file, then resume".into(), None),
    row("protocol-reruns", Severity::RunsAgain, "a file of the run's protocol says that a finished step must run again", |_| "nothing: the step runs again".into(), None),
    row("protocol-warns", Severity::Warns, "a file of the run's protocol differs from the record", |_| "review the file".into(), None),
];

/// A difference between the world and the record.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Its row in [`TABLE`].
    pub name: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What differs, in words.
    pub message: String,
    /// The step that it is about.
    pub step: Option<StepPath>,
    /// What to do.
    pub next: &'static Row,
}

/// What a person has accepted on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accepts<'a> {
    /// A changed plan.
    pub plan: bool,
    /// A changed spec.
    pub spec: bool,
    /// Outputs that were changed from outside the run.
    pub outputs: bool,
    /// Who.
    pub by: &'a str,
}

/// What the comparison found.
#[derive(Clone, Debug)]
pub struct Check {
    /// The plan to drive with.
    pub plan: Plan,
    /// Every difference, the ones that stop first.
    pub differences: Vec<Difference>,
    /// What was checked and is as recorded, in words.
    pub holds: Vec<String>,
    /// What changed in the plan, per step.
    pub plan_diff: Option<PlanDiff>,
    /// The finished steps that run again.
    pub reruns: Vec<Rerun>,
    /// What to record before going on.
    pub events: Vec<Event>,
}

impl Check {
    /// Whether something must be decided by a person first.
    pub fn stops(&self) -> bool {
        self.differences.iter().any(|d| d.severity == Severity::Stops)
    }

    /// The command that resumes a run and accepts all that can be accepted: one accepted alone would
    /// meet the other. What was accepted in this comparison is accepted again.
    pub fn resume_command(&self, run_id: &str, accepts_plan: bool) -> String {
        let has = |name: &str| self.differences.iter().any(|found| found.name == name);
        let stops = |option: &str| {
            let mut stops = self.differences.iter().filter(|d| d.severity == Severity::Stops);
            stops.any(|found| found.next.accept == Some(option))
        };
        let mut command = format!("resume {run_id}");
        for (option, given) in [
            (ACCEPT_PLAN, accepts_plan && has("plan-changed")),
            (ACCEPT_SPEC, has("spec-accepted")),
            (ACCEPT_OUTPUTS, has("output-accepted")),
        ] {
            if given || stops(option) {
                command.extend([" ", option]);
            }
        }
        command
    }

    /// A comparison that ends before it began: one difference, and nothing to compare with.
    pub fn only(recorded: &Plan, name: &'static str, message: String) -> Self {
        let mut check = Self {
            plan: recorded.clone(),
            differences: Vec::new(),
            holds: Vec::new(),
            plan_diff: None,
            reruns: Vec::new(),
            events: Vec::new(),
        };
        check.add(name, message);
        check
    }

    /// Adds a difference that has a row in [`TABLE`].
    pub fn add(&mut self, name: &'static str, message: String) {
        self.add_about(name, message, None);
    }

    /// Adds a difference that is about a step.
    pub fn add_about(&mut self, name: &'static str, message: String, step: Option<StepPath>) {
        if let Some(next) = TABLE.iter().find(|row| row.name == name) {
            let severity = next.severity;
            self.differences.push(Difference { name, severity, message, step, next });
        }
    }
}

/// Compares the world with the record. `now` is the plan as its file says it, if it is there.
pub fn check(
    state: &RunState,
    recorded: &Plan,
    now: Option<&Plan>,
    accepts: Accepts<'_>,
    world: &mut dyn World,
) -> Result<Check> {
    let mut check = Check {
        plan: now.unwrap_or(recorded).clone(),
        differences: Vec::new(),
        holds: Vec::new(),
        plan_diff: None,
        reruns: Vec::new(),
        events: Vec::new(),
    };
    compare_plan(&mut check, state, recorded, now, accepts);
    compare_spec(&mut check, state, accepts, world)?;
    compare_files(&mut check, state, accepts, world)?;
    let head = world.head();
    if head != state.head && state.head.is_some() {
        let short = |h: &Option<String>| {
            h.as_ref().map_or("none".to_owned(), |h| h[..10.min(h.len())].to_owned())
        };
        check.add(
            "head-moved",
            format!("HEAD was {} and is {} now", short(&state.head), short(&head)),
        );
    }
    check.differences.sort_by_key(|d| d.severity != Severity::Stops);
    Ok(check)
}

fn compare_plan(
    check: &mut Check,
    state: &RunState,
    recorded: &Plan,
    now: Option<&Plan>,
    accepts: Accepts<'_>,
) {
    let Some(now) = now else {
        check.add("plan-missing", format!("{} is gone", state.plan_path));
        if piton_core::redact::is_redacted(recorded) {
            check.add(
                "plan-secret",
                format!("{} held a secret that is not recorded", state.plan_path),
            );
        }
        return;
    };
    let from = recorded.hash();
    if now.hash() == from {
        return;
    }
    let changes = diff(recorded, now);
    let touched: Vec<String> = changes
        .steps
        .iter()
        .filter(|c| matches!(c.kind, ChangeKind::Changed { definition_changed: true, .. }))
        .filter(|c| state.step(&c.path).is_some_and(|s| s.progress == Progress::Done))
        // What is merged stays, whatever the plan says of it now.
        .filter(|c| !state.is_merged(&c.path.lane()))
        .map(|c| c.path.to_string())
        .collect();
    let opened = gates_removed(state, recorded, now);
    if touched.is_empty() && (opened.is_empty() || accepts.plan) {
        check.add("plan-changed", "the plan changed; no finished step did".to_owned());
    } else if accepts.plan {
        check
            .add("plan-changed", format!("accepted: {} changed and run again", touched.join(", ")));
    }
    if !touched.is_empty() && !accepts.plan {
        check.add(
            "plan-changed-finished",
            format!("finished steps changed in the plan: {}", touched.join(", ")),
        );
    }
    if !opened.is_empty() && !accepts.plan {
        let gates = opened.join(", ");
        check.add("gate-removed", format!("not approved, and no longer in the plan: {gates}"));
    }
    // The new plan has no place for their outcome.
    let gone = state.running().into_iter().filter(|(step, _)| now.step(step).is_none());
    check.events.extend(gone.map(|(step, attempt)| removed(step, attempt)));
    check.events.push(Event::PlanAccepted(Box::new(PlanAccepted {
        from,
        to: now.hash(),
        title: now.title.clone(),
        shape: Shape::from(now),
        by: if touched.is_empty() && opened.is_empty() {
            String::new()
        } else {
            accepts.by.to_owned()
        },
    })));
    check.plan_diff = Some(changes);
}

/// The outcome of an attempt whose step is no longer in the plan.
fn removed(step: StepPath, attempt: u32) -> Event {
    Event::StepFinished(Box::new(StepFinished::new(
        step,
        attempt,
        Outcome::Interrupted { why: "it is no longer in the plan".to_owned() },
    )))
}

/// The spec as it is now and how it differs, if it is another than the one on record.
pub(crate) fn changed_spec(
    plan: &Plan,
    state: &RunState,
    world: &mut dyn World,
) -> Result<Option<(Option<FileHash>, String)>> {
    let now = match &plan.spec {
        None => None,
        Some(path) => {
            let seen = world.files(std::slice::from_ref(path))?;
            let found = seen.get(path).cloned().flatten();
            found.map(|sha256| FileHash { path: path.clone(), sha256 })
        }
    };
    if now == state.spec || is_spec_unfinished(plan, state) {
        return Ok(None);
    }
    let said = |f: &Option<FileHash>| {
        f.as_ref().map_or("nothing".to_owned(), |f| format!("{} ({})", f.path, f.sha256.short()))
    };
    let message = format!("the spec was {} and is {} now", said(&state.spec), said(&now));
    Ok(Some((now, message)))
}

fn compare_spec(
    check: &mut Check,
    state: &RunState,
    accepts: Accepts<'_>,
    world: &mut dyn World,
) -> Result<()> {
    let Some((now, message)) = changed_spec(&check.plan, state, world)? else { return Ok(()) };
    if accepts.spec {
        let (from, by) = (state.spec.clone(), accepts.by.to_owned());
        check.events.push(Event::SpecAccepted(SpecAccepted { from, to: now, by }));
        check.add("spec-accepted", format!("accepted: {message}"));
    } else {
        check.add("spec-changed", message);
    }
    Ok(())
}

/// Whether a step that makes the spec has begun and is not over: what is there is what it left, and
/// its success says what the spec is.
fn is_spec_unfinished(plan: &Plan, state: &RunState) -> bool {
    let Some(spec) = &plan.spec else { return false };
    let mut begun = state.steps().filter(|(_, s)| s.attempts > 0 && !s.progress.is_over());
    begun.any(|(path, _)| plan.step(&path).is_some_and(|step| step.artifacts.contains(spec)))
}

fn compare_files(
    check: &mut Check,
    state: &RunState,
    accepts: Accepts<'_>,
    world: &mut dyn World,
) -> Result<()> {
    // With the new plan's structure: steps that are no longer in it need no evidence.
    let mut files = world.files(&evidence::paths_to_see(state))?;
    let mut inputs = see_inputs(&check.plan, state, world)?;
    let in_flight = state.running();
    leave_out_unrecorded(&check.plan, state, &in_flight, world, &mut files, &mut inputs)?;
    let asks = check.plan.on_change == OnChange::Ask;
    for rerun in evidence::stale(&check.plan, state, &files, &inputs) {
        let name = match rerun.stale {
            // It is a difference of the plan.
            Stale::Definition => "",
            Stale::ArtifactMissing => "artifact-missing",
            // Whoever accepts the spec accepts what the step made.
            Stale::ArtifactChanged if asks && is_only_spec(state, &rerun.step, &files) => continue,
            Stale::ArtifactChanged if asks && accepts.outputs => "output-accepted",
            Stale::ArtifactChanged if asks => "output-changed",
            Stale::ArtifactChanged => "artifact-changed",
            Stale::Input if asks => "input-outdated",
            Stale::Input => "input-changed",
        };
        let message = format!("{}: {}", rerun.step, rerun.reason);
        check.add_about(name, message, Some(rerun.step.clone()));
        match name {
            "output-accepted" => {
                check.events.push(accepted(state, &rerun.step, &files, accepts.by));
            }
            "output-changed" | "input-outdated" => {}
            _ => check.reruns.push(rerun),
        }
    }
    let resets = check
        .reruns
        .iter()
        .map(|r| Event::StepReset(StepReset { step: r.step.clone(), reason: r.reason.clone() }));
    check.events.extend(resets);
    Ok(())
}

/// Whether nothing that a step made differs from the record but the spec, which is compared by itself.
fn is_only_spec(state: &RunState, path: &StepPath, files: &Files) -> bool {
    let made = state.step(path).into_iter().flat_map(|step| &step.artifacts);
    let mut changed = made.map(|file| state.place_of(path, &file.path)).filter(|place| {
        let recorded = state.recorded.get(place).map(|r| &r.sha256);
        files.get(place).is_some_and(|now| now.as_ref() != recorded)
    });
    let spec = state.spec.as_ref().map(|spec| &spec.path);
    changed.all(|place| Some(&place) == spec)
}

/// The outputs of a step as they are now, accepted by a person.
fn accepted(state: &RunState, path: &StepPath, files: &Files, by: &str) -> Event {
    let made = state.step(path).into_iter().flat_map(|step| &step.artifacts);
    let now = made.filter_map(|file| {
        let sha256 = files.get(&state.place_of(path, &file.path))?.clone()?;
        Some(FileHash { path: file.path.clone(), sha256 })
    });
    let (step, files, by) = (path.clone(), now.collect(), by.to_owned());
    Event::OutputsAccepted(OutputsAccepted { step, files, by })
}

/// Leaves out what a step in flight is making: nothing is recorded of it yet, so it can't differ.
pub fn leave_out_unrecorded(
    plan: &Plan,
    state: &RunState,
    in_flight: &[(StepPath, u32)],
    world: &mut dyn World,
    files: &mut Files,
    inputs: &mut Inputs,
) -> Result<()> {
    for (path, _) in in_flight {
        let Some(step) = plan.step(path).filter(|s| !s.artifacts.is_empty()) else {
            continue;
        };
        let dir = state.lane(&path.lane()).map_or("", |l| l.dir());
        let made = world.paths(dir, &step.artifacts)?;
        let is_made = |path: &String| step.artifacts.contains(path) || made.contains(path);
        let prefix = state.place_of(path, "");
        files.retain(|path, _| {
            !path.strip_prefix(&prefix).is_some_and(|below| is_made(&below.to_owned()))
        });
        for (reader, seen) in inputs.iter_mut() {
            let before = state.step(reader).map_or(&[][..], |s| s.inputs.as_slice());
            seen.retain(|f| !is_made(&f.path));
            seen.extend(before.iter().filter(|f| is_made(&f.path)).cloned());
        }
    }
    Ok(())
}

fn see_inputs(plan: &Plan, state: &RunState, world: &mut dyn World) -> Result<Inputs> {
    let mut inputs = Inputs::new();
    for (path, patterns) in evidence::steps_with_inputs(plan, state) {
        let dir = state.lane(&path.lane()).map_or("", |l| l.dir());
        let seen = world.inputs(dir, patterns)?;
        inputs.insert(path, seen);
    }
    Ok(inputs)
}

/// The finished steps whose declared inputs differ now.
pub fn stale_inputs(plan: &Plan, state: &RunState, world: &mut dyn World) -> Result<Vec<Rerun>> {
    let inputs = see_inputs(plan, state, world)?;
    Ok(evidence::stale(plan, state, &evidence::Files::new(), &inputs))
}
