//! `piton init KIND`: the files of a new plan of a protocol, and what to do next.

use std::io::ErrorKind;

use piton_formats::plan::PROMPT_BYTES_MAX;
use piton_protocols::protocol::{Begun, Look, New};
use piton_view::answers;
use piton_world::{read, views};

use crate::cli::InitArgs;
use crate::context::{Context, now};
use crate::error::{CommandError, Result};
use crate::ui;

/// Makes the files of a new plan; what is there stays as it is.
pub fn run(context: &Context, kind: &str, args: &InitArgs) -> Result<()> {
    let root = &context.project.root;
    let list = |folder: &str| {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let read = |path: &str| read::text(&root.join(path), PROMPT_BYTES_MAX);
    let look = Look { list: &list, read: &read, settings: &context.settings };
    let new = New { name: args.name.as_deref(), look, now: now() };
    let kinds = || context.table.iter().filter(|protocol| protocol.init(&new).is_some());
    let Some(protocol) = kinds().find(|protocol| protocol.id() == kind) else {
        let known: Vec<&str> = kinds().map(|protocol| protocol.id()).collect();
        let message = format!("there is no kind of plan called `{kind}`");
        return Err(CommandError::usage("unknown-protocol", message)
            .hint(format!("use one of: {}", known.join(", ")))
            .hint(format!("agent programs: {}, all", super::names().join(", "))));
    };
    let Some(Begun { path, files, next }) = protocol.init(&new) else { return Ok(()) };
    for (file, text) in &files {
        let made = if args.dry_run { Ok(()) } else { views::create(root, file, text) };
        match made {
            Ok(()) => {
                ui::say(format!("{} {file}", if args.dry_run { "would make" } else { "made" }));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                ui::say(format!("kept {file}, which is there already"));
            }
            Err(error) => {
                return Err(CommandError::failed("world", format!("{file}: {error}"))
                    .hint("check that you own the folder and that the disk has space"));
            }
        }
    }
    let next: Vec<String> = next.iter().map(|step| ui::place().remedy(step)).collect();
    let names = files.iter().map(|(file, _)| file.as_str()).collect();
    let dry_run = args.dry_run;
    let begun = answers::Begun { path: &path, files: names, dry_run, next: next.clone() };
    ui::show(context.json, &begun, || {
        let steps = next.iter().enumerate().map(|(n, step)| format!("{}. {step}", n + 1));
        steps.collect::<Vec<_>>().join("\n")
    });
    Ok(())
}
