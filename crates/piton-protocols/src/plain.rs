//! The plain plan: a `plan.toml` that follows no published protocol, and writes no file.

use crate::protocol::Protocol;

/// The plain plan.
pub struct Plain;

impl Protocol for Plain {
    fn id(&self) -> &'static str {
        "plain"
    }
}
