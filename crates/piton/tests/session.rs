//! Sessions of agents: the real program on a real memory bank, killed and resumed.

mod common;

#[path = "session/at_once.rs"]
mod at_once;
#[path = "session/clock.rs"]
mod clock;
#[path = "session/cost.rs"]
mod cost;
#[path = "session/flushing.rs"]
mod flushing;
#[path = "session/forms.rs"]
mod forms;
#[path = "session/hooks.rs"]
mod hooks;
#[path = "session/init.rs"]
mod init;
#[path = "session/kills.rs"]
mod kills;
#[path = "session/resuming.rs"]
mod resuming;
#[path = "session/runs.rs"]
mod runs;
#[path = "session/saving.rs"]
mod saving;
#[path = "session/scene.rs"]
mod scene;
