//! `piton doctor`: looks at ledger, runs, keepers, strays, cgroups, disk and git, and says what to
//! do.
//!
//! It only reads: nothing is repaired, ended or deleted here, except for a ledger that is set aside,
//! or accepted though it is older than it was, where a person says so. What Piton takes care of by
//! itself (a run whose driver died, say) is told, but is no warning.

mod anew;
mod checks;
mod restored;
mod snapshots;

use std::fmt::Write as _;

use piton_core::Status;
use piton_core::shell::quoted;
use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui::{self, Look, look, text};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be, or taken care of.
    Ok,
    /// Works, but a person should look.
    Warning,
    /// Does not work.
    Error,
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// What to do; empty where there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next: String,
}

impl Finding {
    /// All is well.
    pub fn ok(what: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, what: what.into(), next: String::new() }
    }

    /// A person should look.
    pub fn warning(what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::ok(what) }
    }

    /// Something does not work.
    pub fn error(what: impl Into<String>) -> Self {
        Self { severity: Severity::Error, ..Self::ok(what) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = ui::here::told(&next.into()).into_owned();
        self
    }
}

/// Looks at everything, or copies the ledger.
pub fn run(context: &Context, args: &DoctorArgs) -> Result<()> {
    if let Some(file) = &args.backup {
        return backup(context, &context.cwd.join(file));
    }
    if args.new_ledger {
        return anew::begin(context);
    }
    if args.restored {
        return restored::accept(context);
    }
    let (mut findings, mut readable) = checks::ledger(context);
    if readable && !checks::runs(context, &mut findings) {
        readable = false;
        // The file is sound, but what a person cares about is not.
        findings.retain(|found| !found.what.ends_with(checks::SOUND));
    }
    if context.is_unsettled() {
        let what = format!("{} can't be read", crate::context::SETTINGS_FILE);
        findings.push(Finding::error(what).next("correct what is said of it above"));
    }
    findings.push(checks::cgroups(context));
    findings.push(checks::disk(context));
    findings.push(checks::git(context));
    findings.extend(checks::place(context));
    report(context, &findings);
    // A ledger that must not be touched holds everything back; other errors are plain failures.
    if !readable {
        return Err(CommandError::silent(Kind::Blocked));
    }
    if findings.iter().any(|f| f.severity == Severity::Error) {
        return Err(CommandError::silent(Kind::Failed));
    }
    Ok(())
}

fn backup(context: &Context, to: &std::path::Path) -> Result<()> {
    match piton_ledger::backup(&context.project.state_dir, to) {
        Err(error @ piton_ledger::Error::Exists { .. }) => {
            return Err(CommandError::usage("backup-exists", error.to_string()));
        }
        Err(error @ piton_ledger::Error::NoLedger { .. }) => {
            return Err(context.lost_ledger().unwrap_or_else(|| error.into()));
        }
        Err(piton_ledger::Error::File { path, source, .. }) if path.parent() == to.parent() => {
            return Err(unwritable(to, &source));
        }
        done => done?,
    }
    if context.json {
        ui::data_json(&serde_json::json!({ "backup": to }));
    } else {
        ui::say(&format!("copied the ledger to {}", to.display()));
    }
    Ok(())
}

/// Why no copy can be made in a folder, and what to do about it.
fn unwritable(to: &std::path::Path, why: &std::io::Error) -> CommandError {
    let folder = to.parent().unwrap_or(to);
    let (shown, typed) = (folder.display(), quoted(&folder.to_string_lossy()));
    if !folder.exists() {
        let message = format!("there is no folder {shown}");
        return CommandError::usage("backup-folder", message)
            .hint(format!("make it with `mkdir -p {typed}`, or name a file in one that is there"));
    }
    CommandError::usage("backup-folder", format!("cannot write {}: {why}", to.display()))
        .hint("name a file in a folder that is yours")
}

fn report(context: &Context, findings: &[Finding]) {
    let clean = findings.iter().all(|f| f.severity == Severity::Ok);
    if context.json {
        ui::data_json(&serde_json::json!({ "clean": clean, "findings": findings }));
        return;
    }
    let look = Look::stdout();
    let lines: Vec<String> = findings.iter().map(|f| line(f, &look)).collect();
    ui::data(&lines.join("\n"));
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    if clean {
        ui::say("all is well");
    } else {
        let warnings = text::count(count(Severity::Warning), "warning");
        ui::say(&format!("{}, {warnings}", text::count(count(Severity::Error), "error")));
    }
}

fn line(finding: &Finding, look: &Look) -> String {
    let (word, style) = match finding.severity {
        Severity::Ok => ("ok", look::style_of(Status::Complete)),
        Severity::Warning => ("warning", look::NOTE),
        Severity::Error => ("error", look::BAD),
    };
    let mut line =
        format!("{} {}", look.paint(style, &format!("{word}:")), text::sanitize(&finding.what));
    if !finding.next.is_empty() {
        let _ = write!(line, "\n  next: {}", text::sanitize(&finding.next));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_without_colour_and_says_what_to_do() {
        let finding = Finding::warning("little space").next("free some");
        assert_eq!(line(&finding, &Look::plain(80)), "warning: little space\n  next: free some");
        assert_eq!(line(&Finding::ok("fine"), &Look::plain(80)), "ok: fine");
    }
}
