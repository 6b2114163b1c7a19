//! Bytes to types and back: plan and settings documents, templates, schemas, the event codec.
//!
//! Pure like the core: nothing here opens a file, reads the environment or prints. The program hands
//! in texts (and a function that reads prompt files) and gets values or [`Diagnostic`]s, all problems
//! of a document at once.

pub mod codec;
pub mod diagnostic;
pub mod json;
pub mod keys;
pub mod markdown;
pub mod plan;
pub mod plan_diff;
pub mod schema;
pub mod settings;
pub mod sink;
pub mod splice;
pub mod template;
pub mod toml_table;
pub mod units;
pub mod yaml;

mod text_rules;
mod toml_reader;

pub use diagnostic::{Diagnostic, Severity};
pub use plan::{Input, read_plan};
pub use settings::{Settings, read_settings};
