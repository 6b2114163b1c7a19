//! The arguments of `report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run (default: the newest).
    pub run: Option<String>,
    /// The format (default: by the name of FILE, else `md`).
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write the report to FILE, which is replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Markdown.
    Md,
    /// One HTML file with a time line; needs no network and no script.
    Html,
}

impl ReportArgs {
    /// The format that was asked for, or that the file's name stands for.
    pub fn format(&self) -> Format {
        let named = self.output.as_ref().and_then(|file| file.extension()?.to_str());
        let html = named.is_some_and(|name| ["html", "htm"].contains(&&*name.to_lowercase()));
        self.format.unwrap_or(if html { Format::Html } else { Format::Md })
    }
}
