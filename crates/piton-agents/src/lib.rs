//! The agent programs: how each is started and continued, what a line of its stream means, how an
//! attempt went, and how the program is stopped between two operations.
//!
//! Pure like the core: nothing here starts a process, opens a file or asks the time. One file for each
//! program behind one trait, and one line in [`TABLE`].

pub mod brief;
pub mod claude;
pub mod codex;
pub mod command;
pub mod gemini;
pub mod hook;
pub mod opencode;
pub mod own;
pub mod program;
pub mod ready;
pub mod setup;
pub mod stream;
pub mod table;
pub mod tokens;
pub mod verdict;

pub use program::{Ask, Halt, Invocation, Permissions, Program};
pub use setup::{Record, STOP_FILE, Stop, StopPlace};
pub use stream::{Reader, Said, Tokens, Totals};
pub use table::{TABLE, find};
pub use verdict::{Exit, Verdict};
