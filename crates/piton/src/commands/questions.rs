//! What is asked when a driver has left and a person is there: open gates, failed steps.

use piton_core::RunState;
use piton_core::event::Verdict;
use piton_core::request::{self, Request};
use piton_engine::store::Asked;
use piton_engine::{Ending, Store};
use piton_ledger::owner_liveness;
use piton_view::decision::Decision;

use super::request::names;
use crate::context::{Context, now};
use crate::drive::decisions::decisions;
use crate::drive::hangup;
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use piton_world::Signals;

/// Asks what an ending leaves open; true when an answer lets the run go on. A signal ends the command:
/// what was answered before it counts, and what is open stays so.
pub fn questions(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    ending: &Ending,
) -> Result<bool> {
    if context.json {
        return Ok(false);
    }
    if ending.verdict == Verdict::Waiting {
        for decision in decisions(context, store, &ending.state) {
            say(&decision);
        }
    }
    if !context.interactive || hangup::is_gone() {
        return Ok(false);
    }
    // The driver caught signals, and what it leaves behind would swallow them: catch them here too,
    // so that Ctrl-C ends a question.
    let mut signals = Signals::catch()
        .map_err(|e| CommandError::failed("signals", format!("signals cannot be caught: {e}")))?;
    let mut signal = None;
    let mut stopped = || {
        signal = signal.or(signals.take().first().copied());
        signal.is_some()
    };
    let goes_on = match ending.verdict {
        Verdict::Waiting => ask_gates(context, store, run_id, &ending.state, &mut stopped),
        // Whoever answers everything beforehand decides about a failure later.
        Verdict::Failed if !context.yes => ask_failures(store, run_id, &ending.state, &mut stopped),
        _ => Ok(false),
    };
    match signal {
        Some(signal) => goes_on.and(Err(CommandError::silent(Kind::Interrupted(signal)))),
        None => goes_on,
    }
}

/// Says what is to be decided at a gate.
fn say(decision: &Decision) {
    let lines = decision.lines();
    if !lines.is_empty() {
        ui::say(format!("to decide about \"{}\":", decision.name));
        for line in lines {
            ui::say(format!("  {line}"));
        }
    }
}

fn ask_gates(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    state: &RunState,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    // A step that made itself a terminal is no person.
    let loaded = store.load(run_id)?;
    if !super::request::may_ask(context, &loaded) {
        return Ok(false);
    }
    let mut watch = context.read_store()?;
    let mut decided = false;
    for (gate, asked) in state.open_gates() {
        let question = format!("Approve \"{}\" ({gate})?", asked.name);
        let mut elsewhere = || {
            let now = watch.load(run_id).ok()?.state;
            now.gates.get(gate).and_then(|g| g.decision.clone())
        };
        let mut over = || stopped() || elsewhere().is_some();
        let answer = ui::ask(&question, &["yes", "no", "later"], 'l', &mut over);
        let approved = match answer {
            Some('y') => Some(true),
            Some('n') => Some(false),
            _ => None,
        };
        // Somebody may have decided between the last look and the key: that counts, and is told.
        let mut made = elsewhere();
        if let (None, Some(approved)) = (&made, approved) {
            let message = String::new();
            let request = Request::Decide { gate: gate.0.clone(), approved, message };
            match (carry_out(store, run_id, &request), elsewhere()) {
                (Err(_), Some(decision)) => made = Some(decision),
                (done, _) => done?,
            }
            decided = true;
        }
        match (made, answer) {
            (Some(made), _) => {
                let verb = if made.approved { "approved" } else { "rejected" };
                ui::say(format!("gate \"{}\" ({gate}) was {verb} by {}", asked.name, made.by));
                decided = true;
            }
            (None, None) => return Ok(false),
            (None, Some(_)) => {}
        }
    }
    Ok(decided)
}

fn ask_failures(
    store: &mut Store,
    run_id: &str,
    state: &RunState,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    let mut go_on = false;
    for step in names::failed(state) {
        if let Some(warning) = request::skip_warning(state, &step, false) {
            ui::say(format!("if {step} is skipped: {warning}"));
        }
        let question = format!("{step} failed. What now?");
        let answer = ui::ask(&question, &["retry", "skip", "abort", "later"], 'l', stopped);
        let request = match answer {
            Some('r') => Request::Retry { step, again: false, downstream: false },
            Some('s') => Request::Skip { step, satisfy: false },
            Some('a') => Request::Abort { cancel: false, message: String::new() },
            Some(_) => continue,
            None => return Ok(false),
        };
        carry_out(store, run_id, &request)?;
        if answer == Some('a') {
            return Ok(false);
        }
        go_on = true;
    }
    Ok(go_on)
}

/// Carries out a request of the person at this terminal.
pub fn carry_out(store: &mut Store, run_id: &str, request: &Request) -> Result<()> {
    let key = format!("terminal-{}-{}", std::process::id(), now().0);
    store.ask(
        run_id,
        &Asked {
            request,
            key: &key,
            by: &Context::who(),
            at: now(),
            owner: &Context::owner(),
            alive: &owner_liveness,
        },
    )?;
    Ok(())
}
