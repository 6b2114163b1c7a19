//! One `git update-ref --stdin` that stays and carries out transactions one after the other.
//!
//! Only those whose moves leave nothing behind that tells when and why: a git that stays knows one
//! reason, and the date of its first move. So it carries what moves below `refs/piton/`, deletes, and
//! makes the branches of lanes; whatever moves a branch has a git of its own.
//!
//! Whole transactions are sent at once, so that it never waits for us with a lock held. If we die, its
//! input ends, and with that it does. Its complaints go into the page of the journal, which both of
//! us hold while a transaction is under way, and nobody otherwise: a driver that is stopped is waited
//! for only if it was stopped in the middle of one. A complaint is the end of a session.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use super::journal::Page;
use super::{BRIEFLY, PACKED_BRIEFLY};
use crate::git::{Error, Git};
use crate::stay::Staying;
use crate::worktree::Place;

/// What the log of a new branch says.
pub(super) const REASON: &str = "piton: lane";

/// The longest transaction that is sent: what a pipe takes at once or not at all. Longer ones are
/// those of `piton gc`.
const SENT_BYTES_MAX: usize = 4096;

/// How old a session may be that makes a branch: so much earlier the log may say it was made.
const LOG_AGE_MAX: Duration = Duration::from_secs(5);

/// The sessions that wait.
static SESSIONS: Staying<Session> = Staying::none();

/// Ends them.
pub(crate) fn hang_up() {
    SESSIONS.end();
}

/// How a transaction came out.
pub(super) enum Outcome {
    /// It was carried out.
    Done,
    /// It was not, and this is why.
    Refused(Error),
    /// The session ended in it without a word: whether it was carried out is unknown.
    Lost,
    /// There was no session that could be asked.
    Unasked,
}

/// Carries out a transaction; `logs` if it makes a branch.
pub(super) fn carry_out(place: &Place, lines: &str, logs: bool) -> Outcome {
    // The next one is begun along with it: then one answer is all there is to wait for.
    let input = &format!("{lines}commit\nstart\n");
    if input.len() > SENT_BYTES_MAX {
        return Outcome::Unasked;
    }
    let young = |session: &Session| !logs || session.begun.elapsed() <= LOG_AGE_MAX;
    if let Some(session) = SESSIONS.take(&place.common).filter(young) {
        match session.carry_out_and_stay(place, input) {
            // It was ended meanwhile, as by Ctrl-C.
            Outcome::Unasked => {}
            outcome => return outcome,
        }
    }
    match Session::begin(place) {
        Ok(session) => session.carry_out_and_stay(place, input),
        Err(_) => Outcome::Unasked,
    }
}

struct Session {
    page: Page,
    child: Child,
    /// Nothing once it is over.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    begun: Instant,
}

