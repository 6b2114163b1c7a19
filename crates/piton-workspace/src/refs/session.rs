//! A `git update-ref --stdin` that carries out transactions: one after the other, or one alone.
//!
//! One that stays carries only those whose moves leave nothing behind that tells when and why: a git that stays knows one
//! reason, and the date of its first move. So it carries what moves below `refs/piton/`, deletes, and
//! makes the branches of lanes; whatever moves a branch has a git of its own.
//!
//! Whole transactions are sent at once, so that it never waits for us with a lock held. If we die, its
//! input ends, and with that it does. Its complaints go into the page of the journal, which both of
//! us hold while a transaction is in progress, and nobody otherwise: a driver that is stopped is waited
//! for only if it was stopped in the middle of one. A complaint is the end of a session.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use super::journal::{Page, is_shared};
use super::{BRIEFLY, Logs, Transaction};
use crate::git::{Error, Git, Pool};
use crate::repo::Repo;

/// What the log of a new branch says.
pub(super) const REASON: &str = "piton: lane";

/// The longest transaction that is sent: what a pipe takes at once or not at all. Longer ones are
/// those of `piton gc`.
const SENT_BYTES_MAX: usize = 4096;

/// How old a session may be that makes a branch: so much earlier the log may say it was made.
const LOG_AGE_MAX: Duration = Duration::from_secs(5);

/// The sessions that wait.
static SESSIONS: Pool<Session> = Pool::new();

