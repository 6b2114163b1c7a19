//! Where in a text its first YAML document is.

use std::ops::Range;

/// The bytes of the first document: between two `---`, or from the beginning to the first one.
pub(super) fn first_document(text: &str) -> Range<usize> {
    let mut start = bom(text);
    let mut lines = text[start..].split_inclusive('\n').peekable();
    // Comments and blank lines may precede the marker.
    let first = text[start..].split_inclusive('\n').find(|line| !is_remark(line));
    if first.is_some_and(is_marker) {
        for line in lines.by_ref() {
            start += line.len();
            if is_marker(line) {
                break;
            }
        }
    }
    let mut end = start;
    for line in lines {
        if is_marker(line) || line.trim_end() == "..." {
            break;
        }
        end += line.len();
    }
    start..end
}

fn is_remark(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Tells whether a line is the marker between documents.
pub(super) fn is_marker(line: &str) -> bool {
    line.trim_end() == "---"
}

/// The end of the key on the last line of a text, with its colon: a comment may follow it.
pub(super) fn key_end(text: &str) -> usize {
    let line = text.rfind('\n').map_or(0, |newline| newline + 1);
    let code = text[line..].find(" #").map_or(&text[line..], |at| &text[line..line + at]);
    line + code.trim_end().len()
}

/// The length of the byte order mark.
pub(super) fn bom(text: &str) -> usize {
    text.len() - text.trim_start_matches('\u{feff}').len()
}
