//! Pairs of any bytes as JSON, each as `bytes` writes one.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Deserializer, Serializer};

use super::bytes;

type Pairs = Vec<(OsString, OsString)>;

pub(super) fn serialize<S: Serializer>(
    pairs: &[(OsString, OsString)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        pairs
            .iter()
            .map(|(name, value)| (bytes::text(name.as_bytes()), bytes::text(value.as_bytes()))),
    )
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Pairs, D::Error> {
    let pairs = Vec::<(String, String)>::deserialize(from)?;
    pairs.iter().map(|(name, value)| Ok((bytes::os(name)?, bytes::os(value)?))).collect()
}
