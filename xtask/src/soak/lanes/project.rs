//! The project that lanes work in while they are killed: a phase document with four lanes (five, if its
//! tasks are list items) and a scripted agent, and what base must hold once they are all merged.
//!
//! One lane commits by itself, one fails its first attempt, one its first test, two change the same
//! lines and so conflict, and all change one file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::super::kills::completed;
use super::super::reader::{Content, Reader};
use super::super::repository::{self, Users};
use super::super::scratch::{RUN, Scratch};
use super::super::{Broken, Round, record};
use super::contract::TESTED;

/// The lanes; the last one only in the document of list items.
const LANES: [&str; 5] = ["A", "B", "C", "D", "E"];
/// The phase document.
const DOCUMENT: &str = "phase.md";
/// Where the checkpoints of lanes are.
pub(super) const CHECKPOINTS: &str = "repo/.claude/ai-dev-kit/run-logs/checkpoints.json";

/// Who helps a lane that failed, and where its project lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    /// Nobody: its agent is called again.
    Alone,
    /// A person: it has no retries.
    Person,
    /// A person, and the project lies on a disk of its own.
    PersonAndDisk,
    /// Nobody, and the tasks are list items.
    Bullets,
}

impl Setting {
    /// The lanes of the document.
    fn lanes(self) -> &'static [&'static str] {
        if self == Self::Bullets { &LANES } else { &LANES[..4] }
    }
}

/// One round: the project is made, something is done to its run, and what is left is looked at.
/// Meanwhile another process reads the checkpoints, unless they lie on a disk that goes away.
pub(super) fn round(
    round: &mut Round<'_>,
    setting: Setting,
    act: impl FnOnce(&mut Round<'_>, &Scratch) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let (own_disk, retries) = match setting {
        Setting::Alone | Setting::Bullets => (false, 5),
        Setting::Person => (false, 0),
        Setting::PersonAndDisk => (true, 0),
    };
    let mut scratch =
        Scratch::with_files(round, own_disk, |outside| files(outside, setting, retries))?;
    prepare(scratch.outside())?;
    let users = Users::prepare(&scratch)?;
    let checkpoints = scratch.base().join(CHECKPOINTS);
    let reader = (!own_disk).then(|| Reader::start(&checkpoints, Content::JsonList)).transpose()?;
    let acted = act(round, &scratch);
    let read = reader.map_or(Ok(0), Reader::finish).map(|reads| round.tally.reads += reads);
    let commits = round.tally.commits;
    let checked = acted.and(read).and_then(|()| {
        repository::has_users_commits(&scratch, commits)?;
        check(&scratch, &users, setting.lanes())
    });
    checked.map_err(|broken| scratch.report(&broken))
}

/// The first command of a round, or the one after a kill.
pub(super) fn words(scratch: &Scratch) -> Vec<&'static str> {
    match record::status(scratch) {
        None => vec!["run", DOCUMENT, "--run-id", RUN],
        Some(_) => vec!["resume", RUN],
    }
}

fn files(outside: &Path, setting: Setting, retries: u32) -> Vec<(&'static str, String)> {
    let lanes = setting.lanes();
    let outside = outside.display();
    let settings = format!(
        "[defaults]\nagent = \"scripted\"\nbackoff = \"10ms\"\n\n\
         [agents.scripted]\ncommand = [\"sh\", \"{outside}/agent.sh\"]\n"
    );
    let mut document = "# P: Soak\n\n## Lane Index & Dependencies\n\n".to_owned();
    for lane in lanes {
        let _ = write!(
            document,
            "- SL-{lane} -- Lane {lane}\n  - Parallel-safe: yes\n  - Retries: {retries}\n\n"
        );
    }
    document.push_str("## Lanes\n");
    for lane in lanes {
        let _ = write!(document, "\n### SL-{lane} -- Lane {lane}\n\n");
        let _ = if setting == Setting::Bullets {
            write!(
                document,
                "- **Scope**: What lane {lane} is about.\n\
                 - **Interfaces provided**: none\n\
                 - **Tasks**:\n\
                 {T}- impl: Begin lane {lane},\n{T}{T}over two lines.\n\
                 {T}- docs: Finish lane {lane}.\n\
                 {T}- verify: `sh {outside}/check.sh {lane}`\n",
                T = "  ",
            )
        } else {
            write!(
                document,
                "| Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
                 |---|---|---|---|---|---|\n\
                 | {lane}1 | impl | - | - | - | `sh {outside}/check.sh {lane}` |\n\
                 | {lane}2 | impl | {lane}1 | - | - | `sh {outside}/check.sh {lane}` |\n"
            )
        };
    }
    let shared: String = lanes.join(" todo\n\n\n\n") + " todo\n\n\n\n";
    vec![
        ("piton.toml", settings),
        (DOCUMENT, document),
        ("shared.txt", shared),
        ("both.txt", "first\n".to_owned()),
        ("SL-A.md", "notes\n".to_owned()),
        ("SL-B.md", "notes\n".to_owned()),
        ("SL-C.md", "notes\n".to_owned()),
        ("SL-D.md", "notes\n".to_owned()),
    ]
}

