//! Decisions about agents: how they begin, what their end means, what they may use.

mod support;

use std::collections::BTreeMap;

use piton_core::agent::{Agent, Level, OnLimit, Tokens, Verdict as Judgement};
use piton_core::agent_state::AgentState;
use piton_core::decide::agents::{
    Follow, begins, choose, follows, gives_session_up, is_news, refuses_handoff, substitutes,
};
use piton_core::event::{
    AgentBegun, AgentHandedOff, AgentLimited, AgentSaid, Beginning, BudgetWarned, Class, Event,
    Facts, Next, Outcome, StepFinished, StepStarted, Verdict,
};
use piton_core::failure::Classified;
use piton_core::plan::{Command, Step, Work};
use piton_core::{Action, Limits, Millis, Plan, Timestamp, decide, replay};
use piton_testkit::plans;
use support::{Run, failed, interrupted, path};

const STEP: &str = "P/A/a";

/// A plan of one prompt to Claude Code, which Codex may take over.
fn plan() -> Plan {
    let (agent, command) = ("claude".to_owned(), Command::Args(vec!["claude".to_owned()]));
    let work = Work::Prompt { agent, command, prompt: "Do it.".to_owned() };
    let step = Step { work, ..plans::step("a") };
    let claude = Agent {
        on_limit: OnLimit::Fallback,
        fallback: vec!["codex".to_owned()],
        ..Agent::new("claude", "claude")
    };
    let agents = [claude, Agent::new("codex", "codex")];
    let agents: BTreeMap<_, _> = agents.into_iter().map(|a| (a.name.clone(), a)).collect();
    Plan { agents, ..plans::plan(vec![plans::phase("P", vec![plans::lane("A", vec![step])])]) }
}

fn begun(run: &Run) -> AgentBegun {
    let agent = run.plan.agent("claude").into_owned();
    let step = run.plan.step(&path(STEP)).expect("it is planned");
    let of = (&path(STEP), &agent, substitutes(step, &agent));
    begins((&run.plan, &run.state), of, "new", false, run.at)
}

/// Starts an attempt with its agent.
fn start(run: &mut Run) -> u32 {
    let (step, agent) = (path(STEP), Some(begun(run)));
    let attempt = run.state.step(&step).map_or(1, |s| s.attempts + 1);
    let definition = run.plan.step(&step).map(Step::definition).expect("it is planned");
    run.take(Event::StepStarted(StepStarted {
        agent,
        ..StepStarted::new(step, attempt, definition)
    }));
    attempt
}

fn said(attempt: u32, tokens: u64) -> AgentSaid {
    AgentSaid {
        step: path(STEP),
        attempt,
        session: Some("s-1".to_owned()),
        tokens: Tokens { input: tokens, ..Tokens::default() },
        money_micros: tokens * 5,
        is_cost_known: false,
        requests: 1,
        context: Some(tokens),
        window: 200_000,
        doing: "Bash make".to_owned(),
        in_flight: vec!["Bash make".to_owned()],
    }
}

fn ends(run: &mut Run, attempt: u32, outcome: Outcome, tokens: u64) {
    let facts = Facts { tokens, money_micros: tokens * 5, notes: Vec::new() };
    let ended = StepFinished { facts, ..StepFinished::new(path(STEP), attempt, outcome) };
    run.take(Event::StepFinished(Box::new(ended)));
}

