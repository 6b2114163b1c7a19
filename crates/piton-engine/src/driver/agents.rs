//! The agents of steps: how they begin, what they say while they work, and what their end means.
//!
//! What an agent said is recorded as counts since its process began, so that a stream which the next
//! driver reads again counts nothing twice.

use std::borrow::Cow;

use piton_core::agent::{self, Agent, Heard, Level, OnLimit, PRICES_DEFAULT, Tokens, Verdict};
use piton_core::agent_state::Day;
use piton_core::decide::agents::{self, Follow};
use piton_core::event::{
    AgentBegun, AgentHandedOff, AgentLimited, AgentSaid, BudgetWarned, CheckpointRecorded, Class,
    ContextFilled, Event, Facts, Next, Outcome,
};
use piton_core::failure::{self, Classified};
use piton_core::lane::OnRetry;
use piton_core::plan::Step;
use piton_core::{Millis, Timestamp, budget, refusal::Refusal};

use super::Driver;
use super::exits::was_killed;
use crate::error::Result;
use crate::world::{Attempt, Cause, Ended, Judged, Notice, Reported};

/// Who records checkpoints that nobody asked for.
const BY: &str = "piton";
/// How often the spending of other runs is looked at: a request of an agent takes about as long.
const DAY_EVERY: Millis = Millis::from_secs(15);
/// How long an agent whose program is missing is not asked again: long enough that not every step begins
/// with it, short enough that a night notices when somebody installs it.
const MISSING_FOR: Millis = Millis(60 * 60 * 1000);
/// What an agent did not do that is taken for dead.
const SILENT: &str = "(no output, no processor time, no file changed); see `silence`";
/// The limit of hand-offs, as failures name it.
const HANDOFFS: &str = "handoffs";
/// The limit of requests, as failures name it.
const REQUESTS: &str = "requests";

