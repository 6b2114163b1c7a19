//! What is asked when a driver has left and a person is there: open gates, failed steps.

use piton_core::RunState;
use piton_core::event::Verdict;
use piton_core::request::{self, Request};
use piton_core::state::Progress;
use piton_engine::store::Asked;
use piton_engine::{Ending, Store};
use piton_ledger::owner_liveness;

use crate::context::{Context, now};
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use crate::world::Signals;

/// Asks what an ending leaves open; true when an answer lets the run go on. A signal ends the command:
/// what was answered before it counts, and what is open stays so.
pub fn questions(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    ending: &Ending,
) -> Result<bool> {
    if !context.interactive || context.json {
        return Ok(false);
    }
    // The driver caught signals, and what it leaves behind would swallow them: catch them here too,
    // so that Ctrl-C ends a question.
    let mut signals = Signals::catch()
        .map_err(|e| CommandError::failed("signals", format!("signals can't be caught: {e}")))?;
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

fn ask_gates(
    context: &Context,
    store: &mut Store,
    run_id: &str,
    state: &RunState,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    // A step that made itself a terminal is no person.
    let loaded = store.load(run_id)?;
    if crate::commands::request::refuse_inside(context, store, &loaded).is_err() {
        return Ok(false);
    }
    let mut decided = false;
    for (gate, asked) in state.open_gates() {
        let question = format!("Approve \"{}\" ({gate})?", asked.name);
        let choices = [('y', "yes"), ('n', "no, reject"), ('l', "later")];
        let mut watch = context.read_store()?;
        let mut elsewhere = || {
            watch
                .load(run_id)
                .is_ok_and(|l| l.state.gates.get(gate).is_some_and(|g| g.decision.is_some()))
        };
        let answer = ui::ask(&question, &choices, Some('l'), &mut || stopped() || elsewhere());
        let approved = match answer {
            Some('y') => true,
            Some('n') => false,
            None if elsewhere() => {
                decided = true;
                continue;
            }
            None => return Ok(false),
            Some(_) => continue,
        };
        let request = Request::Decide { gate: gate.0.clone(), approved, message: String::new() };
        carry_out(store, run_id, &request)?;
        decided = true;
    }
    Ok(decided)
}

fn ask_failures(
    store: &mut Store,
    run_id: &str,
    state: &RunState,
    stopped: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    let failed: Vec<_> = state.steps().filter(|(_, s)| s.progress == Progress::Failed).collect();
    let mut go_on = false;
    for (path, _) in failed {
        if let Some(warning) = request::skip_warning(state, &path, false) {
            ui::say(&format!("if {path} is skipped: {warning}"));
        }
        let question = format!("{path} failed. What now?");
        let choices = [('r', "retry"), ('s', "skip"), ('a', "abort"), ('l', "later")];
        let request = match ui::ask(&question, &choices, Some('l'), stopped) {
            None => return Ok(false),
            Some('r') => Request::Retry { step: path, again: false, downstream: false },
            Some('s') => Request::Skip { step: path, satisfy: false },
            Some('a') => {
                carry_out(
                    store,
                    run_id,
                    &Request::Abort { cancel: false, message: String::new() },
                )?;
                return Ok(false);
            }
            Some(_) => continue,
        };
        carry_out(store, run_id, &request)?;
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
