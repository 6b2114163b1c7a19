//! What an artifact leaves open: `[NEEDS CLARIFICATION: …]` markers and `<placeholders>`.
//!
//! Looks at the text only. Code and comments are not looked at: there, both are examples. Whether a
//! word in angle brackets is HTML is decided by its name, since a document rarely says.

use std::ops::Range;

use piton_formats::markdown::inline::code_spans;
use piton_formats::markdown::{Document, Place};

/// How a marker begins.
const MARKER: &str = "[NEEDS CLARIFICATION";
/// Longest placeholder: the longest known has half of it, and a longer one is a comparison.
const PLACEHOLDER_BYTES_MAX: usize = 400;

/// Elements of HTML that documents use.
const ELEMENTS: &str = " a abbr address article aside audio b base bdi bdo blockquote body br button \
    canvas caption center cite code col colgroup data datalist dd del details dfn dialog div dl dt em \
    embed fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html i \
    iframe img input ins kbd label legend li link main map mark menu meta meter nav noscript object ol \
    optgroup option output p param path picture pre progress q rp rt ruby s samp script search section \
    select slot small source span strike strong style sub summary sup svg table tbody td template \
    textarea tfoot th thead time title tr track tt u ul use var video wbr ";
/// Those of them that people also write as placeholders: HTML only with an attribute, a slash or an
/// end tag.
const WORDS: &str = " address article audio button caption code data details dialog form header input \
    label legend link main map mark menu meter object option output param path progress search section \
    select slot source style summary table template time title track use var video ";
/// Attributes without a value.
const FLAGS: &str = " async checked controls defer disabled hidden loop multiple muted open readonly \
    required reversed selected ";

/// A piece of text that somebody still has to replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its text: the question of a marker, or the placeholder with its brackets.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
}

/// Tells whether an artifact looks complete: it has text, and neither markers nor placeholders.
pub fn looks_complete(text: &str) -> bool {
    let is_blank = text.trim_start_matches('\u{feff}').trim().is_empty();
    !is_blank && open_markers(text).is_empty() && placeholders(text).is_empty()
}

/// The open markers, with the question of each.
pub fn open_markers(text: &str) -> Vec<Gap> {
    let prose = prose(text);
    let mut found = Vec::new();
    for (at, _) in prose.match_indices(MARKER) {
        let inner = at + MARKER.len()..closing(&prose, at);
        let question = text[inner].trim_start_matches(':');
        let words: Vec<&str> = question.split_whitespace().collect();
        found.push(Gap { text: words.join(" "), line: line_of(text, at) });
    }
    found
}

/// Where the bracket that opens at a byte is closed; at the end of its paragraph if it never is.
fn closing(text: &str, open: usize) -> usize {
    let mut depth = 0_u32;
    let mut is_blank = false;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b'\n' if is_blank => return at,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
        is_blank = byte == b'\n' || (is_blank && byte.is_ascii_whitespace());
    }
    text.len()
}

/// The placeholders, such as `<feature-name>`.
pub fn placeholders(text: &str) -> Vec<Gap> {
    let prose = prose(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(open) = prose[from..].find('<').map(|at| from + at) {
        from = open + 1;
        let Some(inner) = bracketed(&prose, open) else { continue };
        let content = &prose[inner.clone()];
        if is_literal(&prose[..open]) || is_autolink(content) || is_html(content, &prose) {
            continue;
        }
        from = inner.end;
        let shown: Vec<&str> = text[open..=inner.end].split_whitespace().collect();
        found.push(Gap { text: shown.join(" "), line: line_of(text, open) });
    }
    found
}

/// What stands between an angle bracket and the next one, if that can be a placeholder.
fn bracketed(prose: &str, open: usize) -> Option<Range<usize>> {
    let rest = &prose[open + 1..];
    let length = rest.find(['<', '>']).filter(|at| rest[*at..].starts_with('>'))?;
    let content = &rest[..length];
    let begins = content.starts_with(char::is_alphabetic) || matches!(content, "..." | "…");
    let ends = !content.ends_with(char::is_whitespace);
    let is_split = content.replace('\r', "").contains("\n\n");
    let fits = begins && ends && !is_split && length <= PLACEHOLDER_BYTES_MAX;
    fits.then_some(open + 1..open + 1 + length)
}

/// Tells whether the bracket after some text is escaped, encloses the target of a link, or belongs to
/// a type such as `Vec<T>`.
fn is_literal(before: &str) -> bool {
    let start = before.rfind(|c: char| !c.is_alphanumeric()).map_or(0, |at| at + 1);
    let word = before.get(start..).unwrap_or_default();
    let is_type = word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
    before.ends_with('\\') || before.ends_with("](") || is_type
}

fn is_autolink(content: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    };
    let has_scheme = content.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme));
    !content.contains(char::is_whitespace) && (has_scheme || content.contains('@'))
}

