//! Decisions about agents: how an attempt begins, what its end means, what tokens and money are left.

use std::borrow::Cow;

use crate::agent::{Agent, Heard, Level, OnLimit, Verdict};
use crate::agent_state::{AgentState, Day, Spent};
use crate::budget::Spend;
use crate::event::{AgentBegun, AgentSaid, Beginning, BudgetExhausted, BudgetWarned, Class};
use crate::failure::Classified;
use crate::id::StepPath;
use crate::plan::{Plan, Step};
use crate::state::{Progress, RunState, StepState};
use crate::time::Timestamp;

use super::Action;

/// So much of a budget, in hundredths, is most of it: early enough to raise it before anything stops.
const WARNED_AT: u64 = 80;

/// Why an agent hands its step on.
pub const NEARLY_FULL: &str = "its window is nearly full";

/// How the agent of the next attempt begins, and which one it is, where `others` may take its place.
/// `session` is the id for a new session; `is_reset` says that the files are taken back first, so that no
/// session knows them.
pub fn begins(
    (plan, state): (&Plan, &RunState),
    (path, agent, others): (&StepPath, &Agent, &[String]),
    session: &str,
    is_reset: bool,
    now: Timestamp,
) -> AgentBegun {
    let chosen = choose((plan, state), agent, others, now);
    let takes_id = ["claude", "gemini"].contains(&chosen.program.as_str());
    let begun = |session, how, why: String| AgentBegun {
        agent: chosen.name.clone(),
        program: chosen.program.clone(),
        session,
        how,
        why,
    };
    let fresh = |how, why| begun(takes_id.then(|| session.to_owned()), how, why);
    let Some(step) = state.step(path) else { return fresh(Beginning::Fresh, String::new()) };
    let Some(last) = step.agent.as_deref().filter(|_| is_cut_short(step) && !is_reset) else {
        return fresh(Beginning::Fresh, String::new());
    };
    if !last.handed_off.is_empty() {
        return fresh(Beginning::Briefed, last.handed_off.clone());
    }
    if last.name != chosen.name {
        return fresh(Beginning::Briefed, format!("{} is at a limit or missing", last.name));
    }
    // Some programs keep no session in which nothing was answered.
    let is_empty = last.requests == 0 && last.how == Beginning::Fresh && !step.interrupted;
    match &last.session {
        _ if is_empty => fresh(Beginning::Fresh, String::new()),
        Some(id) => {
            let why = format!("attempt {} was cut short", last.attempt);
            begun(Some(id.clone()), Beginning::Continued, why)
        }
        None => {
            let why = format!("attempt {} was cut short before it named a session", last.attempt);
            fresh(Beginning::Briefed, why)
        }
    }
}

/// Whether the last attempt of a step neither succeeded nor failed: what it did is worth going on with.
fn is_cut_short(step: &StepState) -> bool {
    let is_unanswered = || step.agent.as_deref().is_some_and(|agent| agent.requests == 0);
    let waits = match step.progress {
        Progress::Waiting { class: Class::Network | Class::RateLimit, .. } => true,
        Progress::Waiting { class: Class::Agent, .. } => is_unanswered(),
        _ => false,
    };
    step.interrupted || waits
}

/// The agents that may take the place of a step's own: those of the step, else those that the agent
/// names.
pub fn substitutes<'p>(step: &'p Step, agent: &'p Agent) -> &'p [String] {
    if step.fallback.is_empty() && agent.on_limit == OnLimit::Fallback {
        return &agent.fallback;
    }
    &step.fallback
}

/// The agent that gets a prompt now: the first that is not at a limit, or only for so short a time that
/// it is waited for.
pub fn choose<'p>(
    (plan, state): (&'p Plan, &RunState),
    agent: &'p Agent,
    others: &[String],
    now: Timestamp,
) -> Cow<'p, Agent> {
    let is_free = |agent: &Agent| {
        let until = state.limited.get(&agent.name);
        until.is_none_or(|until| *until <= now.after(agent.limit_wait))
    };
    if is_free(agent) {
        return Cow::Borrowed(agent);
    }
    let mut others = others.iter().map(|name| plan.agent(name));
    others.find(|other| is_free(other)).unwrap_or(Cow::Borrowed(agent))
}

/// Whether what an agent said is worth an event: it named its session, used more, or began something.
pub fn is_news(known: Option<&AgentState>, said: &AgentSaid) -> bool {
    let Some(known) = known else { return true };
    let begins = !said.in_flight.is_empty() && said.in_flight != known.in_flight;
    begins
        || known.session != said.session && said.session.is_some()
        || known.tokens != said.tokens
        || known.requests != said.requests
        || (known.money_micros, known.is_cost_known) != (said.money_micros, said.is_cost_known)
}

