//! Whether every file of a commit is just the bytes of its object.
//!
//! Judged on the safe side: a word in an attribute file that could mean a conversion is enough for
//! leaving everything to git.

use std::path::Path;

use super::listing::{Kind, Listing};
use crate::files::os_path;
use crate::git::Git;

/// Parts of attributes that can change what is written. `text` alone does not: without the
/// settings below, lines end as they are stored.
const CONVERTING: [&str; 5] = ["filter", "ident", "eol=crlf", "encoding", "crlf"];

/// Settings, with values under which files are not written as they are stored, or not all of them,
/// or are not yet here. An empty value stands for any.
const SETTINGS: [(&str, &str); 10] = [
    ("core.autocrlf", "true"),
    ("core.eol", "crlf"),
    ("core.sparsecheckout", "true"),
    ("core.symlinks", "false"),
    ("core.filemode", "false"),
    ("core.ignorecase", "true"),
    ("core.protectntfs", "true"),
    ("extensions.objectformat", "sha256"),
    ("extensions.partialclone", ""),
    ("core.alternaterefscommand", ""),
];

/// Tells whether the settings leave files as they are.
pub(super) fn settings(dir: &Path) -> bool {
    let Ok(bytes) = Git::at(dir).args(["config", "--list", "-z"]).bytes() else { return false };
    bytes.split(|byte| *byte == 0).all(|pair| {
        let pair = String::from_utf8_lossy(pair);
        let (key, value) = pair.split_once('\n').unwrap_or((&pair, "true"));
        let is_true = |value: &str| ["true", "yes", "on", "1"].contains(&value);
        let value = value.to_ascii_lowercase();
        let promised = key.starts_with("remote.") && key.ends_with(".promisor");
        !promised
            && !SETTINGS.iter().any(|(name, wrong)| {
                let same = *wrong == value || *wrong == "true" && is_true(&value);
                let not = *wrong == "false" && ["no", "off", "0"].contains(&value.as_str());
                *name == key && (wrong.is_empty() || same || not)
            })
    })
}

/// Tells whether no attribute asks for a conversion: those of the commit, of the repository, of the
/// user and of the system.
pub(super) fn attributes(dir: &Path, listing: &Listing) -> bool {
    let is_plain = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        !CONVERTING.iter().any(|word| text.contains(word))
    };
    let committed = listing.files.iter().filter(|file| {
        let path = os_path(listing.path(file));
        path.file_name().is_some_and(|name| name == ".gitattributes")
    });
    for file in committed {
        let id: String =
            file.id.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let blob = Git::at(dir).args(["cat-file", "blob", &id]).bytes();
        if file.kind == Kind::Link || !blob.is_ok_and(|text| is_plain(&text)) {
            return false;
        }
    }
    let variable = |name: &str| Git::at(dir).args(["var", name]).text().ok();
    let info = Git::at(dir).args(["rev-parse", "--git-path", "info/attributes"]).text().ok();
    let files = [info, variable("GIT_ATTR_GLOBAL"), variable("GIT_ATTR_SYSTEM")];
    files.iter().flatten().all(|file| match std::fs::read(dir.join(file)) {
        Ok(text) => is_plain(&text),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    })
}
