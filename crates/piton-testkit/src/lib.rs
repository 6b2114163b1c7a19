//! A simulated world for tests: clock, keeper, files, and falls at every point.
//!
//! For development only; nothing here is part of the program. A [`SimMachine`] stands for what
//! outlives a driver, a [`SimWorld`] is one driver's view of it, a [`CrashPoint`] is where that
//! driver falls, and a [`Rig`] puts them together and names every broken promise. Each mechanism
//! behind a promise can be switched off, so that a test can show that it would notice. Real
//! processes, real disks and real signals are tested elsewhere.

mod crash;
mod ledger;
mod machine;
pub mod plans;
mod replans;
mod repo;
mod rewinds;
mod rig;
mod script;
mod verify;
mod verify_lanes;
mod workspaces;
mod world;

pub use crash::{CrashPoint, Fallen, Side};
pub use ledger::{CrashingLedger, LedgerFaults};
pub use machine::{Effect, SimMachine, Switches};
pub use replans::{PLAN_FILE, Texts};
pub use repo::{Move, SimRepo, Tree};
pub use rewinds::{rollback_to, undo_last, undo_of};
pub use rig::{Notes, Rig, Stop};
pub use script::{Behaviour, Script};
pub use verify::Care;
pub use world::SimWorld;
