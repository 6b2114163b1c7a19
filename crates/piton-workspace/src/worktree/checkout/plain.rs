//! Whether every file of a commit is just the bytes of its object.
//!
//! Judged on the safe side: a word in an attribute file that could mean a conversion is enough for
//! leaving everything to git.

use std::path::Path;

use super::listing::Listing;
use crate::files::name;
use crate::git::{self, Git};
use crate::objects::LINK;

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
    let Ok(pairs) = git::config(dir) else { return false };
    pairs.iter().all(|(key, value)| {
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
    let committed =
        listing.files.iter().filter(|file| name(listing.path(file)) == b".gitattributes");
    for file in committed {
        let blob = Git::at(dir).args(["cat-file", "blob", &file.oid.to_string()]).bytes();
        if file.mode == LINK || !blob.is_ok_and(|text| is_plain(&text)) {
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