fn is_html(content: &str, prose: &str) -> bool {
    let end = content.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(content.len());
    let (name, rest) = (content[..end].to_lowercase(), content[end..].trim());
    let is_in = |list: &str, word: &str| list.contains(&format!(" {word} "));
    let is_flags = || rest.split_whitespace().all(|word| is_in(FLAGS, word) || word == "/");
    if !is_in(ELEMENTS, &name) || !(rest.contains('=') || is_flags()) {
        return false;
    }
    let is_ended = || prose.to_lowercase().contains(&format!("</{name}>"));
    !rest.is_empty() || !is_in(WORDS, &name) || is_ended()
}

/// The text with code and comments blanked, byte for byte as long as before.
fn prose(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for line in &Document::new(text).lines {
        match line.place {
            Place::Fence(_) | Place::FenceMark => bytes[line.span()].fill(b' '),
            Place::Text => {
                for code in code_spans(line.text) {
                    bytes[line.start + code.start..line.start + code.end].fill(b' ');
                }
            }
            // Metadata stays: it is a comment or not, as the next step finds out.
            Place::Aside => {}
        }
    }
    // Whole characters were blanked, so it is still UTF-8.
    let mut prose = String::from_utf8(bytes).unwrap_or_else(|_| " ".repeat(text.len()));
    let mut from = 0;
    while let Some(open) = prose[from..].find("<!--").map(|at| from + at) {
        let end = prose[open..].find("-->").map_or(prose.len(), |at| open + at + "-->".len());
        prose.replace_range(open..end, &" ".repeat(end - open));
        from = end;
    }
    prose
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        placeholders(text).into_iter().map(|gap| gap.text).collect()
    }

    #[test]
    fn markers_are_listed_with_line_and_question() {
        let text = "a\n- b [NEEDS CLARIFICATION: which [x] of\n  these?] c\n[NEEDS CLARIFICATION]\n\
            `[NEEDS CLARIFICATION: code]`\n<!-- [NEEDS CLARIFICATION: comment] -->\n```\n\
            [NEEDS CLARIFICATION: fence]\n```\n[NEEDS CLARIFICATION: never closed\n\nnext ]\n";
        let gaps: Vec<(usize, String)> =
            open_markers(text).into_iter().map(|gap| (gap.line, gap.text)).collect();
        let wanted = [(2, "which [x] of these?"), (4, ""), (10, "never closed")];
        assert_eq!(gaps, wanted.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn placeholders_are_found_where_templates_have_them() {
        for text in [
            "<NNN>",
            "<feature name>",
            "<uuid or timestamp-based ID, e.g. 2026-02-22T14:30:00Z>",
            "<...>",
            "<title>",
            "<a short title>",
            "<why this\r\nis so>",
            "<straße>",
        ] {
            let shown = text.replace("\r\n", " ");
            assert_eq!(found(&format!("- x: v{text}, \u{e4}\n")), [shown], "{text}");
        }
        assert_eq!(found("<NNN>-<feature-name>"), ["<NNN>", "<feature-name>"]);
        assert_eq!(placeholders("---\nid: <id>\n---\n")[0].line, 2);
    }

    /// Lost: a finished artifact would be called unfinished, and its stage would run again.
    #[test]
    fn code_html_links_types_and_comparisons_are_not_placeholders() {
        for text in [
            "a `<x>` b",
            "```\n<x>\n```",
            "~~~html\n<x>\n~~~",
            "<!-- <x> -->",
            "a <!-- b\n<x>\n--> c",
            "<br> <br/> <img src=\"a\"> <p align=center> <sub>1</sub>",
            "<details open>\n<summary>Title</summary>\n</details>",
            "<title>T</title> <input type=text> <https://example.org/a> <me@example.org>",
            "<mailto:me@example.org> [a](<b c.md>)",
            "Vec<T> and Record<string, unknown>",
            "a < b and c > d, <2s, >90 %",
            "\\<x>",
            "a <b",
            "</x>",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
            assert!(looks_complete(text), "{text}");
        }
    }

    #[test]
    fn an_empty_artifact_is_not_complete() {
        for text in ["", " \r\n", "\u{feff}\n", "a <x> c", "a [NEEDS CLARIFICATION: b]"] {
            assert!(!looks_complete(text), "{text}");
        }
    }
}