/// Writes the scripts that stand for agent and tests.
fn prepare(outside: &Path) -> Result<(), Broken> {
    // Done again after a kill at any point, each task gives the same files. A `git commit` that is
    // killed can leave a lock on the packed refs, which nobody can tell from the user's, so the
    // task that commits does so in parts. It syncs what it writes to git's folder: git does not by
    // itself, and takes an object that a power cut emptied for one that is there.
    let agent = "\
cat > prompt.txt; rm prompt.txt
sleep 0.01
lane=${PITON_LANE#SL-}
case $PITON_STEP in
*.impl.1) step=${lane}1 ;;
*.docs.1) step=${lane}2 ;;
*) step=$PITON_STEP ;;
esac
case $step in
A1)
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsync GIT_CONFIG_VALUE_0=all
  echo a > a.txt; git add a.txt || exit
  git diff --cached --quiet && exit
  commit=$(git commit-tree -m 'A by hand' -p HEAD $(git write-tree)) && git update-ref HEAD $commit || exit ;;
B1) echo b > b.txt; [ \"$PITON_ATTEMPT\" -gt 1 ] || exit 1 ;;
C1|D1|E1) touch $step.txt ;;
*2)
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
    let folder = outside.display();
    let check = format!(
        "cat > /dev/null\n\
         : > {folder}/testing/$$\nsleep 0.02\n\
         code=0\n\
         if grep -q '^<<<<<<<' both.txt; then code=1; fi\n\
         if [ $1 = D ] && [ ! -e {folder}/failed ]; then : > {folder}/failed; code=1; fi\n\
         rm {folder}/testing/$$\necho $1 $code >> {folder}/{TESTED}\nexit $code\n"
    );
    fs::create_dir(outside.join("testing")).map_err(|e| e.to_string())?;
    fs::write(outside.join("agent.sh"), agent).map_err(|e| e.to_string())?;
    fs::write(outside.join("check.sh"), check).map_err(|e| e.to_string())
}

/// Checks what must be so once the run is complete.
fn check(scratch: &Scratch, users: &Users, lanes: &[&str]) -> Result<(), Broken> {
    repository::check(scratch, users)?;
    let file = |name: &str| fs::read_to_string(scratch.base().join("repo").join(name));
    let done: String = lanes.join(" done\n\n\n\n") + " done\n\n\n\n";
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
    once(scratch, lanes)?;
    kept(scratch)?;
    rebuilt(scratch)?;
    scratch.clean()
}

/// Checks that the history of base has the work of each lane once: no line of it came twice, and
/// none was ever taken away.
fn once(scratch: &Scratch, lanes: &[&str]) -> Result<(), Broken> {
    let log = scratch.git(&["log", "--format=subject %s", "--patch", "--unified=0", "main"])?;
    let count = |wanted: &str| log.lines().filter(|line| *line == wanted).count();
    let mut wanted: Vec<(String, usize)> = vec![("subject A by hand".to_owned(), 1)];
    for lane in lanes {
        wanted.push((format!("+{lane} done"), 1));
        wanted.push((format!("-{lane} done"), 0));
        wanted.push((format!("-{lane} todo"), 1));
    }
    for line in ["a", "b", "C", "D"] {
        wanted.extend([(format!("+{line}"), 1), (format!("-{line}"), 0)]);
    }
    for file in ["a.txt", "b.txt", "C1.txt", "D1.txt"] {
        wanted.push((format!("diff --git a/{file} b/{file}"), 1));
    }
    match wanted.iter().find(|(line, times)| count(line) != *times) {
        None => Ok(()),
        Some((line, times)) => {
            Err(format!("history has `{line}` {} times, not {times}:\n{log}", count(line)))
        }
    }
}

/// Checks that no commit of base takes a file away: no lane does, so it would be another lane's.
fn kept(scratch: &Scratch) -> Result<(), Broken> {
    let words = ["log", "--diff-filter=D", "--format=%h %s", "--name-only", "--no-renames", "main"];
    let gone = scratch.git(&words)?;
    if gone.is_empty() { Ok(()) } else { Err(format!("base lost files that were merged: {gone}")) }
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
