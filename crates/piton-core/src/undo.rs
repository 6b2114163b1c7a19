//! Which act an undo undoes, and why another must be undone first.
//!
//! Acts are kept in the order they happened. An undo is an act too, so it can be undone. What an
//! undo does to files and steps is decided elsewhere.

use std::collections::BTreeSet;

use crate::id::LanePath;
use crate::lane_state::{Act, Undoable};

/// Why an act cannot be undone now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no act with that number, or it is forgotten.
    Unknown,
    /// It is already undone; undoing this act brings it back.
    Undone(u64),
    /// A later act changed the same lanes, and must be undone first.
    Later(u64),
}

/// The last act that is not undone.
pub fn last(acts: &[Undoable]) -> Option<&Undoable> {
    acts.iter().rev().find(|act| !act.undone)
}

/// The act to undo in order to undo the act with this number.
///
/// An act that was undone and brought back is undone by undoing what brought it back.
pub fn chosen(acts: &[Undoable], id: u64) -> Result<&Undoable, Refused> {
    if !acts.iter().any(|act| act.id == id) {
        return Err(Refused::Unknown);
    }
    let (mut end, mut is_undone) = (id, false);
    while let Some(next) = acts.iter().find(|act| act.undoes == Some(end)) {
        (end, is_undone) = (next.id, !is_undone);
    }
    if is_undone {
        return Err(Refused::Undone(end));
    }
    let own = root(acts, id);
    let touched = touched(acts, own);
    let roots: BTreeSet<u64> = acts.iter().map(|act| root(acts, act.id)).collect();
    let in_the_way = |other: &u64| {
        let later = acts.iter().filter(|a| a.id > end && root(acts, a.id) == *other).count();
        *other != own && later % 2 == 1 && meets(&touched, &self::touched(acts, *other))
    };
    if let Some(other) = roots.into_iter().rev().find(in_the_way) {
        let last = acts.iter().rev().find(|act| root(acts, act.id) == other);
        return Err(Refused::Later(last.map_or(other, |act| act.id)));
    }
    acts.iter().find(|act| act.id == end).ok_or(Refused::Unknown)
}

/// Whether the removal of a lane's worktree is part of an undo that removes it again, and so not an
/// act of its own.
pub(crate) fn goes_again(acts: &[Undoable], lane: &LanePath) -> bool {
    let last = acts.iter().rev().find(|act| act.lanes.iter().any(|(path, _)| path == lane));
    let Some(last) = last.filter(|act| act.act == Act::Undo && !act.undone) else { return false };
    let first = root(acts, last.id);
    acts.iter().any(|act| act.id == first && act.act == Act::Removal)
}

/// The act at the beginning of a chain of undos.
fn root(acts: &[Undoable], id: u64) -> u64 {
    let mut at = id;
    while let Some(before) = acts.iter().find(|a| a.id == at && a.act == Act::Undo) {
        match before.undoes.filter(|undone| acts.iter().any(|a| a.id == *undone)) {
            Some(undone) => at = undone,
            None => break,
        }
    }
    at
}

/// The lanes whose files, steps or state an act changed; none for the project's own folder.
fn touched(acts: &[Undoable], id: u64) -> BTreeSet<Option<LanePath>> {
    let mut all = BTreeSet::new();
    for act in acts.iter().filter(|act| act.id == id) {
        all.extend(act.lanes.iter().map(|(lane, _)| Some(lane.clone())));
        all.extend(act.steps.iter().map(|(step, _)| Some(step.lane())));
        all.extend(act.workspaces.iter().map(|workspace| workspace.lane.clone()));
    }
    all
}

fn meets(one: &BTreeSet<Option<LanePath>>, other: &BTreeSet<Option<LanePath>>) -> bool {
    one.intersection(other).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn act(id: u64, act: Act, lane: &str, undoes: Option<u64>) -> Undoable {
        let path = LanePath { phase: "P".to_owned(), lane: lane.to_owned() };
        let blank = Undoable::blank(id, Timestamp(0), act, String::new());
        Undoable { lanes: vec![(path, None)], undoes, ..blank }
    }

    /// Acts of `(lane, undone act)`, numbered from 1.
    fn acts(all: &[(&str, Option<u64>)]) -> Vec<Undoable> {
        let mut made: Vec<Undoable> = Vec::new();
        for (id, (lane, undoes)) in (1..).zip(all) {
            let kind = if undoes.is_some() { Act::Undo } else { Act::Restore };
            for before in &mut made {
                before.undone |= Some(before.id) == *undoes;
            }
            made.push(act(id, kind, lane, *undoes));
        }
        made
    }

    fn chosen_id(acts: &[Undoable], id: u64) -> Result<u64, Refused> {
        chosen(acts, id).map(|act| act.id)
    }

    #[test]
    fn the_last_is_the_last_that_is_not_undone() {
        assert_eq!(last(&[]), None);
        let all = acts(&[("A", None), ("A", None), ("A", Some(2))]);
        assert_eq!(last(&all).map(|act| act.id), Some(3), "an undo is undone in its turn");
    }

    #[test]
    fn an_act_is_undone_once_those_after_it_are() {
        let all = acts(&[("A", None), ("A", None)]);
        assert_eq!(chosen_id(&all, 1), Err(Refused::Later(2)));
        assert_eq!(chosen_id(&all, 2), Ok(2));
        assert_eq!(chosen_id(&all, 7), Err(Refused::Unknown));
        let all = acts(&[("A", None), ("A", None), ("A", Some(2))]);
        assert_eq!(chosen_id(&all, 1), Ok(1));
        assert_eq!(chosen_id(&all, 2), Err(Refused::Undone(3)));
    }

    #[test]
    fn acts_of_other_lanes_are_not_in_the_way() {
        let all = acts(&[("A", None), ("B", None)]);
        assert_eq!(chosen_id(&all, 1), Ok(1));
    }

    #[test]
    fn an_act_that_was_brought_back_can_be_undone_again() {
        let all = acts(&[("A", None), ("A", Some(1)), ("A", Some(2))]);
        assert_eq!(chosen_id(&all, 1), Ok(3));
        assert_eq!(chosen_id(&all, 2), Err(Refused::Undone(3)));
    }

    #[test]
    fn only_what_goes_again_is_the_rest_of_an_undo() {
        let lane = LanePath { phase: "P".to_owned(), lane: "A".to_owned() };
        let mut all = acts(&[("A", None), ("A", Some(1)), ("A", Some(2))]);
        assert!(!goes_again(&all, &lane), "it began with a restore");
        all[0].act = Act::Removal;
        assert!(goes_again(&all, &lane));
        assert!(!goes_again(&all[..1], &lane), "the first removal is an act");
        let other = LanePath { lane: "B".to_owned(), ..lane };
        assert!(!goes_again(&all, &other));
    }

    #[test]
    fn an_undo_is_not_undone_over_what_happened_since() {
        let all = acts(&[("A", None), ("A", Some(1)), ("A", None)]);
        assert_eq!(chosen_id(&all, 2), Err(Refused::Later(3)));
        let all = acts(&[("A", None), ("A", None), ("A", Some(2)), ("A", Some(1))]);
        assert_eq!(chosen_id(&all, 3), Err(Refused::Later(4)), "the one before is undone since");
    }
}
