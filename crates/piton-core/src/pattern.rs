//! Regular expressions that are compiled once, where they are used.

/// A pattern, compiled when it is first used; nothing if it is not valid, which tests would show.
macro_rules! pattern {
    ($text:expr) => {{
        static CELL: std::sync::OnceLock<Option<regex::Regex>> = std::sync::OnceLock::new();
        CELL.get_or_init(|| regex::Regex::new($text).ok()).as_ref()
    }};
}

pub(crate) use pattern;