impl Driver<'_> {
    /// How the agent of an attempt begins; nothing if its step has none that Piton knows, and no others
    /// that may take its place.
    pub(super) fn begins(&self, attempt: &Attempt) -> Option<AgentBegun> {
        let step = self.planned(&attempt.step)?;
        let agent = self.plan.agent_of(step)?;
        let others = agents::substitutes(step, &agent);
        if !agent.is_known() && others.is_empty() {
            return None;
        }
        let lane = self.plan.lane(&attempt.step.lane())?;
        let is_reset = lane.rules.on_retry == OnRetry::Reset && !lane.rules.isolation.is_in_place();
        let session = agent::session_id(&self.state.mark, &attempt.to_string());
        let of = (&attempt.step, &*agent, others);
        Some(agents::begins((&self.plan, &self.state), of, &session, is_reset, self.clock.at))
    }

    /// The agent of an attempt that was started: the one of its step, or one that took its place.
    pub(super) fn agent_at(&self, attempt: &Attempt) -> Option<Agent> {
        let begun = self.state.step(&attempt.step).and_then(|step| step.agent.as_deref());
        let begun = begun.filter(|agent| agent.attempt == attempt.number && !agent.name.is_empty());
        match begun {
            Some(begun) => Some(self.plan.agent(&begun.name).into_owned()),
            None => self.plan.agent_of(self.planned(&attempt.step)?).map(Cow::into_owned),
        }
    }

    /// Follows the agents of attempts that a former driver started.
    pub(super) fn follow_agents(&mut self, in_flight: &[Attempt]) {
        for attempt in in_flight {
            if let Some(agent) = self.agent_at(attempt) {
                self.world.follow(attempt, &agent);
            }
        }
    }

    /// Records what an agent said, and watches how full its window is.
    pub(super) fn said(&mut self, attempt: &Attempt, heard: &Heard) -> Result<()> {
        let Some(agent) = self.agent_at(attempt).filter(|_| self.is_running(attempt)) else {
            return Ok(());
        };
        self.count(attempt, &agent, heard)?;
        self.watch_window(attempt, &agent, heard)?;
        if agents::has_asked_enough(&agent, heard) {
            self.ask_to_stop(attempt)?;
        }
        self.watch_stop(attempt, heard)
    }

    /// Records the rest of what an agent said which was lost with its keeper: it was paid for.
    pub(super) fn said_before_lost(&mut self, attempt: &Attempt) -> Result<()> {
        let Some(agent) = self.agent_at(attempt) else { return Ok(()) };
        let Some(heard) = self.world.heard_of_lost(attempt) else { return Ok(()) };
        self.count(attempt, &agent, &heard)
    }

    fn count(&mut self, attempt: &Attempt, agent: &Agent, heard: &Heard) -> Result<()> {
        let said = self.to_record(attempt, agent, heard);
        let known = self.state.step(&attempt.step).and_then(|step| step.agent.as_deref());
        let known = known.filter(|known| known.attempt == attempt.number);
        // A command that reports nothing is like any other.
        let is_silent = *heard == Heard { window: heard.window, ..Heard::default() };
        if !is_silent && agents::is_news(known, &said) {
            self.record(Event::AgentSaid(Box::new(said)))?;
        }
        Ok(())
    }

    fn to_record(&self, attempt: &Attempt, agent: &Agent, heard: &Heard) -> AgentSaid {
        let cost = agent::cost(&heard.totals, agent.prices);
        let can_tell = self.withheld(attempt).is_none();
        let clean = |text: &String| if can_tell { self.redact(text) } else { String::new() };
        let known = self.state.step(&attempt.step).and_then(|step| step.agent.as_deref());
        let known = known.filter(|known| known.attempt == attempt.number);
        let mut said = AgentSaid {
            step: attempt.step.clone(),
            attempt: attempt.number,
            session: heard.session.clone(),
            tokens: heard.totals.tokens,
            money_micros: cost.micros,
            is_cost_known: cost.is_known,
            requests: heard.totals.requests,
            context: heard.totals.context,
            window: heard.window,
            doing: clean(&heard.doing),
            in_flight: heard.in_flight.iter().map(clean).filter(|text| !text.is_empty()).collect(),
        };
        // Of a log whose middle was dropped, less is read again than was read before.
        if let Some(known) = known.filter(|known| known.tokens.total() > said.tokens.total()) {
            (said.tokens, said.requests) = (known.tokens, known.requests);
            (said.money_micros, said.is_cost_known) = (known.money_micros, known.is_cost_known);
        }
        said
    }

    /// Checkpoints the work of an agent whose window fills up, stops it when that is nearly full.
    fn watch_window(&mut self, attempt: &Attempt, agent: &Agent, heard: &Heard) -> Result<()> {
        let Some(context) = heard.totals.context.filter(|_| agent.is_known()) else {
            return Ok(());
        };
        let level = agent::level(agent.thresholds, Some(context), heard.window);
        if level > self.level(attempt) {
            let (step, number, window) = (attempt.step.clone(), attempt.number, heard.window);
            let filled = ContextFilled { step, attempt: number, level, context, window };
            self.record(Event::ContextFilled(filled))?;
            let word = if level == Level::Warning { "warning" } else { "critical" };
            let message = format!("the window of its agent is filling up ({word})");
            self.checkpoint(attempt, &format!("context {word}"), message)?;
        }
        if level >= Level::Critical {
            self.ask_to_stop(attempt)?;
        }
        if level == Level::Halt {
            self.world.end(attempt)?;
        }
        Ok(())
    }

    /// Ends an agent that shows no sign of life, its work checkpointed.
    pub(super) fn silent(&mut self, attempt: &Attempt, silence: Millis) -> Result<()> {
        if !self.is_running(attempt) {
            return Ok(());
        }
        let message = format!("its agent showed no sign of life for {silence}");
        self.checkpoint(attempt, "agent silent", message)?;
        self.tallies.silent.insert(attempt.clone(), silence);
        self.world.end(attempt)
    }

    fn level(&self, attempt: &Attempt) -> Level {
        let agent = self.state.step(&attempt.step).and_then(|step| step.agent.as_deref());
        agent.filter(|agent| agent.attempt == attempt.number).map_or(Level::Fine, |a| a.level)
    }

    /// Records the files of a lane while its agent works on them.
    fn checkpoint(&mut self, attempt: &Attempt, what: &str, message: String) -> Result<()> {
        let lane = attempt.step.lane();
        let taken = self.snapshot(&lane, &format!("{what}, {attempt}"));
        let taken = match taken {
            Ok(Some(taken)) => taken,
            Ok(None) => return Ok(()),
            Err(why) => {
                self.not_checkpointed(attempt, &why);
                return Ok(());
            }
        };
        let own = !self.work(&lane).isolation.is_in_place();
        let place = attempt.step.to_string().replace('/', ".");
        let (head, name) = (self.world.head(), what);
        self.record(Event::CheckpointRecorded(CheckpointRecorded {
            name: name.replacen(' ', &format!("-{place}-{}-", attempt.number), 1),
            message,
            by: BY.to_owned(),
            head,
            snapshots: vec![(own.then_some(lane), taken)],
        }))
    }

    fn not_checkpointed(&mut self, attempt: &Attempt, why: &Refusal) {
        let text = self.redact(&format!("{}: no checkpoint was recorded: {why}", attempt.step));
        self.warn(text);
    }

    /// What the end of an agent's process means, where its exit code alone does not tell.
    pub(super) fn agent_outcome(&mut self, step: &Step, ended: &Ended) -> Result<Option<Outcome>> {
        let attempt = &ended.attempt;
        let Some(Judged { heard, verdict }) = self.world.judged(ended) else { return Ok(None) };
        self.said(attempt, &heard)?;
        let Some(agent) = self.agent_at(attempt) else { return Ok(None) };
        let level = self.level(attempt);
        let is_ended_by_us = ended.cause == Cause::Ended && self.stop.ending.is_none();
        if is_ended_by_us && level == Level::Halt {
            return self.hand_off(&agent, attempt, "its window is full").map(Some);
        }
        if let Some(silence) = self.tallies.silent.remove(attempt).filter(|_| is_ended_by_us) {
            let why = format!("it showed no sign of life for {silence} {SILENT}");
            return Ok(Some(self.interrupted(attempt, why)));
        }
        if let Some(outcome) =
            self.asked_enough((&agent, &heard), level, is_ended_by_us, verdict.as_ref())
        {
            return Ok(Some(outcome));
        }
        if let Some(outcome) = self.was_cut_off(attempt, (level, is_ended_by_us))? {
            return Ok(Some(outcome));
        }
        let is_by_itself =
            ended.cause == Cause::Exited && !was_killed(ended) && !self.ended_with_driver(ended);
        let Some(verdict) = verdict.filter(|_| is_by_itself) else { return Ok(None) };
        let begun = self.state.step(&attempt.step).and_then(|step| step.agent.as_deref());
        let begun = begun.filter(|_| ended.code != Some(0));
        if let Some(why) = begun.and_then(|begun| agents::gives_session_up(begun, &verdict)) {
            return self.give_up(attempt, self.redact(&why)).map(Some);
        }
        Ok(Some(match agents::follows(verdict, level, agent.on_limit) {
            Follow::Succeed => return Ok(None),
            Follow::HandOff(why) => self.hand_off(&agent, attempt, &why)?,
            Follow::Interrupt(why) if self.state.exhausted.is_some() => {
                Outcome::Interrupted { why }
            }
            Follow::Interrupt(why) if heard.totals.requests == 0 => {
                self.unanswered(attempt, &agent, self.redact(&why))
            }
            Follow::Interrupt(why) => self.interrupted(attempt, self.redact(&why)),
            Follow::Fail { classified, error, is_final } => {
                self.agent_failed((step, &agent), ended, classified, (&error, is_final))?
            }
        }))
    }

    /// What follows if an agent was stopped because it made as many requests as it may.
    fn asked_enough(
        &mut self,
        (agent, heard): (&Agent, &Heard),
        level: Level,
        is_ended_by_us: bool,
        verdict: Option<&Verdict>,
    ) -> Option<Outcome> {
        let is_stopped = is_ended_by_us || verdict == Some(&Verdict::Stopped);
        // A window that is full, or a budget that is used up, stops it first.
        let is_other = level >= Level::Critical || self.state.exhausted.is_some();
        (is_stopped && !is_other && agents::has_asked_enough(agent, heard)).then(|| {
            Outcome::Failed {
                class: Class::Budget,
                error: format!(
                    "{}: it made {} requests in one attempt; the limit `requests` is reached ({})",
                    agent.name, heard.totals.requests, agent.requests
                ),
                lines: Vec::new(),
                budget: Some(REQUESTS.to_owned()),
                signature: String::new(),
                next: Next::Fail,
            }
        })
    }

    /// Lets a fresh agent go on, unless that would be one too many.
    pub(super) fn hand_off(
        &mut self,
        agent: &Agent,
        attempt: &Attempt,
        why: &str,
    ) -> Result<Outcome> {
        let handoffs = self.state.step(&attempt.step).and_then(|s| s.agent.as_deref());
        let handoffs = handoffs.map_or(0, |agent| agent.handoffs);
        let lane = attempt.step.lane();
        let found = self.work(&lane).latest.tree;
        let left = self.snapshot(&lane, &format!("after {attempt}")).ok().flatten();
        // Without snapshots nobody can tell; the number of hand-offs is limited all the same.
        let has_progress = found.zip(left).is_none_or(|(found, left)| found != left.tree);
        let why = self.redact(why);
        if let Some(reason) = agents::refuses_handoff(agent, handoffs, has_progress) {
            return Ok(Outcome::Failed {
                class: Class::Budget,
                error: format!("{why}; {reason}"),
                lines: Vec::new(),
                budget: Some(HANDOFFS.to_owned()),
                signature: String::new(),
                next: Next::Fail,
            });
        }
        self.session_ends(attempt, &why, false)?;
        Ok(Outcome::Interrupted { why })
    }

    /// Lets a fresh agent go on because the session could not be continued. That is a restart like any
    /// other, and no hand-off.
    fn give_up(&mut self, attempt: &Attempt, why: String) -> Result<Outcome> {
        self.session_ends(attempt, &why, true)?;
        Ok(self.interrupted(attempt, why))
    }

    /// What follows if an agent ended before its model answered anything: a pause before it starts again,
    /// for what keeps it from that may pass.
    fn unanswered(&mut self, attempt: &Attempt, agent: &Agent, why: String) -> Outcome {
        let outcome = self.interrupted(attempt, why);
        let Outcome::Interrupted { why } = outcome else { return outcome };
        let restarts = self.tallies.restarts.get(&attempt.step).copied().unwrap_or_default();
        let until = self.clock.at.after(failure::restart_wait(restarts));
        Outcome::Failed {
            class: Class::Agent,
            error: format!("{}: {why}, before its model answered", agent.name),
            lines: Vec::new(),
            budget: None,
            signature: String::new(),
            next: Next::Wait { until },
        }
    }

    /// Records that the session of an attempt is not continued.
    fn session_ends(&mut self, attempt: &Attempt, why: &str, is_lost: bool) -> Result<()> {
        let (step, number, why) = (attempt.step.clone(), attempt.number, why.to_owned());
        let handed = AgentHandedOff { step, attempt: number, why, is_lost };
        self.record(Event::AgentHandedOff(handed))
    }

    fn agent_failed(
        &mut self,
        (step, agent): (&Step, &Agent),
        ended: &Ended,
        classified: Classified,
        (error, is_final): (&str, bool),
    ) -> Result<Outcome> {
        let lines: Vec<String> = error.lines().skip(1).map(|line| self.redact(line)).collect();
        let first = error.lines().next().unwrap_or("it failed without a word");
        let error = format!("{}: {first}", agent.name);
        let mut outcome = self.failed_as(step, ended, classified, (&error, lines))?;
        if let (Outcome::Failed { next, .. }, true) = (&mut outcome, is_final) {
            *next = Next::Fail;
        }
        Ok(outcome)
    }

    /// What follows a failure of an agent that is at a limit: another one goes on at once, if it may.
    pub(super) fn or_another_agent(
        &mut self,
        step: &Step,
        attempt: &Attempt,
        classified: Classified,
        next: Next,
    ) -> Result<Next> {
        if classified.class != Class::RateLimit {
            return Ok(next);
        }
        let until = match next {
            Next::Wait { until } => until,
            _ => classified.reset.unwrap_or(self.clock.at),
        };
        let goes_on = self.unavailable(step, attempt, until)?;
        Ok(if goes_on { Next::Wait { until: self.clock.at } } else { next })
    }

    /// What follows if the program of an agent is not there: another one goes on at once, if it may.
    pub(super) fn agent_missing(&mut self, attempt: &Attempt) -> Result<Next> {
        let Some(step) = self.planned(&attempt.step).cloned() else { return Ok(Next::Fail) };
        let until = self.clock.at.after(MISSING_FOR);
        let goes_on = self.unavailable(&step, attempt, until)?;
        Ok(if goes_on { Next::Wait { until: self.clock.at } } else { Next::Fail })
    }

    /// Records until when the agent of an attempt is not to be asked; whether another one goes on.
    fn unavailable(&mut self, step: &Step, attempt: &Attempt, until: Timestamp) -> Result<bool> {
        let (Some(own), Some(agent)) = (self.plan.agent_of(step), self.agent_at(attempt)) else {
            return Ok(false);
        };
        let own = own.into_owned();
        let others = agents::substitutes(step, &own);
        if !agent.is_known() && others.is_empty() {
            return Ok(false);
        }
        let (path, number) = (attempt.step.clone(), attempt.number);
        let limited =
            AgentLimited { step: path, attempt: number, agent: agent.name.clone(), until };
        self.record(Event::AgentLimited(limited))?;
        let other = agents::choose((&self.plan, &self.state), &own, others, self.clock.at);
        Ok(agent.on_limit != OnLimit::Stop && other.name != agent.name)
    }

    /// What an attempt used: what it wrote itself, or what its agent said. Tokens of which nobody says the
    /// price have one all the same.
    pub(super) fn counted(&mut self, attempt: &Attempt, reported: &Reported) -> Facts {
        let facts = reported.facts.clone();
        let agent = self.state.step(&attempt.step).and_then(|step| step.agent.as_deref());
        let agent = agent.filter(|agent| agent.attempt == attempt.number);
        let said = agent.map_or(0, |agent| agent.money_micros);
        let is_known = agent.is_some_and(|agent| agent.is_cost_known);
        let tokens = facts.tokens.max(agent.map_or(0, |agent| agent.tokens.total()));
        let money_micros =
            if is_known || facts.money_micros == 0 { said } else { facts.money_micros };
        if reported.has_cost || tokens == 0 || money_micros > 0 || is_known {
            return Facts { tokens, money_micros, ..facts };
        }
        let sent = Tokens { input: tokens, ..Tokens::default() };
        let money_micros = PRICES_DEFAULT.of(sent);
        let (step, dollars) = (&attempt.step, budget::dollars(money_micros));
        self.warn(format!(
            "{step}: it reported tokens and no cost, which is unknown; budgets count {dollars}"
        ));
        Facts { tokens, money_micros, ..facts }
    }

    /// Looks at what other runs used today, now and then: they share the budgets of the day.
    pub(super) fn count_day(&mut self) -> Result<()> {
        let is_due = self.tallies.day_read.is_none_or(|at| self.clock.passed(at) >= DAY_EVERY);
        if self.plan.agents.is_empty() || !is_due {
            return Ok(());
        }
        self.tallies.day_read = Some(self.clock.awake);
        self.options.limits.elsewhere = self.run.spent_elsewhere(Day::number_at(self.clock.at))?;
        Ok(())
    }

    /// Tells a person, once, that most of a budget is used.
    pub(super) fn warn_budget(&mut self, warned: BudgetWarned) -> Result<()> {
        let (name, run) = (&warned.budget, self.run.id());
        let place =
            if warned.place.is_empty() { String::new() } else { format!(" of {}", warned.place) };
        let (used, limit) = (budget::amount(name, warned.used), budget::amount(name, warned.limit));
        let message = format!("run {run} used {used} of {limit} ({name}{place})");
        self.record(Event::BudgetWarned(warned))?;
        let notice = Notice { status: "warning".to_owned(), message };
        if self.options.notify
            && let Err(error) = self.world.notify(&notice)
        {
            self.warn(format!("the notify command: {error}"));
        }
        Ok(())
    }
}
