//! What agents see over the Model Context Protocol: tools with their schemas, resources, and the words
//! that introduce them.
//!
//! How messages travel is none of its business; the program carries out what a tool asks for.

pub mod answers;
pub mod arguments;
pub mod resources;
pub mod schema;
pub mod tools;

use serde::Serialize;
use serde_json::Value;

pub use arguments::{Arguments, Wrong};
pub use resources::Resource;
pub use tools::{TOOLS, Tool};

/// What an agent is told about the server.
pub const INSTRUCTIONS: &str = "\
Piton keeps the work of this project safe: checkpoints with snapshots of all files, a task board, and \
questions to the person. Call `resume` when you are asked to resume from the last checkpoint, `checkpoint` \
for \"Create checkpoint\" or \"Save progress\", `task_start` and `task_finish` around each task of the \
board, and `report_tokens` when you know how full your context is: stop when its answer says `halt`. \
`ask_approval` asks the person and returns at once; look for the answer with `approval`. You cannot \
approve, roll back or delete anything here: only the person can, in a terminal of their own.";

/// An answer: data for programs, and the words that a model reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The data; an object.
    pub data: Value,
    /// The words.
    pub text: String,
}

impl Reply {
    /// Data that is its own text.
    pub fn of(answer: &impl Serialize) -> Self {
        let data = serde_json::to_value(answer).unwrap_or_default();
        let text = serde_json::to_string_pretty(&data).unwrap_or_default();
        Self { data, text }
    }

    /// Data, and words about it.
    pub fn said(answer: &impl Serialize, text: String) -> Self {
        Self { data: serde_json::to_value(answer).unwrap_or_default(), text }
    }
}
