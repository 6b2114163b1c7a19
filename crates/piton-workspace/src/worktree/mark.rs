//! The file that says a worktree of ours is complete, and what is needed to make it whole again.
//!
//! It is the only file of a worktree that is synced when it is made. So it also says where the
//! worktree is: with that and the boot of the machine in which it was written, whatever a power cut
//! tore of the files by which git knows the worktree can be written again (see [`super::links`]).

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use super::{At as _, Result, links};
use crate::files::{put, replace, small};

/// Its name in the admin folder.
const MARK: &str = "piton";

/// How the reason of our locks begins.
const REASON: &str = "piton: run ";

/// What stands between run and lane in it.
const REASON_LANE: &str = ", lane ";

/// The lane of a run that a worktree was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The run.
    pub run_id: String,
    /// The lane.
    pub lane: String,
}

impl Owner {
    /// The reason that locks a worktree of this owner.
    pub fn reason(&self) -> String {
        format!("{REASON}{}{REASON_LANE}{}", self.run_id, self.lane)
    }

    /// Who locked with a reason, if it is one of ours.
    pub fn from_reason(reason: &str) -> Option<Self> {
        let (run_id, lane) = reason.trim_end().strip_prefix(REASON)?.rsplit_once(REASON_LANE)?;
        Some(Self { run_id: run_id.to_owned(), lane: lane.to_owned() })
    }
}

/// What the file of a complete worktree says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose it is.
    pub owner: Owner,
    /// The lane's branch, by its short name.
    pub branch: String,
    /// The commit the lane started from.
    pub start: String,
    /// The boot of the machine in which it was last known to be complete.
    pub boot: String,
    /// Where the worktree was made, and locked, by us. Not there in marks of others' worktrees that
    /// became ours, in older ones, and where the path is not text of one line: what says where those
    /// are is synced, or theirs.
    pub path: Option<String>,
    /// What should have been copied into it and was not there yet.
    pub missing: Vec<String>,
}

impl Mark {
    /// Reads that of an admin folder; what an earlier boot may have torn there is repaired first.
    pub fn read(admin: &Path) -> Option<Self> {
        let text = String::from_utf8(small(&admin.join(MARK)).ok()?).ok()?;
        let mark = Self::parse(&text)?;
        if mark.boot != boot() {
            // What cannot be written now is reported by whoever needs it.
            let _ = links::repair(admin, &mark);
        }
        Some(mark)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<(&str, &str)> = text.lines().filter_map(|l| l.split_once(' ')).collect();
        let value = |key: &str| {
            lines.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned())
        };
        let owner = Owner { run_id: value("run")?, lane: value("lane")? };
        let (branch, start) = (value("branch")?, value("start")?);
        // The last line is there only if the file is complete.
        value("end")?;
        let missing = text.lines().filter_map(|line| line.strip_prefix("missing "));
        let missing = missing.map(str::to_owned).collect();
        let (boot, path) = (value("boot").unwrap_or_default(), value("path"));
        Some(Self { owner, branch, start, boot, path, missing })
    }

    fn text(&self) -> String {
        let Self { owner, branch, start, boot, path, missing } = self;
        let missing: Vec<String> = missing.iter().map(|name| format!("missing {name}\n")).collect();
        let missing = missing.concat();
        let path = path.as_ref().map_or_else(String::new, |path| format!("path {path}\n"));
        format!(
            "run {}\nlane {}\nbranch {branch}\nstart {start}\nboot {boot}\n{path}{missing}end 1\n",
            owner.run_id, owner.lane
        )
    }

    /// Writes it again, completely or not at all.
    pub fn write(&self, admin: &Path) -> Result<()> {
        let file = admin.join(MARK);
        replace(&file, self.text().as_bytes()).at(file)
    }

    /// Writes the first one of a worktree, durably and with all that has been made in its admin
    /// folder. Half of one is none, so it needs no copy.
    pub fn write_first(&self, admin: &Path) -> Result<()> {
        let file = admin.join(MARK);
        put(&file, self.text().as_bytes()).at(file)
    }
}

/// A path as it stands in a mark, if it is text of one line.
pub(super) fn as_line(path: &Path) -> Option<String> {
    path.to_str().filter(|path| !path.contains(['\n', '\r'])).map(str::to_owned)
}

/// The boot of the machine: what was written in an earlier one may be torn. Empty where the
/// system does not say.
pub(super) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_written_and_older_ones_too() {
        let owner = Owner { run_id: "r 1".to_owned(), lane: "P/a".to_owned() };
        let mark = Mark {
            owner,
            branch: "lane/P/a".to_owned(),
            start: "0123".to_owned(),
            boot: "b".to_owned(),
            path: Some("/some where/a".to_owned()),
            missing: vec![".env".to_owned(), "a b".to_owned()],
        };
        assert_eq!(Mark::parse(&mark.text()), Some(mark.clone()));
        let older = mark.text().replace("path /some where/a\n", "");
        assert_eq!(Mark::parse(&older), Some(Mark { path: None, ..mark.clone() }));
        let text = mark.text();
        assert_eq!(Mark::parse(&text[..text.len() - 4]), None);
        assert_eq!(as_line(Path::new("a\nb")), None);
    }
}
