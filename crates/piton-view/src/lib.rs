//! What a run looks like: one read model, [`RunView`], and everything that people and programs read
//! of it, as text and as JSON; and the answers of commands.
//!
//! Pure: what is shown is passed in, with the time, the time zone and the room there is. Nothing here
//! reads files, asks the environment or prints. Text that came from steps goes through
//! [`text::sanitize`] first, so that no output can drive the reader's terminal.

pub mod agent_words;
pub mod answers;
pub mod at_boot;
pub mod brief;
pub mod course;
pub mod decision;
pub mod dry_run;
#[cfg(test)]
mod fixture;
pub mod frame;
pub mod gc;
pub mod hook;
pub mod json;
pub mod lane;
mod lane_words;
pub mod layout;
pub mod leftover;
pub mod next;
pub mod place;
pub mod replan;
pub mod report;
pub mod resume;
pub mod rewind;
mod row;
pub mod run;
pub mod runs;
pub mod session;
mod shape;
pub mod show;
pub mod summary;
pub mod text;
pub mod tree;
pub mod waiting;
pub mod words;

pub use layout::Layout;
pub use leftover::{Leftover, Moved};
pub use place::{At, Place};
pub use run::{RunView, Seen};
pub use summary::{Summary, Tally};
