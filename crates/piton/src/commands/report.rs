//! `piton report`: the course of a run, as Markdown, as one HTML file or as JSON.

use std::path::Path;

use piton_core::remedy;
use piton_view::answers;
use piton_view::report::{Report, Trail};
use piton_world::write;

use crate::cli::{Format, ReportArgs};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Writes the report of a run.
pub fn run(context: &Context, args: &ReportArgs) -> Result<()> {
    let mut store = context.read_store()?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let loaded = store.load_row(row)?;
    let run_id = &loaded.row.run_id;
    if loaded.seq == 0 {
        ui::say(remedy![
            Words "run {run_id} has not started, so there is nothing to report; start it with ",
            Piton "resume {run_id}"
        ]);
        return Ok(());
    }
    let mut trail = Trail::default();
    store.each_event(&loaded.row, 0, |seq, at, event| {
        // What a driver records meanwhile is not part of the state that is shown.
        if seq <= loaded.seq {
            trail.take(at, event);
        }
    })?;
    let view = Context::view(&loaded);
    let report = Report::new(&view, trail);
    let format = args.format();
    let text = || match format {
        Format::Md => report.markdown(),
        Format::Html => report.html(),
    };
    match &args.output {
        None => ui::show(context.json, &report, text),
        Some(file) => put(context, run_id, (file, format), &text())?,
    }
    Ok(())
}

fn put(context: &Context, run_id: &str, (file, format): (&Path, Format), text: &str) -> Result<()> {
    let path = context.cwd.join(file);
    write::replace(&path, text.as_bytes()).map_err(|error| {
        let message = format!("the report cannot be written to {}: {error}", file.display());
        CommandError::failed("report-file", message).hint(
            "check that the folder exists, that you can write to it and that the disk has space",
        )
    })?;
    let format = match format {
        Format::Md => "md",
        Format::Html => "html",
    };
    let bytes = text.len();
    ui::report(context.json, &answers::Reported { run_id, file, format, bytes });
    Ok(())
}
