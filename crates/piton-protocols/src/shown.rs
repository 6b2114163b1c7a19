//! What protocols show to a person who is about to decide.

use serde::Serialize;

/// Something that a person looks at before they decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// What it is, and how it stands.
    pub title: String,
    /// What each column is called; the first names a row.
    pub columns: Vec<&'static str>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}
