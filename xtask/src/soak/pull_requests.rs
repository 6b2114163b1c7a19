//! SIGKILL around the call that opens a pull request: before it, during it and after it returned.
//!
//! The remote is a bare repository beside, and `gh` a script that keeps its requests in a file and
//! opens one as often as it is told to, as a careless forge would. So a request that is opened
//! twice shows.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::kills::{completed, kill_pass};
use super::scratch::{Scratch, Started};
use super::{Broken, Round, kills, record};

/// When kills come, and how often each in full.
pub(super) const AIMS: (&[&str], u64) = (&[BEFORE, DURING, AFTER], 15);
/// The branch is being pushed and its request looked for.
const BEFORE: &str = "before";
/// The request is being opened.
const DURING: &str = "during";
/// It was opened and told.
const AFTER: &str = "after";
/// The lanes.
const LANES: [&str; 3] = ["A", "B", "C"];
/// Kills of a round: at least, and by how many more at most.
const KILLS: (u64, u64) = (2, 4);
/// A kill comes within so many milliseconds of what it aims at: while the script sleeps, too.
const AFTER_MS: u64 = 15;
/// Longest wait for what a kill aims at: a driver that is through with it ends before.
const AIM_WAIT: Duration = Duration::from_secs(30);
/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// One round.
pub(super) fn kill(round: &mut Round<'_>) -> Result<(), Broken> {
    let mut scratch = Scratch::with_files(round, false, |_| vec![("plan.toml", plan())])?;
    prepare(&scratch)?;
    let killed = kill_until_complete(round, &scratch);
    killed.and_then(|()| check(&scratch)).map_err(|broken| scratch.report(&broken))
}

fn plan() -> String {
    let mut plan = "title = \"Pull requests\"\n\n[[phase]]\nid = \"P\"\n".to_owned();
    for lane in LANES {
        let _ = write!(
            plan,
            "\n[[phase.lane]]\nid = \"{lane}\"\nisolation = \"worktree\"\nmerge = \"pr\"\n\
             steps = [{{ id = \"work\", run = \"echo {lane} > {lane}.txt\" }}]\n"
        );
    }
    plan
}

/// Makes the remote and the script that stands for `gh`.
fn prepare(scratch: &Scratch) -> Result<(), Broken> {
    let base = scratch.base();
    let remote = base.join("remote.git").display().to_string();
    scratch.git(&["init", "--quiet", "--bare", "--initial-branch=main", &remote])?;
    scratch.git(&["remote", "add", "origin", &remote])?;
    scratch.git(&["push", "--quiet", "origin", "main"])?;
    fs::create_dir(base.join("at")).map_err(|e| e.to_string())?;
    let base = base.display();
    let script = format!(
        "#!/bin/sh\n\
         echo \"$1 $2\" >> {base}/calls\n\
         case \"$1 $2\" in\n\
         'pr list')\n\
         : > {base}/at/{BEFORE}; sleep 0.01\n\
         grep -s -m 1 \" $4$\" {base}/requests | cut -d ' ' -f 1 ;;\n\
         'pr create')\n\
         : > {base}/at/{DURING}; sleep 0.01\n\
         echo \"https://forge/$$ $4\" >> {base}/requests\n\
         sleep 0.01; echo \"https://forge/$$\"; : > {base}/at/{AFTER} ;;\n\
         'pr view') echo MERGED ;;\n\
         *) exit 2 ;;\n\
         esac\n"
    );
    let file = scratch.base().join("bin/gh");
    fs::write(&file, script).map_err(|e| e.to_string())?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(|e| e.to_string())
}

fn kill_until_complete(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    for _ in 0..KILLS.0 + round.rng.below(KILLS.1) {
        let aims = AIMS.0;
        let aim = aims[usize::try_from(round.rng.below(aims.len() as u64)).unwrap_or(0)];
        let mark = scratch.base().join("at").join(aim);
        // What an earlier driver's step left must not be taken for this one's.
        let _ = fs::remove_file(&mark);
        let mut driver = scratch.start(&kills::next_words(scratch))?;
        if !comes(&mark, &mut driver)? {
            return completed(&driver.wait()?);
        }
        thread::sleep(round.rng.millis_below(AFTER_MS));
        if driver.is_over()? {
            return completed(&driver.wait()?);
        }
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(scratch) > 0);
        *round.tally.met.entry(aim).or_default() += 1;
        if round.rng.one_in(2) {
            kill_pass(round, scratch, &mut driver, false)?;
        } else {
            driver.kill()?;
        }
    }
    completed(&scratch.start(&kills::next_words(scratch))?.wait()?)
}

/// Waits for a mark; false when the driver ended first.
fn comes(mark: &Path, driver: &mut Started) -> Result<bool, Broken> {
    let deadline = Instant::now() + AIM_WAIT;
    while !mark.exists() {
        if driver.is_over()? || Instant::now() > deadline {
            return Ok(false);
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(true)
}

/// Checks that each lane has its branch at the remote and one request.
fn check(scratch: &Scratch) -> Result<(), Broken> {
    let requests = fs::read_to_string(scratch.base().join("requests")).unwrap_or_default();
    for lane in LANES {
        let branch = format!("lane/P/{lane}");
        let count = requests.lines().filter(|line| line.ends_with(&format!(" {branch}"))).count();
        if count != 1 {
            return Err(format!("{branch} has {count} pull requests:\n{requests}"));
        }
        let file =
            scratch.git(&["--git-dir=../remote.git", "show", &format!("{branch}:{lane}.txt")])?;
        if file != lane {
            return Err(format!("the remote has {file:?} on {branch}"));
        }
    }
    if requests.lines().count() != LANES.len() {
        return Err(format!("requests of no lane:\n{requests}"));
    }
    let status = record::status(scratch);
    if status.as_deref() != Some("complete") {
        return Err(format!("the run is {status:?}, not complete"));
    }
    scratch.clean()
}
