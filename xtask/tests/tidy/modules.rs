//! No orphans: every source file is compiled, because a module declaration leads to it.
//!
//! An orphan test file looks like a guarantee and checks nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{none_of, root, rust_files, text};

/// Whether cargo compiles this file on its own account.
fn is_root(file: &Path) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let Some(kind) =
        parts.iter().position(|part| ["src", "tests", "examples", "benches"].contains(part))
    else {
        return parts.last() == Some(&"build.rs");
    };
    matches!(
        (parts[kind], &parts[kind + 1..]),
        ("src", ["lib.rs" | "main.rs"] | ["bin", _] | ["bin", _, "main.rs"])
            | ("tests" | "examples" | "benches", [_] | [_, "main.rs"])
    )
}

/// The names in `mod name;` declarations, each with a `#[path]` above it.
fn declared(text: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path = rest.strip_suffix("\"]").map(str::to_owned);
            continue;
        }
        let name = line.strip_suffix(';').and_then(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["mod", name] => Some((*name).to_owned()),
                [visible, "mod", name] if visible.starts_with("pub") => Some((*name).to_owned()),
                _ => None,
            }
        });
        if let Some(name) = name {
            found.push((name, path.take()));
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            path = None;
        }
    }
    found
}

/// The folder that a file's modules lie in.
pub fn folder(file: &Path) -> PathBuf {
    let parent = file.parent().unwrap_or(Path::new("")).to_owned();
    let is_mod = file.file_name().is_some_and(|name| name == "mod.rs");
    if is_mod || is_root(file) { parent } else { parent.join(file.file_stem().unwrap_or_default()) }
}

#[test]
fn every_source_file_is_compiled() {
    let files = rust_files();
    let mut open: Vec<PathBuf> = files.iter().filter(|file| is_root(file)).cloned().collect();
    let mut reached: BTreeSet<PathBuf> = open.iter().cloned().collect();
    while let Some(file) = open.pop() {
        let folder = folder(&file);
        for (name, path) in declared(&text(&file)) {
            let beside = file.parent().unwrap_or(Path::new(""));
            let places = match path {
                Some(path) => vec![beside.join(path)],
                None => vec![folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")],
            };
            for place in places.into_iter().filter(|place| root().join(place).is_file()) {
                if reached.insert(place.clone()) {
                    open.push(place);
                }
            }
        }
    }
    let orphans: Vec<String> = files
        .iter()
        .filter(|file| !reached.contains(*file))
        .map(|file| file.display().to_string())
        .collect();
    none_of("declare it with `mod`, or delete it", &orphans);
}

#[test]
fn declarations_are_recognised() {
    let text =
        "pub(crate) mod a;\n#[cfg(unix)]\n#[path = \"b/x.rs\"]\nmod b;\nmod c { }\n// mod d;\n";
    let found = declared(text);
    assert_eq!(found, [("a".to_owned(), None), ("b".to_owned(), Some("b/x.rs".to_owned()))]);
    assert!(is_root(Path::new("crates/x/tests/keeper/main.rs")));
    assert!(!is_root(Path::new("crates/x/src/tests/more.rs")));
}
