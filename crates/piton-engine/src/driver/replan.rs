//! Replans: the plan's files are kept, the intent made durable, the command run, and what it wrote judged.
//!
//! What a replan wrote is kept before it is judged, and the judgement is about that: a driver that
//! falls on the way comes to the same one. A plan that does not take effect is put back before that is
//! recorded, so that nobody finds another plan than the one on record while nothing is at work.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use piton_core::complexity::Complexity;
use piton_core::decide::{Replan, retries_max, worker};
use piton_core::event::{
    Event, LaneReopened, NewPlan, Next, NoReplan, Outcome, ReplanBegun, ReplanEnded, ReplanOutcome,
    ReplanRefused, Trigger,
};
use piton_core::failure::LINES_PASSED_ON;
use piton_core::lane_state::Act;
use piton_core::plan::OnFailure;
use piton_core::replan::{self, Judged};
use piton_core::replan_state::REPLAN_LANE;
use piton_core::{RunState, StepPath};
use piton_formats::plan_diff::by_phase;
use piton_formats::template::Given;

use super::tallies::exceeds;
use super::{Driver, exits, outcome};
use crate::error::{Error, Result};
use crate::order;
use crate::world::{Attempt, Cause, Ended, NotAPlan, PlanRead, Plans, Version};

/// What came of the process of a replan.
struct Came<'a> {
    outcome: ReplanOutcome,
    ended: Option<&'a Ended>,
}

