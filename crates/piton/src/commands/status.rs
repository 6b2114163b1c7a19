//! `piton status`: where a run stands, once or again and again.
//!
//! The command people and prompts call most: it opens the ledger for reading, loads one run, prints.
//! Evidence is not looked at here, since that means hashing files; `piton resume --dry-run` does.

use std::io::IsTerminal as _;
use std::thread;
use std::time::Duration;

use piton_core::summary::run_status;
use piton_engine::Loaded;

use crate::cli::StatusArgs;
use crate::context::{Context, now};
use crate::error::Result;
use crate::ui::{self, Look};

/// The pause between two looks: a clock that shows seconds needs no more.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Clears the terminal and goes to its top.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Shows where a run stands.
pub fn run(context: &Context, args: &StatusArgs) -> Result<()> {
    let mut store = context.read_store()?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let run_id = row.run_id.clone();
    let mut loaded = store.load_row(row)?;
    let mut lives = Context::driver_lives(&loaded.row);
    if !args.watch {
        print(context, &loaded, lives, false);
        return Ok(());
    }
    let clear = std::io::stdout().is_terminal() && !context.json;
    let mut shown = None;
    loop {
        // Elsewhere than on a terminal only what changed is worth a line.
        let version = (loaded.seq, lives);
        if clear || shown != Some(version) {
            print(context, &loaded, lives, clear);
            shown = Some(version);
        }
        if !lives || run_status(&loaded.state, lives).is_final() {
            return Ok(());
        }
        thread::sleep(WATCH_EVERY);
        if store.ledger().changed()? {
            loaded = store.load(&run_id)?;
        }
        lives = Context::driver_lives(&loaded.row);
    }
}

fn print(context: &Context, loaded: &Loaded, lives: bool, clear: bool) {
    if context.json {
        ui::data_json(&ui::status_json::status(loaded, lives, &[]));
        return;
    }
    let tree = ui::tree::render(loaded, lives, &[], now(), &Look::stdout());
    let clear = if clear { CLEAR } else { "" };
    ui::data(&format!("{clear}{}", tree.trim_end()));
}
