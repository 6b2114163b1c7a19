//! The record of a command that a step tried and only a person may give.
//!
//! It goes through the inbox, whoever drives: a step never holds the lease of its own run, not even for a
//! moment. The same command of the same attempt is recorded once, so that no loop fills the ledger.

use piton_core::StepPath;
use piton_core::request::Request;
use piton_engine::store::Asked;
use piton_ledger::owner_liveness;
use piton_process::strays;

use crate::context::{Context, now};

/// Records it. The refusal stands where that fails: it may be the ledger itself that is damaged.
pub fn record(context: &Context, run_id: &str) {
    let Ok(mut store) = super::open(context) else { return };
    let attempt = strays::attempt_above().and_then(|key| parse(&key));
    let (step, attempt) = attempt.unzip();
    let request = Request::Refused { command: context.command.to_owned(), step, attempt };
    let (by, owner) = (Context::who(), Context::owner());
    let asked = Asked {
        request: &request,
        key: &request.key(run_id, 0),
        by: &by,
        at: now(),
        owner: &owner,
        alive: &|owner| owner_liveness(owner),
    };
    let _ = store.post(run_id, &asked);
}

/// The step and the number of an attempt, from its key.
fn parse(key: &str) -> Option<(StepPath, u32)> {
    let (step, attempt) = key.rsplit_once('#')?;
    Some((step.parse().ok()?, attempt.parse().ok()?))
}
