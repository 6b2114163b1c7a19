//! `piton doctor`: looks at ledger, runs, keepers, strays, cgroups, disk and git, and says what to
//! do.
//!
//! It only reads: nothing is repaired, ended or deleted here, except for a ledger that is set aside,
//! or accepted though it is older than it was, where a person says so. What Piton takes care of by
//! itself (a run whose driver died, say) is told, but is no warning.

pub mod agents;
mod anew;
mod checks;
mod restored;

use piton_view::answers::{Answer, Finding, Findings, Health};
use piton_view::text::count;
use piton_world::installed::Found;

use crate::cli::DoctorArgs;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;

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
    let is_sound = findings.is_empty();
    if readable && !checks::runs(context, &mut findings) {
        readable = false;
    } else if is_sound {
        let dir = context.project.state_dir.display();
        findings.insert(0, Finding::ok(format!("the ledger in {dir} is sound")));
    }
    if context.has_broken_settings() {
        let what = format!("{} cannot be read", crate::context::SETTINGS_FILE);
        findings.push(Finding::error(what).next("fix the problems shown above"));
    }
    findings.push(checks::cgroups(context));
    findings.push(checks::disk(context));
    findings.push(checks::git(context));
    findings.extend(checks::place(context));
    findings.extend(checks::hooks(context));
    let programs = agents::look(context);
    findings.extend(agents::findings(context, &programs));
    report(context, &findings, &programs);
    // A ledger that must not be touched holds everything back; other errors are plain failures.
    if !readable {
        return Err(CommandError::silent(Kind::Blocked));
    }
    if findings.iter().any(|f| f.severity == Health::Error) {
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
            let message = format!("cannot write {}: {source}", to.display());
            return Err(CommandError::usage("backup-folder", message)
                .hint("name a file in a folder that exists and that you can write to"));
        }
        done => done?,
    }
    if context.json {
        ui::data_json(&Answer::Backup(to));
    } else {
        ui::say(format!("copied the ledger to {}", to.display()));
    }
    Ok(())
}

fn report(context: &Context, findings: &[Finding], programs: &[Found]) {
    let clean = findings.iter().all(|f| f.severity == Health::Ok);
    let layout = ui::stdout();
    ui::show(
        context.json,
        &Findings { clean, findings, agents: agents::answers(programs) },
        || findings.iter().map(|f| f.render(&layout, ui::place())).collect::<Vec<_>>().join("\n"),
    );
    let number = |severity| findings.iter().filter(|f| f.severity == severity).count();
    if !context.json && clean {
        ui::say("no problems found");
    } else if !context.json {
        let warnings = count(number(Health::Warning), "warning");
        ui::say(format!("{}, {warnings}", count(number(Health::Error), "error")));
    }
}
