//! Whatever becomes of lanes: decisions stay legal, replays agree, runs end.
//!
//! The acts of lanes are carried out by dice: refused, merged, missed, in conflict. The limits are
//! those of the driver: retries for what is reopened, rounds for a base that moves.

mod lane_events;
mod support;

use lane_events::{
    TEST, begun, blocked, committed, forked, intended, joined, merged, missed, proven, ready,
    rebased, removed, reopened, snapshot,
};
use piton_core::decide::{LaneAct, worker};
use piton_core::event::{Class, Event, MergedBy, Next, Outcome, StepReset, Verdict};
use piton_core::lane::{Merge, Stage};
use piton_core::lane_state::{LaneWork, MERGE_ROUNDS_MAX};
use piton_core::plan::{Lane, OnFailure, Step};
use piton_core::{Action, LanePath, Limits, Millis, Plan, RunState, StepPath, decide, replay};
use piton_testkit::plans;
use proptest::prelude::*;
use support::{Run, attached, failed, finished, started};

/// Decisions after which a run counts as endless; the largest plan needs a few hundred.
const TURNS_MAX: usize = 5_000;
/// Drivers after which nothing is refused any more.
const DRIVERS_MAX: u64 = 6;

fn any_lane() -> impl Strategy<Value = (bool, bool, u8, u32, bool)> {
    (any::<bool>(), any::<bool>(), 0..4u8, 0..3u32, any::<bool>())
}

fn any_plan() -> impl Strategy<Value = Plan> {
    (proptest::collection::vec(any_lane(), 1..5), any::<bool>()).prop_map(|(lanes, goes_on)| {
        let lanes = lanes.iter().enumerate();
        let built = lanes.flat_map(|(n, (apart, tests, merge, retries, alone))| {
            let id = format!("L{n}");
            let steps = vec![Step { retries: *retries, ..plans::step("work") }];
            let tests: &[&str] = if *tests { &[TEST] } else { &[] };
            if *apart && *merge == 2 {
                let tasks = [("T1", steps[0].clone()), ("T2", steps[0].clone())];
                let mut lanes = plans::with_tasks(&id, &tasks, *retries, tests);
                lanes[0].rules.alone = *alone;
                return lanes;
            }
            let mut lane = match (apart, merge) {
                (false, _) => plans::lane(&id, steps),
                (true, 0) => plans::through_pull_request(&id, steps, tests),
                (true, _) => plans::apart(&id, steps, tests),
            };
            if *apart && *merge == 1 {
                lane.rules.merge = Merge::None;
            }
            lane.rules.alone = *alone;
            vec![lane]
        });
        let mut plan = plans::plan(vec![plans::phase("P", built.collect())]);
        plan.on_failure = if goes_on { OnFailure::Continue } else { OnFailure::Stop };
        plan
    })
}

struct Scene<D> {
    run: Run,
    dice: D,
    epoch: u64,
    limits: Limits,
}

impl<D: Iterator<Item = u8>> Scene<D> {
    fn roll(&mut self) -> u8 {
        self.dice.next().unwrap_or(7)
    }

    /// Whether something goes wrong; nothing does once many drivers have come and gone.
    fn goes_wrong(&mut self) -> bool {
        self.roll().is_multiple_of(4) && self.epoch < DRIVERS_MAX
    }

    fn work(&self, lane: &LanePath) -> LaneWork {
        let work = self.run.state.lane(lane).and_then(|l| l.work.as_deref());
        work.cloned().unwrap_or_default()
    }

    /// The step a lane is at.
    fn current(&self, path: &LanePath) -> String {
        let lane = self.run.state.lane(path).expect("it is there");
        format!("{path}/{}", lane.steps[lane.current().expect("it is not over")].id)
    }

    /// Lets the lane work again, or stops it when its retries are used up.
    fn reopen(&mut self, path: &LanePath, lane: &Lane, class: Class) {
        let retries = worker(lane).expect("a lane has work").retries;
        let name = path.to_string();
        if self.work(path).reopened.count < retries {
            let Event::LaneReopened(mut event) = reopened(&name, class, retries) else {
                unreachable!("it is what it says")
            };
            event.step.step.clone_from(&worker(lane).expect("a lane has work").id);
            self.run.take(Event::LaneReopened(event));
        } else if class == Class::Conflict {
            self.run.take(blocked(&name, Stage::PrePr));
        }
    }

