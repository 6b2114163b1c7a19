//! Markdown as lines, each with its kind: heading, fence, comment, front matter or text.
//!
//! Not a Markdown parser: the documents of the protocols are read line by line, because a problem
//! must name its line and an edit must keep every other byte. The readers decide what a line means.

pub mod edit;
pub mod inline;
pub mod table;
pub mod write;

use std::ops::Range;

/// Most spaces before a heading; with more it is an indented code block.
const HEADING_INDENT_MAX: usize = 3;
/// Deepest level of a heading.
const HEADING_LEVEL_MAX: usize = 6;
/// Fewest marks that open a fence.
const FENCE_MARKS_MIN: usize = 3;

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Ordinary text; may be a heading.
    Text,
    /// Within a fence; the number of its block, from 0.
    Fence(usize),
    /// A line that opens or closes a fence.
    FenceMark,
    /// An HTML comment, or the metadata before the document.
    Aside,
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// From 1.
    pub number: usize,
    /// Its first byte in the document.
    pub start: usize,
    /// Its text, without the line ending.
    pub text: &'a str,
    /// Its kind.
    pub place: Place,
}

impl<'a> Line<'a> {
    /// Its bytes in the document.
    pub fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Level and text, if it is a heading.
    pub fn heading(&self) -> Option<(usize, &'a str)> {
        if self.place != Place::Text {
            return None;
        }
        let trimmed = self.text.trim_start_matches(' ');
        let level = trimmed.bytes().take_while(|b| *b == b'#').count();
        let rest = &trimmed[level..];
        let spaced = rest.is_empty() || rest.starts_with([' ', '\t']);
        if self.text.len() - trimmed.len() > HEADING_INDENT_MAX
            || !(1..=HEADING_LEVEL_MAX).contains(&level)
            || !spaced
        {
            return None;
        }
        Some((level, rest.trim().trim_end_matches('#').trim_end()))
    }

    /// The box of a list item, and the bytes between its brackets in the document.
    pub fn checkbox(&self) -> Option<(inline::Checkbox<'a>, Range<usize>)> {
        if self.place != Place::Text {
            return None;
        }
        let found = inline::bullet(self.text).and_then(inline::checkbox)?;
        // Before the box there is only the mark of the list item.
        let open = self.text.find('[')? + 1;
        let close = open + found.mark.len();
        // `[a](b)` is a link.
        let is_link = self.text[close..].starts_with("](");
        (!is_link).then(|| (found, self.start + open..self.start + close))
    }

    /// Spaces before its text, a tab counting as four.
    pub fn indent(&self) -> usize {
        let lead = self.text.chars().take_while(|c| c.is_whitespace());
        lead.map(|c| if c == '\t' { 4 } else { 1 }).sum()
    }

    /// Whether it contains document text: plain or within a fence.
    pub fn is_content(&self) -> bool {
        matches!(self.place, Place::Text | Place::Fence(_))
    }
}

/// A part of a document under one heading, deeper headings included.
#[derive(Clone, Copy, Debug)]
pub struct Section<'d, 'a> {
    /// The lines below the heading.
    pub lines: &'d [Line<'a>],
}

/// A document, line by line.
#[derive(Debug)]
pub struct Document<'a> {
    /// Its lines.
    pub lines: Vec<Line<'a>>,
    /// The language of each fenced block, in lower case; empty if none is named.
    pub languages: Vec<String>,
    /// The line (by position) of a fence or comment that is never closed.
    pub unclosed: Option<usize>,
}

impl<'a> Document<'a> {
    /// Reads a text; any text is a document.
    pub fn new(text: &'a str) -> Self {
        let mut scan = Scan { state: State::Text, languages: Vec::new() };
        let mut lines: Vec<Line<'a>> = Vec::new();
        let bom = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut start = bom;
        for (index, raw) in text[bom..].split_inclusive('\n').enumerate() {
            let content = raw.strip_suffix('\n').unwrap_or(raw);
            let content = content.strip_suffix('\r').unwrap_or(content);
            let place = scan.place(content, index);
            lines.push(Line { number: index + 1, start, text: content, place });
            start += raw.len();
        }
        let unclosed = match scan.state {
            State::Text => None,
            State::Fence { opened, .. } | State::Comment { opened } => Some(opened),
            // Front matter that never ends is a rule, and the document follows.
            State::FrontMatter => {
                let rest = Self::without_front_matter(lines);
                return Self { lines: rest.0, languages: rest.1, unclosed: rest.2 };
            }
        };
        Self { lines, languages: scan.languages, unclosed }
    }

    /// The same lines read as if there were no metadata.
    fn without_front_matter(
        mut lines: Vec<Line<'a>>,
    ) -> (Vec<Line<'a>>, Vec<String>, Option<usize>) {
        let mut scan = Scan { state: State::Text, languages: Vec::new() };
        for (index, line) in lines.iter_mut().enumerate() {
            // No line is the first here, so none opens front matter.
            line.place = scan.place(line.text, index + 1);
        }
        let unclosed = match scan.state {
            State::Fence { opened, .. } | State::Comment { opened } => Some(opened - 1),
            State::Text | State::FrontMatter => None,
        };
        (lines, scan.languages, unclosed)
    }