/// Lost: a killed agent begins its work anew, or a fresh one knows nothing of what was done.
#[test]
fn an_agent_that_was_cut_short_goes_on_and_others_begin() {
    let mut run = Run::new(plan());
    let first = begun(&run);
    assert_eq!((first.how, first.session.as_deref()), (Beginning::Fresh, Some("new")));
    let attempt = start(&mut run);
    run.take(Event::AgentSaid(Box::new(said(attempt, 10))));
    ends(&mut run, attempt, interrupted(), 0);
    let next = begun(&run);
    assert_eq!((next.how, next.session.as_deref()), (Beginning::Continued, Some("s-1")));
    let attempt = start(&mut run);
    let agent = run.state.step(&path(STEP)).and_then(|s| s.agent.clone()).expect("it began");
    assert_eq!(agent.before, ["Bash make"], "what was under way is told");
    // Files that are taken back are not those that the session knows.
    ends(&mut run, attempt, interrupted(), 0);
    let claude = run.plan.agent("claude").into_owned();
    let reset =
        begins((&run.plan, &run.state), (&path(STEP), &claude, &[][..]), "new", true, run.at);
    assert_eq!(reset.how, Beginning::Fresh);
    let attempt = start(&mut run);
    let (step, why) = (path(STEP), "full".to_owned());
    run.take(Event::AgentHandedOff(AgentHandedOff { step, attempt, why, is_lost: false }));
    ends(&mut run, attempt, interrupted(), 0);
    let next = begun(&run);
    assert_eq!((next.how, next.session.as_deref()), (Beginning::Briefed, Some("new")));
    let handoffs =
        |run: &Run| run.state.step(&path(STEP)).and_then(|s| s.agent.clone()).map(|a| a.handoffs);
    let attempt = start(&mut run);
    let (step, why) = (path(STEP), "its session is gone".to_owned());
    run.take(Event::AgentHandedOff(AgentHandedOff { step, attempt, why, is_lost: true }));
    ends(&mut run, attempt, interrupted(), 0);
    assert_eq!(begun(&run).how, Beginning::Briefed);
    assert_eq!(handoffs(&run), Some(1), "a session that is gone is no hand-off");
    let attempt = start(&mut run);
    let retry = Next::Retry { at: run.at };
    ends(&mut run, attempt, failed(Class::Test, retry), 0);
    assert_eq!(begun(&run).how, Beginning::Fresh, "a failed attempt is told by its failure");
}

/// Lost: a lane waits for hours although another agent could go on, or goes on with one that is limited.
#[test]
fn another_agent_takes_over_until_the_limit_ends() {
    let mut run = Run::new(plan());
    let attempt = start(&mut run);
    run.take(Event::AgentSaid(Box::new(said(attempt, 10))));
    let until = Timestamp(run.at.0 + 1_000);
    let agent = "claude".to_owned();
    run.take(Event::AgentLimited(AgentLimited { step: path(STEP), attempt, agent, until }));
    let wait = Next::Wait { until: run.at };
    ends(&mut run, attempt, failed(Class::RateLimit, wait), 0);
    let other = begun(&run);
    assert_eq!((other.agent.as_str(), other.how), ("codex", Beginning::Briefed));
    assert_eq!(other.session, None, "it names its session itself");
    let claude = run.plan.agent("claude").into_owned();
    let step = run.plan.step(&path(STEP)).cloned().expect("it is planned");
    let by = |step: &Step, at: i64, agent: &Agent| {
        let others = substitutes(step, agent);
        choose((&run.plan, &run.state), agent, others, Timestamp(at)).name.clone()
    };
    let chosen = |at: i64, agent: &Agent| by(&step, at, agent);
    assert_eq!(chosen(until.0 - 1, &claude), "codex");
    assert_eq!(chosen(until.0, &claude), "claude");
    let waits = Agent { limit_wait: Millis(400), ..claude.clone() };
    assert_eq!(chosen(until.0 - 401, &waits), "codex");
    assert_eq!(chosen(until.0 - 400, &waits), "claude", "it is waited for");
    let parks = Agent { on_limit: OnLimit::Park, ..claude };
    assert_eq!(chosen(until.0 - 1, &parks), "claude");
    let of_step = Step { fallback: vec!["gemini".to_owned(), "codex".to_owned()], ..step.clone() };
    assert_eq!(by(&of_step, until.0 - 1, &parks), "gemini", "a step names its own");
}

