//! The model of Piton and every decision it takes.
//!
//! Pure by construction: no files, clock, processes, randomness or threads. Time comes in as
//! [`Timestamp`] values, the world as observations, and what shall happen goes out as data. So every
//! decision can be tested from a table, and a replay of the ledger gives the same state as the run
//! that wrote it.

pub mod agent;
mod agent_event;
pub mod agent_state;
pub mod approval;
pub mod budget;
pub mod command;
pub mod complexity;
pub mod decide;
pub mod error_codes;
pub mod event;
pub mod evidence;
pub mod failure;
pub mod forecast;
pub mod gate;
mod gate_event;
pub mod hash;
pub mod id;
pub mod lane;
pub mod lane_event;
pub mod lane_progress;
pub mod lane_state;
mod pattern;
pub mod persons;
pub mod plan;
pub mod redact;
pub mod refusal;
pub mod refusals;
pub mod replan;
mod replan_event;
pub mod replan_state;
pub mod request;
mod session_event;
pub mod session_state;
pub mod shape;
pub mod shell;
pub mod stage_record;
pub mod state;
pub mod status;
pub mod step_event;
pub mod step_state;
pub mod summary;
pub mod tasks;
pub mod text;
pub mod time;
mod trigger;
pub mod undo;
pub mod unmet;

mod apply;

pub use apply::{APPLY_VERSION, Illegal, apply, replay};
pub use decide::{Action, Limits, decide};
pub use event::Event;
pub use id::{GateRef, LanePath, RunId, StepPath};
pub use plan::Plan;
pub use state::RunState;
pub use status::Status;
pub use time::{Millis, Timestamp};
