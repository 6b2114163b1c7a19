//! Paths as text: what is recorded about a rewind is text, and a path of a file need not be.
//!
//! A path that is not text is written as a NUL, which no path has in it, and the digits of its bytes.

use std::fmt::Write as _;

/// How a path begins that is written as digits.
const DIGITS: char = '\0';

/// A path as text, from which [`bytes`] makes the path again.
pub fn text(path: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(path) {
        return text.to_owned();
    }
    let mut digits = String::with_capacity(1 + path.len() * 2);
    digits.push(DIGITS);
    for byte in path {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The path that a text stands for.
pub fn bytes(text: &str) -> Vec<u8> {
    let digits = |digits: &str| {
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        pairs.map(byte).collect::<Option<Vec<u8>>>()
    };
    let found = text.strip_prefix(DIGITS).and_then(digits);
    found.unwrap_or_else(|| text.as_bytes().to_vec())
}

/// The path that a text stands for, for people: bytes that are no text are replaced.
pub fn shown(text: &str) -> String {
    String::from_utf8_lossy(&bytes(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_back_as_it_was() {
        for path in [&b"a/b"[..], "ä ö".as_bytes(), b"caf\xe9/\xff", b"", b"000a"] {
            assert_eq!(bytes(&text(path)), path);
        }
        assert_eq!(text(b"a"), "a");
        assert_eq!(shown(&text(b"caf\xe9")), "caf\u{fffd}");
    }
}
