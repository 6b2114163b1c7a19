//! What a machine can see of the house style: headers, sizes, the crate graph, orphans, links.
//!
//! Each test names every place that breaks a rule, so that one run is enough to mend them. What
//! needs judgement (names, ideas, tests that say what would be lost) is left to people.

mod circles;
mod code;
mod documents;
mod graph;
mod modules;
mod places;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Every file of the project that git tracks or would track, relative to the root.
fn project_files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git is needed to know which files belong to the project");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("the project's paths are UTF-8");
    let mut files: Vec<PathBuf> = text.split_terminator('\0').map(PathBuf::from).collect();
    // What is deleted but not yet committed is listed too.
    files.retain(|file| root().join(file).is_file());
    files.sort();
    files.dedup();
    files
}

/// The Rust sources among them.
fn rust_files() -> Vec<PathBuf> {
    project_files().into_iter().filter(|file| file.extension().is_some_and(|e| e == "rs")).collect()
}

/// The text of a project file.
fn text(file: &Path) -> String {
    let bytes = std::fs::read(root().join(file)).expect("a listed file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Fails with everything that was found.
fn none_of(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}
