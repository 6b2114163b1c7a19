//! Pages and files of transactions: cut short, under way, done.

use super::*;
use crate::git::git;
use crate::refs::{Transaction, value};

const NAME: &str = "refs/piton/r/epoch";
const BRANCH: &str = "refs/heads/b";

struct Repo {
    dir: tempfile::TempDir,
    place: Place,
    commit: String,
}

fn repo() -> Repo {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "-b", "main"]).unwrap();
    let tree = git(dir.path(), &["write-tree"]).unwrap();
    let who = ["-c", "user.name=n", "-c", "user.email=e"];
    let commit = git(dir.path(), &[&who[..], &["commit-tree", "-m", "m", &tree]].concat());
    let place = Place::of(dir.path()).unwrap();
    Repo { dir, place, commit: commit.unwrap() }
}

impl Repo {
    fn lines(&self) -> String {
        format!("update {NAME} {0}\nupdate {BRANCH} {0}\n", self.commit)
    }

    /// Leaves a transaction as a kill of everybody does, with these locks.
    fn cut_short(&self, locks: &[(&str, &str)]) {
        let underway = Underway::begin(&self.place, &self.lines()).unwrap();
        let (kept, path) = (self.place.state.join("kept"), underway.path.clone());
        fs::copy(&path, &kept).unwrap();
        drop(underway);
        fs::rename(kept, path).unwrap();
        self.lock(locks);
    }

