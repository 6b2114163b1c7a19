//! What happens at gates: asked, decided, taken back, changes wanted.

use serde::{Deserialize, Serialize};

use crate::hash::Sha;
use crate::id::{GateRef, StepPath};
use crate::step_event::FileHash;
use crate::time::Timestamp;

/// See [`crate::Event::GateAsked`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateAsked {
    /// The place it guards.
    pub gate: GateRef,
    /// What is asked for.
    pub name: String,
}

/// See [`crate::Event::ApprovalAsked`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// What the question is called; a decision names it as it names a gate.
    pub gate: GateRef,
    /// The question.
    pub question: String,
    /// The step that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepPath>,
    /// The session that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// See [`crate::Event::GateDecided`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateDecided {
    /// The place it guards.
    pub gate: GateRef,
    /// Yes or no.
    pub approved: bool,
    /// Who decided.
    pub by: String,
    /// When, where that was before it could be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// What they said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The plan that was approved.
    pub plan_hash: Sha,
    /// The artifacts that were there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<FileHash>,
}

/// See [`crate::Event::GateReopened`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateReopened {
    /// The place it guards.
    pub gate: GateRef,
    /// Who.
    pub by: String,
    /// By which act.
    pub why: String,
    /// The number of that act, where it can be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
}

/// See [`crate::Event::ChangesWanted`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangesWanted {
    /// The place it guards.
    pub gate: GateRef,
    /// What the reviewer says.
    pub review: Review,
    /// The steps that run again with it.
    pub steps: Vec<StepPath>,
    /// The snapshot that was reviewed: the next question shows what changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
}

/// What a reviewer wants changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Who.
    pub by: String,
    /// What they say about all of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What they say about lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
}

/// A reviewer's remark about a place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The file.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
    /// What is said of it.
    pub text: String,
}

impl Review {
    /// The review as the next attempt reads it: a line for the message, one for each comment.
    pub fn lines(&self) -> Vec<String> {
        let message = self.message.lines().map(ToOwned::to_owned);
        let comments = self.comments.iter().map(|c| format!("{}:{}: {}", c.path, c.line, c.text));
        message.chain(comments).collect()
    }

    /// Reads a file of comments: lines `path:line: text` are about a place, all others belong to the
    /// message.
    pub fn parse(by: &str, message: &str, text: &str) -> Self {
        let mut review = Self { by: by.to_owned(), message: message.to_owned(), comments: vec![] };
        let mut rest = Vec::new();
        for line in text.lines() {
            match Comment::parse(line) {
                Some(comment) => review.comments.push(comment),
                None => rest.push(line),
            }
        }
        let rest = rest.join("\n");
        let parts = [review.message.trim(), rest.trim()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        review.message = parts.join("\n");
        review
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.message.is_empty() && self.comments.is_empty()
    }
}

impl Comment {
    fn parse(line: &str) -> Option<Self> {
        let (path, rest) = line.trim().split_once(':')?;
        let (number, text) = rest.split_once(':')?;
        let line = number.parse().ok().filter(|line| *line > 0)?;
        let is_path = !path.is_empty() && !path.contains(char::is_whitespace);
        is_path.then(|| Self { path: path.to_owned(), line, text: text.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: where in a file a reviewer wants something changed.
    #[test]
    fn comments_about_lines_are_kept_apart_from_the_message() {
        let text =
            "Good so far.\nsrc/a.rs:12: name the unit\n\nat 10:30: not a file\nb.md:0: no line";
        let review = Review::parse("ann", "Two things.", text);
        let comment = Comment { path: "src/a.rs".into(), line: 12, text: "name the unit".into() };
        assert_eq!(review.comments, [comment]);
        assert_eq!(
            review.lines(),
            [
                "Two things.",
                "Good so far.",
                "",
                "at 10:30: not a file",
                "b.md:0: no line",
                "src/a.rs:12: name the unit",
            ]
        );
        assert!(Review::parse("ann", "", " \n").is_empty());
    }
}
