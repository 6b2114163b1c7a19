//! Work trees of one repository: what one snapshot made durable need not be written again, as long
//! as a ref holds it.

use std::collections::BTreeSet;

use piton_workspace::snapshot::{Meta, Snapshot, Taker, Workspace};

use crate::support::{CHAIN, Repo};

const LANE: &str = "refs/piton/run-1/other";

struct Rig {
    repo: Repo,
    first: Taker,
}

impl Rig {
    /// A repository of which one snapshot was taken.
    fn new() -> Self {
        let repo = Repo::new();
        repo.write("large", "a line of a file\n".repeat(100));
        repo.commit();
        let mut first = Taker::new(repo.workspace.clone());
        take(&repo, &mut first, CHAIN);
        Self { repo, first }
    }

    /// Another work tree of the same commit, and who takes snapshots of it.
    fn lane(&self) -> Taker {
        let dir = self.repo.beside("lane");
        self.repo.git(&["worktree", "add", "-q", "-b", "lane", dir.to_str().unwrap()]);
        let cache = self.repo.path(".git/piton/cache/lane");
        Taker::new(Workspace { dir, cache }).like(Some(&self.first))
    }

    fn packs(&self) -> BTreeSet<String> {
        let found = std::fs::read_dir(self.repo.path(".git/objects/pack")).unwrap();
        let paths = found.map(|e| e.unwrap().path());
        let indexes = paths.filter(|path| path.extension().is_some_and(|end| end == "idx"));
        indexes.map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    /// The kinds of the objects that a snapshot wrote.
    fn written(&self, taker: &mut Taker) -> (Snapshot, Vec<String>) {
        let before = self.packs();
        let taken = take(&self.repo, taker, LANE);
        let mut kinds = Vec::new();
        for pack in self.packs().difference(&before) {
            let listed = self.repo.git(&["verify-pack", "-v", pack]);
            let objects = listed.lines().filter(|line| line.len() > 40 && !line.contains(':'));
            kinds.extend(objects.filter_map(|l| Some(l.split_whitespace().nth(1)?.to_owned())));
        }
        kinds.sort();
        (taken, kinds)
    }
}

fn take(repo: &Repo, taker: &mut Taker, chain: &str) -> Snapshot {
    let meta = Meta { message: "m", at: 0 };
    taker.take(&repo.rules, chain, &repo.fence, &meta).unwrap()
}

#[test]
fn the_same_files_cost_nothing_and_stand_on_their_own() {
    let rig = Rig::new();
    let mut lane = rig.lane();
    let (taken, kinds) = rig.written(&mut lane);
    assert!(taken.changed && kinds.is_empty(), "{kinds:?}");
    assert_eq!(rig.repo.git(&["rev-parse", LANE]), rig.repo.git(&["rev-parse", CHAIN]));
    // Read again, because they were too young to be believed: no news.
    let (again, kinds) = rig.written(&mut lane);
    assert!(!again.changed && kinds.is_empty(), "{kinds:?}");
    let edited = lane.workspace().dir.join("a.txt");
    std::fs::write(edited, "two\n").unwrap();
    let (edited, kinds) = rig.written(&mut lane);
    assert_eq!(kinds, ["blob", "blob", "commit", "tree", "tree", "tree"], "file, side and ways");
    rig.repo.git(&["update-ref", "-d", CHAIN]);
    rig.repo.git(&["worktree", "remove", "--force", "lane"]);
    rig.repo.git(&["branch", "-D", "-q", "lane"]);
    rig.repo.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(rig.repo.shows(&taken, "a.txt"), "one");
    assert_eq!(rig.repo.shows(&edited, "a.txt"), "two");
    rig.repo.git(&["fsck", "--strict"]);
}

#[test]
fn what_no_ref_holds_any_more_is_written_again() {
    let rig = Rig::new();
    let mut lane = rig.lane();
    rig.repo.git(&["update-ref", "-d", CHAIN]);
    rig.repo.git(&["gc", "-q", "--prune=now"]);
    let (taken, kinds) = rig.written(&mut lane);
    assert!(kinds.iter().filter(|kind| *kind == "blob").count() >= 3, "{kinds:?}");
    assert_eq!(rig.repo.shows(&taken, "src/b.txt"), "two");
    rig.repo.git(&["fsck", "--strict"]);
}

#[test]
fn an_untracked_file_of_another_work_tree_is_held_too() {
    let rig = Rig::new();
    rig.repo.write("untracked", "only in snapshots\n");
    let mut first = Taker::new(rig.repo.workspace.clone()).like(Some(&rig.first));
    take(&rig.repo, &mut first, CHAIN);
    let mut lane = rig.lane();
    std::fs::write(lane.workspace().dir.join("untracked"), "only in snapshots\n").unwrap();
    let (taken, kinds) = rig.written(&mut lane);
    assert_eq!(kinds, ["commit"]);
    assert_eq!(rig.repo.shows(&taken, "untracked"), "only in snapshots");
}

#[test]
fn a_small_lane_is_found_as_it_was_though_nothing_of_it_was_written_down() {
    let rig = Rig::new();
    let mut lane = rig.lane();
    let (taken, _) = rig.written(&mut lane);
    rig.written(&mut lane);
    assert!(!lane.workspace().cache.exists());
    // As after a crash.
    let mut next = Taker::new(lane.workspace().clone());
    let (found, kinds) = rig.written(&mut next);
    assert!(!found.changed && kinds.is_empty(), "{kinds:?}");
    assert_eq!(found.commit, taken.commit);
    std::fs::write(lane.workspace().dir.join("a.txt"), "two\n").unwrap();
    let mut next = Taker::new(lane.workspace().clone());
    let (edited, _) = rig.written(&mut next);
    assert!(edited.changed);
    assert_eq!(rig.repo.shows(&edited, "a.txt"), "two");
}