    fn act(&mut self, path: &LanePath, act: LaneAct) {
        let name = path.to_string();
        let lane = self.run.plan.lane(path).expect("acts are for lanes of the plan").clone();
        let work = self.work(path);
        let tree = format!("tree {}", self.roll() % 3);
        let event = match act {
            LaneAct::Begin if self.goes_wrong() => blocked(&name, Stage::BeforeLaneStart),
            LaneAct::Begin => {
                let Event::LaneBegun(mut event) = begun(&name, lane.rules.isolation) else {
                    unreachable!("it is what it says")
                };
                if let Some(task) = &lane.rules.task {
                    event.base_branch = format!("lane/{}", task.lane);
                }
                Event::LaneBegun(event)
            }
            LaneAct::MakeWorkspace if self.goes_wrong() => blocked(&name, Stage::AfterLaneStart),
            LaneAct::MakeWorkspace => ready(&name, "start"),
            LaneAct::Prove => proven(&self.current(path), &work.latest.tree.unwrap_or_default()),
            LaneAct::Fork => forked(&self.current(path), &work.latest.tree.unwrap_or(tree)),
            LaneAct::Join => joined(&self.current(path), &tree),
            LaneAct::Commit => {
                committed(&name, &work.latest.tree.unwrap_or(tree), !self.roll().is_multiple_of(3))
            }
            LaneAct::Rebase if self.goes_wrong() => {
                return self.reopen(path, &lane, Class::Conflict);
            }
            LaneAct::Rebase => {
                self.run.take(rebased(&name, "newer", &tree));
                let tests = lane.steps.iter().any(|s| s.id == "tests");
                if tests && !work.tests.prove(&lane.tests(), &tree) {
                    let step = StepPath::new(&path.phase, &path.lane, "tests");
                    let reason = "rebased".to_owned();
                    self.run.take(Event::StepReset(StepReset { step, reason }));
                }
                return;
            }
            LaneAct::Merge => return self.merge(path, &work),
            LaneAct::CheckPullRequest if self.goes_wrong() => {
                self.limits.unmerged.push(path.clone());
                return;
            }
            LaneAct::CheckPullRequest => merged(&name, MergedBy::PullRequest),
            LaneAct::Conclude(by) => {
                self.run.take(merged(&name, by));
                let steps = self.run.state.lane(path).expect("it is there").steps.clone();
                for step in steps.iter().filter(|s| !s.progress.is_over()) {
                    self.run.take(proven(&format!("{name}/{}", step.id), ""));
                }
                return;
            }
            LaneAct::Remove => removed(&name),
        };
        self.run.take(event);
    }

    fn merge(&mut self, path: &LanePath, work: &LaneWork) {
        let name = path.to_string();
        if work.merging().is_none() {
            let to = work.committed().map(|c| c.commit.clone()).unwrap_or_default();
            self.run.take(intended(&name, "newer", &to));
        }
        if !self.goes_wrong() {
            self.run.take(merged(&name, MergedBy::Queue));
            return;
        }
        self.run.take(missed(&name));
        if self.work(path).rounds > MERGE_ROUNDS_MAX {
            self.run.take(blocked(&name, Stage::PrePr));
        }
    }

    /// Ends one of the attempts at work.
    fn end_one(&mut self, running: &[(StepPath, u32)]) {
        let index = usize::from(self.roll()) % running.len();
        let (step, attempt) = &running[index];
        let planned = self.run.plan.step(step).expect("it is planned").clone();
        let lane = self.run.plan.lane(&step.lane()).expect("it is planned").clone();
        let failures = self.run.state.step(step).map_or(0, |s| s.failures);
        let is_test = step.step == "tests";
        let reopens = is_test
            && self.work(&step.lane()).reopened.count
                < worker(&lane).expect("a lane has work").retries;
        let outcome = match self.goes_wrong() {
            false => Outcome::Succeeded,
            true if is_test && reopens => failed(Class::Test, Next::Retry { at: self.run.at }),
            true if !is_test && failures < planned.retries => {
                failed(Class::Command, Next::Retry { at: self.run.at })
            }
            true => failed(if is_test { Class::Test } else { Class::Command }, Next::Fail),
        };
        let succeeded = outcome == Outcome::Succeeded;
        let Event::StepFinished(mut event) = finished(&step.to_string(), *attempt, outcome, vec![])
        else {
            unreachable!("it is the end of a step")
        };
        let tree = format!("tree {}", self.roll() % 3);
        let tree = if is_test { self.work(&step.lane()).latest.tree.unwrap_or(tree) } else { tree };
        event.after = self.work(&step.lane()).has_workspace().then(|| snapshot(&tree));
        event.tests = if succeeded { planned.tests() } else { Vec::new() };
        event.retries_max = (!succeeded).then_some(planned.retries);
        self.run.take(Event::StepFinished(event));
        if !succeeded && reopens {
            self.reopen(&step.lane(), &lane, Class::Test);
        }
    }

