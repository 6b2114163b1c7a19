//! What to do next in a run that nobody drives, the likeliest first.

use piton_core::decide::waiting_for;
use piton_core::event::Verdict;
use piton_core::failure;
use piton_core::refusal::{Part, Refusal, Remedy};
use piton_core::state::{Progress, StepState};
use piton_core::summary::standing_verdict;
use piton_core::{RunState, Status, StepPath};

use crate::place::Place;
use crate::replan::why_asked;
use crate::run::RunView;
use crate::text::sanitize;

/// Most gates that are named; `piton status` names them all.
const NAMED_MAX: usize = 10;

/// What to do next: a command, perhaps after something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// What a person does first.
    pub before: Remedy,
    /// A command of ours, without the name of the program; empty if that is all.
    pub command: String,
}

impl Next {
    fn new(command: impl Into<String>) -> Self {
        Self { before: Remedy::default(), command: command.into() }
    }

    fn after(before: impl Into<Remedy>, command: impl Into<String>) -> Self {
        Self { before: before.into(), command: command.into() }
    }

    /// As it is to be typed where the person stands.
    pub fn typed(&self, place: &Place) -> String {
        let before = place.remedy(&self.before);
        match self.command.as_str() {
            "" => before,
            command => format!("{before}{}", place.piton(command)),
        }
    }
}

impl RunView<'_> {
    /// What to type after a driver left with a verdict.
    pub fn next_typed(&self, verdict: Verdict) -> Vec<String> {
        self.next(verdict).iter().map(|next| next.typed(self.place)).collect()
    }

    /// What to type next as the run stands.
    pub fn next_standing(&self) -> Option<String> {
        let verdict = standing_verdict(self.state).unwrap_or(Verdict::Interrupted);
        self.next(verdict).first().map(|next| next.typed(self.place))
    }

    /// What to do after a driver left with a verdict.
    pub fn next(&self, verdict: Verdict) -> Vec<Next> {
        let run = self.run_id;
        let one = |command: &str| Next::new(format!("{command} {run}"));
        if self.session.is_some() {
            return match verdict {
                Verdict::RolledBack => vec![Next::new("session start"), one("undo")],
                _ => vec![Next::new("session start")],
            };
        }
        match verdict {
            Verdict::Complete => vec![one("show")],
            Verdict::Waiting => {
                let gates = self.state.open_gates().take(NAMED_MAX);
                let mut all: Vec<Next> =
                    gates.map(|(gate, _)| Next::new(format!("approve {run} {gate}"))).collect();
                let mut open = self.state.open_gates();
                if open.any(|(gate, _)| why_asked(self.state, gate).is_some()) {
                    all.push(Next::new(format!("resume {run} --force-replan")));
                }
                if all.is_empty() { vec![one("resume")] } else { all }
            }
            Verdict::Failed => vec![self.after_failure()],
            Verdict::Blocked => {
                let skipped = holding(self.state).into_iter().take(1);
                let mut all: Vec<Next> =
                    skipped.map(|path| Next::new(format!("skip {run} {path} --satisfy"))).collect();
                if let Some((_, refusal)) = self.blocks().first() {
                    all.extend(after_block(refusal, &format!("resume {run}")));
                }
                if all.is_empty() { vec![one("status")] } else { all }
            }
            Verdict::Budget => {
                let budget = sanitize(self.state.exhausted.as_deref().unwrap_or("the budget"));
                let raise = format!("raise `{budget}` in the plan, then ");
                vec![Next::after(raise, format!("resume {run}"))]
            }
            Verdict::Aborted if self.state.ended.is_some_and(Status::is_final) => vec![one("show")],
            Verdict::RolledBack => {
                let mut goes_on = self.lanes().filter_map(|lane| lane.work.rolled_back);
                // What came back may be a failure, which a resume alone only meets again.
                let resumes = self.failed().next().is_none() || goes_on.next().is_some();
                vec![if resumes { one("resume") } else { self.after_failure() }, one("undo")]
            }
            Verdict::Interrupted | Verdict::SelectionDone | Verdict::Aborted => vec![one("resume")],
        }
    }

    fn after_failure(&self) -> Next {
        let run = self.run_id;
        if self.failed().next().is_none() {
            // A failed run without a failed step: a gate was rejected.
            let rejected = self.state.gates.keys().find(|gate| self.state.rejected(gate));
            return Next::new(match rejected {
                Some(gate) => format!("approve {run} {gate}"),
                None => format!("status {run}"),
            });
        }
        let first = if self.failed().any(|(_, step)| failure::is_ended_by_attempts(step)) {
            format!("raise `{}` in the plan", failure::ATTEMPTS)
        } else {
            "fix this".to_owned()
        };
        Next::after(format!("{first}, then "), format!("retry {run}"))
    }
}

