//! What agents ask a person for, beside the gates of a plan, and what came of it.
//!
//! Nothing here answers: that is `piton approve` and `piton reject`, which a person types. An agent that
//! has a server of ours is refused there about its own questions.

use std::path::Path;

use piton_core::refusal::Refusal;
use piton_core::request::{Refused, Request, find_gate, find_question, gates};
use piton_core::state::GateState;
use piton_core::{GateRef, remedy};
use piton_engine::{Loaded, Store};
use piton_process::strays;
use piton_view::At;
use piton_view::answers::{Outcome, Sent};
use piton_view::mcp::answers::{Approval, Standing};

use super::replan;
use super::request::{self, Target};
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};

/// Puts a question to the person about a run.
pub fn ask(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    session: Option<String>,
    question: &str,
) -> Result<Approval> {
    let question = request::message(context, loaded, question)?;
    let is_inside = request::is_inside(context, loaded);
    let step = is_inside.then(|| replan::asking(&loaded.state, None).ok()).flatten();
    let asked = Request::Approval { question: question.clone(), step, session };
    let Sent { outcome, answer, .. } = request::send(context, store, loaded, &asked, Target::Run)?;
    let run_id = &loaded.row.run_id;
    let state = store.load(run_id)?.state;
    match (find_question(&state, &question), outcome) {
        (Some(place), _) => Ok(shown(run_id, place, &question, state.asked(place))),
        (None, Outcome::Refused) => Err(CommandError::usage("refused", answer)),
        (None, _) => {
            let message = format!("the driver of run {run_id} has not taken the question yet");
            Err(CommandError::new(Kind::Driven, "run-driven", message)
                .hint("ask again with the same words: the question is asked once"))
        }
    }
}

/// The gates and questions of a run, or the one that is named, each with its answer.
pub fn answers(loaded: &Loaded, named: Option<&str>) -> Result<Vec<Approval>> {
    let (state, run_id) = (&loaded.state, &loaded.row.run_id);
    let show = |(place, text): &(GateRef, String)| shown(run_id, place, text, state.asked(place));
    match named {
        None => Ok(gates(state).iter().map(show).collect()),
        Some(name) => match find_gate(state, name) {
            Ok(found) => Ok(vec![show(&found)]),
            Err(refused @ (Refused::NoGate(..) | Refused::ManyGates(..))) => {
                Err(CommandError::refused(Kind::Usage, refused))
            }
            Err(other) => Err(Refusal::from(other).into()),
        },
    }
}

fn shown(run_id: &str, place: &GateRef, text: &str, asked: Option<&GateState>) -> Approval {
    let decision = asked.and_then(|asked| asked.decision.as_ref());
    let standing = match (asked, decision) {
        (None, _) => Standing::NotAsked,
        (Some(_), None) => Standing::Waiting,
        (_, Some(decision)) if decision.approved => Standing::Approved,
        _ => Standing::Rejected,
    };
    Approval {
        run_id: run_id.to_owned(),
        approval: place.0.clone(),
        question: text.to_owned(),
        standing,
        by: decision.map(|decision| decision.by.clone()),
        message: decision.map(|decision| decision.message.clone()),
        asked_at: asked.map(|asked| At(asked.asked_at)),
        decided_at: decision.map(|decision| At(decision.at)),
    }
}

/// Refuses to answer a question from below the agent that has a server of ours: the agent asked it.
pub fn refuse_asker(loaded: &Loaded, place: &GateRef) -> Result<()> {
    if !loaded.state.questions.contains_key(place) || !strays::has_sibling(is_server) {
        return Ok(());
    }
    let message =
        format!("{place} is a question of an agent, and this command comes from an agent");
    Err(CommandError::new(Kind::Blocked, "inside-a-step", message)
        .hint(remedy![Words "answer it in your own terminal"]))
}

/// Whether a command line is that of a server of ours.
fn is_server(words: &[String]) -> bool {
    let program = words.first().and_then(|word| Path::new(word).file_name());
    program.is_some_and(|name| name == "piton") && words.iter().skip(1).any(|word| word == "mcp")
}