/// What the end of an agent's process means for its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// It did its work; its artifacts are looked at.
    Succeed,
    /// A fresh agent goes on.
    HandOff(String),
    /// It was cut short; its session goes on.
    Interrupt(String),
    /// It failed.
    Fail {
        /// The class, and when a limit ends.
        classified: Classified,
        /// In the program's words.
        error: String,
        /// Whether no other attempt is made, whatever is left.
        is_final: bool,
    },
}

/// Decides what the end of an agent's process means.
pub fn follows(verdict: Verdict, level: Level, on_limit: OnLimit) -> Follow {
    let fail = |class, error, is_final| {
        let classified = Classified { class, reset: None };
        Follow::Fail { classified, error, is_final }
    };
    match verdict {
        Verdict::Succeeded => Follow::Succeed,
        Verdict::Stopped if level >= Level::Critical => Follow::HandOff(NEARLY_FULL.to_owned()),
        Verdict::Stopped => Follow::Interrupt("it was asked to stop".to_owned()),
        Verdict::Limited { until, said } => Follow::Fail {
            classified: Classified { class: Class::RateLimit, reset: until },
            error: said,
            is_final: on_limit == OnLimit::Stop,
        },
        Verdict::Unavailable(said) => fail(Class::Network, said, false),
        Verdict::Refused(said) | Verdict::Spent(said) => fail(Class::Agent, said, true),
        Verdict::Full(said) => Follow::HandOff(said),
        Verdict::Denied(said) | Verdict::Failed(said) => fail(Class::Agent, said, false),
        Verdict::Interrupted(said) => Follow::Interrupt(said),
    }
}

/// Why a session is given up that was to continue: the program failed before the model answered, so it
/// could not read the session, or there is none.
pub fn gives_session_up(agent: &AgentState, verdict: &Verdict) -> Option<String> {
    let (Verdict::Failed(said) | Verdict::Interrupted(said)) = verdict else { return None };
    let is_lost = agent.how == Beginning::Continued && agent.requests == 0;
    let line = said.lines().next().unwrap_or_default();
    is_lost.then(|| format!("its session could not be continued: {line}"))
}

/// Whether an agent has made as many requests as one attempt may.
pub fn has_asked_enough(agent: &Agent, heard: &Heard) -> bool {
    agent.requests > 0 && heard.totals.requests >= agent.requests
}

/// Why a hand-off is not made, if it is not: it would be one too many, or the last one changed nothing.
pub fn refuses_handoff(agent: &Agent, handoffs: u32, has_progress: bool) -> Option<String> {
    if agent.handoffs == 0 {
        return Some("hand-offs are off (`handoffs = 0`)".to_owned());
    }
    if handoffs >= agent.handoffs {
        return Some(format!("the limit `handoffs` is reached ({})", agent.handoffs));
    }
    (!has_progress).then(|| "the agent filled its window and changed no file".to_owned())
}

/// One limit of tokens or money, and what is used of it.
struct Row {
    budget: String,
    place: String,
    used: u64,
    limit: u64,
}

impl Row {
    fn is_over(&self, hundredths: u64) -> bool {
        u128::from(self.used) * 100 >= u128::from(self.limit) * u128::from(hundredths)
    }
}

/// The budget of tokens or money that is used up.
pub(super) fn spent(
    plan: &Plan,
    state: &RunState,
    elsewhere: Day,
    now: Timestamp,
) -> Option<BudgetExhausted> {
    let over = rows((plan, state), elsewhere, now, 100).into_iter().find(|row| row.is_over(100))?;
    let Row { budget, place, used, limit } = over;
    Some(BudgetExhausted { budget, used, limit, place })
}

/// The budgets of tokens and money of which most is used, and of which nobody was warned.
pub(super) fn warnings(
    plan: &Plan,
    state: &RunState,
    elsewhere: Day,
    now: Timestamp,
) -> impl Iterator<Item = BudgetWarned> {
    let due = |row: &Row| {
        // One that is used up is reported as that.
        row.is_over(WARNED_AT)
            && !row.is_over(100)
            && !state.warned.contains(&(row.budget.clone(), row.place.clone(), row.limit))
    };
    let due: Vec<Row> =
        rows((plan, state), elsewhere, now, WARNED_AT).into_iter().filter(due).collect();
    due.into_iter().map(|Row { budget, place, used, limit }| BudgetWarned {
        budget,
        place,
        used,
        limit,
    })
}

