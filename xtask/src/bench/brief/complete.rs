//! How much of what a reader should know at a cut is in a brief, and in the end of the transcript with
//! as many tokens.

use std::fmt::Write as _;

use piton_agents::brief::{Input, brief};
use piton_agents::tokens::count;
use piton_core::redact::Redactor;

use super::script::{Cut, Truth, cut};

/// Scripted runs.
const RUNS: u64 = 50;
/// Sizes of briefs in tokens.
const SIZES: [usize; 3] = [500, 1000, 2000];

/// Finds the facts of a kind.
type Facts = fn(&Truth) -> &Vec<String>;

/// The kinds of facts, with those of a cut.
const KINDS: [(&str, Facts); 9] = [
    ("objective", |truth| &truth.objective),
    ("current task", |truth| &truth.task),
    ("criteria", |truth| &truth.criteria),
    ("done", |truth| &truth.done),
    ("in flight", |truth| &truth.in_flight),
    ("failing tests", |truth| &truth.failing),
    ("changed files", |truth| &truth.changed),
    ("decisions", |truth| &truth.decisions),
    ("next steps", |truth| &truth.next),
];

/// The table, in Markdown: shares in per cent, of the brief and of the transcript.
pub(super) fn table() -> Result<String, String> {
    // How many facts there are of each kind, and how many are found: brief and transcript for each size.
    let mut found = [[0_usize; 2 * SIZES.len()]; KINDS.len()];
    let mut all = [0_usize; KINDS.len()];
    for number in 0..RUNS {
        let cut = cut(number)?;
        let texts = texts(&cut)?;
        for (row, (_, facts)) in KINDS.iter().enumerate() {
            for fact in facts(&cut.truth) {
                all[row] += 1;
                for (column, text) in texts.iter().enumerate() {
                    found[row][column] += usize::from(text.contains(fact.as_str()));
                }
            }
        }
    }
    let mut out = "| kind |".to_owned();
    for size in SIZES {
        let _ = write!(out, " brief, {size} | transcript, {size} |");
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(2 * SIZES.len()));
    for (row, (kind, _)) in KINDS.iter().enumerate() {
        let _ = write!(out, "| {kind} |");
        for hits in found[row] {
            let _ = write!(out, " {} % |", hits * 100 / all[row].max(1));
        }
        out.push('\n');
    }
    Ok(out)
}

/// The brief and the end of the transcript, for each size.
fn texts(cut: &Cut) -> Result<Vec<String>, String> {
    let redactor = Redactor::default();
    let mut texts = Vec::new();
    for size in SIZES {
        let input = Input {
            state: &cut.state,
            plan: Some(&cut.plan),
            is_told: false,
            course: &cut.course,
            step: None,
            more: Vec::new(),
            now: cut.now,
            redactor: &redactor,
        };
        let made = brief(&input, size);
        if made.tokens > size {
            return Err(format!("a brief of {size} tokens has {}", made.tokens));
        }
        texts.push(made.text);
        texts.push(end_of(&cut.transcript, size));
    }
    Ok(texts)
}

/// The last lines of a text that have at most so many tokens.
fn end_of(text: &str, tokens: usize) -> String {
    let mut left = tokens;
    let fits = |line: &&str| {
        let rest = left.checked_sub(count(&format!("{line}\n")));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let mut lines: Vec<&str> = text.lines().rev().take_while(fits).collect();
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: the table in the documentation says something else than the program does.
    #[test]
    fn the_documented_table_is_the_measured_one() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/agents.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        let table = table().expect("all briefs fit");
        assert!(page.contains(&table), "docs/agents.md should hold\n{table}");
    }
}
