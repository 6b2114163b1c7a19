//! `piton reject`: a person's no to a gate, or what they want changed before they say yes.

use std::path::Path;

use piton_core::event::Review;
use piton_core::request::Request;

use super::request::{self, Target, names};
use super::{approve, inspect::FILE_BYTES_MAX};
use crate::cli::RejectArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use piton_world::read;

/// Rejects a gate, or asks for changes.
pub fn run(context: &Context, args: &RejectArgs) -> Result<()> {
    if !args.changes && args.file.is_none() {
        return approve::run(context, &args.gate, false);
    }
    let text = args.file.as_deref().map(|file| comments(context, file)).transpose()?;
    let mut store = request::open(context)?;
    let verb = "reject --changes";
    let (run, gate) =
        names::split(&mut store, Some(&args.gate.run_or_gate), args.gate.gate.as_deref())?;
    let Some(gate) = gate else {
        return Err(approve::no_gate_given(&mut store, &args.gate.run_or_gate, verb)?);
    };
    let (loaded, place) = names::run_with_gate(&mut store, run, gate, verb)?;
    request::refuse_deciding(context, &loaded)?;
    let redacted = |text: &str| request::message(context, &loaded, text);
    let message = redacted(&args.gate.message)?;
    let text = redacted(text.as_deref().unwrap_or_default())?;
    let review = Review::parse("", &message, &text);
    if review.is_empty() {
        return Err(CommandError::usage(
            "usage",
            "`--changes` needs to know what is to be changed",
        )
        .hint("say it with `-m TEXT`, or give comments with `--file FILE`"));
    }
    let asked = Request::Changes { gate: place.0.clone(), review };
    let sent = request::send(context, &mut store, &loaded, &asked, Target::Gate(&place))?;
    let resumes = !args.gate.no_resume;
    request::report_and_resume(context, store, &loaded.row.run_id, &[sent], resumes)
}

fn comments(context: &Context, file: &Path) -> Result<String> {
    read::text(&context.cwd.join(file), FILE_BYTES_MAX).map_err(|error| {
        CommandError::usage("unreadable-file", format!("{}: {error}", file.display()))
            .hint("name a file with lines such as `src/lib.rs:12: name the unit`")
    })
}