    /// The sections whose heading fits; one within another is not listed again.
    pub fn sections(&self, fits: impl Fn(&str) -> bool) -> Vec<Section<'_, 'a>> {
        let mut found = Vec::new();
        let mut index = 0;
        while index < self.lines.len() {
            match self.lines[index].heading() {
                Some((level, title)) if fits(&inline::title(title)) => {
                    let ends = |line: &Line<'_>| line.heading().is_some_and(|(l, _)| l <= level);
                    let rest = &self.lines[index + 1..];
                    let length = rest.iter().position(ends).unwrap_or(rest.len());
                    found.push(Section { lines: &rest[..length] });
                    index += length + 1;
                }
                _ => index += 1,
            }
        }
        found
    }

    /// The language of a fenced block.
    pub fn language(&self, block: usize) -> &str {
        self.languages.get(block).map_or("", String::as_str)
    }
}

/// What the current line is in.
enum State {
    Text,
    Fence { mark: char, length: usize, opened: usize },
    Comment { opened: usize },
    FrontMatter,
}

struct Scan {
    state: State,
    languages: Vec<String>,
}

impl Scan {
    fn place(&mut self, text: &str, index: usize) -> Place {
        let trimmed = text.trim();
        match self.state {
            State::FrontMatter => {
                if trimmed == "---" || trimmed == "..." {
                    self.state = State::Text;
                }
                Place::Aside
            }
            State::Comment { .. } => {
                if trimmed.contains("-->") {
                    self.state = State::Text;
                }
                Place::Aside
            }
            State::Fence { mark, length, .. } => {
                let marks = trimmed.chars().take_while(|c| *c == mark).count();
                if marks >= length && trimmed.chars().count() == marks {
                    self.state = State::Text;
                    return Place::FenceMark;
                }
                Place::Fence(self.languages.len() - 1)
            }
            State::Text => self.open(trimmed, index),
        }
    }

    /// A line outside of everything may open something.
    fn open(&mut self, trimmed: &str, index: usize) -> Place {
        if index == 0 && trimmed == "---" {
            self.state = State::FrontMatter;
            return Place::Aside;
        }
        if let Some(rest) = trimmed.strip_prefix("<!--") {
            if !rest.contains("-->") {
                self.state = State::Comment { opened: index };
            }
            return Place::Aside;
        }
        let Some(mark) = trimmed.chars().next().filter(|c| matches!(c, '`' | '~')) else {
            return Place::Text;
        };
        let length = trimmed.chars().take_while(|c| *c == mark).count();
        let info = trimmed[length..].trim();
        // Backquotes after the opening ones make it a code span within a line.
        if length < FENCE_MARKS_MIN || (mark == '`' && info.contains('`')) {
            return Place::Text;
        }
        let language = info.split([' ', ',', '{']).next().unwrap_or_default();
        self.languages.push(language.to_lowercase());
        self.state = State::Fence { mark, length, opened: index };
        Place::FenceMark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<(usize, usize, String)> {
        let document = Document::new(text);
        let with = |line: &Line<'_>| line.heading().map(|(l, t)| (line.number, l, t.to_owned()));
        document.lines.iter().filter_map(with).collect()
    }

    #[test]
    fn headings_are_found_outside_of_fences_only() {
        let text = "# A\n```bash\n# no\n```\n~~~\n## no\n```\n~~~\n## B ##\n    # code\n#no\n";
        assert_eq!(headings(text), [(1, 1, "A".to_owned()), (9, 2, "B".to_owned())]);
    }

    #[test]
    fn metadata_comments_marks_and_line_endings_are_no_text() {
        let text = "\u{feff}---\r\nkey: # x\r\n---\r\n<!--\r\n# no\r\n-->\r\n# Yes\r\n";
        assert_eq!(headings(text), [(7, 1, "Yes".to_owned())]);
    }

    #[test]
    fn a_rule_at_the_top_that_never_closes_hides_nothing() {
        assert_eq!(headings("---\n\n# A\n"), [(3, 1, "A".to_owned())]);
    }

    #[test]
    fn a_fence_closes_with_at_least_as_many_marks() {
        let text = "````md\n```\n# no\n```\n````\n# A\n";
        assert_eq!(headings(text), [(6, 1, "A".to_owned())]);
        assert_eq!(Document::new(text).languages, ["md"]);
        assert_eq!(Document::new("a\n```\nb").unclosed, Some(1));
    }

    #[test]
    fn spans_point_at_the_bytes_of_the_text() {
        let text = "\u{feff}ä\r\nb\n";
        let document = Document::new(text);
        let pieces: Vec<&str> = document.lines.iter().map(|l| &text[l.span()]).collect();
        assert_eq!(pieces, ["ä", "b"]);
    }

    #[test]
    fn a_box_is_found_with_its_bytes() {
        let text = "\u{feff}  1. [x] ä [y]\n- [] b\n```\n- [ ] no\n```\n- [a](b)\n";
        let document = Document::new(text);
        let found: Vec<(&str, &str)> = document
            .lines
            .iter()
            .filter_map(Line::checkbox)
            .map(|(found, range)| (&text[range], found.rest))
            .collect();
        assert_eq!(found, [("x", "ä [y]"), ("", "b")]);
    }

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let document = Document::new("# T\n## A. One\nx\n### Sub\ny\n## Two\nz\n");
        let found = document.sections(|title| title == "one");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].lines.iter().map(|l| l.number).collect::<Vec<_>>(), [3, 4, 5]);
    }
}
