//! Why the simulated rooms did not do something.

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
            Trouble::Fell => Self::World("crash".to_owned()),
            Trouble::Stale => Self::TakenOver,
        }
    }
}

impl From<Trouble> for String {
    fn from(trouble: Trouble) -> Self {
        Error::from(trouble).to_string()
    }
}
