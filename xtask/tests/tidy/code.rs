//! The code of a file as it ships: without its tests and comments, line for line.

use std::path::{Path, PathBuf};

use super::{rust_files, text};

/// Whether a file holds nothing but tests.
pub fn is_test(file: &Path) -> bool {
    let in_tests = file.components().any(|part| part.as_os_str() == "tests");
    in_tests || file.file_stem().is_some_and(|stem| stem == "tests")
}

/// The source files below a crate's `src`: the crate's folder, and the file. Files that only tests
/// declare are left out.
pub fn sources() -> Vec<(PathBuf, PathBuf)> {
    let files: Vec<PathBuf> = rust_files().into_iter().filter(|file| !is_test(file)).collect();
    let tests: Vec<PathBuf> = files.iter().flat_map(|file| declared_for_tests(file)).collect();
    let of_crate = |file: PathBuf| {
        let folder = file.ancestors().find(|above| above.ends_with("src"))?.parent()?.to_owned();
        (!tests.contains(&file)).then_some((folder, file))
    };
    files.into_iter().filter_map(of_crate).collect()
}

/// The files of `#[cfg(test)] mod name;`.
fn declared_for_tests(file: &Path) -> Vec<PathBuf> {
    let text = text(file);
    let lines: Vec<&str> = text.lines().collect();
    let names = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]").filter_map(|pair| {
        let words = pair[1].strip_suffix(';')?;
        Some(words.rsplit_once("mod ")?.1)
    });
    let folder = super::modules::folder(file);
    names.map(|name| folder.join(format!("{name}.rs"))).collect()
}

/// The lines that ship. What is left out is empty, so that numbers stay.
pub fn shipped(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // The indentation of a test item, while its end is awaited; and whether it has begun.
    let mut skipped: Option<(usize, bool)> = None;
    for line in text.lines() {
        let code = line.trim();
        let indent = line.len() - line.trim_start().len();
        let Some((outer, begun)) = skipped else {
            let is_test = code == "#[cfg(test)]";
            skipped = is_test.then_some((indent, false));
            lines.push(if is_test { String::new() } else { without_comment(line).to_owned() });
            continue;
        };
        let closes = code.starts_with('}') && indent == outer;
        let is_short = !begun && (code.ends_with(';') || code.ends_with('}'));
        skipped = match code.starts_with("#[") && !begun {
            true => skipped,
            false if closes || is_short => None,
            false => Some((outer, true)),
        };
        lines.push(String::new());
    }
    lines
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[test]
fn tests_and_comments_do_not_ship() {
    let text = "a; // why\n#[cfg(test)]\nuse b;\nc\n#[cfg(test)]\n#[expect(x)]\nmod tests {\n    d\n}\ne\n";
    assert_eq!(shipped(text), ["a; ", "", "", "c", "", "", "", "", "", "e"]);
}

/// Signatures that may say in a sentence what is wrong: parsers of one value, whose words the caller puts
/// into its own.
const SENTENCES_MAX: usize = 9;

/// Lost: callers cannot tell one failure from another but by its words.
#[test]
fn errors_are_types() {
    let mut found = Vec::new();
    for (_, file) in sources() {
        if !file.starts_with("crates") {
            continue;
        }
        let lines = shipped(&text(&file));
        for (at, line) in lines.iter().enumerate() {
            let Some((_, result)) = line.split_once("Result<") else { continue };
            if result.replace("Map<String, String>", "").contains(", String>") {
                found.push(format!("{}:{}", file.display(), at + 1));
            }
        }
    }
    let rule = "say what is wrong by a type, not by a sentence";
    assert!(found.len() <= SENTENCES_MAX, "{rule}:\n  {}", found.join("\n  "));
}