    /// Carries one decision out; the verdict ends it.
    fn turn(&mut self) -> Option<Verdict> {
        let (mut wake, mut acted) = (None, false);
        for action in decide(&self.run.plan, &self.run.state, &self.limits, self.run.at) {
            match action {
                Action::Start { step, attempt } => {
                    let event = started(&self.run.plan, &step.to_string(), attempt, vec![]);
                    self.run.take(event);
                }
                Action::Lane { lane, act } => {
                    acted = true;
                    self.act(&lane, act);
                }
                Action::WakeAt(at) => wake = Some(at),
                Action::Leave(verdict) => return Some(verdict),
                Action::Ask { .. }
                | Action::Exhausted(_)
                | Action::EndAll
                | Action::Replan(_)
                | Action::StopAgent { .. }
                | Action::Warn(_)
                | Action::RefuseReplan(_) => {}
            }
        }
        let running = self.run.state.running();
        if acted {
            return None;
        }
        if running.is_empty() {
            self.run.at = wake.unwrap_or(self.run.at).max(self.run.at);
        } else {
            self.run.at = self.run.at.after(Millis(250));
            self.end_one(&running);
        }
        None
    }
}

/// Whether a lane that runs alone has others at work beside it.
fn crowded(plan: &Plan, state: &RunState) -> bool {
    let running: Vec<LanePath> = state.running().iter().map(|(step, _)| step.lane()).collect();
    let alone = |lane: &LanePath| plan.lane(lane).is_some_and(|l| l.rules.alone);
    running.len() > 1 && running.iter().any(alone)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_run_of_lanes_ends_and_every_decision_is_legal(
        plan in any_plan(),
        dice in proptest::collection::vec(any::<u8>(), 64),
        jobs in 1..4usize,
    ) {
        let limits = Limits { jobs, checkpoints: true, ..Limits::default() };
        let run = Run::new(plan);
        let mut scene = Scene { run, dice: dice.into_iter().cycle(), epoch: 1, limits };
        let mut verdict = None;
        for _ in 0..TURNS_MAX {
            prop_assert!(!crowded(&scene.run.plan, &scene.run.state));
            let merging = scene.run.state.lanes().filter(|(_, l)| {
                let own = l.task.is_none();
                let merges = |w: &LaneWork| w.merging().is_some() && w.blocked.is_none();
                own && l.work.as_deref().is_some_and(merges)
            });
            prop_assert!(merging.count() <= 1, "two lanes move base at once");
            let (state, satisfied) = (&scene.run.state, scene.run.state.satisfied());
            let differs = |path: &LanePath| satisfied.contains(path) != state.satisfies(path);
            prop_assert_eq!(state.lanes().map(|(path, _)| path).find(differs), None);
            match scene.turn() {
                Some(Verdict::Blocked | Verdict::Waiting) => {
                    // Somebody resumes it.
                    scene.epoch += 1;
                    scene.limits.unmerged.clear();
                    let event = attached(scene.epoch);
                    scene.run.take(event);
                    prop_assert!(scene.epoch < DRIVERS_MAX * 4, "it is held up for ever");
                }
                Some(found) => {
                    verdict = Some(found);
                    break;
                }
                None => {}
            }
        }
        let verdict = verdict.ok_or_else(|| TestCaseError::fail("it does not end"))?;
        prop_assert!(matches!(verdict, Verdict::Complete | Verdict::Failed), "{:?}", verdict);
        prop_assert_eq!(verdict == Verdict::Complete, scene.run.state.is_over());

        let run = scene.run;
        let replayed = replay(run.events.iter().map(|(at, event)| (*at, event)));
        prop_assert_eq!(replayed.as_ref(), Ok(&run.state), "a replay gives the same state");
        let text = serde_json::to_string(&run.state).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let read: RunState = serde_json::from_str(&text).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(&read, &run.state, "and so does its text");
    }
}
