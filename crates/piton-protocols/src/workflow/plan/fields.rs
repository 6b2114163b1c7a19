//! The fields of a phase: lines such as `**Complexity**: 7`, and the lists and fences below them.
//!
//! A field is a label with a colon, in bold or not, in a list item or not. Labels of deeper list items
//! belong to a task, not to the phase. A fence right below a label of tests is a command; commands that
//! prose mentions are never taken.

use std::ops::Range;

use piton_formats::markdown::inline::{bullet, code_spans, plain};
use piton_formats::markdown::{Document, Line, Place};

use super::model::{Marker, TestCommand};

/// Longest label, in bytes: what is longer is a sentence.
const LABEL_BYTES_MAX: usize = 40;
/// Languages of fences with commands.
const SHELLS: [&str; 7] = ["", "bash", "sh", "shell", "zsh", "console", "shell-session"];

/// The labels that mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    DependsOn,
    Complexity,
    Status,
    Tests,
    Files,
}

impl Label {
    /// Reads the words before a colon.
    pub(super) fn read(key: &str) -> Option<Self> {
        if key.len() > LABEL_BYTES_MAX {
            return None;
        }
        let key = plain(key).to_ascii_lowercase().replace(['_', '-'], " ");
        let key = key.split('(').next().unwrap_or_default().trim().trim_matches('*').trim();
        Some(match key {
            "dependencies" | "dependency" | "depends on" | "depends" => Self::DependsOn,
            "complexity" => Self::Complexity,
            "status" => Self::Status,
            "test"
            | "tests"
            | "testing"
            | "run tests"
            | "test command"
            | "test commands"
            | "testing command"
            | "testing commands"
            | "verification"
            | "verification command"
            | "verification commands"
            | "validation"
            | "validation command"
            | "validation commands" => Self::Tests,
            "file" | "files" | "files to modify" | "files to create" | "files to change"
            | "files to update" | "files to edit" | "files to delete" | "files modified"
            | "files created" | "files changed" | "files in scope" | "modified files"
            | "new files" | "owned files" => Self::Files,
            _ => return None,
        })
    }
}

/// Label and value of a line; `None` if it has no label that is known.
pub(super) fn field(text: &str) -> Option<(Label, &str)> {
    let item = bullet(text).unwrap_or(text.trim_start());
    let colon = item.bytes().take(LABEL_BYTES_MAX + 1).position(|b| b == b':')?;
    let label = Label::read(&item[..colon])?;
    Some((label, item[colon + 1..].trim_start_matches('*').trim()))
}

/// The marker that a status line of a phase has, and its bytes in the document.
pub fn status(line: &Line<'_>) -> Option<(Marker, Range<usize>)> {
    if line.place != Place::Text || line.indent() > 1 || line.checkbox().is_some() {
        return None;
    }
    let (_, value) = field(line.text).filter(|(label, _)| *label == Label::Status)?;
    let word = value.trim_matches(['[', ']', '*', ' ', '\r']);
    let marker = Marker::known(word)?;
    let start = line.start + (word.as_ptr().addr() - line.text.as_ptr().addr());
    Some((marker, start..start + word.len()))
}

/// The files that a value or a list item names: its code spans, else its words that are paths.
pub(super) fn files(text: &str, only_first: bool) -> Vec<String> {
    let spans = code_spans(text);
    let is_path = |word: &str| {
        let has_end = word.rsplit_once('.').is_some_and(|(name, end)| {
            !name.is_empty() && !end.is_empty() && end.bytes().all(|b| b.is_ascii_alphanumeric())
        });
        (has_end || word.contains('/')) && !word.contains("://")
    };
    let limit = if only_first { 1 } else { usize::MAX };
    if spans.is_empty() {
        let words = text.split([' ', ',', ';']).map(|w| w.trim_matches(['(', ')', ':', '*']));
        let limit = words.take(limit).filter(|word| is_path(word));
        return limit.map(str::to_owned).collect();
    }
    let pieces = spans.into_iter().map(|span| text[span].trim());
    let paths = pieces.take(limit).filter(|piece| !piece.contains(char::is_whitespace));
    paths.filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

/// The lines about the files of a phase, each run of them as its bytes.
pub fn file_lines(text: &str) -> Vec<Range<usize>> {
    let document = Document::new(text);
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut is_list = false;
    for (at, line) in document.lines.iter().enumerate() {
        let label = field(line.text).filter(|_| line.indent() <= 1 && line.place == Place::Text);
        let is_item = is_list && bullet(line.text).is_some() && line.checkbox().is_none();
        match (line.heading(), label) {
            (Some((_, title)), _) => {
                is_list = Label::read(title.trim_end_matches(':')) == Some(Label::Files);
                continue;
            }
            (None, Some((label, value))) => {
                is_list = label == Label::Files && value.is_empty();
                if label != Label::Files {
                    continue;
                }
            }
            (None, None) if is_item => {}
            (None, None) => {
                is_list &= line.text.trim().is_empty();
                continue;
            }
        }
        let end = document.lines.get(at + 1).map_or(text.len(), |next| next.start);
        match found.last_mut().filter(|last| last.end == line.start) {
            Some(last) => last.end = end,
            None => found.push(line.start..end),
        }
    }
    found
}

/// The command of a value that is nothing but code.
pub(super) fn inline_command(value: &str, line: usize) -> Option<TestCommand> {
    let spans = code_spans(value);
    let [span] = spans.as_slice() else { return None };
    let around = value.replacen(&value[span.clone()], "", 1);
    let is_alone = around.chars().all(|c| matches!(c, '`' | '*' | '.' | ' '));
    let command = value[span.clone()].trim();
    (is_alone && !command.is_empty()).then(|| TestCommand { command: command.to_owned(), line })
}

/// The command of a fence: its only line, or all of it as a script that stops at the first failure.
pub(super) fn fenced_command(lines: &[(usize, &str)], language: &str) -> Option<TestCommand> {
    if !SHELLS.contains(&language) {
        return None;
    }
    let has_prompt = lines.iter().any(|(_, text)| text.trim_start().starts_with("$ "));
    let prompted = |text: &str| text.trim_start().strip_prefix("$ ").map(str::to_owned);
    let kept: Vec<(usize, String)> = if has_prompt {
        lines.iter().filter_map(|(line, text)| Some((*line, prompted(text)?))).collect()
    } else {
        lines.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
    };
    let is_command = |text: &str| !text.trim().is_empty() && !text.trim_start().starts_with('#');
    let commands: Vec<&(usize, String)> = kept.iter().filter(|(_, t)| is_command(t)).collect();
    let (line, only) = commands.first()?;
    // Commands of an agent program, such as `/implement`, are not for a shell.
    if commands.iter().any(|(_, text)| is_agent_command(text.trim())) {
        return None;
    }
    let command = if commands.len() == 1 {
        only.trim().to_owned()
    } else {
        let all: Vec<&str> = kept.iter().map(|(_, text)| text.as_str()).collect();
        format!("set -e\n{}", all.join("\n").trim_end())
    };
    Some(TestCommand { command, line: *line })
}

fn is_agent_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.strip_prefix('/').is_some_and(|name| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b':')
    })
}