/// Lost: a night is spent on retries of what no retry helps, or ends at what passes by itself.
#[test]
fn each_end_of_an_agent_has_its_consequence() {
    let text = || "said".to_owned();
    let fail = |class, is_final| Follow::Fail {
        classified: Classified { class, reset: None },
        error: text(),
        is_final,
    };
    let limited = |reset| Follow::Fail {
        classified: Classified { class: Class::RateLimit, reset },
        error: text(),
        is_final: false,
    };
    let until = Some(Timestamp(9));
    let table = [
        (Judgement::Succeeded, Follow::Succeed),
        (Judgement::Stopped, Follow::Interrupt("it was asked to stop".to_owned())),
        (Judgement::Limited { until, said: text() }, limited(until)),
        (Judgement::Limited { until: None, said: text() }, limited(None)),
        (Judgement::Unavailable(text()), fail(Class::Network, false)),
        (Judgement::Refused(text()), fail(Class::Agent, true)),
        (Judgement::Full(text()), Follow::HandOff(text())),
        (Judgement::Denied(text()), fail(Class::Agent, false)),
        (Judgement::Spent(text()), fail(Class::Agent, true)),
        (Judgement::Failed(text()), fail(Class::Agent, false)),
        (Judgement::Interrupted(text()), Follow::Interrupt(text())),
    ];
    for (verdict, wanted) in table {
        assert_eq!(follows(verdict.clone(), Level::Fine, OnLimit::Park), wanted, "{verdict:?}");
    }
    let full = follows(Judgement::Stopped, Level::Critical, OnLimit::Park);
    assert!(matches!(full, Follow::HandOff(_)), "{full:?}");
    let stops = follows(Judgement::Limited { until, said: text() }, Level::Fine, OnLimit::Stop);
    assert!(matches!(stops, Follow::Fail { is_final: true, .. }), "{stops:?}");
}

/// Lost: a step fails because a program has no session where it should, although a fresh one could work.
#[test]
fn a_session_that_cannot_be_continued_is_given_up() {
    let continued = AgentState { how: Beginning::Continued, ..AgentState::default() };
    let failed = Judgement::Failed("No such session\nmore".to_owned());
    let why = gives_session_up(&continued, &failed);
    assert!(why.is_some_and(|why| why.ends_with("continued: No such session")));
    let refused = Judgement::Refused("no key".to_owned());
    assert_eq!(gives_session_up(&continued, &refused), None);
    let answered = AgentState { requests: 1, ..continued };
    assert_eq!(gives_session_up(&answered, &failed), None);
    assert_eq!(gives_session_up(&AgentState::default(), &failed), None);
    // Nothing was answered before a limit: there is nothing to continue.
    let mut run = Run::new(Plan { agents: BTreeMap::new(), ..plan() });
    run.plan.agents.insert("claude".to_owned(), Agent::new("claude", "claude"));
    let attempt = start(&mut run);
    let wait = Next::Wait { until: run.at };
    ends(&mut run, attempt, support::failed(Class::RateLimit, wait), 0);
    assert_eq!(begun(&run).how, Beginning::Fresh);
}

/// Lost: agents hand a step to each other for ever.
#[test]
fn handoffs_end() {
    let agent = Agent { handoffs: 2, ..Agent::new("claude", "claude") };
    assert_eq!(refuses_handoff(&agent, 0, true), None);
    assert_eq!(refuses_handoff(&agent, 1, true), None);
    assert!(refuses_handoff(&agent, 2, true).is_some_and(|why| why.contains("handoffs")));
    assert!(refuses_handoff(&agent, 0, false).is_some_and(|why| why.contains("no file")));
    let off = Agent { handoffs: 0, ..agent };
    assert!(refuses_handoff(&off, 0, true).is_some_and(|why| why.contains("off")));
}

