//! SHA-256 as the one hash of Piton, written in lower-case hexadecimal.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A SHA-256 in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sha(pub String);

impl Sha {
    /// Hashes bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// Hashes what is serialised as JSON; field order is that of the type, so it is stable.
    pub fn of_json<T: Serialize>(value: &T) -> Self {
        // Serialising our own plain types to memory cannot fail; an empty text would only make
        // things run again, never hide a change.
        Self::of(&serde_json::to_vec(value).unwrap_or_default())
    }

    /// Takes the digest of a hasher that was fed piece by piece.
    pub fn finish(hasher: Sha256) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
        let digest = hasher.finalize();
        Self(digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }

    /// The first twelve characters, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl std::fmt::Display for Sha {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