/// The file of an expanded phase, if the line links one: `[Phase 2 Details](phase_2_name.md)`.
pub(super) fn expanded(text: &str, id: &str) -> Option<String> {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (target, next) = after.split_once(')')?;
        let path = target.split(['#', ' ']).next().unwrap_or_default();
        let label = before.rsplit('[').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_own = names_phase(name, id) || names_phase(label, id);
        let is_markdown = path.to_ascii_lowercase().ends_with(".md") && !path.contains("://");
        if is_own && is_markdown {
            return Some(path.strip_prefix("./").unwrap_or(path).to_owned());
        }
        rest = next;
    }
    None
}

/// Tells whether a name begins with the word phase and this id: `phase_2_x.md`, `Phase 02`.
fn names_phase(name: &str, id: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let Some(rest) = lower.trim_start_matches(['*', '`', ' ']).strip_prefix("phase") else {
        return false;
    };
    let rest = rest.trim_start_matches([' ', '_', '-']).trim_start_matches('0');
    let id = id.to_ascii_lowercase();
    let after = rest.strip_prefix(id.trim_start_matches('0'));
    after.is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bold_or_not() {
        for text in
            ["**Depends on**: 1", "- **Depends on:** 1", "depends_on: 1", "* Dependencies: 1"]
        {
            assert_eq!(field(text), Some((Label::DependsOn, "1")), "{text}");
        }
        assert_eq!(field("**Files to modify** (two):"), Some((Label::Files, "")));
        assert_eq!(field("Some words: and more"), None);
        assert_eq!(field("no colon"), None);
    }

    #[test]
    fn files_are_code_or_paths() {
        assert_eq!(files("`a/b.rs` - add `x`", true), ["a/b.rs"]);
        assert_eq!(files("`a.md` (lines 2, 18-19), `b/`", false), ["a.md", "b/"]);
        assert_eq!(files("src/x.py, y.toml and more", false), ["src/x.py", "y.toml"]);
        assert_eq!(files("none yet", true), [""; 0]);
    }

    #[test]
    fn commands_are_fences_or_lone_code() {
        let fence = |lines: &[&str], language: &str| {
            let lines: Vec<(usize, &str)> = lines.iter().copied().enumerate().collect();
            fenced_command(&lines, language).map(|test| test.command)
        };
        assert_eq!(fence(&["# all", "make test", ""], "bash").as_deref(), Some("make test"));
        let two = fence(&["cd web", "npm test"], "");
        assert_eq!(two.as_deref(), Some("set -e\ncd web\nnpm test"));
        let session = fence(&["$ make", "well", "$ make test"], "console");
        assert_eq!(session.as_deref(), Some("set -e\nmake\nmake test"));
        assert_eq!(fence(&["# nothing"], "bash"), None);
        assert_eq!(fence(&["/implement plan.md"], "bash"), None);
        assert_eq!(fence(&["x: 1"], "yaml"), None);
        let inline = |value: &str| inline_command(value, 1).map(|test| test.command);
        assert_eq!(inline("`make test`").as_deref(), Some("make test"));
        assert_eq!(inline("`make` succeeds"), None);
    }

    #[test]
    fn expanded_phases_are_linked_by_name() {
        let link = |text| expanded(text, "2");
        assert_eq!(link("see [Phase 2 Details](phase_2_x.md)").as_deref(), Some("phase_2_x.md"));
        assert_eq!(
            link("[x](a.md), [details](./sub/phase-02-y.md#z)").as_deref(),
            Some("sub/phase-02-y.md")
        );
        assert_eq!(link("[Phase 2](big.md)").as_deref(), Some("big.md"));
        for text in [
            "[Phase 20](phase_20.md)",
            "[Phase 2](https://x/y.md)",
            "[x](y.md)",
            "](",
            "[Phase 2](",
        ] {
            assert_eq!(link(text), None, "{text}");
        }
    }
}