    fn lock(&self, locks: &[(&str, &str)]) {
        for (name, text) in locks {
            let path = self.place.common.join(format!("{name}.lock"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn commit(&self) -> Result<(), crate::git::Error> {
        let all = Transaction::default().set(NAME, &self.commit).set(BRANCH, &self.commit);
        all.commit(self.dir.path(), "t")
    }
}

#[test]
fn locks_of_a_transaction_that_was_cut_short_go() {
    let repo = repo();
    let value_line = format!("{}\n", repo.commit);
    repo.cut_short(&[(NAME, ""), (BRANCH, &value_line), ("HEAD", "")]);
    repo.commit().unwrap();
    assert_eq!(value(repo.dir.path(), BRANCH), Some(repo.commit.clone()));
    let left = fs::read_dir(folder(&repo.place)).unwrap().count();
    assert_eq!(left, 1, "only the file that holds a sweep off stays");
}

#[test]
fn our_own_lock_goes_though_nothing_is_written_down() {
    let repo = repo();
    repo.lock(&[(NAME, "")]);
    repo.commit().unwrap();
}

#[test]
fn a_lock_of_the_users_stays() {
    let repo = repo();
    repo.lock(&[(BRANCH, "")]);
    repo.commit().unwrap_err();
    repo.cut_short(&[(BRANCH, "somebody else's\n")]);
    repo.commit().unwrap_err();
    assert!(repo.place.common.join(format!("{BRANCH}.lock")).exists());
    assert_eq!(value(repo.dir.path(), NAME), None);
}

/// Lost: after a power cut, which takes the note, a lane could never be begun again.
#[test]
fn a_lock_of_a_lane_goes_though_nothing_is_written_down_and_the_users_stay() {
    let repo = repo();
    let lane = "refs/heads/lane/P/A";
    let all = || Transaction::default().set(lane, &repo.commit).set(NAME, &repo.commit);
    repo.lock(&[(lane, "")]);
    all().commit(repo.dir.path(), "t").unwrap();
    // One that nothing would ever meet again, as of a branch that was deleted.
    git(repo.dir.path(), &["update-ref", "-d", lane]).unwrap();
    let theirs = "refs/heads/lane/theirs";
    git(repo.dir.path(), &["update-ref", theirs, &repo.commit]).unwrap();
    repo.lock(&[(lane, "\0\0"), (NAME, ""), (BRANCH, ""), (theirs, ""), ("HEAD", "")]);
    assert_eq!(clear(&repo.place).unwrap(), 2);
    let stay = [(BRANCH, true), (theirs, true), ("HEAD", true)];
    for (name, stays) in [(lane, false), (NAME, false)].into_iter().chain(stay) {
        assert_eq!(repo.place.common.join(format!("{name}.lock")).exists(), stays, "{name}");
    }
}

#[test]
fn nothing_goes_while_a_transaction_is_under_way() {
    let repo = repo();
    let underway = Underway::begin(&repo.place, &repo.lines()).unwrap();
    repo.lock(&[(NAME, "")]);
    assert_eq!(sweep_until(&repo.place, &repo.lines(), Instant::now()).unwrap(), 0);
    // The git of a dead driver holds what it reads.
    let (git, path) = (underway.input().unwrap(), underway.path.clone());
    let kept = repo.place.state.join("kept");
    fs::hard_link(&path, &kept).unwrap();
    drop(underway);
    fs::rename(kept, &path).unwrap();
    assert_eq!(sweep_until(&repo.place, &repo.lines(), Instant::now()).unwrap(), 0);
    drop(git);
    assert_eq!(sweep_until(&repo.place, &repo.lines(), Instant::now()).unwrap(), 1);
}

#[test]
fn pages_that_nobody_writes_on_go_when_there_are_many() {
    let repo = repo();
    let mut under_way = Page::new(&repo.place).unwrap();
    assert!(under_way.begin("update a b\n").unwrap());
    let folder = folder(&repo.place);
    for number in 0..=FILES_MAX {
        fs::write(folder.join(format!("0-{number}")), "").unwrap();
    }
    fs::write(folder.join("1-0"), "update c d\n").unwrap();
    let all = || fs::read_dir(&folder).unwrap().count();
    let before = all();
    // Not while somebody may be about to write.
    let first = Page::new(&repo.place).unwrap();
    assert_eq!(all(), before + 1);
    under_way.end();
    assert!(under_way.begin("update a b\n").unwrap());
    under_way.end();
    let mut second = Page::new(&repo.place).unwrap();
    assert_eq!(all(), 3, "the file that holds a sweep off, what was cut short, and the new one");
    assert!(second.begin("update a b\n").unwrap());
    // Those who had one see that it is gone.
    assert!(!under_way.begin("update a b\n").unwrap());
    drop((first, second));
    assert_eq!(all(), 2);
}

#[test]
fn what_a_page_says_is_done_is_not_taken_for_cut_short() {
    let repo = repo();
    let mut page = Page::new(&repo.place).unwrap();
    let user = repo.place.common.join(format!("{BRANCH}.lock"));
    assert!(page.begin(&repo.lines()).unwrap());
    page.end();
    repo.lock(&[(BRANCH, "")]);
    let kept = repo.place.state.join("kept");
    let leave = |page: Page| {
        fs::hard_link(&page.path, &kept).unwrap();
        let path = page.path.clone();
        drop(page);
        fs::rename(&kept, path).unwrap();
    };
    leave(page);
    assert_eq!(clear(&repo.place).unwrap(), 0);
    assert_eq!(sweep(&repo.place, "").unwrap(), 0);
    assert!(user.exists());
    // The next one on it was cut short.
    let mut page = Page::new(&repo.place).unwrap();
    assert!(page.begin("update refs/heads/done x\ncommit\nstart\n").unwrap());
    page.end();
    assert!(page.begin(&repo.lines()).unwrap());
    leave(page);
    repo.lock(&[(BRANCH, ""), (NAME, "")]);
    assert_eq!(clear(&repo.place).unwrap(), 2);
    assert!(!user.exists());
}

#[test]
fn a_page_tells_complaints_from_what_was_done_and_begins_anew_when_it_is_long() {
    let repo = repo();
    let mut page = Page::new(&repo.place).unwrap();
    let lines = format!("update a {}\n", "b".repeat(4096));
    let mut len = 0;
    for _ in 0..40 {
        assert!(page.begin(&lines).unwrap());
        assert_eq!(page.complaint(), "");
        page.end();
        len = page.file.metadata().unwrap().len();
        assert!(len <= PAGE_BYTES_MAX + 2 * 4200);
    }
    assert!(len < 40 * 4096, "it began anew");
    assert!(page.begin(&lines).unwrap());
    page.complaints().unwrap().write_all(b"fatal: no\n").unwrap();
    assert_eq!(page.complaint(), "fatal: no");
    assert_eq!(open("a\ndone\nb\n"), "b\n");
    assert_eq!((open("a\ndone\n"), open("a\nfatal: undone\n")), ("", "a\nfatal: undone\n"));
}
