//! Every pair of a lane's progress and a change, with where it leads.

use super::*;
use crate::id::LanePath;

fn lane() -> LanePath {
    LanePath { phase: "P".to_owned(), lane: "A".to_owned() }
}

fn work(tree: &str) -> Committed {
    Committed { commit: "own".to_owned(), tree: tree.to_owned(), changed: true }
}

fn both() -> Conflict {
    Conflict { onto: "base".to_owned(), head: "own".to_owned() }
}

fn by(by: MergedBy) -> LaneMerged {
    LaneMerged { lane: lane(), by, from: None, to: None, note: String::new() }
}

fn landed() -> Landed {
    Landed { merged: by(MergedBy::Queue), committed: Some(work("tree")) }
}

fn intent() -> MergeIntended {
    let (from, to) = ("base".to_owned(), "own".to_owned());
    MergeIntended { lane: lane(), base_branch: "main".to_owned(), from, to }
}

/// Each place a lane can be at, with its name in the table.
fn places() -> Vec<(&'static str, LaneProgress)> {
    use LaneProgress as P;
    let kept = Landed { merged: by(MergedBy::Kept), ..landed() };
    vec![
        ("none", P::NotBegun),
        ("begun", P::Begun),
        ("again", P::BeginsAgain),
        ("work", P::Working { conflict: None }),
        ("solve", P::Working { conflict: Some(both()) }),
        ("clash", P::Conflicted(both())),
        ("fork", P::Forked { step: "tasks".to_owned() }),
        ("commit", P::Committed(work("tree"))),
        ("away", P::CommittedElsewhere(work("tree"))),
        ("rebased", P::Rebased { committed: work("tree"), onto: "base".to_owned() }),
        ("merging", P::Merging { committed: work("tree"), intent: intent() }),
        ("held", P::HeldBack(work("tree"))),
        ("merged", P::Merged(landed())),
        ("stays", P::Merged(kept)),
        ("back", P::Restored(landed())),
        ("gone", P::Removed(landed())),
        ("kept", P::Kept(landed())),
        ("drop", P::Dropped),
    ]
}

fn changes() -> Vec<(&'static str, Change)> {
    let passed = |tree: &str, requested| Change::TestsPassed { tree: tree.to_owned(), requested };
    let merged = |there| Change::Imported(Some(Handover::Merged(by(MergedBy::Queue), there)));
    let head = |head: &str| Change::RolledBack(Back::Work { head: Some(head.to_owned()) });
    vec![
        ("begun in a worktree", Change::Begun { in_place: false }),
        ("begun in place", Change::Begun { in_place: true }),
        ("refused", Change::Refused),
        ("ready", Change::Ready),
        ("work started", Change::WorkStarted),
        ("committed", Change::Committed(work("tree"))),
        ("rebased", Change::Rebased { committed: work("tree"), onto: "base".to_owned() }),
        ("reopened", Change::Reopened(None)),
        ("reopened by a conflict", Change::Reopened(Some(both()))),
        ("forked", Change::Forked { step: "tasks".to_owned() }),
        ("joined", Change::Joined),
        ("merge intended", Change::MergeIntended(intent())),
        ("merge missed", Change::MergeMissed),
        ("merged", Change::Merged(by(MergedBy::Queue))),
        ("merged, stays", Change::Merged(by(MergedBy::Kept))),
        ("removed", Change::Removed),
        ("kept", Change::Kept),
        ("tests passed on it", passed("tree", false)),
        ("tests passed on else", passed("other", false)),
        ("requested, tests on else", passed("other", true)),
        ("tests asked", Change::TestsAsked),
        ("unblocked", Change::Unblocked),
        ("rolled back over", Change::RolledBack(Back::Over)),
        ("rolled back to start", Change::RolledBack(Back::Start)),
        ("rolled back to work", head("else")),
        ("rolled back to commit", head("own")),
        ("merge undone", Change::MergeUndone),
        ("removal undone", Change::RemovalUndone),
        ("removal redone", Change::RemovalRedone),
        ("dropped", Change::Dropped),
        ("imported", Change::Imported(None)),
        ("imported, merged", merged(false)),
        ("imported, with worktree", merged(true)),
        ("imported, outstanding", Change::Imported(Some(Handover::Outstanding(work("tree"))))),
    ]
}

