//! SIGKILL while lanes work in worktrees: aimed at what touches the repository, and at random.
//!
//! A phase document with four lanes and a scripted agent: one lane commits by itself, one fails its
//! first attempt, one its first test, two change the same lines and so conflict, and all change one
//! file. However often driver, keeper and steps are killed, base ends with the work of each lane
//! once, in one line of commits, and nothing else is left.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::activity::{self, Watch};
use super::kills::{completed, kill_pass};
use super::scratch::{RUN, Scratch, Started};
use super::{Broken, Round, record, repository};

/// What must have been met, and how often in full.
pub(super) const AIMS: (&[&str], u64) = (
    &[
        activity::WORKTREE,
        activity::SNAPSHOT,
        activity::TEST,
        activity::REBASE,
        activity::REF_UPDATE,
        activity::REMOVAL,
    ],
    20,
);
/// The lanes.
const LANES: [&str; 4] = ["A", "B", "C", "D"];
/// The phase document.
const DOCUMENT: &str = "phase.md";
/// Kills of a round: at least, and by how many more at most. Then it is left to finish.
const KILLS: (u64, u64) = (4, 8);
/// An aimed kill comes within so many milliseconds of what it aims at.
const AFTER_MS: u64 = 3;
/// A kill without an aim comes within so many milliseconds of the driver's start.
const ANYWHERE_MS: u64 = 1500;
/// Longest wait for what a kill aims at: a driver that is through with it ends before.
const AIM_WAIT: Duration = Duration::from_secs(30);
/// One in so many kills has no aim.
const UNAIMED_ONE_IN: u64 = 4;
/// The pause between two looks at the checkpoints.
const READ_EVERY: Duration = Duration::from_millis(2);
/// Where the checkpoints of lanes are.
const CHECKPOINTS: &str = "repo/.claude/ai-dev-kit/run-logs/checkpoints.json";

/// One round.
pub(super) fn kill(round: &mut Round<'_>) -> Result<(), Broken> {
    let mut scratch = Scratch::with_files(round, files)?;
    prepare(scratch.base())?;
    let over = AtomicBool::new(false);
    let read = thread::scope(|scope| {
        let reader = scope.spawn(|| read_on(&scratch.base().join(CHECKPOINTS), &over));
        let killed = kill_until_complete(round, &scratch);
        over.store(true, Ordering::Relaxed);
        let read = reader.join().unwrap_or_else(|_| Err("the reader panicked".to_owned()));
        killed.and(read)
    });
    let checked = read.and_then(|()| check(&scratch));
    checked.map_err(|broken| scratch.report(&broken))
}

/// The first command of a round, or the one after a kill.
fn words(scratch: &Scratch) -> Vec<&'static str> {
    match record::status(scratch) {
        None => vec!["run", DOCUMENT, "--run-id", RUN],
        Some(_) => vec!["resume", RUN],
    }
}

fn kill_until_complete(round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
    let watch = Watch::new(scratch.base().join("testing"));
    let kills = KILLS.0 + round.rng.below(KILLS.1);
    for _ in 0..kills {
        let mut driver = scratch.start(&words(scratch))?;
        let Some(met) = stop_somewhere(round, &watch, &mut driver)? else {
            return completed(&driver.wait()?);
        };
        round.tally.kills += 1;
        round.tally.hits += u64::from(record::running(scratch) > 0);
        for what in met {
            *round.tally.met.entry(what).or_default() += 1;
        }
        match round.rng.below(3) {
            0 => kill_pass(round, scratch, &mut driver, false)?,
            1 => kill_pass(round, scratch, &mut driver, true)?,
            _ => drop(driver.kill()?),
        }
    }
    completed(&scratch.start(&words(scratch))?.wait()?)
}

/// Stops a driver at something it does, or anywhere; nothing when it ended first.
fn stop_somewhere(
    round: &mut Round<'_>,
    watch: &Watch,
    driver: &mut Started,
) -> Result<Option<Vec<&'static str>>, Broken> {
    if round.rng.one_in(UNAIMED_ONE_IN) {
        if driver.wait_for(round.rng.millis_below(ANYWHERE_MS))?.is_some() {
            return Ok(None);
        }
    } else {
        let aims = AIMS.0;
        let aim = usize::try_from(round.rng.below(aims.len() as u64)).unwrap_or(0);
        if !watch.until(driver, aims[aim], AIM_WAIT)? {
            return Ok(None);
        }
        thread::sleep(round.rng.millis_below(AFTER_MS));
    }
    watch.stop(driver)
}

/// Reads the checkpoints again and again: whole JSON at every moment.
fn read_on(file: &Path, over: &AtomicBool) -> Result<(), Broken> {
    while !over.load(Ordering::Relaxed) {
        if let Ok(bytes) = fs::read(file) {
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
            if !read.as_ref().is_ok_and(serde_json::Value::is_array) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                return Err(format!("a reader found the checkpoints broken: {read:?}: {text}"));
            }
        }
        thread::sleep(READ_EVERY);
    }
    Ok(())
}

