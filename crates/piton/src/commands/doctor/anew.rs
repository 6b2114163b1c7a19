//! `piton doctor --new-ledger`: a new ledger where the old one was lost or damaged.
//!
//! What is there of the old one is renamed, never deleted. A ledger that can be read stays as it is.

use std::fs;

use piton_ledger::{DATABASE_FILE, Error, Open, Sqlite};
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
        Ok(found) => !found.iter().any(|f| f.severity == piton_ledger::Severity::Broken),
        Err(Error::NoLedger { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    if is_sound {
        let message = format!("the ledger in {} can be read; nothing was changed", dir.display());
        return Err(CommandError::usage("ledger-sound", message)
            .hint("move its folder away yourself if you want to begin anew"));
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
                let message = format!("{} could not be renamed: {error}", from.display());
                return Err(CommandError::failed("ledger", message)
                    .hint("see that the folder is yours, then try again"));
            }
        }
    }
    // Which runs were deleted is known no better than which there were.
    let _ = fs::remove_file(dir.join(DELETED));
    piton_ledger::accept(dir)?;
    Sqlite::open(dir, Open::ReadWrite)?;
    let (ledger, aside) = (&dir.join(DATABASE_FILE), aside.as_deref());
    ui::tell(context.json, &NewLedger { ledger, aside });
    Ok(())
}
