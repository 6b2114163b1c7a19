//! Any bytes as a JSON string, one character per byte.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serializer, de};

pub(super) fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

pub(super) fn os<E: de::Error>(text: &str) -> Result<OsString, E> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    bytes.map(OsString::from_vec).map_err(|_| E::custom("a character is not a byte"))
}

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(path.as_os_str().as_bytes()))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    os(&String::deserialize(from)?).map(PathBuf::from)
}
