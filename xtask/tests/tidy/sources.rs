//! Rules for single source files.

use std::path::Path;

use super::code::is_test;
use super::{none_of, project_files, rust_files, text};

/// A file is looked at again from here on, tests apart: what is longer holds more than one idea.
const LINES_MAX: usize = 500;

/// Files that may be longer, each with its reason. There are none.
const LONGER: [(&str, &str); 0] = [];

/// The lines before a file's test module.
fn own_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let module = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]" && (pair[1].starts_with("mod ") || pair[1].starts_with("#["))
    });
    module.unwrap_or(lines.len())
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let silent: Vec<String> = rust_files()
        .iter()
        .filter(|file| !text(file).starts_with("//! "))
        .map(|file| file.display().to_string())
        .collect();
    none_of("open the file with `//!`: what it is for, what it does not do, why", &silent);
}

#[test]
fn no_source_file_grows_beyond_one_idea() {
    let mut long = Vec::new();
    for file in rust_files().iter().filter(|file| !is_test(file)) {
        let lines = own_lines(&text(file));
        let allowed = LONGER.iter().any(|(name, _)| Path::new(name) == file);
        if lines > LINES_MAX && !allowed {
            long.push(format!("{}: {lines} lines without tests", file.display()));
        }
    }
    none_of("split by idea", &long);
}

#[test]
fn a_machine_without_room_for_a_thread_ends_no_program() {
    let mut found = Vec::new();
    let crates =
        rust_files().into_iter().filter(|file| !file.starts_with("xtask") && !is_test(file));
    for file in crates {
        let all = text(&file);
        for (number, line) in (1..=own_lines(&all)).zip(all.lines()) {
            if line.contains("thread::spawn(") || line.contains("scope.spawn(") {
                found.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    none_of("they panic without room for a thread: use `thread::Builder`", &found);
}

#[test]
fn nothing_is_left_to_be_done_later() {
    // Put together here, so that this file does not find itself.
    let words =
        [["to", "do!("], ["unimplem", "ented!("], ["TO", "DO"], ["FIX", "ME"]].map(|w| w.concat());
    let mut found = Vec::new();
    for file in rust_files() {
        for (number, line) in (1..).zip(text(&file).lines()) {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    none_of("finish it, or open an issue", &found);
}

#[test]
fn nothing_depends_on_one_machine() {
    let folders =
        [["/ro", "ot/"], ["/ho", "me/"], ["/Us", "ers/"], ["/wo", "rk/"]].map(|w| w.concat());
    let hosts = [["crates", ".io"], ["py", "pi.org"], ["python", "hosted"], ["npm", "js"]]
        .map(|w| w.concat());
    let mut found = Vec::new();
    for file in project_files() {
        // The lock file names the registry of every package; cargo writes it.
        let locked = file.file_name().is_some_and(|name| name == "Cargo.lock");
        for (number, line) in (1..).zip(text(&file).lines()) {
            let folder = folders.iter().find(|folder| line.contains(*folder));
            let host = hosts.iter().find(|host| !locked && line.contains(*host));
            if let Some(word) = folder.or(host) {
                found.push(format!("{}:{number}: {word}", file.display()));
            }
        }
    }
    none_of("name no machine's folders and no package registry", &found);
}

#[test]
fn locked_packages_come_from_the_common_registry() {
    let common = ["registry+https://github.com/rust-lang/crates", ".io-index"].concat();
    let foreign: Vec<String> = text(Path::new("Cargo.lock"))
        .lines()
        .filter_map(|line| line.strip_prefix("source = "))
        .map(|source| source.trim_matches('"'))
        .filter(|source| *source != common)
        .map(str::to_owned)
        .collect();
    none_of("use published packages", &foreign);
}

#[test]
fn tests_at_the_end_do_not_count() {
    assert_eq!(own_lines("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
    assert_eq!(own_lines("a\n#[cfg(test)]\nuse b;\nc\n"), 4);
}