/// One row for each change, one column for each place: `=` stays, `-` is illegal.
const TABLE: &str = "\
|                           none    begun   again   work    solve   clash   fork    commit  away    rebased merging held    merged  stays   back    gone    kept    drop
| begun in a worktree       begun   -       begun   begun   begun   -       -       -       begun   -       -       -       -       -       -       begun   begun   -
| begun in place            work    -       work    =       work    -       -       -       work    -       -       -       -       -       -       work    work    -
| refused                   =       none    =       again   again   =       =       =       =       =       =       =       =       =       =       =       =       =
| ready                     -       work    work    =       =       solve   =       =       -       -       -       -       -       -       -       -       -       -
| work started              =       -       -       =       =       -       work    work    -       work    -       -       work    work    work    -       -       -
| committed                 -       -       commit  commit  commit  commit  commit  =       -       -       -       -       -       -       -       -       -       -
| rebased                   -       -       -       -       -       -       -       rebased -       =       -       -       -       -       -       -       -       -
| reopened                  -       -       work    =       =       =       work    work    -       work    -       -       work    work    work    -       -       -
| reopened by a conflict    -       -       clash   clash   clash   =       clash   clash   -       clash   -       -       clash   clash   clash   -       -       -
| forked                    -       -       -       fork    fork    -       =       fork    -       fork    -       -       fork    fork    fork    -       -       -
| joined                    -       -       -       =       =       -       work    =       -       =       -       -       =       =       =       -       -       -
| merge intended            -       -       -       -       -       -       -       -       -       merging -       -       -       -       -       -       -       -
| merge missed              -       -       -       -       -       -       -       -       -       -       commit  -       -       -       -       -       -       -
| merged                    -       -       -       -       -       -       -       merged  merged  merged  merged  -       -       -       -       -       -       -
| merged, stays             -       -       -       -       -       -       -       stays   stays   stays   stays   -       -       -       -       -       -       -
| removed                   -       -       -       -       -       -       -       -       -       -       -       -       gone    -       -       -       -       none
| kept                      -       -       -       -       -       -       -       -       -       -       -       -       kept    -       -       -       -       -
| tests passed on it        =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =
| tests passed on else      =       =       =       =       =       =       =       work    =       work    =       =       =       work    =       =       =       =
| requested, tests on else  =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =
| tests asked               =       =       =       =       =       =       =       =       =       =       =       =       =       commit  =       =       =       =
| unblocked                 =       =       =       =       =       =       =       work    =       work    =       =       =       =       =       =       =       =
| rolled back over          =       none    none    none    none    none    none    none    none    none    none    none    none    none    none    none    none    =
| rolled back to start      =       none    =       again   again   again   again   again   none    again   again   again   again   again   again   none    none    =
| rolled back to work       =       =       work    =       work    work    work    work    none    work    work    work    work    work    work    none    none    =
| rolled back to commit     =       =       work    =       work    work    work    =       =       commit  commit  commit  commit  commit  commit  away    away    =
| merge undone              =       =       =       =       =       =       =       held    =       held    held    =       =       =       =       =       =       =
| removal undone            =       =       =       =       =       =       =       =       =       =       =       =       back    =       =       =       =       =
| removal redone            =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       merged  =       =
| dropped                   =       drop    drop    drop    drop    drop    drop    drop    none    drop    drop    drop    drop    drop    drop    none    none    =
| imported                  =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =       =
| imported, merged          gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    gone    =       gone    gone
| imported, with worktree   back    back    back    back    back    back    back    back    back    back    back    back    back    back    =       back    back    back
| imported, outstanding     away    away    commit  commit  commit  commit  commit  =       =       commit  commit  commit  commit  commit  commit  away    away    away
";

/// The name of a place with other data, such as a merge of which no commit is known.
fn kind(of: &LaneProgress) -> &'static str {
    let same = |p: &LaneProgress| std::mem::discriminant(p) == std::mem::discriminant(of);
    places().into_iter().find(|(_, p)| same(p)).map_or("?", |(name, _)| name)
}

/// Lost: a lane could get into a state that nobody thought of, or come out of one by a reset.
#[test]
fn every_pair_of_progress_and_change_has_its_answer() {
    let (places, changes) = (places(), changes());
    let mut rows = TABLE.lines().map(|row| row.split_at(28));
    let names: Vec<&str> = rows.next().expect("a head").1.split_whitespace().collect();
    assert_eq!(names, places.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let rows: Vec<_> = rows.collect();
    let said = rows.iter().map(|(head, _)| head[2..].trim());
    assert!(said.eq(changes.iter().map(|(name, _)| *name)), "each change has a row");
    for ((_, cells), (change_name, change)) in rows.iter().zip(&changes) {
        let cells: Vec<&str> = cells.split_whitespace().collect();
        assert_eq!(cells.len(), places.len(), "{change_name}");
        for (cell, (name, at)) in cells.iter().zip(&places) {
            let found = next(at, change.clone());
            let named = match &found {
                Err(_) => "-",
                Ok(to) if to == at => "=",
                Ok(to) => places.iter().find(|(_, p)| p == to).map_or_else(|| kind(to), |p| p.0),
            };
            assert_eq!(named, *cell, "{name}: {change_name} gives {found:?}");
        }
    }
}