impl Driver<'_> {
    /// The outcome of an attempt that may have said how complex its phase is: if it failed and that is
    /// too much, the phase is planned again.
    pub(super) fn weighed(
        &self,
        mut outcome: Outcome,
        attempt: &Attempt,
        found: Option<Complexity>,
    ) -> Outcome {
        if let (Outcome::Failed { error, next, budget, .. }, Some(found)) = (&mut outcome, found)
            && let Some(limit) =
                replan::too_complex(&self.plan, &self.state, &attempt.step, (found, *next))
        {
            let _ = write!(error, "; it reports a complexity of {found}, above {limit}");
            (*next, *budget) = (Next::Replan { trigger: Trigger::Complexity }, None);
        }
        outcome
    }

    /// Begins a replan: the plan's files are kept, then the intent is recorded.
    pub(super) fn begin_replan(&mut self, replan: Replan) -> Result<()> {
        self.commit()?;
        let kept = match self.world.plans() {
            Some(plans) => plans.keep(&self.state, &self.plan, replan.attempt),
            None => Err(Error::world("the files of the plan cannot be read again")),
        };
        let Replan { phase, due, number, attempt } = replan;
        if let Err(why) = kept {
            let why = NoReplan::Failed { error: self.redact(&why.to_string()) };
            let (trigger, reason) = (due.trigger, due.reason);
            let refused = ReplanRefused { phase, trigger, reason, why };
            return self.record(Event::ReplanRefused(Box::new(refused)));
        }
        self.options.limits.force_replan = None;
        self.record(Event::ReplanBegun(Box::new(ReplanBegun {
            phase,
            trigger: due.trigger,
            reason: due.reason,
            step: due.step,
            signature: due.signature,
            forced_by: due.forced_by,
            number,
            attempt,
            plan: replan::structure(&self.plan),
            secrets: self.options.redactor.names().iter().cloned().collect(),
        })))?;
        self.order_replan()
    }

    /// The process of the replan that is under way.
    pub(super) fn replan_process(&self) -> Option<Attempt> {
        self.state.replans.process().map(|(step, number)| Attempt { step, number })
    }

    /// Puts the start of a replan into what follows the next commit.
    pub(super) fn order_replan(&mut self) -> Result<()> {
        let Some(attempt) = self.replan_process() else { return Ok(()) };
        let rules = self.dispatch.live.replan_rules().into_owned();
        let Some(step) = rules.by else {
            return self.replan_failed("no replan command is configured", None);
        };
        let given = self.given_to_replan();
        let order = order::order((&self.dispatch.live, &self.state), &step, &attempt, given);
        match order {
            Ok(order) => {
                let kept_prompt = order.prompt.as_deref().map(|text| self.redact(text));
                self.dispatch.orders.push(order::Order { kept_prompt, ..order });
                Ok(())
            }
            Err(error) => self.replan_failed(&error.to_string(), None),
        }
    }

    /// What the command or prompt of a replan is given.
    fn given_to_replan(&self) -> Given {
        let Some(under_way) = &self.state.replans.under_way else { return Given::default() };
        let (begun, root) = (&under_way.begun, &self.state.root);
        let plan = std::path::Path::new(root).join(&self.state.plan_path);
        let values = [
            ("plan", plan.to_string_lossy().into_owned()),
            ("reason", begun.reason.clone()),
            ("trigger", begun.trigger.to_string()),
            ("number", begun.number.to_string()),
        ];
        let name = |key: &str| match key {
            "plan" => "PITON_PLAN".to_owned(),
            key => format!("PITON_REPLAN_{}", key.to_uppercase()),
        };
        let env = values.iter().map(|(key, value)| (name(key), value.clone())).collect();
        let context: BTreeMap<_, _> =
            values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Given { context, env, ..Given::default() }
    }

    /// Records what came of a replan whose process is over.
    pub(super) fn replan_ended(&mut self, ended: &Ended) -> Result<()> {
        self.dispatch.acks.push(ended.attempt.clone());
        if self.replan_process().as_ref() != Some(&ended.attempt) {
            return Ok(());
        }
        let limit = self.plan.replan_rules().by.as_ref().map(|s| (s.timeout, s.idle_timeout));
        let error = match ended.cause {
            Cause::Exited if ended.code == Some(0) => return self.judge_replan(ended),
            Cause::Exited if exits::was_killed(ended) => {
                return self.replan_lost("it was killed from outside (SIGKILL)");
            }
            Cause::Exited if self.ended_with_driver(ended) => {
                return self.replan_lost("a signal asked it to end, as it did its driver");
            }
            Cause::Ended => {
                let why = self.stop.ending.unwrap_or(outcome::ENDED_UNSEEN);
                return self.replan_cut_short(why);
            }
            Cause::Exited => exits::how(ended),
            Cause::Timeout => {
                format!("it took longer than {}", limit.map(|l| l.0).unwrap_or_default())
            }
            Cause::IdleTimeout => {
                format!("it was silent for {}", limit.and_then(|l| l.1).unwrap_or_default())
            }
            Cause::NotStarted => ended.error.clone().unwrap_or_else(|| "it did not start".into()),
        };
        self.replan_failed(&error, Some(ended))
    }

    /// Judges what a replan wrote.
    fn judge_replan(&mut self, ended: &Ended) -> Result<()> {
        let before = self.plan.clone();
        let attempt = ended.attempt.number;
        let (plans, state) = self.plans()?;
        let read = plans.left(state, attempt, &before)?;
        let read = match read {
            Ok(read) => read,
            Err(NotAPlan(why)) => {
                return self.replan_failed(&format!("the plan cannot be read: {why}"), Some(ended));
            }
        };
        match replan::judge(&self.state, &before, &read.recorded) {
            Judged::Refused(why) => self.replan_failed(&why, Some(ended)),
            Judged::Looped(equal) => {
                let outcome = ReplanOutcome::Looped { equal };
                self.put_back(Came { outcome, ended: Some(ended) })
            }
            Judged::Accepted(structure) => self.replanned(read, structure, ended),
        }
    }

    /// A new plan takes effect.
    fn replanned(
        &mut self,
        read: PlanRead,
        structure: piton_core::hash::Sha,
        ended: &Ended,
    ) -> Result<()> {
        let PlanRead { mut recorded, mut live, redactor } = read;
        // Before, so that no run is ever without its plan, nor its files behind the record.
        self.run.store.keep_plan(&recorded)?;
        let (plans, state) = self.plans()?;
        plans.put(state, ended.attempt.number, Version::After)?;
        let to = recorded.hash();
        let new = NewPlan {
            from: self.state.plan_hash.clone().unwrap_or_else(|| self.plan.hash()),
            to,
            title: recorded.title.clone(),
            shape: piton_core::event::Shape::from(&recorded),
            structure,
            changes: by_phase(&self.plan, &recorded),
        };
        let outcome = ReplanOutcome::Replanned(Box::new(new));
        if self.plan.on_failure == OnFailure::Continue {
            // Asked for on the command line, whatever the plan says.
            (recorded.on_failure, live.on_failure) = (OnFailure::Continue, OnFailure::Continue);
        }
        self.record_replan(Came { outcome, ended: Some(ended) })?;
        (self.plan, self.dispatch.live) = (recorded, live);
        if let Some(redactor) = redactor {
            self.options.redactor = redactor;
        }
        Ok(())
    }

    /// A replan failed: the plan is as it was.
    pub(super) fn replan_failed(&mut self, error: &str, ended: Option<&Ended>) -> Result<()> {
        let redactor = &self.options.redactor;
        let known = redactor.names();
        let under_way = self.state.replans.under_way.as_ref();
        // What a secret may be in that is not known here is not copied.
        let can_tell = under_way.is_some_and(|u| u.begun.secrets.iter().all(|s| known.contains(s)));
        let lines = match ended.filter(|_| can_tell) {
            Some(ended) => self.world.tail(ended, LINES_PASSED_ON, redactor),
            None => Vec::new(),
        };
        let error = self.redact(error);
        self.put_back(Came { outcome: ReplanOutcome::Failed { error, lines }, ended })
    }

    /// A replan was lost or killed: it begins again, unless this driver saw too many.
    pub(super) fn replan_lost(&mut self, why: &str) -> Result<()> {
        let Some(attempt) = self.replan_process() else { return Ok(()) };
        let most = self.plan.budgets.restarts;
        if exceeds(&mut self.tallies.restarts, &attempt.step, most) {
            let error = format!("{why}; the budget restarts is used up ({most})");
            return self.replan_failed(&error, None);
        }
        self.replan_cut_short(why)
    }

    fn replan_cut_short(&mut self, why: &str) -> Result<()> {
        let outcome = ReplanOutcome::Interrupted { why: self.redact(why) };
        self.put_back(Came { outcome, ended: None })
    }

    /// Puts the plan's files back, then records why; what the replan wrote is kept.
    fn put_back(&mut self, came: Came<'_>) -> Result<()> {
        let Some(attempt) = self.replan_process() else { return Ok(()) };
        let before = self.plan.clone();
        let (plans, state) = self.plans()?;
        // Whatever it is: it is only kept.
        let _ = plans.left(state, attempt.number, &before)?;
        plans.put(state, attempt.number, Version::Before)?;
        self.record_replan(came)
    }

    fn record_replan(&mut self, came: Came<'_>) -> Result<()> {
        let Some(attempt) = self.replan_process() else { return Ok(()) };
        let Came { outcome, ended } = came;
        self.record(Event::ReplanEnded(Box::new(ReplanEnded {
            phase: attempt.step.phase,
            attempt: attempt.number,
            outcome,
            exit_code: ended.and_then(|e| e.code),
            duration_ms: ended.map(|e| e.duration).unwrap_or_default(),
            logs: ended.map(|e| e.logs).unwrap_or_default(),
        })))
    }

    fn plans(&mut self) -> Result<(&mut dyn Plans, &RunState)> {
        let plans = self.world.plans();
        let plans = plans.ok_or_else(|| Error::world("the files of the plan are not there"))?;
        Ok((plans, &self.state))
    }

    /// Lets the work of a lane go on whose tests have its phase planned again: it is not finished.
    pub(super) fn reopen_for_replan(&mut self, step: &StepPath) -> Result<()> {
        let path = step.lane();
        let failed = self.state.step(step).and_then(|s| s.failure_context.last().cloned());
        let lane = self.plan.lane(&path);
        let (Some(failed), Some(worker)) = (failed, lane.and_then(worker)) else { return Ok(()) };
        let asked = self.options.retries;
        let retries_max = retries_max(&self.plan, &self.state, &path, worker, asked);
        let step = StepPath::new(&path.phase, &path.lane, &worker.id);
        let event = LaneReopened {
            lane: path,
            step,
            class: failed.class,
            error: failed.error,
            lines: failed.lines,
            onto: None,
            head: None,
            retries_max,
        };
        self.record(Event::LaneReopened(Box::new(event)))
    }

    /// Puts the plan's files into place for an undo that takes a replan back, or brings it back.
    pub(super) fn exchange_plan(&mut self, undoes: Option<u64>) -> Result<()> {
        let acts = &self.state.undo;
        let Some(act) = acts.iter().find(|act| Some(act.id) == undoes) else { return Ok(()) };
        let Some(plan) = &act.plan else { return Ok(()) };
        let takes_back = act.act == Act::Replan || act.returns;
        let version = if takes_back { Version::Before } else { Version::After };
        let attempt = plan.attempt;
        let (plans, state) = self.plans()?;
        plans.put(state, attempt, version)
    }

    /// Goes on by the plan on record, after an undo exchanged it.
    pub(super) fn follow_record(&mut self) -> Result<()> {
        if self.state.plan_hash.as_ref() != Some(&self.plan.hash()) {
            self.plan = self.run.store.plan(&self.state)?;
            self.dispatch.live = self.plan.clone();
        }
        Ok(())
    }
}

/// Whether an attempt is the process of a replan.
pub(super) fn is_replan(attempt: &Attempt) -> bool {
    attempt.step.lane == REPLAN_LANE
}
