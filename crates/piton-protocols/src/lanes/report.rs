//! The run report: what a person reads after a run, in Markdown.
//!
//! A pure function of plain data. Texts that came from elsewhere are made harmless for tables and
//! fences; an empty part is left out.

use std::fmt::Write as _;

use piton_core::Timestamp;

use crate::time;

/// Longest text within a table: a row stays a row; the whole is in the log.
const CELL_CHARS_MAX: usize = 200;
/// Characters of a commit that name it to a person.
const SHA_CHARS: usize = 12;

/// What a report tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The run.
    pub run_id: String,
    /// The phase.
    pub phase: String,
    /// What the phase is called.
    pub title: String,
    /// How the run stands, in a word.
    pub status: String,
    /// The branch that lanes are merged into.
    pub base_branch: String,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Its lanes.
    pub lanes: Vec<LaneLine>,
    /// Its merges, in their order.
    pub merges: Vec<MergeLine>,
    /// Its gates: id, and whether it is closed.
    pub gates: Vec<(String, bool)>,
    /// The tests after the last merge: command and exit code.
    pub validation: Vec<(String, Option<i32>)>,
    /// What failed.
    pub failures: Vec<Failure>,
    /// Commands that lead on, for a shell.
    pub next: Vec<String>,
}

/// One lane of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneLine {
    /// The lane.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The stage it reached.
    pub stage: String,
    /// How it stands there.
    pub status: String,
    /// Its commit.
    pub head_sha: Option<String>,
    /// Its test, and how that ended.
    pub tests: Option<(String, Option<i32>)>,
    /// How many attempts it took.
    pub attempts: u32,
}

/// One merge of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeLine {
    /// The lane.
    pub lane: String,
    /// Where base stood before.
    pub from: String,
    /// Where it stands since.
    pub to: String,
    /// When.
    pub at: Option<Timestamp>,
}

/// One failure of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// What failed, such as a lane or task.
    pub what: String,
    /// Why, one line per text.
    pub context: Vec<String>,
}

/// Writes a report.
pub fn render(report: &Report) -> String {
    let mut out = format!("# Run report: {}\n\n", inline(&report.run_id));
    let phase = if report.title.is_empty() {
        inline(&report.phase)
    } else {
        format!("{} ({})", inline(&report.phase), inline(&report.title))
    };
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(out, "- {name}: {value}");
        }
    };
    fact("phase", phase);
    fact("status", inline(&report.status));
    fact("base branch", code(&report.base_branch));
    fact("started", report.started.map(time::write).unwrap_or_default());
    fact("ended", report.ended.map(time::write).unwrap_or_default());

    let lanes = report.lanes.iter().map(lane_row);
    let head = ["lane", "name", "stage", "status", "head", "tests", "attempts"];
    table(&mut out, "Lanes", &head, lanes.collect());
    let merges = report.merges.iter().map(|merge| {
        let at = merge.at.map(time::write).unwrap_or_default();
        vec![cell(&merge.lane), sha(&merge.from), sha(&merge.to), at]
    });
    table(&mut out, "Merges", &["lane", "from", "to", "at"], merges.collect());
    if !report.gates.is_empty() {
        out.push_str("\n## Gates\n\n");
        for (gate, closed) in &report.gates {
            let _ = writeln!(out, "- [{}] {}", if *closed { "x" } else { " " }, inline(gate));
        }
    }
    let tests = report.validation.iter().map(|(command, exit)| vec![code(command), ended(*exit)]);
    table(&mut out, "Validation", &["command", "result"], tests.collect());
    for (at, failure) in report.failures.iter().enumerate() {
        if at == 0 {
            out.push_str("\n## Failures\n");
        }
        let _ = writeln!(out, "\n### {}\n", inline(&failure.what));
        fence(&mut out, "text", &failure.context);
    }
    if !report.next.is_empty() {
        out.push_str("\n## Next\n\n");
        fence(&mut out, "sh", &report.next);
    }
    out
}

