//! `piton doctor --new-ledger`: a new ledger where the old one was lost or damaged.
//!
//! What is there of the old one is renamed, never deleted. A ledger that can be read stays as it is.

use std::fs;

use piton_ledger::{DATABASE_FILE, Error, Open};
use piton_view::answers::NewLedger;

use crate::commands::gc::DELETED;
use crate::commands::request;
use crate::context::{Context, now};
use crate::error::{CommandError, Result};
use crate::ui;

/// What belongs to a ledger: the database, its log, the index of that.
const ENDS: [&str; 3] = ["", "-wal", "-shm"];

/// Sets the ledger aside and begins a new one.
pub fn begin(context: &Context) -> Result<()> {
    request::refuse_any_step(context)?;
    let dir = &context.project.state_dir;
    let is_sound = match piton_ledger::check(dir) {
        Ok(found) => found.is_empty(),
        Err(Error::NoLedger { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    if is_sound {
        let message = format!("the ledger in {} can be read; nothing was changed", dir.display());
        return Err(CommandError::usage("ledger-sound", message)
            .hint("to start over anyway, move its folder away yourself"));
    }
    let stamp = piton_protocols::time::stamp(now());
    let mut aside = None;
    for end in ENDS {
        let from = dir.join(format!("{DATABASE_FILE}{end}"));
        let to = dir.join(format!("{DATABASE_FILE}.lost-{stamp}{end}"));
        match fs::rename(&from, &to) {
            Ok(()) if end.is_empty() => aside = Some(to),
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = format!("{} cannot be renamed: {error}", from.display());
                return Err(CommandError::failed("ledger", message)
                    .hint("check who owns the folder, then try again"));
            }
        }
    }
    // Which runs were deleted is known no better than which there were.
    let _ = fs::remove_file(dir.join(DELETED));
    piton_ledger::accept(dir)?;
    piton_ledger::open(dir, Open::ReadWrite)?;
    let (ledger, aside) = (&dir.join(DATABASE_FILE), aside.as_deref());
    ui::report(context.json, &NewLedger { ledger, aside });
    Ok(())
}
