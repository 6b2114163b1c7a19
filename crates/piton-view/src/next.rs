//! What to do next in a run that nobody drives, the likeliest first.

use piton_core::decide::held_without;
use piton_core::event::Verdict;
use piton_core::failure;
use piton_core::state::{Progress, StepState};
use piton_core::summary::standing_verdict;
use piton_core::{RunState, Status, StepPath};

use crate::place::Place;
use crate::run::RunView;
use crate::text::sanitize;

/// Most gates that are named; `piton status` names them all.
const NAMED_MAX: usize = 10;

/// What to do next: commands one after the other, perhaps after something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// What a person does first, up to the first command.
    pub before: String,
    /// Commands of ours, without the name of the program.
    pub commands: Vec<String>,
}

impl Next {
    /// One after the other.
    pub fn all<const N: usize>(commands: [String; N]) -> Self {
        Self { before: String::new(), commands: commands.into() }
    }

    fn after(before: impl Into<String>, mut next: Self) -> Self {
        next.before = before.into();
        next
    }

    /// As it is to be typed where the person stands.
    pub fn typed(&self, place: &Place) -> String {
        let commands: Vec<String> = self.commands.iter().map(|one| place.piton(one)).collect();
        format!("{}{}", place.told(&self.before), commands.join(" && "))
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
        let one = |command: &str| Next::all([format!("{command} {run}")]);
        let resume = || format!("resume {run}");
        match verdict {
            Verdict::Complete => vec![one("show")],
            Verdict::Waiting => {
                let gates = self.state.open_gates().take(NAMED_MAX);
                // Approving is not running: the two belong together.
                let approve =
                    gates.map(|(gate, _)| Next::all([format!("approve {run} {gate}"), resume()]));
                let all: Vec<Next> = approve.collect();
                if all.is_empty() { vec![one("resume")] } else { all }
            }
            Verdict::Failed => self.after_failure(),
            Verdict::Blocked => {
                let skipped = holding(self.state).into_iter().take(1);
                let mut all: Vec<Next> = skipped
                    .map(|path| Next::all([format!("skip {run} {path} --satisfy"), resume()]))
                    .collect();
                if let Some(blocked) = self.blocked().find_map(|lane| lane.work.blocked) {
                    all.extend(after_block(&sanitize(blocked.fix), &resume()));
                }
                all.push(one("status"));
                all
            }
            Verdict::Budget => {
                let budget = sanitize(self.state.exhausted.as_deref().unwrap_or("the budget"));
                vec![Next::after(format!("raise `{budget}` in the plan, then "), one("resume"))]
            }
            Verdict::Aborted if self.state.ended.is_some_and(Status::is_final) => vec![one("show")],
            Verdict::RolledBack => {
                let mut goes_on = self.lanes().filter_map(|lane| lane.work.rolled_back);
                // What came back may be a failure, which a resume alone only meets again.
                if self.failed().next().is_none() || goes_on.next().is_some() {
                    return vec![one("resume"), one("undo")];
                }
                let mut all = self.after_failure();
                all.insert(1, one("undo"));
                all
            }
            Verdict::Interrupted | Verdict::SelectionDone | Verdict::Aborted => vec![one("resume")],
        }
    }

    fn after_failure(&self) -> Vec<Next> {
        let (run, resume) = (self.run_id, format!("resume {}", self.run_id));
        let failed: Vec<(StepPath, &StepState)> = self.failed().collect();
        let abort = Next::all([format!("abort {run}")]);
        let Some((path, _)) = failed.first() else {
            // A failed run without a failed step: a gate was rejected.
            let rejected = self.state.gates.keys().find(|gate| self.state.rejected(gate));
            let approve = rejected.map(|gate| Next::all([format!("approve {run} {gate}"), resume]));
            return approve.into_iter().chain([abort]).collect();
        };
        // Without a step all that failed are meant.
        let which = if failed.len() == 1 { format!(" {path}") } else { String::new() };
        let mut retry = Next::all([format!("retry {run}{which}"), resume.clone()]);
        if failed.iter().any(|(_, step)| failure::is_ended_by_attempts(step)) {
            retry.before = format!("raise `{}` in the plan, then ", failure::ATTEMPTS);
        }
        let skip = Next::all([format!("skip {run} {path}"), resume]);
        vec![retry, skip, abort, Next::all([format!("log {run} --step {path}")])]
    }
}