/// What to do about a block, one for each remedy, each with the command that continues the run: alone,
/// that would only meet the block again.
fn after_block(refusal: &Refusal, resume: &str) -> Vec<Next> {
    // Only tidying up leaves the run where it was.
    let decides = |command: &str| command.split(' ').next() != Some("gc");
    let after = |remedy: &Remedy| match (remedy.options(), &remedy.0[..]) {
        (Some(options), _) => Next::new(format!("{resume} {options}")),
        (None, [Part::Piton(command)]) => Next::new(command.as_str()),
        _ if remedy.commands().any(decides) => Next::after(remedy.clone(), ""),
        _ => Next::after(remedy.clone().words(", then "), resume),
    };
    if refusal.remedies.is_empty() {
        return vec![Next::after("fix this, then ", resume)];
    }
    refusal.remedies.iter().map(after).collect()
}

/// The steps that were left out and that something waits for; where that can't be told, all that were.
pub fn holding(state: &RunState) -> Vec<StepPath> {
    let skipped = |s: &StepState| matches!(s.progress, Progress::Skipped { satisfy: false });
    let all: Vec<StepPath> =
        state.steps().filter(|(_, s)| skipped(s)).map(|(path, _)| path).collect();
    let held: Vec<StepPath> =
        all.iter().filter(|path| !waiting_for(state, path).is_empty()).cloned().collect();
    if held.is_empty() { all } else { held }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piton_core::{GateRef, Timestamp};

    use super::*;
    use crate::fixture::state;

    /// Lost: the command that is typed next would meet the same block, again and again.
    #[test]
    fn a_block_is_fixed_before_the_run_continues() {
        let after = |place: &Place, refusal: Refusal| -> Vec<String> {
            after_block(&refusal, "resume r").iter().map(|next| next.typed(place)).collect()
        };
        let place = Place::default();
        let dirty = Refusal::new("dirty", "changes")
            .or("commit them")
            .or(Remedy::from("start from them with ").option("--seed-dirty"));
        assert_eq!(
            after(&place, dirty),
            ["commit them, then piton resume r", "piton resume r --seed-dirty"]
        );
        let gate = Refusal::new("gate", "a gate").or(Remedy::from("see it").then_piton("resume x"));
        assert_eq!(after(&place, gate), ["see it, then run `piton resume x`"]);
        let none = Refusal::new("world", "it failed");
        assert_eq!(after(&place, none), ["fix this, then piton resume r"]);
        let place = Place::default().outside(Path::new("p"));
        let other = Refusal::new("lock", "a lock").or(Remedy::piton("gc").words(" removes it"));
        let typed = "`piton -C p gc` removes it, then piton -C p resume r";
        assert_eq!(after(&place, other), [typed]);
    }

    #[test]
    fn the_next_command_follows_the_verdict() {
        let place = Place::default();
        let first = |state: &RunState, verdict| {
            RunView::by_driver(state, Timestamp(0), &place).next_typed(verdict).remove(0)
        };
        let mut state = state();
        assert_eq!(first(&state, Verdict::Waiting), "piton approve r-1 P2");
        let mut two = state.clone();
        let gates = state.gates.values().cloned();
        two.gates.extend(gates.map(|gate| (GateRef("P1".to_owned()), gate)));
        assert_eq!(first(&two, Verdict::Waiting), "piton approve r-1 P1");
        assert_eq!(first(&state, Verdict::Interrupted), "piton resume r-1");
        assert_eq!(first(&state, Verdict::Complete), "piton show r-1");
        state.exhausted = Some("tokens".to_owned());
        assert!(first(&state, Verdict::Budget).starts_with("raise `tokens` in the plan"));
        state.phases[0].lanes[1].steps[0].progress = Progress::Skipped { satisfy: false };
        assert_eq!(first(&state, Verdict::Blocked), "piton skip r-1 P1/B/work --satisfy");
        for gate in state.gates.values_mut() {
            gate.decision = Some(piton_core::state::Decision {
                approved: false,
                by: "ann".to_owned(),
                message: String::new(),
                at: Timestamp(0),
            });
        }
        assert_eq!(first(&state, Verdict::Failed), "piton approve r-1 P2");
        state.ended = Some(Status::Cancelled);
        assert_eq!(first(&state, Verdict::Aborted), "piton show r-1");
    }
}
