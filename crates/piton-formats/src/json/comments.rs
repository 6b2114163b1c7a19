//! JSON with comments and commas before a closing bracket, as some programs read it.
//!
//! Both become blanks of the same length, so that every place in the text stays where it is.

/// The text with blanks for comments and for commas that nothing follows.
pub(super) fn blanked(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    // The last comma, while only blanks and comments have followed it.
    let mut comma = None;
    let mut last = b'{';
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [b'"', ..] => string(rest),
            [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => {
                let end = rest[2..].windows(2).position(|pair| pair == b"*/");
                end.map_or(rest.len(), |end| end + 4)
            }
            _ => 1,
        };
        match bytes[at] {
            b'/' if length > 1 => blank(&mut bytes[at..at + length]),
            b',' => comma = (!matches!(last, b'{' | b'[' | b',')).then_some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        if !bytes[at].is_ascii_whitespace() {
            last = bytes[at];
        }
        at += length;
    }
    // Whole characters were replaced, so this is text.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The length of the string at the beginning.
fn string(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Blanks, with the line ends that were there.
fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}