/// Lost: tokens count twice because a stream was read again, or not at all because a process was lost.
#[test]
fn tokens_count_once() {
    let mut run = Run::new(plan());
    let attempt = start(&mut run);
    for tokens in [10, 10, 30] {
        run.take(Event::AgentSaid(Box::new(said(attempt, tokens))));
    }
    assert_eq!((run.state.used.tokens, run.state.used.money_micros), (30, 150));
    ends(&mut run, attempt, interrupted(), 0);
    assert_eq!(run.state.used.tokens, 30, "what a lost attempt used stays");
    let attempt = start(&mut run);
    run.take(Event::AgentSaid(Box::new(said(attempt, 5))));
    ends(&mut run, attempt, Outcome::Succeeded, 7);
    assert_eq!((run.state.used.tokens, run.state.used.money_micros), (37, 185));
    let step = run.state.step(&path(STEP)).expect("it is there");
    assert_eq!((step.spent.tokens, run.state.used.day.spent.tokens), (37, 37));
    let replayed = replay(run.events.iter().map(|(at, event)| (*at, event))).expect("it is legal");
    assert_eq!(replayed, run.state);
    let stale = Event::AgentSaid(Box::new(said(1, 99)));
    assert!(run.apply(stale).is_err(), "an earlier attempt says nothing any more");
}

/// Lost: each line of a stream becomes a commit, or what an agent is at is not known after a kill.
#[test]
fn what_is_news_is_recorded() {
    let said = said(1, 10);
    let known = AgentState {
        session: said.session.clone(),
        tokens: said.tokens,
        money_micros: said.money_micros,
        requests: said.requests,
        in_flight: said.in_flight.clone(),
        ..AgentState::default()
    };
    assert!(is_news(None, &said));
    assert!(!is_news(Some(&known), &said));
    assert!(!is_news(Some(&known), &AgentSaid { doing: "thinks".to_owned(), ..said.clone() }));
    assert!(!is_news(Some(&known), &AgentSaid { in_flight: Vec::new(), ..said.clone() }));
    assert!(is_news(Some(&known), &AgentSaid { requests: 2, ..said.clone() }));
    let other = vec!["Bash test".to_owned()];
    assert!(is_news(Some(&known), &AgentSaid { in_flight: other, ..said }));
}

/// Lost: an agent spends beyond its budget, nobody is warned, or it is stopped in the midst of an edit.
#[test]
fn budgets_of_tokens_and_money_warn_once_and_stop_between_operations() {
    let limits = Limits { jobs: 1, ..Limits::default() };
    for place in ["", "step", "lane", "phase", "day"] {
        let mut plan = plan();
        let budgets = &mut plan.budgets;
        let (name, tokens) = match place {
            "step" => ("step_tokens", &mut budgets.step.tokens),
            "lane" => ("lane_tokens", &mut budgets.lane.tokens),
            "phase" => ("phase_tokens", &mut budgets.phase.tokens),
            "day" => ("day_tokens", &mut budgets.day.tokens),
            _ => ("tokens", &mut budgets.tokens),
        };
        *tokens = 100;
        let mut run = Run::new(plan);
        let attempt = start(&mut run);
        let actions = |run: &Run| decide(&run.plan, &run.state, &limits, run.at);
        run.take(Event::AgentSaid(Box::new(said(attempt, 79))));
        let all = actions(&run);
        assert!(!all.iter().any(|a| matches!(a, Action::Warn(_))), "{place}: {all:?}");
        run.take(Event::AgentSaid(Box::new(said(attempt, 80))));
        let warned: Vec<BudgetWarned> = actions(&run)
            .into_iter()
            .filter_map(|a| if let Action::Warn(warned) = a { Some(warned) } else { None })
            .collect();
        assert_eq!(warned.len(), 1, "{place}");
        assert_eq!((warned[0].budget.as_str(), warned[0].used), (name, 80));
        run.take(Event::BudgetWarned(warned[0].clone()));
        run.take(Event::AgentSaid(Box::new(said(attempt, 100))));
        let stop = Action::StopAgent { step: path(STEP), attempt };
        let all = actions(&run);
        assert!(!all.iter().any(|a| matches!(a, Action::Warn(_))), "{place}: {all:?}");
        assert!(all.contains(&stop), "{place}: {all:?}");
        assert!(!all.contains(&Action::EndAll), "{place}: {all:?}");
        ends(&mut run, attempt, interrupted(), 100);
        let all = actions(&run);
        assert_eq!(all.last(), Some(&Action::Leave(Verdict::Budget)), "{place}");
        assert!(!all.iter().any(|a| matches!(a, Action::Start { .. })), "{place}: {all:?}");
    }
}