fn lane_row(lane: &LaneLine) -> Vec<String> {
    let tests = match &lane.tests {
        Some((command, exit)) => format!("{} {}", code(command), ended(*exit)),
        None => String::new(),
    };
    let head = lane.head_sha.as_deref().map(sha).unwrap_or_default();
    vec![
        cell(&lane.id),
        cell(&lane.name),
        cell(&lane.stage),
        cell(&lane.status),
        head,
        tests,
        lane.attempts.to_string(),
    ]
}

fn ended(exit: Option<i32>) -> String {
    match exit {
        Some(0) => "passed".to_owned(),
        Some(code) => format!("failed ({code})"),
        None => "not run".to_owned(),
    }
}

fn table(out: &mut String, title: &str, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "\n## {title}\n\n| {} |\n", head.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
}

/// Lines in a fence that nothing within can close.
fn fence(out: &mut String, language: &str, lines: &[String]) {
    let text = lines.join("\n");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest.max(2) + 1);
    let text = text.replace('\r', "");
    let _ = write!(out, "{marks}{language}\n{}\n{marks}\n", text.trim_end());
}

/// A text on one line.
fn inline(text: &str) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(visible).collect::<String>().trim().to_owned()
}

/// A text for a cell of a table.
fn cell(text: &str) -> String {
    let mut short: String = inline(text).chars().take(CELL_CHARS_MAX).collect();
    if text.chars().count() > CELL_CHARS_MAX {
        short.push('…');
    }
    short.replace('|', "\\|")
}

/// A text as code within a cell.
fn code(text: &str) -> String {
    let cell = cell(text);
    match (cell.is_empty(), cell.contains('`')) {
        (true, _) => String::new(),
        (_, true) => format!("`` {cell} ``"),
        _ => format!("`{cell}`"),
    }
}

fn sha(sha: &str) -> String {
    code(&sha.chars().take(SHA_CHARS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_tells_of_lanes_merges_gates_failures_and_what_to_do() {
        let report = Report {
            run_id: "P1-20251227-103000".to_owned(),
            phase: "P1".to_owned(),
            title: "Foundation".to_owned(),
            status: "failed".to_owned(),
            base_branch: "main".to_owned(),
            started: Some(Timestamp(1_766_831_400_000)),
            ended: None,
            lanes: vec![LaneLine {
                id: "SL-1".to_owned(),
                name: "A | B".to_owned(),
                stage: "after_lane_tests".to_owned(),
                status: "failed".to_owned(),
                head_sha: Some("0123456789abcdef0123".to_owned()),
                tests: Some(("make test".to_owned(), Some(2))),
                attempts: 3,
            }],
            merges: vec![MergeLine {
                lane: "SL-0".to_owned(),
                from: "aaa".to_owned(),
                to: "bbb".to_owned(),
                at: None,
            }],
            gates: vec![("IF-0-P1-A".to_owned(), true), ("IF-0-P1-B".to_owned(), false)],
            validation: vec![("make all".to_owned(), None)],
            failures: vec![Failure {
                what: "SL-1".to_owned(),
                context: vec!["Attempt 1: ``` no".to_owned(), "line\r".to_owned()],
            }],
            next: vec!["piton resume P1-20251227-103000".to_owned()],
        };
        let wanted = "\
# Run report: P1-20251227-103000

- phase: P1 (Foundation)
- status: failed
- base branch: `main`
- started: 2025-12-27T10:30:00.000Z

## Lanes

| lane | name | stage | status | head | tests | attempts |
|---|---|---|---|---|---|---|
| SL-1 | A \\| B | after_lane_tests | failed | `0123456789ab` | `make test` failed (2) | 3 |

## Merges

| lane | from | to | at |
|---|---|---|---|
| SL-0 | `aaa` | `bbb` |  |

## Gates

- [x] IF-0-P1-A
- [ ] IF-0-P1-B

## Validation

| command | result |
|---|---|
| `make all` | not run |

## Failures

### SL-1

````text
Attempt 1: ``` no
line
````

## Next

```sh
piton resume P1-20251227-103000
```
";
        assert_eq!(render(&report), wanted);
    }

    #[test]
    fn empty_parts_are_left_out() {
        let report = Report { run_id: "r".to_owned(), ..Report::default() };
        assert_eq!(render(&report), "# Run report: r\n\n");
    }
}
