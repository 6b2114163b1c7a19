//! Blobs that are files of their own: read for a checkout, and written for refs of ours, because
//! starting git for each costs more.
//!
//! One is durable when it is written. A repository of another object format is left to git.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use flate2::read::ZlibDecoder;

use super::{Kind, Oid, deflate, partial};
use crate::files::sync;
use crate::git::{Error, Git};
use crate::repo::{self, Repo};

/// Writes a blob; its id.
pub(crate) fn write(dir: &Path, text: &str) -> Result<String, Error> {
    let common = Repo::find(dir)?.common;
    let config = fs::read_to_string(common.join("config")).unwrap_or_default();
    let other_format = config.to_ascii_lowercase().contains("objectformat");
    if let (false, Ok(id)) = (other_format, loose(&common, text)) {
        repo::remember((common, id.clone()), text.as_bytes());
        return Ok(id);
    }
    // What stood in the way here, git says better.
    Git::at(dir).durable().args(["hash-object", "-w", "--stdin"]).input(text).text()
}

/// Writes a blob as a file of its own, as git does.
fn loose(common: &Path, text: &str) -> io::Result<String> {
    let id = Oid::hash(Kind::Blob, text.as_bytes()).to_string();
    let (start, rest) = id.split_at(2);
    let folder = common.join("objects").join(start);
    let file = folder.join(rest);
    if file.exists() {
        // Whoever wrote it may not have synced it.
        File::open(&file)?.sync_all()?;
    } else {
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Beside the folders of all objects, so that it need not be looked for in each.
        let (part, mut new) = partial::create(&common.join("objects"), "obj")?;
        let mut packed = Vec::new();
        deflate::append(format!("blob {}\0{text}", text.len()).as_bytes(), &mut packed)?;
        new.write_all(&packed)?;
        new.sync_all()?;
        fs::rename(&part, &file)?;
    }
    sync::way_up(common, &format!("objects/{start}/{rest}"))?;
    Ok(id)
}

/// Reads a blob that is a file of its own; `None` where it is not one, or not as it should be.
pub(crate) fn read_loose(objects: &Path, oid: Oid, content: &mut Vec<u8>) -> Option<()> {
    let id = oid.to_string();
    let file = fs::read(objects.join(&id[..2]).join(&id[2..])).ok()?;
    content.clear();
    ZlibDecoder::new(file.as_slice()).read_to_end(content).ok()?;
    let end = content.iter().position(|byte| *byte == 0)?;
    let size = std::str::from_utf8(&content[..end]).ok()?.strip_prefix("blob ")?.parse();
    content.drain(..=end);
    (size == Ok(content.len())).then_some(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::git::git;

    #[test]
    fn git_reads_what_was_written() {
        for format in ["sha1", "sha256"] {
            let home = tempfile::tempdir().unwrap();
            let flag = format!("--object-format={format}");
            git(home.path(), &["init", "-q", &flag]).unwrap();
            for text in ["", "one\ntwo\n", "one\ntwo\n"] {
                let id = write(home.path(), text).unwrap();
                assert_eq!(git(home.path(), &["cat-file", "blob", &id]).unwrap(), text.trim_end());
            }
            git(home.path(), &["fsck", "--strict"]).unwrap();
        }
    }
}
