//! The hash by which a token is found in the table; the build script makes the table with the same.

/// FNV-1a: short, and good enough for tokens of a few bytes.
pub fn hash(bytes: &[u8]) -> usize {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = bytes.iter().fold(0x811c_9dc5, step);
    // The upper bits are the better mixed ones.
    (hash ^ (hash >> 15)) as usize
}
