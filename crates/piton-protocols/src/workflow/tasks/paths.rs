//! The files that the text of a task names.
//!
//! In code spans: anything with a slash, and names with the ending of a file. Elsewhere: only words
//! with a slash that end like a file or a folder, because prose has slashes too.

use piton_formats::markdown::inline::code_spans;

/// Endings that make a name without a slash a file; others may be methods or fields.
const ENDINGS: [&str; 64] = [
    "bash", "c", "cc", "cfg", "cjs", "conf", "cpp", "cs", "csproj", "css", "csv", "dart", "env",
    "ex", "exs", "go", "gradle", "h", "hpp", "hs", "html", "ini", "ipynb", "java", "jl", "js",
    "json", "jsonl", "jsx", "kt", "kts", "lean", "lock", "lua", "md", "mdx", "mjs", "ml", "php",
    "proto", "ps1", "py", "pyi", "r", "rb", "rs", "scala", "scss", "sh", "sln", "sql", "svelte",
    "swift", "tex", "tf", "toml", "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zig",
];

/// The paths in a text, each once, in its order.
pub fn paths(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |path: Option<&str>| {
        if let Some(path) = path.filter(|path| !found.iter().any(|known| known == path)) {
            found.push(path.to_owned());
        }
    };
    let mut end = 0;
    for span in code_spans(text) {
        text[end..span.start].split_whitespace().for_each(|word| add(bare(word)));
        add(coded(&text[span.clone()]));
        end = span.end;
    }
    text[end..].split_whitespace().for_each(|word| add(bare(word)));
    found
}

/// The path in a code span.
fn coded(code: &str) -> Option<&str> {
    let path = located(code.trim());
    let is_path = is_plain(path) && (path.contains('/') || has_ending(path));
    is_path.then_some(path)
}

/// The path that a word of prose is.
fn bare(word: &str) -> Option<&str> {
    // The target of a link counts, not its text.
    let word = word.rsplit_once("](").map_or(word, |(_, target)| target);
    let word = word.trim_start_matches(['(', '[', '"', '\'', '*', '`']);
    let word = word.trim_end_matches([')', ']', '"', '\'', '*', '`', ',', ';', ':', '.', '!', '?']);
    let path = located(word);
    let (_, name) = path.rsplit_once('/')?;
    ((name.is_empty() || has_ending(name)) && is_plain(path)).then_some(path)
}

/// A path without the line that follows it, and without `./` before it.
fn located(path: &str) -> &str {
    let path = path.strip_prefix("./").unwrap_or(path);
    match path.split_once(':') {
        Some((name, line)) if line.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => path,
    }
}

/// Tells whether a text can be a path within a project.
fn is_plain(path: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || "/._-+@*{}[]<>()$".contains(c);
    let has_name = path.contains(|c: char| c.is_alphanumeric());
    let leaves = path.starts_with('/') || path.split('/').any(|part| part == "..");
    has_name && !leaves && !path.ends_with("()") && path.chars().all(is_allowed)
}

fn has_ending(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| {
        ENDINGS.binary_search(&ending.to_ascii_lowercase().as_str()).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_sorted() {
        assert!(ENDINGS.is_sorted());
    }

    #[test]
    fn files_and_folders_are_found() {
        for (text, wanted) in [
            ("Create User in src/models/user.py", "src/models/user.py"),
            ("Fix `lib/a.dart:43` and `b.toml`.", "lib/a.dart b.toml"),
            ("`src/models/` (both), src/lib/.", "src/models/ src/lib/"),
            ("see [plan](./docs/plan.md), again docs/plan.md", "docs/plan.md"),
            ("`./tool/x.sh`", "tool/x.sh"),
            ("add `app/[id]/page.tsx`", "app/[id]/page.tsx"),
        ] {
            assert_eq!(paths(text).join(" "), wanted, "{text}");
        }
    }

    #[test]
    fn prose_methods_routes_and_addresses_are_not_paths() {
        for text in [
            "unit/widget tests and search/filter",
            "`Repo.list`/`.get` and `can(x, y)`",
            "`GET /products` at `/products/{id}`",
            "https://a.b/c.html and `http://x/y.js`",
            "`../outside.rs`",
            "per data-model.md",
            "`list()`",
            "/ ``",
        ] {
            assert_eq!(paths(text), [""; 0], "{text}");
        }
    }
}