/// Ends them.
pub(crate) fn end_processes() {
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

/// Carries out a transaction by a git that stays.
pub(super) fn carry_out(repo: &Repo, transaction: &Transaction) -> Outcome {
    // The next one is begun along with it: then one answer is all there is to wait for.
    let input = &format!("{}commit\nstart\n", transaction.lines);
    if input.len() > SENT_BYTES_MAX {
        return Outcome::Unasked;
    }
    let (logs, durably) = (transaction.logs == Logs::Made, is_shared(transaction));
    let young = |session: &Session| !logs || session.begun.elapsed() <= LOG_AGE_MAX;
    if let Some(session) = SESSIONS.take(&repo.common).filter(young) {
        match session.carry_out_and_stay(repo, input, durably) {
            // It was ended in the meantime, as by Ctrl-C.
            Outcome::Unasked => {}
            outcome => return outcome,
        }
    }
    match Session::that_stays(repo) {
        Ok(session) => session.carry_out_and_stay(repo, input, durably),
        Err(_) => Outcome::Unasked,
    }
}

/// Carries out a transaction by a git of its own, for any reason.
pub(super) fn carry_out_alone(
    repo: &Repo,
    transaction: &Transaction,
    why: &str,
    patience: &[&str],
) -> io::Result<Outcome> {
    let (input, durably) = (format!("{}commit\n", transaction.lines), is_shared(transaction));
    loop {
        let mut session = Session::begin(repo, Git::at(&repo.root), why, patience)?;
        // A sweep may have come before it was written to.
        if session.page.begin(&input, durably)? {
            // If it is dead already, its answer says so. No more follows.
            let _ = session.stdin.take().map(|mut pipe| pipe.write_all(input.as_bytes()));
            return Ok(session.answer());
        }
    }
}

struct Session {
    page: Page,
    child: Child,
    /// Nothing once it is over.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    begun: Instant,
    /// What the logs say.
    why: String,
}

impl Session {
    /// One for whatever may have the same reason; no variable of the work tree's matters to it.
    fn that_stays(repo: &Repo) -> io::Result<Self> {
        let git = Git::at(&repo.common).env("GIT_DIR", &repo.common);
        // The user may be about to commit to what a transaction verifies.
        Self::begin(repo, git, REASON, &BRIEFLY)
    }

    fn begin(repo: &Repo, git: Git, why: &str, patience: &[&str]) -> io::Result<Self> {
        let page = Page::new(repo)?;
        let git = patience.iter().fold(git.durable(), |git, setting| git.config(setting));
        let git = git.args(["update-ref", "-m", why, "--stdin"]);
        let complaints = Stdio::from(page.complaints()?);
        let mut child = git.converse(Stdio::piped(), Stdio::piped(), complaints)?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let (stdout, begun, why) = (BufReader::new(stdout), Instant::now(), why.to_owned());
        let mut session = Self { page, child, stdin, stdout, begun, why };
        session.stdin.as_mut().map_or(Ok(()), |pipe| pipe.write_all(b"start\n"))?;
        Ok(session)
    }

    fn carry_out_and_stay(mut self, repo: &Repo, input: &str, durably: bool) -> Outcome {
        let outcome = if self.send(input, durably) { self.answer() } else { Outcome::Unasked };
        if matches!(outcome, Outcome::Done) {
            SESSIONS.put(repo.common.clone(), self);
        }
        outcome
    }

    /// Writes a transaction down and sends it, if there is somebody to send it to.
    fn send(&mut self, input: &str, durably: bool) -> bool {
        self.page.begin(input, durably).unwrap_or(false)
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
        let command = format!("update-ref -m {} --stdin", self.why);
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

    struct Scene {
        home: tempfile::TempDir,
        repo: Repo,
        fence: Fence,
        commits: [String; 2],
    }

    fn scene() -> Scene {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        git(dir, &["init", "-q", "-b", "main"]).unwrap();
        let tree = git(dir, &["write-tree"]).unwrap();
        let who = ["-c", "user.name=n", "-c", "user.email=e"];
        let commits = ["one", "two"].map(|message| {
            git(dir, &[&who[..], &["commit-tree", "-m", message, &tree]].concat()).unwrap()
        });
        let fence = Fence::raise(dir, RUN, 1).unwrap();
        Scene { repo: Repo::find(dir).unwrap(), home, fence, commits }
    }

    impl Scene {
        fn dir(&self) -> &Path {
            self.home.path()
        }

        /// The process of the session that waits.
        fn waiting(&self) -> Option<u32> {
            let session = SESSIONS.take(&self.repo.common)?;
            let id = session.child.id();
            SESSIONS.put(self.repo.common.clone(), session);
            Some(id)
        }

        fn lock(&self, name: &str) -> std::path::PathBuf {
            self.repo.common.join(format!("{name}.lock"))
        }

        fn fenced(&self) -> Transaction {
            Transaction::fenced(&self.fence)
        }
    }

    #[test]
    fn one_git_carries_out_many_and_sees_what_others_do_meanwhile() {
        let scene = scene();
        let (dir, [one, two]) = (scene.dir(), &scene.commits);
        let first = scene.waiting().unwrap();
        scene.fenced().update(CHAIN, one, None).commit(dir, "any").unwrap();
        scene.fenced().update(CHAIN, two, Some(one)).commit(dir, "any").unwrap();
        scene.fenced().update(BRANCH, one, None).commit(dir, REASON).unwrap();
        let log = git(dir, &["reflog", "show", "--format=%gs", BRANCH]).unwrap();
        assert_eq!(log, REASON);
        // Moved, packed and deleted by others.
        git(dir, &["update-ref", CHAIN, one]).unwrap();
        git(dir, &["pack-refs", "--all"]).unwrap();
        scene.fenced().update(CHAIN, two, Some(one)).commit(dir, "any").unwrap();
        scene.fenced().delete(BRANCH, one).delete(CHAIN, two).commit(dir, "any").unwrap();
        assert_eq!((value(dir, BRANCH), value(dir, CHAIN)), (None, None));
        git(dir, &["update-ref", CHAIN, one]).unwrap();
        git(dir, &["update-ref", "-d", CHAIN]).unwrap();
        scene.fenced().update(CHAIN, two, None).commit(dir, "any").unwrap();
        assert_eq!(value(dir, CHAIN).as_ref(), Some(two));
        assert_eq!(scene.waiting(), Some(first));
        // A folder of others is in the way of a branch.
        git(dir, &["update-ref", &format!("{BRANCH}/x"), one]).unwrap();
        scene.fenced().update(BRANCH, one, None).commit(dir, REASON).unwrap_err();
        git(dir, &["update-ref", "-d", &format!("{BRANCH}/x")]).unwrap();
        scene.fenced().update(BRANCH, one, None).commit(dir, REASON).unwrap();
        git(dir, &["fsck", "--strict"]).unwrap();
    }

    #[test]
    fn what_moves_a_branch_says_why_by_a_git_of_its_own() {
        let scene = scene();
        let (dir, [one, two]) = (scene.dir(), &scene.commits);
        scene.fenced().update("refs/heads/main", one, None).commit(dir, "made").unwrap();
        scene.fenced().update("refs/heads/main", two, Some(one)).commit(dir, REASON).unwrap();
        scene.fenced().set("refs/heads/main", one).commit(dir, "set").unwrap();
        let log = git(dir, &["reflog", "show", "--format=%gs", "main"]).unwrap();
        assert_eq!(log, format!("set\n{REASON}\nmade"));
        assert_eq!(git(dir, &["reflog", "show", "--format=%gs", "HEAD"]).unwrap(), log);
    }

    #[test]
    fn a_failure_is_reported_as_by_a_git_of_its_own_and_the_next_one_works() {
        let scene = scene();
        let (dir, [one, two]) = (scene.dir(), &scene.commits);
        let wrong = scene.fenced().update(CHAIN, two, Some(one));
        let alone = wrong.once(&scene.repo, REASON).unwrap_err();
        assert!(alone.message.contains(CHAIN), "{alone}");
        assert_eq!(wrong.clone().commit(dir, REASON).unwrap_err(), alone);
        // The session itself says the same.
        assert_eq!(wrong.brief().commit(dir, REASON).unwrap_err(), alone);
        assert_eq!(scene.waiting(), None);
        scene.fenced().update(CHAIN, two, None).commit(dir, "any").unwrap();
        assert!(scene.waiting().is_some());
        // A driver that was taken over.
        Fence::raise(dir, RUN, 2).unwrap();
        let late = scene.fenced().update(CHAIN, one, Some(two));
        let alone = late.once(&scene.repo, REASON).unwrap_err();
        assert!(alone.message.contains("epoch"), "{alone}");
        assert_eq!(late.commit(dir, REASON).unwrap_err(), alone);
        assert_eq!(value(dir, CHAIN).as_ref(), Some(two));
    }

    #[test]
    fn a_lock_is_waited_for_as_by_a_git_of_its_own() {
        let scene = scene();
        let (dir, [one, _]) = (scene.dir(), &scene.commits);
        let theirs = "refs/heads/theirs";
        let lock = scene.lock(theirs);
        std::fs::write(&lock, "").unwrap();
        let make = scene.fenced().update(theirs, one, None);
        let error = make.clone().brief().commit(dir, REASON).unwrap_err();
        assert!(error.message.contains(".lock"), "{error}");
        assert!(lock.exists(), "it may be the user's");
        std::fs::remove_file(&lock).unwrap();
        make.commit(dir, REASON).unwrap();
    }

    /// A session that has locked what a transaction moves, and is about to be interrupted.
    fn prepared(scene: &Scene, lines: &str) -> Session {
        let mut session = Session::that_stays(&scene.repo).unwrap();
        assert!(session.send(&format!("{lines}prepare\n"), true));
        assert!(session.says("prepare: ok\n"));
        assert!(scene.lock(CHAIN).exists());
        session
    }

    #[test]
    fn a_driver_that_is_killed_leaves_no_lock() {
        let scene = scene();
        let mut session = prepared(&scene, &format!("update {CHAIN} {}\n", scene.commits[0]));
        // What the kernel does for it.
        session.stdin = None;
        session.child.wait().unwrap();
        assert!(!scene.lock(CHAIN).exists());
        assert_eq!(value(scene.dir(), CHAIN), None);
    }

    #[test]
    fn the_locks_of_a_session_that_is_killed_go() {
        let scene = scene();
        let (dir, [one, _]) = (scene.dir(), &scene.commits);
        let lines = format!("update {CHAIN} {one}\nupdate {BRANCH} {one}\n");
        let mut session = prepared(&scene, &lines);
        session.child.kill().unwrap();
        assert!(matches!(session.answer(), Outcome::Lost));
        drop(session);
        assert!(scene.lock(CHAIN).exists() && scene.lock(BRANCH).exists());
        let again = scene.fenced().update(BRANCH, one, None).update(CHAIN, one, None);
        again.commit(dir, REASON).unwrap();
        assert_eq!(
            (value(dir, BRANCH).as_ref(), value(dir, CHAIN).as_ref()),
            (Some(one), Some(one))
        );
    }

    /// Lost: the user could not commit, and nothing of ours would ever look at the locks again.
    #[test]
    fn the_locks_of_one_that_is_never_tried_again_are_cleared() {
        let scene = scene();
        let (dir, [one, _]) = (scene.dir(), &scene.commits);
        scene.fenced().update(CHAIN, one, None).update(BRANCH, one, None).commit(dir, "m").unwrap();
        let lines = format!("verify {BRANCH} {one}\ndelete {CHAIN} {one}\n");
        let mut session = prepared(&scene, &lines);
        assert!(scene.lock(BRANCH).exists());
        session.child.kill().unwrap();
        assert!(matches!(session.answer(), Outcome::Lost));
        drop(session);
        assert_ne!(super::super::clear_locks(dir).unwrap(), 0);
        assert!(!scene.lock(CHAIN).exists() && !scene.lock(BRANCH).exists());
        assert_eq!(super::super::clear_locks(dir).unwrap(), 0);
    }

    #[test]
    fn one_that_was_killed_while_it_waited_is_begun_anew() {
        let scene = scene();
        let mut session = SESSIONS.take(&scene.repo.common).unwrap();
        session.child.kill().unwrap();
        session.child.wait().unwrap();
        SESSIONS.put(scene.repo.common.clone(), session);
        let [one, _] = &scene.commits;
        scene.fenced().update(CHAIN, one, None).commit(scene.dir(), "any").unwrap();
        assert_eq!(value(scene.dir(), CHAIN).as_ref(), Some(one));
    }

    #[test]
    fn nobody_waits_for_a_session_that_waits() {
        let scene = scene();
        let (dir, [one, two]) = (scene.dir(), &scene.commits);
        let first = scene.waiting().unwrap();
        // Somebody else, who meets a lock of ours.
        std::fs::write(scene.lock(CHAIN), "").unwrap();
        let met = Transaction::default().set(CHAIN, one);
        let removed = super::super::journal::sweep_until(&scene.repo, &met, Instant::now());
        assert_eq!(removed.unwrap(), 1);
        // Its page is gone, so it starts again.
        scene.fenced().update(CHAIN, two, None).commit(dir, "any").unwrap();
        assert_ne!(scene.waiting(), Some(first));
    }
}
