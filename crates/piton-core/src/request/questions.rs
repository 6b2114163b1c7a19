//! What agents ask a person beside the gates of the plan.
//!
//! A question holds nothing up: whoever asked looks for the answer. The same question is asked once,
//! whatever came of it.

use super::Refused;
use crate::event::{ApprovalAsked, Event};
use crate::id::{GateRef, StepPath};
use crate::state::RunState;

/// Most questions that wait for a person in one run: more would be read by nobody.
const OPEN_MAX: usize = 20;

/// Turns a question into events; none if it was asked before.
pub(super) fn asked(
    state: &RunState,
    question: &str,
    step: Option<&StepPath>,
    session: Option<&String>,
) -> Result<Vec<Event>, Refused> {
    if find(state, question).is_some() {
        return Ok(Vec::new());
    }
    let open = state.questions.values().filter(|asked| asked.decision.is_none()).count();
    if open >= OPEN_MAX {
        return Err(Refused::ManyQuestions(open));
    }
    let (question, step, session) = (question.to_owned(), step.cloned(), session.cloned());
    let gate = GateRef::question(state.questions.len() + 1);
    Ok(vec![Event::ApprovalAsked(Box::new(ApprovalAsked { gate, question, step, session }))])
}

/// What a question is called, if it was asked.
pub fn find<'s>(state: &'s RunState, question: &str) -> Option<&'s GateRef> {
    state.questions.iter().find(|(_, asked)| asked.name == question).map(|(place, _)| place)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use super::*;
    use crate::request::{Request, turn};
    use crate::time::Timestamp;

    fn after(state: &mut RunState, request: &Request) -> usize {
        let events = turn(state, request, "ann").unwrap();
        for event in &events {
            crate::apply(state, Timestamp(1), event).unwrap();
        }
        events.len()
    }

    fn ask(question: &str) -> Request {
        Request::Approval { question: question.to_owned(), step: None, session: None }
    }

    fn created() -> RunState {
        let created = crate::event::RunCreated {
            run_id: crate::RunId("r".to_owned()),
            protocol: crate::event::ProtocolRef::default(),
            plan_path: "plan.toml".to_owned(),
            plan_hash: crate::hash::Sha::of(b""),
            title: String::new(),
            spec: None,
            root: String::new(),
            linked: false,
            mark: String::new(),
            head: None,
            previous: None,
            shape: crate::event::Shape::default(),
        };
        let mut state = RunState::default();
        crate::apply(&mut state, Timestamp(0), &Event::RunCreated(Box::new(created))).unwrap();
        state
    }

    /// Lost: an agent would ask until somebody says yes, or bury the person.
    #[test]
    fn a_question_is_asked_once_and_only_so_many_wait() {
        let mut state = created();
        assert_eq!(after(&mut state, &ask("one")), 1);
        assert_eq!(after(&mut state, &ask("one")), 0);
        let no =
            Request::Decide { gate: "one".to_owned(), approved: false, message: String::new() };
        assert_eq!(after(&mut state, &no), 1);
        assert_eq!(after(&mut state, &ask("one")), 0, "a no is an answer");
        assert!(state.gates.is_empty(), "no gate of the plan is touched");
        for number in 0..OPEN_MAX {
            assert_eq!(after(&mut state, &ask(&format!("more {number}"))), 1);
        }
        let refused = turn(&state, &ask("too many"), "ann");
        assert_eq!(refused, Err(Refused::ManyQuestions(OPEN_MAX)));
        assert_eq!(find(&state, "more 0"), Some(&GateRef::question(2)));
    }
}
