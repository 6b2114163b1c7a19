//! `piton statusline`: one line below an agent: the task or lane, the gate that waits, and how full the
//! context is.
//!
//! It also notes the size of the context, which no hook of Claude Code says. Whatever goes wrong, there
//! is a shorter line.

use std::io::Read as _;
use std::path::PathBuf;

use piton_agents::hook::Call;
use piton_protocols::Table;
use piton_protocols::session::tokens::percent;
use piton_view::run::Waiting;
use piton_view::text::sanitize;
use piton_workspace::Project;

use super::hook::note::Note;
use super::request::unfinished;
use crate::context::Context;
use crate::environment;
use crate::error::Result;
use crate::ui;

/// Most bytes that a program may say.
const INPUT_BYTES_MAX: u64 = 1 << 20;

/// Prints the line.
#[expect(clippy::unnecessary_wraps, reason = "commands can fail; this one must not")]
pub fn run(table: &'static Table) -> Result<()> {
    let mut bytes = Vec::new();
    // What is cut off cannot be read, and the line is shorter.
    let _ = std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut bytes);
    let call = Call::read(&bytes).unwrap_or_default();
    let here = environment::current_folder().unwrap_or_default();
    let cwd = call.cwd.as_ref().map_or(here, PathBuf::from);
    let mut parts = vec!["piton".to_owned()];
    let mut window = call.fits();
    if let Ok(project) = Project::for_person(&cwd) {
        window = remember(&project, &call).or(window);
        parts.extend(work(table, &cwd, &project, &call.session).unwrap_or_default());
    }
    if let Some((used, window)) = call.tokens().zip(window) {
        parts.push(format!("{} %", percent(used, window)));
    }
    ui::data(&parts.join(" · "));
    Ok(())
}

/// Notes how full the context is, for the hooks of the session; how many tokens fit, as hooks count.
fn remember(project: &Project, call: &Call) -> Option<u64> {
    let note = Note::read(&project.state_dir, &call.session)?;
    let (used, window) = (call.tokens().unwrap_or(note.used), note.window(call.fits()));
    let new = Note { used, window, ..note };
    if new != note {
        // Hooks measure again.
        let _ = new.keep(&project.state_dir, &call.session);
    }
    call.fits().map(|_| window)
}

/// What the session works on: its task, or the lane and the gate of the newest run here.
fn work(
    table: &'static Table,
    cwd: &std::path::Path,
    project: &Project,
    session: &str,
) -> Option<Vec<String>> {
    if !project.state_dir.join(piton_ledger::DATABASE_FILE).exists() {
        return None;
    }
    let context = Context::new(table, cwd, (false, false), true).ok()?;
    let mut store = context.read_store().ok()?;
    let (mut own, mut other) = (None, None);
    for row in store.runs().ok()?.into_iter().filter(|row| row.seq > 0 && unfinished(row)) {
        let loaded = store.load_row(row).ok()?;
        let view = Context::view(&loaded);
        if let Some(state) = view.session {
            if own.is_none() && state.session == session {
                own = state.task.as_ref().map(|task| sanitize(task));
            }
        } else if other.is_none() {
            let lane = view.current.as_ref().map(|step| format!("{}/{}", step.phase, step.lane));
            let lane = lane.unwrap_or_else(|| view.run_id.to_owned());
            let gate = view.waiting_for.iter().find_map(|waiting| match waiting {
                Waiting::Gate { name, .. } => Some(format!("waits for {}", sanitize(name))),
                Waiting::Request { .. } => None,
            });
            other = Some([Some(sanitize(&lane)), gate]);
        }
    }
    Some(own.into_iter().chain(other.into_iter().flatten().flatten()).collect())
}
