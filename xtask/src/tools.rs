//! Programs that tests and measurements call beside cargo and git, and how they get here.
//!
//! Only what the system's packages have, and only where `apt-get` may install it: elsewhere the
//! tests say what they could not show, and the rows of the benchmark what was not measured.

use crate::shell::answers;

/// A program of the system's packages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    /// How it is called.
    program: &'static str,
    /// A word it answers to without doing anything.
    asked: &'static str,
    /// The package that has it.
    package: &'static str,
}

/// Counts system calls and kills at chosen ones.
pub(crate) const STRACE: Tool = Tool { program: "strace", asked: "-V", package: "strace" };
/// Gives a program a terminal.
pub(crate) const SCRIPT: Tool = Tool { program: "script", asked: "--version", package: "bsdutils" };
/// The peer of spawned steps.
pub(crate) const MAKE: Tool = Tool { program: "make", asked: "--version", package: "make" };
/// The peer of a cold status.
pub(crate) const NINJA: Tool =
    Tool { program: "ninja", asked: "--version", package: "ninja-build" };

/// Shows the pages of reports.
pub(crate) const CHROMIUM: Tool =
    Tool { program: "chromium", asked: "--version", package: "chromium" };

/// What became of the tools that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Programs that were installed just now.
    pub(crate) installed: Vec<&'static str>,
    /// Programs that are not to be had.
    pub(crate) missing: Vec<&'static str>,
}

/// Installs those that are not there.
pub(crate) fn ensure(tools: &[Tool]) -> Found {
    let mut found = Found::default();
    for tool in tools.iter().filter(|tool| !tool.is_there()) {
        eprintln!("installing {}", tool.package);
        if tool.install() {
            found.installed.push(tool.program);
        } else {
            found.missing.push(tool.program);
        }
    }
    found
}

impl Tool {
    fn is_there(&self) -> bool {
        answers(self.program, &[self.asked])
    }

    fn install(&self) -> bool {
        let install = || answers("apt-get", &["install", "--yes", "--quiet", self.package]);
        // A fresh machine has no list of packages yet, or one that names versions long gone.
        (install() || (answers("apt-get", &["update", "--quiet"]) && install())) && self.is_there()
    }
}
