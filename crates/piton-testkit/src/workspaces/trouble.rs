//! Why the simulated workspaces did not do something.

use piton_core::refusal::Refusal;
use piton_engine::Error;

use crate::crash::Fallen;

/// Why something was not done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    /// The driver fell.
    Fell,
    /// Another driver has the run.
    Stale,
}

impl From<Fallen> for Trouble {
    fn from(_: Fallen) -> Self {
        Self::Fell
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Fell => Self::world("crash"),
            Trouble::Stale => Self::TakenOver,
        }
    }
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        Self::new("trouble", Error::from(trouble).to_string())
    }
}