fn files(base: &Path) -> Vec<(&'static str, String)> {
    let base = base.display();
    let settings = format!(
        "[defaults]\nagent = \"scripted\"\nbackoff = \"10ms\"\n\n\
         [agents.scripted]\ncommand = [\"sh\", \"{base}/agent.sh\"]\n"
    );
    let mut document = "# P: Soak\n\n## Lane Index & Dependencies\n\n".to_owned();
    for lane in LANES {
        let _ = write!(
            document,
            "- SL-{lane} -- Lane {lane}\n  - Parallel-safe: yes\n  - Retries: 5\n\n"
        );
    }
    document.push_str("## Lanes\n");
    for lane in LANES {
        let _ = write!(
            document,
            "\n### SL-{lane} -- Lane {lane}\n\n\
             | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
             |---|---|---|---|---|---|\n\
             | {lane}1 | impl | - | - | - | `sh {base}/check.sh {lane}` |\n\
             | {lane}2 | verify | {lane}1 | - | - | `sh {base}/check.sh {lane}` |\n"
        );
    }
    let shared = LANES.map(|lane| format!("{lane} todo\n\n\n\n")).concat();
    vec![
        ("piton.toml", settings),
        (DOCUMENT, document),
        ("shared.txt", shared),
        ("both.txt", "first\n".to_owned()),
    ]
}

/// Writes the scripts that stand for agent and tests.
fn prepare(base: &Path) -> Result<(), Broken> {
    // Done again after a kill at any point, each task gives the same files. A `git commit` that is
    // killed can leave a lock on the packed refs, which nobody can tell from the user's, so the
    // task that commits does so in parts.
    let agent = "\
cat > prompt.txt; rm prompt.txt
sleep 0.01
case \"$PITON_STEP_KEY\" in
*/A1)
  echo a > a.txt; git add a.txt || exit
  git diff --cached --quiet && exit
  commit=$(git commit-tree -m 'A by hand' -p HEAD $(git write-tree)) && git update-ref HEAD $commit || exit ;;
*/B1) echo b > b.txt; [ \"$PITON_ATTEMPT\" -gt 1 ] || exit 1 ;;
*/C1|*/D1) touch \"${PITON_STEP_KEY##*/}.txt\" ;;
*2)
  lane=${PITON_STEP_KEY##*/}; lane=${lane%2}
  sed -i \"s/^$lane todo$/$lane done/\" shared.txt
  case $lane in
  C|D)
    sed -i '/^[<=>|]\\{7\\}/d' both.txt
    grep -qx $lane both.txt || echo $lane >> both.txt ;;
  esac ;;
*) exit 3 ;;
esac
sleep 0.01
";
    let base_text = base.display();
    let check = format!(
        "cat > /dev/null\n\
         : > {base_text}/testing/$$\nsleep 0.02\n\
         code=0\n\
         if grep -q '^<<<<<<<' both.txt; then code=1; fi\n\
         if [ $1 = D ] && [ ! -e {base_text}/failed ]; then : > {base_text}/failed; code=1; fi\n\
         rm {base_text}/testing/$$\nexit $code\n"
    );
    fs::create_dir(base.join("testing")).map_err(|e| e.to_string())?;
    fs::write(base.join("agent.sh"), agent).map_err(|e| e.to_string())?;
    fs::write(base.join("check.sh"), check).map_err(|e| e.to_string())
}

/// Checks what must be so once the run is complete.
fn check(scratch: &Scratch) -> Result<(), Broken> {
    repository::check(scratch)?;
    let file = |name: &str| fs::read_to_string(scratch.base().join("repo").join(name));
    let done = LANES.map(|lane| format!("{lane} done\n\n\n\n")).concat();
    let same = |name: &str, wanted: &str| match file(name) {
        Ok(found) if found == wanted => Ok(()),
        found => Err(format!("base has {name} as {found:?}, not as {wanted:?}")),
    };
    for (name, text) in
        [("shared.txt", &*done), ("a.txt", "a\n"), ("b.txt", "b\n"), ("C1.txt", ""), ("D1.txt", "")]
    {
        same(name, text)?;
    }
    same("both.txt", "first\nC\nD\n").or_else(|_| same("both.txt", "first\nD\nC\n"))?;
    let by_hand = scratch.git(&["log", "--format=%s", "main"])?;
    let by_hand = by_hand.lines().filter(|subject| *subject == "A by hand").count();
    if by_hand != 1 {
        return Err(format!("the commit that a task made is in base {by_hand} times"));
    }
    rebuilt(scratch)?;
    scratch.clean()
}

/// Checks that the checkpoints are what the ledger gives when they are written anew.
fn rebuilt(scratch: &Scratch) -> Result<(), Broken> {
    let file = scratch.base().join(CHECKPOINTS);
    let read = || fs::read_to_string(&file).map_err(|e| format!("the checkpoints: {e}"));
    let kept = read()?;
    fs::remove_file(&file).map_err(|e| e.to_string())?;
    completed(&scratch.start(&["resume", RUN])?.wait()?)?;
    let again = read()?;
    if kept == again {
        return Ok(());
    }
    Err(format!("the checkpoints differ from those written anew:\n{kept}\nanew:\n{again}"))
}
