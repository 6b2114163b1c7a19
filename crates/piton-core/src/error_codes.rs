//! The errors a user can meet: code, cause and next step, for `piton explain` and the docs.

/// One error that a user can meet.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The code, as printed.
    pub code: &'static str,
    /// What it says.
    pub title: &'static str,
    /// Why it happens.
    pub cause: &'static str,
    /// What to do.
    pub next: &'static str,
}

/// Finds an entry by its code, whatever its case.
pub fn find(code: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|e| e.code.eq_ignore_ascii_case(code))
}

/// All errors, in the order of their codes.
pub const TABLE: &[Entry] = &[];