/// What is used of a budget that was found to be used up: what was under way then counts too.
pub fn used_by_now(state: &RunState, spent: &BudgetExhausted) -> u64 {
    let (budget, place) = (spent.budget.as_str(), &spent.place);
    let of = |used: Spent| if budget.ends_with("money") { used.money_micros } else { used.tokens };
    let below = format!("{place}/");
    let used = match budget {
        "tokens" | "money" => {
            of(Spent { tokens: state.used.tokens, money_micros: state.used.money_micros })
        }
        "day_tokens" | "day_money" => of(state.used.day.spent),
        _ if budget.ends_with("tokens") || budget.ends_with("money") => {
            let steps = state.steps().map(|(path, step)| (path.to_string(), step.spent));
            let there = steps.filter(|(path, _)| path == place || path.starts_with(&below));
            of(there.map(|(_, spent)| spent).sum())
        }
        _ => 0,
    };
    used.max(spent.used)
}

/// The running agents that a used-up budget of tokens or money stops.
pub(super) fn to_stop(state: &RunState, spent: &BudgetExhausted) -> Vec<Action> {
    let is_spending = ["tokens", "money"].iter().any(|kind| spent.budget.ends_with(kind));
    if !is_spending {
        return Vec::new();
    }
    let everywhere = spent.place.is_empty() || spent.budget.starts_with("day");
    let is_there = |step: &StepPath| {
        let path = step.to_string();
        everywhere || path == spent.place || path.starts_with(&format!("{}/", spent.place))
    };
    let running = state.running().into_iter().filter(|(step, _)| {
        is_there(step) && state.step(step).is_some_and(|step| step.agent.is_some())
    });
    running.map(|(step, attempt)| Action::StopAgent { step, attempt }).collect()
}

/// The limits of tokens and money, those of the run first. Steps, lanes and phases are looked at only
/// where the run used enough to reach one of their limits.
fn rows(
    (plan, state): (&Plan, &RunState),
    elsewhere: Day,
    now: Timestamp,
    hundredths: u64,
) -> Vec<Row> {
    let budgets = &plan.budgets;
    let mut rows = Vec::new();
    let mut add = |kind: &str, place: &dyn Fn() -> String, used: Spent, limit: Spend| {
        let both = [("tokens", used.tokens, limit.tokens)];
        let both = both.into_iter().chain([("money", used.money_micros, limit.money_micros)]);
        for (unit, used, limit) in both {
            let budget = if kind.is_empty() { unit.to_owned() } else { format!("{kind}_{unit}") };
            let row = Row { budget, place: String::new(), used, limit };
            if row.is_over(hundredths) {
                rows.push(Row { place: place(), ..row });
            }
        }
    };
    let all = Spent { tokens: state.used.tokens, money_micros: state.used.money_micros };
    let limit = Spend { tokens: budgets.tokens, money_micros: budgets.money_micros };
    add("", &String::new, all, limit);
    let today = Day::number_at(now);
    // The day is that of all runs of the project: an account does not know runs.
    let of_day = [state.used.day, elsewhere].into_iter().filter(|day| day.number == today);
    let of_day: Spent = of_day.map(|day| day.spent).sum();
    if !of_day.is_nothing() {
        add("day", &|| Day::date(today), of_day, budgets.day);
    }
    let reach = |limit: Spend| {
        let least = |limit: u64| limit.saturating_mul(hundredths) / 100;
        all.tokens >= least(limit.tokens) || all.money_micros >= least(limit.money_micros)
    };
    if ![budgets.step, budgets.lane, budgets.phase].into_iter().any(reach) {
        return rows;
    }
    for phase in state.phases.iter().filter(|phase| !phase.is_over()) {
        let mut of_phase = Spent::default();
        for lane in &phase.lanes {
            let of_lane: Spent = lane.steps.iter().map(|step| step.spent).sum();
            of_phase.exchange(Spent::default(), of_lane);
            if lane.is_over() {
                continue;
            }
            add("lane", &|| format!("{}/{}", phase.id, lane.id), of_lane, budgets.lane);
            for step in lane.steps.iter().filter(|step| !step.progress.is_over()) {
                let place = || format!("{}/{}/{}", phase.id, lane.id, step.id);
                add("step", &place, step.spent, budgets.step);
            }
        }
        add("phase", &|| phase.id.clone(), of_phase, budgets.phase);
    }
    rows
}
