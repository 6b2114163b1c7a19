//! Stub.
use crate::Result;
pub(crate) fn command(_words: Vec<String>) -> Result<()> { Ok(()) }
