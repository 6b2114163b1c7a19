//! A person beside a run: settles conflicts with the commands that the program prints, and edits
//! files in the worktrees of lanes while nobody drives.
//!
//! What they did must be in base at the end, or still lie where they put it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use piton_core::event::Event;

use super::super::kills::completed;
use super::super::scratch::Scratch;
use super::super::{Broken, Round, record};

/// More commits than a lane has that conflict.
const CONFLICTS_MAX: usize = 8;

/// What is said where a person's edit came while a test was on record as running: what the test ran on
/// goes to base.
const IN_SNAPSHOT: &str = "what they left is in the snapshot of their attempt";

/// The person, and what they edited.
#[derive(Default)]
pub(super) struct Person(Vec<Edit>);

/// A line at the end of a file that the lane had, and a new file.
struct Edit {
    dir: PathBuf,
    notes: String,
    line: String,
    new: String,
}

impl Edit {
    /// Whether files have it, as this tells what they say.
    fn is_in(&self, file: impl Fn(&str) -> Option<String>) -> bool {
        let has_line = |text: String| text.lines().any(|line| line == self.line);
        file(&self.notes).is_some_and(has_line)
            && file(&self.new).is_some_and(|text| text.trim_end() == self.line)
    }
}

impl Person {
    /// Edits files in the worktree of some lane that has begun, if there is one.
    pub(super) fn edits(&mut self, round: &mut Round<'_>, scratch: &Scratch) -> Result<(), Broken> {
        let mut dirs = BTreeMap::new();
        for (_, event) in record::events(scratch) {
            match event {
                Event::LaneReady(ready) => drop(dirs.insert(ready.lane.lane, ready.dir)),
                Event::LaneMerged(merged) => drop(dirs.remove(&merged.lane.lane)),
                _ => {}
            }
        }
        let dirs: Vec<_> = dirs.into_iter().filter(|(_, dir)| Path::new(dir).is_dir()).collect();
        let any = usize::try_from(round.rng.below(dirs.len() as u64)).unwrap_or(0);
        let Some((lane, dir)) = dirs.get(any) else { return Ok(()) };
        let number = self.0.len();
        let edit = Edit {
            dir: PathBuf::from(dir),
            notes: format!("{lane}.md"),
            line: format!("edit {number}"),
            new: format!("new-{number}.txt"),
        };
        let notes = fs::read_to_string(edit.dir.join(&edit.notes)).unwrap_or_default();
        if !notes.starts_with("notes\n") {
            // Nobody edits a file that the power cut tore, before it is put back.
            let is_torn = scratch.disk().is_some();
            let lost = || format!("{} lost its {}", edit.dir.display(), edit.notes);
            return if is_torn { Ok(()) } else { Err(lost()) };
        }
        for (name, text) in
            [(&edit.notes, format!("{notes}{}\n", edit.line)), (&edit.new, edit.line.clone())]
        {
            fs::write(edit.dir.join(name), text).map_err(|e| e.to_string())?;
        }
        self.0.push(edit);
        round.tally.met(&["edits"]);
        scratch.sync()
    }

    /// Does what a driver that ended says about a conflict; `between` comes between the two commands.
    /// False where it says nothing about one.
    pub(super) fn settles(
        scratch: &Scratch,
        said: &str,
        mut between: impl FnMut() -> Result<(), Broken>,
    ) -> Result<bool, Broken> {
        let quoted: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
        let begin = quoted.iter().find(|c| c.starts_with("git -C ") && c.ends_with(" rebase main"));
        let go_on = quoted.iter().find(|c| c.ends_with(" rebase --continue"));
        let (Some(begin), Some(go_on)) = (begin, go_on) else { return Ok(false) };
        let dir = begin.strip_prefix("git -C ").and_then(|c| c.strip_suffix(" rebase main"));
        let dir = Path::new(dir.unwrap_or_default());
        let mut done = shell(scratch, begin)?;
        if !done.0 && done.1.contains("cannot rebase") {
            // There are edits that nobody committed yet: the next driver does.
            return Ok(false);
        }
        between()?;
        for _ in 0..CONFLICTS_MAX {
            if done.0 {
                scratch.sync()?;
                return Ok(true);
            }
            let file = dir.join("both.txt");
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", done.1))?;
            let is_mark =
                |line: &&str| ["<<<<<<<", "=======", ">>>>>>>"].iter().any(|m| line.starts_with(m));
            let text: Vec<&str> = text.lines().filter(|line| !is_mark(line)).collect();
            fs::write(&file, text.join("\n") + "\n").map_err(|e| e.to_string())?;
            shell(scratch, &format!("git -C {} add both.txt", dir.display()))?;
            done = shell(scratch, go_on)?;
        }
        Err(format!("the conflict can't be settled as told: {}", done.1))
    }

    /// Checks that nothing they edited is lost: it is in base, or in the worktree that was kept for
    /// it, from which they take it then, or in a snapshot that they were told of.
    pub(super) fn leaves(&self, scratch: &Scratch) -> Result<(), Broken> {
        let mut kept = BTreeSet::new();
        for edit in &self.0 {
            let Edit { dir, line, .. } = edit;
            let of = |tree: &str, name: &str| scratch.git(&["show", &format!("{tree}{name}")]).ok();
            if edit.is_in(|name| of("main:", name)) {
                continue;
            }
            if edit.is_in(|name| fs::read_to_string(dir.join(name)).ok()) {
                kept.insert(dir);
                continue;
            }
            let all = scratch.git(&["rev-list", "--glob=refs/piton"])?;
            let in_snapshot = |commit| edit.is_in(|name| of(&format!("{commit}:tree/"), name));
            if !scratch.stdout().contains(IN_SNAPSHOT) || !all.lines().any(in_snapshot) {
                return Err(format!("what a person wrote in {} is lost: {line}", dir.display()));
            }
        }
        for dir in kept.iter().map(|dir| dir.display()) {
            shell(scratch, &format!("git -C {dir} reset --hard && git -C {dir} clean -fd"))?;
        }
        if kept.is_empty() { Ok(()) } else { completed(&scratch.start(&["gc"])?.wait()?) }
    }
}

/// Carries out a command as a person does in a terminal: whether it succeeded, and what it said. The
/// hooks are there to show that the program calls none.
fn shell(scratch: &Scratch, command: &str) -> Result<(bool, String), Broken> {
    let mut shell = scratch.command("sh");
    let no_hooks = [("COUNT", "1"), ("KEY_0", "core.hooksPath"), ("VALUE_0", "/dev/null")];
    shell.args(["-c", command]).env("GIT_EDITOR", "true");
    shell.envs(no_hooks.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value)));
    let output = shell.output().map_err(|e| e.to_string())?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), said))
}
