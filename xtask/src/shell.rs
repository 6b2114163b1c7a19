//! Programs that the developer commands call: cargo, git and what they say.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace's folder.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Cargo, the same one that started us, in the workspace.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(words).current_dir(root()).stdin(Stdio::null());
    // A run or a git hook around us must not change what is tested.
    for (name, _) in std::env::vars_os() {
        let foreign =
            name.to_str().is_some_and(|n| n.starts_with("PITON_") || n.starts_with("GIT_"));
        if foreign {
            command.env_remove(name);
        }
    }
    command
}

/// Whether a program can be called and answers without complaint.
pub(crate) fn answers(program: &str, words: &[&str]) -> bool {
    let quiet = Command::new(program)
        .args(words)
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

/// What a command said, and whether it succeeded.
pub(crate) fn capture(command: &mut Command) -> (bool, String) {
    match command.output() {
        Ok(output) => {
            let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.push_str(&String::from_utf8_lossy(&output.stderr));
            (output.status.success(), text)
        }
        Err(error) => {
            (false, format!("{} could not be started: {error}", command.get_program().display()))
        }
    }
}

/// The folder cargo builds into.
pub(crate) fn target_dir() -> Result<PathBuf, String> {
    let output = cargo(&["metadata", "--format-version=1", "--no-deps"])
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    let known: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let dir = known["target_directory"].as_str();
    dir.map(PathBuf::from).ok_or_else(|| "cargo did not name its target folder".to_owned())
}

/// What people build themselves: quickly built, and fast enough for every loop.
pub(crate) const RELEASE: &str = "release";
/// What packages hold: slowly built, and what the benchmark measures.
pub(crate) const DIST: &str = "dist";

/// Where a program of this workspace lies once it is built with a profile.
pub(crate) fn program(profile: &str, name: &str) -> Result<PathBuf, String> {
    Ok(target_dir()?.join(profile).join(name))
}

/// The release program: the one named on the command line, else as it is built now.
pub(crate) fn piton(named: Option<PathBuf>) -> Result<PathBuf, String> {
    let Some(path) = named else {
        build(RELEASE, &["piton"])?;
        return program(RELEASE, "piton");
    };
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

/// Builds packages with a profile, saying so, and gives what cargo said when that fails.
pub(crate) fn build(profile: &str, packages: &[&str]) -> Result<(), String> {
    eprintln!("building {} with the profile {profile}", packages.join(" and "));
    let mut command = cargo(&["build", "--profile", profile]);
    for package in packages {
        command.args(["--package", package]);
    }
    let (built, said) = capture(&mut command);
    if built { Ok(()) } else { Err(said) }
}
