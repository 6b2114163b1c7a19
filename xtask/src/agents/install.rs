//! The agent programs, installed by npm into a cache outside the repository.
//!
//! One folder for each package and version: a version that is there is not installed again, and two
//! versions do not meet. The folder gets its name when the installation is complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Broken;
use super::subject::Subject;
use crate::shell::{answers, capture};

/// The installed programs.
#[derive(Clone, Debug)]
pub(super) struct Cache(PathBuf);

impl Cache {
    /// The usual place for what can be fetched again.
    pub(super) fn new() -> Result<Self, Broken> {
        let named = |name: &str| std::env::var_os(name).filter(|dir| !dir.is_empty());
        let base = named("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")));
        let base = base.ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
        Ok(Self(base.join("piton-agents")))
    }

    /// The folder in which a program's executable lies.
    pub(super) fn bin(&self, subject: &Subject) -> PathBuf {
        self.folder(subject.id, subject.version).join("node_modules").join(".bin")
    }

    /// The folder of a package that the program would otherwise fetch when it starts.
    pub(super) fn beside(&self, subject: &Subject) -> Option<PathBuf> {
        subject.beside.map(|_| self.folder(&format!("{}-beside", subject.id), subject.version))
    }

    /// Whether a program is installed.
    pub(super) fn has(&self, subject: &Subject) -> bool {
        let is_beside = self.beside(subject).is_none_or(|folder| folder.exists());
        is_beside && self.bin(subject).join(subject.id).exists()
    }

    /// Installs a program, unless it is there.
    pub(super) fn ensure(&self, subject: &Subject) -> Result<(), Broken> {
        if self.has(subject) {
            return Ok(());
        }
        if !answers("npm", &["--version"]) {
            return Err(Broken::from("npm is missing"));
        }
        self.install(&self.folder(subject.id, subject.version), subject.package, subject.version)?;
        match (subject.beside, self.beside(subject)) {
            (Some(package), Some(folder)) => self.install(&folder, package, subject.version),
            _ => Ok(()),
        }
    }

    /// The folder in which the executables of a package lie that is no agent program.
    pub(super) fn package_bin(&self, name: &str, version: &str) -> PathBuf {
        self.folder(name, version).join("node_modules").join(".bin")
    }

    /// Installs such a package, unless it is there.
    pub(super) fn ensure_package(
        &self,
        name: &str,
        package: &str,
        version: &str,
    ) -> Result<(), Broken> {
        let folder = self.folder(name, version);
        if !folder.exists() && !answers("npm", &["--version"]) {
            return Err(Broken::from("npm is missing"));
        }
        self.install(&folder, package, version)
    }

    fn folder(&self, name: &str, version: &str) -> PathBuf {
        self.0.join(format!("{name}-{version}"))
    }

    fn install(&self, folder: &Path, package: &str, version: &str) -> Result<(), Broken> {
        if folder.exists() {
            return Ok(());
        }
        eprintln!("installing {package} {version}");
        fs::create_dir_all(&self.0)?;
        let scratch = tempfile::Builder::new().prefix("installing-").tempdir_in(&self.0)?;
        let mut npm = Command::new("npm");
        npm.arg("install").arg("--prefix").arg(scratch.path()).arg("--save-exact");
        npm.args(["--no-audit", "--no-fund", "--loglevel=error", &format!("{package}@{version}")]);
        let (is_installed, said) = capture(npm.current_dir(&self.0));
        if !is_installed {
            let said = said.trim_end();
            return Err(Broken::from(format!("npm did not install {package} {version}: {said}")));
        }
        let whole = scratch.keep();
        // Another process that installed the same meanwhile is as good.
        if fs::rename(&whole, folder).is_err() {
            fs::remove_dir_all(whole)?;
        }
        Ok(())
    }
}