impl Session {
    fn begin(place: &Place) -> io::Result<Self> {
        let page = Page::new(place)?;
        let git = Git::at(&place.common).env("GIT_DIR", &place.common);
        // The user may be about to commit to what a transaction verifies.
        let git = git.durable().config(BRIEFLY).config(PACKED_BRIEFLY);
        let git = git.args(["update-ref", "-m", REASON, "--stdin"]);
        let complaints = Stdio::from(page.complaints()?);
        let mut child = git.converse(Stdio::piped(), Stdio::piped(), complaints)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let stdout = BufReader::new(stdout);
        let mut session = Self { page, child, stdin, stdout, begun: Instant::now() };
        session.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(b"start\n"))?;
        Ok(session)
    }

    fn carry_out_and_stay(mut self, place: &Place, input: &str) -> Outcome {
        let outcome = self.carry_out(input);
        if matches!(outcome, Outcome::Done) {
            SESSIONS.keep(place.common.clone(), self);
        }
        outcome
    }

    fn carry_out(&mut self, input: &str) -> Outcome {
        if self.send(input) { self.answer() } else { Outcome::Unasked }
    }

    /// Writes a transaction down and sends it, if there is somebody to send it to.
    fn send(&mut self, input: &str) -> bool {
        self.page.begin(input).unwrap_or(false)
            && self.stdin.as_mut().is_some_and(|pipe| pipe.write_all(input.as_bytes()).is_ok())
    }

    fn answer(&mut self) -> Outcome {
        if self.says("commit: ok\n") {
            self.page.end();
            return Outcome::Done;
        }
        self.stdin = None;
        let code = self.child.wait().ok().and_then(|status| status.code());
        let message = self.page.complaint();
        if code.is_none() {
            // Killed, it may have left locks.
            self.page.leave();
        }
        if code.is_none() || message.is_empty() {
            return Outcome::Lost;
        }
        let command = format!("update-ref -m {REASON} --stdin");
        Outcome::Refused(Error { command, code, message })
    }

    /// Reads until it says a line, or nothing more.
    fn says(&mut self, wanted: &str) -> bool {
        let mut line = String::new();
        loop {
            line.clear();
            match self.stdout.read_line(&mut line) {
                Ok(0) | Err(_) => return false,
                Ok(_) if line == wanted => return true,
                Ok(_) => {}
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It ends with its input.
        self.stdin = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::path::Path;

    use super::super::{Fence, Transaction, value};
    use super::*;
    use crate::git::git;

    const RUN: &str = "r";
    const CHAIN: &str = "refs/piton/r/chain";
    const BRANCH: &str = "refs/heads/lane/P/A";

    struct Repo {
        home: tempfile::TempDir,
        place: Place,
        fence: Fence,
        commits: [String; 2],
    }

    fn repo() -> Repo {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        git(dir, &["init", "-q", "-b", "main"]).unwrap();
        let tree = git(dir, &["write-tree"]).unwrap();
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        let commits = ["one", "two"].map(|message| {
            git(dir, &[&who[..], &["commit-tree", "-m", message, &tree]].concat()).unwrap()
        });
        let fence = Fence::raise(dir, RUN, 1).unwrap();
        Repo { place: Place::of(dir).unwrap(), home, fence, commits }
    }

    impl Repo {
        fn dir(&self) -> &Path {
            self.home.path()
        }

        /// The process of the session that waits.
        fn waiting(&self) -> Option<u32> {
            let session = SESSIONS.take(&self.place.common)?;
            let id = session.child.id();
            SESSIONS.keep(self.place.common.clone(), session);
            Some(id)
        }

        fn lock(&self, name: &str) -> std::path::PathBuf {
            self.place.common.join(format!("{name}.lock"))
        }

        fn fenced(&self) -> Transaction {
            Transaction::fenced(&self.fence)
        }
    }

    #[test]
    fn one_git_carries_out_many_and_sees_what_others_do_meanwhile() {
        let repo = repo();
        let (dir, [one, two]) = (repo.dir(), &repo.commits);
        let first = repo.waiting().unwrap();
        repo.fenced().update(CHAIN, one, None).commit(dir, "any").unwrap();
        repo.fenced().update(CHAIN, two, Some(one)).commit(dir, "any").unwrap();
        repo.fenced().update(BRANCH, one, None).commit(dir, REASON).unwrap();
        let log = git(dir, &["reflog", "show", "--format=%gs", BRANCH]).unwrap();
        assert_eq!(log, REASON);
        // Moved, packed and deleted by others.
        git(dir, &["update-ref", CHAIN, one]).unwrap();
        git(dir, &["pack-refs", "--all"]).unwrap();
        repo.fenced().update(CHAIN, two, Some(one)).commit(dir, "any").unwrap();
        repo.fenced().delete(BRANCH, one).delete(CHAIN, two).commit(dir, "any").unwrap();
        assert_eq!((value(dir, BRANCH), value(dir, CHAIN)), (None, None));
        git(dir, &["update-ref", CHAIN, one]).unwrap();
        git(dir, &["update-ref", "-d", CHAIN]).unwrap();
        repo.fenced().update(CHAIN, two, None).commit(dir, "any").unwrap();
        assert_eq!(value(dir, CHAIN).as_ref(), Some(two));
        assert_eq!(repo.waiting(), Some(first));
        // A folder of others is in the way of a branch.
        git(dir, &["update-ref", &format!("{BRANCH}/x"), one]).unwrap();
        repo.fenced().update(BRANCH, one, None).commit(dir, REASON).unwrap_err();
        git(dir, &["update-ref", "-d", &format!("{BRANCH}/x")]).unwrap();
        repo.fenced().update(BRANCH, one, None).commit(dir, REASON).unwrap();
        git(dir, &["fsck", "--strict"]).unwrap();
    }

    #[test]
    fn what_moves_a_branch_says_why_by_a_git_of_its_own() {
        let repo = repo();
        let (dir, [one, two]) = (repo.dir(), &repo.commits);
        repo.fenced().update("refs/heads/main", one, None).commit(dir, "made").unwrap();
        repo.fenced().update("refs/heads/main", two, Some(one)).commit(dir, REASON).unwrap();
        repo.fenced().set("refs/heads/main", one).commit(dir, "set").unwrap();
        let log = git(dir, &["reflog", "show", "--format=%gs", "main"]).unwrap();
        assert_eq!(log, format!("set\n{REASON}\nmade"));
        assert_eq!(git(dir, &["reflog", "show", "--format=%gs", "HEAD"]).unwrap(), log);
    }

    #[test]
    fn a_failure_is_reported_as_by_a_git_of_its_own_and_the_next_one_works() {
        let repo = repo();
        let (dir, [one, two]) = (repo.dir(), &repo.commits);
        let wrong = repo.fenced().update(CHAIN, two, Some(one));
        let alone = wrong.once(&repo.place, REASON).unwrap_err();
        assert!(alone.message.contains(CHAIN), "{alone}");
        assert_eq!(wrong.clone().commit(dir, REASON).unwrap_err(), alone);
        // The session itself says the same.
        assert_eq!(wrong.brief().commit(dir, REASON).unwrap_err(), alone);
        assert_eq!(repo.waiting(), None);
        repo.fenced().update(CHAIN, two, None).commit(dir, "any").unwrap();
        assert!(repo.waiting().is_some());
        // A driver that was taken over.
        Fence::raise(dir, RUN, 2).unwrap();
        let late = repo.fenced().update(CHAIN, one, Some(two));
        let alone = late.once(&repo.place, REASON).unwrap_err();
        assert!(alone.message.contains("epoch"), "{alone}");
        assert_eq!(late.commit(dir, REASON).unwrap_err(), alone);
        assert_eq!(value(dir, CHAIN).as_ref(), Some(two));
    }

    #[test]
    fn a_lock_is_waited_for_as_by_a_git_of_its_own() {
        let repo = repo();
        let (dir, [one, _]) = (repo.dir(), &repo.commits);
        let theirs = "refs/heads/theirs";
        let lock = repo.lock(theirs);
        std::fs::write(&lock, "").unwrap();
        let make = repo.fenced().update(theirs, one, None);
        let error = make.clone().brief().commit(dir, REASON).unwrap_err();
        assert!(error.message.contains(".lock"), "{error}");
        assert!(lock.exists(), "it may be the user's");
        std::fs::remove_file(&lock).unwrap();
        make.commit(dir, REASON).unwrap();
    }

    /// A session that has locked what a transaction moves, and is about to be cut short.
    fn prepared(repo: &Repo, lines: &str) -> Session {
        let mut session = Session::begin(&repo.place).unwrap();
        assert!(session.send(&format!("{lines}prepare\n")));
        assert!(session.says("prepare: ok\n"));
        assert!(repo.lock(CHAIN).exists());
        session
    }

    #[test]
    fn a_driver_that_is_killed_leaves_no_lock() {
        let repo = repo();
        let mut session = prepared(&repo, &format!("update {CHAIN} {}\n", repo.commits[0]));
        // What the kernel does for it.
        session.stdin = None;
        session.child.wait().unwrap();
        assert!(!repo.lock(CHAIN).exists());
        assert_eq!(value(repo.dir(), CHAIN), None);
    }

    #[test]
    fn the_locks_of_a_session_that_is_killed_go() {
        let repo = repo();
        let (dir, [one, _]) = (repo.dir(), &repo.commits);
        let lines = format!("update {CHAIN} {one}\nupdate {BRANCH} {one}\n");
        let mut session = prepared(&repo, &lines);
        session.child.kill().unwrap();
        assert!(matches!(session.answer(), Outcome::Lost));
        drop(session);
        assert!(repo.lock(CHAIN).exists() && repo.lock(BRANCH).exists());
        let again = repo.fenced().update(BRANCH, one, None).update(CHAIN, one, None);
        again.commit(dir, REASON).unwrap();
        assert_eq!(
            (value(dir, BRANCH).as_ref(), value(dir, CHAIN).as_ref()),
            (Some(one), Some(one))
        );
    }

    /// Lost: the user could not commit, and nothing of ours would ever look at the locks again.
    #[test]
    fn the_locks_of_one_that_is_never_tried_again_are_cleared() {
        let repo = repo();
        let (dir, [one, _]) = (repo.dir(), &repo.commits);
        repo.fenced().update(CHAIN, one, None).update(BRANCH, one, None).commit(dir, "m").unwrap();
        let lines = format!("verify {BRANCH} {one}\ndelete {CHAIN} {one}\n");
        let mut session = prepared(&repo, &lines);
        assert!(repo.lock(BRANCH).exists());
        session.child.kill().unwrap();
        assert!(matches!(session.answer(), Outcome::Lost));
        drop(session);
        assert_ne!(super::super::clear_locks(dir).unwrap(), 0);
        assert!(!repo.lock(CHAIN).exists() && !repo.lock(BRANCH).exists());
        assert_eq!(super::super::clear_locks(dir).unwrap(), 0);
    }

    #[test]
    fn one_that_was_killed_while_it_waited_is_begun_anew() {
        let repo = repo();
        let mut session = SESSIONS.take(&repo.place.common).unwrap();
        session.child.kill().unwrap();
        session.child.wait().unwrap();
        SESSIONS.keep(repo.place.common.clone(), session);
        let [one, _] = &repo.commits;
        repo.fenced().update(CHAIN, one, None).commit(repo.dir(), "any").unwrap();
        assert_eq!(value(repo.dir(), CHAIN).as_ref(), Some(one));
    }

    #[test]
    fn nobody_waits_for_a_session_that_waits() {
        let repo = repo();
        let (dir, [one, two]) = (repo.dir(), &repo.commits);
        let first = repo.waiting().unwrap();
        // Somebody else, who meets a lock of ours.
        std::fs::write(repo.lock(CHAIN), "").unwrap();
        let lines = format!("update {CHAIN} {one}\n");
        let removed = super::super::journal::sweep_until(&repo.place, &lines, Instant::now());
        assert_eq!(removed.unwrap(), 1);
        // Its page is gone, so it begins anew.
        repo.fenced().update(CHAIN, two, None).commit(dir, "any").unwrap();
        assert_ne!(repo.waiting(), Some(first));
    }
}
