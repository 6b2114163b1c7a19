//! Still to be written.