/// What to do about a block, then the command: alone, that would only meet the block again.
fn after_block(fix: &str, resume: &str) -> Vec<Next> {
    const SEED: &str = "--seed-dirty";
    let asked = ["then `piton resume`", "then resume"];
    let goes_on = || Next::all([resume.to_owned()]);
    let first = match asked.iter().find_map(|end| fix.strip_suffix(end)).map(str::trim_end) {
        Some("") => Next::after("put that right, then ", goes_on()),
        Some(first) => Next::after(format!("{first} then "), goes_on()),
        None if fix.is_empty() => goes_on(),
        None if fix.contains("resume") => Next::after(fix, Next::default()),
        None => Next::after(format!("{fix}; then "), goes_on()),
    };
    let seeded = fix.contains(SEED).then(|| Next::all([format!("{resume} {SEED}")]));
    std::iter::once(first).chain(seeded).collect()
}

/// The steps that were left out and that something waits for; where that can't be told, all that were.
pub fn holding(state: &RunState) -> Vec<StepPath> {
    let skipped = |s: &StepState| matches!(s.progress, Progress::Skipped { satisfy: false });
    let all: Vec<StepPath> =
        state.steps().filter(|(_, s)| skipped(s)).map(|(path, _)| path).collect();
    let held: Vec<StepPath> =
        all.iter().filter(|path| !held_without(state, path).is_empty()).cloned().collect();
    if held.is_empty() { all } else { held }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piton_core::{GateRef, Timestamp};

    use super::*;
    use crate::fixture::state;

    /// Lost: the command that is to be typed next would meet the same block, again and again.
    #[test]
    fn a_block_is_put_right_before_the_run_goes_on() {
        let place = Place::default();
        let after = |fix: &str| -> Vec<String> {
            after_block(fix, "resume r").iter().map(|next| next.typed(&place)).collect()
        };
        let dirty = "commit them, or start from them with --seed-dirty";
        let first = format!("{dirty}; then piton resume r");
        assert_eq!(after(dirty), [first.as_str(), "piton resume r --seed-dirty"]);
        assert_eq!(after("mend it, then `piton resume`"), ["mend it, then piton resume r"]);
        assert_eq!(after("then `piton resume`"), ["put that right, then piton resume r"]);
        assert_eq!(after("resume when base is quiet"), ["resume when base is quiet"]);
        assert_eq!(after(""), ["piton resume r"]);
        let place = Place::default().outside(Path::new("p"), vec!["gc".to_owned()]);
        let next = after_block("call `piton gc`, then `piton resume`", "resume r").remove(0);
        assert_eq!(next.typed(&place), "call `piton -C p gc`, then piton -C p resume r");
    }

    #[test]
    fn the_next_command_follows_the_verdict() {
        let place = Place::default();
        let first = |state: &RunState, verdict| {
            RunView::by_driver(state, Timestamp(0), &place).next_typed(verdict).remove(0)
        };
        let mut state = state();
        assert_eq!(first(&state, Verdict::Waiting), "piton approve r-1 P2 && piton resume r-1");
        let mut two = state.clone();
        let gates = state.gates.values().cloned();
        two.gates.extend(gates.map(|gate| (GateRef("P1".to_owned()), gate)));
        assert_eq!(first(&two, Verdict::Waiting), "piton approve r-1 P1 && piton resume r-1");
        assert_eq!(first(&state, Verdict::Interrupted), "piton resume r-1");
        assert_eq!(first(&state, Verdict::Complete), "piton show r-1");
        state.exhausted = Some("tokens".to_owned());
        assert!(first(&state, Verdict::Budget).starts_with("raise `tokens` in the plan"));
        state.phases[0].lanes[1].steps[0].progress = Progress::Skipped { satisfy: false };
        assert_eq!(
            first(&state, Verdict::Blocked),
            "piton skip r-1 P1/B/work --satisfy && piton resume r-1"
        );
        for gate in state.gates.values_mut() {
            gate.decision = Some(piton_core::state::Decision {
                approved: false,
                by: "ann".to_owned(),
                message: String::new(),
                at: Timestamp(0),
            });
        }
        assert_eq!(first(&state, Verdict::Failed), "piton approve r-1 P2 && piton resume r-1");
        state.ended = Some(Status::Cancelled);
        assert_eq!(first(&state, Verdict::Aborted), "piton show r-1");
    }
}
