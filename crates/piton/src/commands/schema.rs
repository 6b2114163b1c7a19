//! `piton schema`: the JSON Schema of a document, for editors.

use piton_formats::schema::{plan_schema, settings_schema};
use piton_protocols::Table;
use piton_protocols::table::sections;

use crate::cli::{Document, SchemaArgs};
use crate::error::Result;
use crate::ui;

/// Prints the schema of a document; it is JSON with or without `--json`.
#[expect(clippy::unnecessary_wraps, reason = "all commands have one form")]
pub fn run(table: &Table, args: &SchemaArgs) -> Result<()> {
    ui::data_json(&match args.document {
        Document::Plan => plan_schema(),
        Document::Settings => settings_schema(&sections(table)),
    });
    Ok(())
}
