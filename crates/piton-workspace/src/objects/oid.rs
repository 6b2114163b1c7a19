//! Object ids, and how git makes one from bytes.
//!
//! SHA-1 only: a repository of another format is refused before anything gets here.

use std::fmt;

use sha1::{Digest as _, Sha1};

/// Length of an id in bytes.
pub(crate) const LEN: usize = 20;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The id of an object.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Oid(pub(crate) [u8; LEN]);

impl Oid {
    /// Stands for "not known yet".
    pub(crate) const NONE: Self = Self([0; LEN]);

    /// The id that git gives an object.
    pub(crate) fn hash(kind: Kind, data: &[u8]) -> Self {
        let mut hasher = Sha1::new();
        hasher.update(format!("{} {}\0", kind.name(), data.len()));
        hasher.update(data);
        Self(hasher.finalize().into())
    }

    /// Reads 40 hexadecimal digits.
    pub(crate) fn from_hex(text: &[u8]) -> Option<Self> {
        if text.len() != LEN * 2 {
            return None;
        }
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let mut id = [0; LEN];
        for (byte, pair) in id.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(id))
    }

    /// A line for each of many, as git wants to be asked.
    pub(crate) fn lines(oids: &[Self]) -> String {
        let mut text = String::with_capacity(oids.len() * (LEN * 2 + 1));
        for oid in oids {
            text.push_str(&oid.to_string());
            text.push('\n');
        }
        text
    }

    /// Reads raw bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; LEN * 2];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A snapshot itself.
    Commit,
    /// A folder.
    Tree,
    /// Bytes.
    Blob,
}

impl Kind {
    /// Its name in an object's header.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }

    /// Its number in a pack.
    pub(crate) fn in_pack(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Tree => 2,
            Self::Blob => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        let empty = Oid::hash(Kind::Tree, b"");
        assert_eq!(empty.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(Oid::from_hex(empty.to_string().as_bytes()), Some(empty));
        assert_eq!(Oid::from_hex(b"4b"), None);
    }
}
