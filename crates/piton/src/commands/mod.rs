//! One file per command; here is what they share.

pub mod abort;
pub mod approval;
pub mod approve;
pub mod attach;
pub mod brief;
pub mod check;
mod checkpoint;
pub mod completions;
pub mod current_files;
pub mod demo;
pub mod detach;
pub mod diff;
pub mod doctor;
pub mod dry_run;
pub mod explain;
pub mod gc;
pub mod hook;
pub mod import;
pub mod init;
pub mod inspect;
pub mod leftovers;
pub mod log;
pub mod mcp;
pub mod moved_bases;
pub mod questions;
pub mod reject;
pub mod replan;
pub mod report;
pub mod request;
pub mod restore;
pub mod resume;
pub mod retry;
pub mod rewind;
pub mod rollback;
pub mod run;
pub mod runs;
pub mod schema;
pub mod session;
pub mod show;
pub mod skip;
pub mod status;
pub mod statusline;
pub mod undo;
pub mod waiting;

use piton_protocols::Table;

use crate::cli::Command;
use crate::context::Context;
use crate::error::{CommandError, Result};

/// Carries out a command; the project is looked for if it needs one.
pub fn dispatch(
    table: &'static Table,
    json: bool,
    context: impl FnOnce() -> Result<Context>,
    command: Command,
) -> Result<()> {
    match command {
        Command::Run(args) => run::run(&context()?, args),
        Command::Resume(args) => resume::run(&context()?, args),
        Command::Attach(args) => attach::run(&context()?, &args),
        Command::Status(args) => status::run(&context()?, &args),
        Command::Log(args) => log::run(&context()?, &args),
        Command::Runs(args) => runs::run(&context()?, &args),
        Command::Show(args) => show::run(&context()?, &args),
        Command::Report(args) => report::run(&context()?, &args),
        Command::Brief(args) => brief::run(&context()?, &args),
        Command::Check(args) => check::run(&context()?, &args),
        Command::Checkpoint(args) => checkpoint::run(&context()?, &args),
        Command::Approve(args) => approve::run(&context()?, &args, true),
        Command::Reject(args) => reject::run(&context()?, &args),
        Command::Waiting => waiting::run(&context()?),
        Command::Init(args) => init::run(&context()?, &args),
        Command::Hook(args) => {
            hook::run(table, &args);
            Ok(())
        }
        Command::Statusline => statusline::run(table),
        Command::Mcp => mcp::run(table, &context()?),
        Command::Replan(args) => replan::run(&context()?, &args),
        Command::Retry(args) => retry::run(&context()?, &args),
        Command::Skip(args) => skip::run(&context()?, &args),
        Command::Abort(args) => abort::run(&context()?, &args),
        Command::Rollback(args) => rollback::run(&context()?, &args),
        Command::Undo(args) => undo::run(&context()?, &args),
        Command::Restore(args) => restore::run(&context()?, &args),
        Command::Diff(args) => diff::run(&context()?, &args),
        Command::Gc(args) => gc::run(&context()?, &args),
        Command::Doctor(args) => doctor::run(&context()?, &args),
        Command::Inspect(args) => inspect::run(&context()?, &args),
        Command::Import(args) => import::run(&context()?, &args),
        Command::Session(args) => session::run(&context()?, &args),
        Command::Explain(args) => explain::run(json, &args),
        Command::Schema(args) => schema::run(table, &args),
        Command::Completions(args) => completions::run(json, &args),
        Command::Demo(args) => demo::run(&context()?, &args),
        Command::Keeper { dir, .. } => keep(&dir),
    }
}

/// Keeps the children of a run. It belongs to no folder: the one that its driver was called in may be
/// gone already, or shall be able to go while steps run.
pub fn keep(dir: &std::path::Path) -> Result<()> {
    // Where that can't be, it stays where it is: all paths that it is told are whole ones.
    let _ = rustix::process::chdir("/");
    piton_process::keeper::main(dir).map_err(|e| CommandError::failed("keeper", e.to_string()))
}
