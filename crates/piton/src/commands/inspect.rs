//! `piton inspect`: what a file of a protocol is and says. Reads, and changes nothing.

use piton_core::Timestamp;
use piton_protocols::format::Around;
use piton_protocols::inspect::inspect;
use piton_view::text;

use crate::cli::InspectArgs;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use piton_world::read;

/// Largest file that is looked at: more than the largest that any format reads.
pub const FILE_BYTES_MAX: usize = 256 << 20;

/// Looks at a file. Exit 0 when it is valid, 1 when it is not, 2 when it is of no known format.
pub fn run(context: &Context, args: &InspectArgs) -> Result<()> {
    let name = args.file.display().to_string();
    let bytes = read(context, args).map_err(|message| {
        CommandError::usage("unreadable-file", format!("{name}: {message}"))
            .hint("name a file that you can read")
    })?;
    let modified = |path: &str| modified(context, path);
    let around = Around { now: piton_world::now(), modified: &modified };
    let found = inspect(context.table, &name, &bytes, around);
    if context.json {
        ui::data_json(&found.to_json());
    } else {
        if let Some(format) = found.format {
            let valid = if found.is_valid() { "valid" } else { "not valid" };
            let mut lines = vec![format!("{format}, {valid}")];
            lines.extend(found.summary.iter().map(|line| text::sanitize_lines(line)));
            ui::data(&lines.join("\n"));
        }
        let text = String::from_utf8_lossy(&bytes);
        ui::diagnostics(&found.problems, &text, &context.redactor_of_text(&text));
    }
    match (found.format, found.is_valid()) {
        (None, _) => Err(CommandError::silent(Kind::Usage)),
        (Some(_), false) => Err(CommandError::silent(Kind::Failed)),
        (Some(_), true) => Ok(()),
    }
}

/// When a file was modified that the inspected one names, from the project's root or from here.
fn modified(context: &Context, path: &str) -> Option<Timestamp> {
    let folders = [&context.project.root, &context.cwd];
    folders.into_iter().find_map(|folder| read::modified(&folder.join(path)))
}

/// The bytes of the file, or why there are none.
fn read(context: &Context, args: &InspectArgs) -> std::io::Result<Vec<u8>> {
    read::bytes(&context.cwd.join(&args.file), FILE_BYTES_MAX)
}
