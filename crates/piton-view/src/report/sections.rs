//! What a report says, in order: figures, then sections.
//!
//! What nobody would read is left out here, and counted.

use std::fmt::Write as _;

use piton_core::budget::dollars;
use piton_core::{Millis, Status, StepPath};

use super::document::{Body, Cell, Document, Figure, Section, Table, Trouble, thousands, utc};
use super::time_line::TimeLine;
use super::{Attempt, Ended, Lane, Report, Saved, WaitFor};
use crate::place::At;
use crate::session;
use crate::text::{count, sanitize};
use crate::words;

/// Most rows of a table: more is for programs, which have `--json`.
const ROWS_MAX: usize = 200;
/// Most failures with their lines: those that came last tell how the run stands.
const FAILURES_MAX: usize = 40;
/// Most changes of a replan that are named.
const CHANGES_MAX: usize = 12;

impl Document {
    /// A report in words.
    pub fn new(report: &Report<'_>) -> Self {
        let title = match sanitize(report.title) {
            title if title.is_empty() => report.run_id.to_owned(),
            title => title,
        };
        let sections = [
            time_line(report),
            lanes(report),
            oddities(report),
            stops(report),
            failures(report),
            replans(report),
            recovery(report),
            decisions(report),
            waits(report),
            attempts(report),
            artifacts(report),
        ];
        Self {
            title,
            run_id: report.run_id.to_owned(),
            status: report.status,
            lead: lead(report),
            figures: figures(report),
            sections: sections.into_iter().flatten().collect(),
        }
    }
}

/// What the last recovery of a session cost, beside what its protocol allows.
fn recovery(report: &Report<'_>) -> Option<Section> {
    let parts = session::parts(report.session?);
    if parts.is_empty() {
        return None;
    }
    let row = |part: &session::Part| {
        let note = if part.is_over() { session::OVER } else { "" };
        vec![
            Cell::Text(part.name.to_owned()),
            Cell::Number(thousands(part.tokens)),
            Cell::Number(thousands(part.budget)),
            Cell::Text(note.to_owned()),
        ]
    };
    let rows = parts.iter().map(row).collect();
    let head = vec!["part", "tokens", "budget", ""];
    let body = Body::Table(Table { head, rows, left_out: None, is_detail: false });
    Some(Section { title: "Recovery", note: String::new(), body })
}

fn lead(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let ended = if report.times.elapsed_ms == Millis(0) || is_open(report) {
        utc(report.as_of.0)
    } else {
        utc(report.updated_at.0)
    };
    let protocol = report.protocol.map(|protocol| sanitize(&protocol.id));
    let mut lead = vec![
        ("run", report.run_id.to_owned()),
        ("plan", sanitize(report.plan)),
        ("protocol", protocol.unwrap_or_default()),
        ("began", utc(report.created_at.0)),
        (if is_open(report) { "as of" } else { "ended" }, ended),
    ];
    lead.retain(|(_, value)| !value.is_empty());
    lead
}

/// Whether the run may still change.
fn is_open(report: &Report<'_>) -> bool {
    !report.status.is_final() && report.status != Status::Aborted
}

fn figures(report: &Report<'_>) -> Vec<Figure> {
    let times = &report.times;
    let attempts: Vec<&Attempt> = super::all_attempts(&report.phases).collect();
    let ended = |how: Ended| attempts.iter().filter(|a| a.outcome == how).count();
    let more = [(ended(Ended::Failed), "failed"), (ended(Ended::Interrupted), "interrupted")];
    let more: Vec<String> =
        more.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}")).collect();
    let lanes =
        (times.attempts_ms > times.busy_ms).then(|| format!("{} in all lanes", times.attempts_ms));
    let mut figures = vec![
        Figure { name: "Elapsed", value: times.elapsed_ms.to_string(), note: driven(report) },
        Figure {
            name: "At work",
            value: times.busy_ms.to_string(),
            note: lanes.unwrap_or_default(),
        },
        Figure { name: "Attempts", value: attempts.len().to_string(), note: more.join(", ") },
    ];
    if times.waiting_ms > Millis(0) {
        let (value, note) = (times.waiting_ms.to_string(), count(report.waits.len(), "wait"));
        figures.push(Figure { name: "Waiting for people", value, note });
    }
    if report.tokens > 0 || report.money_micros > 0 {
        let tokens = (report.tokens > 0).then(|| format!("{} tokens", thousands(report.tokens)));
        let money = (report.money_micros > 0).then(|| dollars(report.money_micros));
        let (value, note) = match (money, tokens) {
            (Some(money), tokens) => (money, tokens.unwrap_or_default()),
            (None, _) => (thousands(report.tokens), "tokens".to_owned()),
        };
        figures.push(Figure { name: "Spent", value, note });
    }
    if report.saved.continued > 0 {
        let Saved { percent, saved_ms, .. } = report.saved;
        let (value, note) = (format!("{percent} %"), signed(saved_ms));
        figures.push(Figure { name: "Saved by resuming", value, note });
    }
    figures
}

fn driven(report: &Report<'_>) -> String {
    let Millis(driven) = report.times.driven_ms;
    // Within a second of each other it is the same to a person.
    let differs = report.times.elapsed_ms.0.abs_diff(driven) > 1_000;
    if differs { format!("driven for {}", Millis(driven)) } else { String::new() }
}

fn signed(ms: i64) -> String {
    let length = Millis(ms.unsigned_abs());
    if ms < 0 { format!("-{length}") } else { length.to_string() }
}

fn time_line(report: &Report<'_>) -> Option<Section> {
    let line = TimeLine::new(report)?;
    Some(Section { title: "Time line", note: String::new(), body: Body::TimeLine(line) })
}

/// A section with a table, if that has rows; columns that are empty are left out.
fn table(
    title: &'static str,
    note: String,
    head: &[&'static str],
    rows: Vec<Vec<Cell>>,
    of: &str,
) -> Option<Section> {
    if rows.is_empty() {
        return None;
    }
    let more = rows.len().saturating_sub(ROWS_MAX);
    let left_out = (more > 0).then(|| format!("and {}", count(more, &format!("more {of}"))));
    let rows: Vec<Vec<Cell>> = rows.into_iter().take(ROWS_MAX).collect();
    let is_used = |at: usize| rows.iter().any(|row| !row[at].words().is_empty());
    let used: Vec<usize> = (0..head.len()).filter(|at| is_used(*at)).collect();
    let pick = |row: Vec<Cell>| used.iter().map(|at| row[*at].clone()).collect();
    let head = used.iter().map(|at| head[*at]).collect();
    let rows = rows.into_iter().map(pick).collect();
    Some(Section {
        title,
        note,
        body: Body::Table(Table { head, rows, left_out, is_detail: false }),
    })
}

/// The same for a table in which things are looked up.
fn detail(section: Option<Section>) -> Option<Section> {
    let mut section = section?;
    if let Body::Table(table) = &mut section.body {
        table.is_detail = true;
    }
    Some(section)
}

fn lanes(report: &Report<'_>) -> Option<Section> {
    let row = |(phase, lane): (&super::Phase, &Lane)| {
        let attempts = lane.steps.iter().map(|step| step.attempts.len() as u64).sum::<u64>();
        vec![
            Cell::text(&phase.id),
            Cell::text(&lane.id),
            Cell::Status(lane.status),
            Cell::Number(format!("{}/{}", lane.steps_done(), lane.steps.len())),
            Cell::number(attempts),
            Cell::length(lane.busy_ms),
            Cell::number(lane.tokens),
            Cell::money(lane.money_micros),
            Cell::text(lane.way.as_deref().unwrap_or_default()),
        ]
    };
    let head = ["phase", "lane", "status", "steps", "attempts", "time", "tokens", "cost", "result"];
    table("Phases and lanes", String::new(), &head, report.lanes().map(row).collect(), "lane")
}

fn oddities(report: &Report<'_>) -> Option<Section> {
    let rows = report.oddities.iter().map(|words| vec![Cell::text(words)]).collect();
    table("Worth a look", String::new(), &["what"], rows, "line")
}

fn stops(report: &Report<'_>) -> Option<Section> {
    let row = |stop: &super::Stop| {
        let away = stop.continued_at.map(|at| at.0.since(stop.at.0));
        let after = away.map_or("not yet".to_owned(), |away| away.to_string());
        vec![
            Cell::Time(stop.at.0),
            Cell::text(stop.cause.words()),
            Cell::Number(after),
            Cell::length(stop.kept_ms),
        ]
    };
    let head = ["stopped", "why", "continued after", "finished work kept"];
    let rows = report.stops.iter().map(row).collect();
    table("Stops, and what resuming saved", saved_words(report), &head, rows, "stop")
}

fn saved_words(report: &Report<'_>) -> String {
    let saved = &report.saved;
    let Saved { continued, took_ms, over_ms, saved_ms, percent, kept_ms, .. } = saved;
    if *continued == 0 {
        let is_kept = *kept_ms > Millis(0) && (is_open(report) || report.status == Status::Aborted);
        return if is_kept {
            format!("{kept_ms} of finished work is kept if the run is resumed.")
        } else {
            String::new()
        };
    }
    let times = count(*continued, "time");
    let mut words = format!(
        "The run was continued {times}. The work took {took_ms}. Starting over each time would have \
         taken {over_ms}. "
    );
    if *saved_ms >= 0 {
        let _ = write!(words, "Resuming saved {} ({percent} %)", signed(*saved_ms));
    } else {
        let more = Millis(saved_ms.unsigned_abs());
        let _ = write!(words, "Replanning took {more} more than it kept");
    }
    if saved.tokens > 0 {
        let _ = write!(words, ", and {} tokens", thousands(saved.tokens));
    }
    if saved.money_micros > 0 {
        let _ = write!(words, ", {}", dollars(saved.money_micros));
    }
    words.push('.');
    words
}

fn failures(report: &Report<'_>) -> Option<Section> {
    let all = report.failures.len();
    if all == 0 {
        return None;
    }
    let earlier = all.saturating_sub(FAILURES_MAX);
    let note = match earlier {
        0 => String::new(),
        earlier => {
            format!("{} left out: `--json` has them all.", count(earlier, "earlier failure"))
        }
    };
    let trouble = |failure: &super::Failure| Trouble {
        place: failure.place.clone(),
        when: failure.at.0,
        attempt: failure.attempt,
        error: failure.class.map_or_else(
            || sanitize(&failure.error),
            |class| words::failure(class, &failure.error),
        ),
        lines: failure.lines.iter().map(|line| sanitize(line)).collect(),
    };
    let shown = report.failures.iter().skip(earlier).map(trouble).collect();
    Some(Section { title: "Failures", note, body: Body::Failures(shown) })
}

fn replans(report: &Report<'_>) -> Option<Section> {
    let row = |replan: &super::Replan| {
        let took = replan.ended_at.map(|at| at.0.since(replan.began_at.0));
        let more = replan.words.len().saturating_sub(CHANGES_MAX);
        let mut words: Vec<String> =
            replan.words.iter().take(CHANGES_MAX).map(|one| sanitize(one)).collect();
        words.extend((more > 0).then(|| format!("and {more} more")));
        vec![
            Cell::Time(replan.began_at.0),
            Cell::text(&replan.phase),
            Cell::text(&replan.reason),
            Cell::text(replan.outcome.words()),
            Cell::text(&replan.forced_by),
            Cell::length(took.unwrap_or_default()),
            Cell::Text(words.join("; ")),
        ]
    };
    let head = ["when", "phase", "reason", "outcome", "forced by", "time", "plan"];
    table("Replans", String::new(), &head, report.replans.iter().map(row).collect(), "replan")
}

fn decisions(report: &Report<'_>) -> Option<Section> {
    let row = |decision: &super::Decision| {
        vec![
            Cell::Time(decision.at.0),
            Cell::text(&decision.by),
            Cell::text(&decision.kind.to_string()),
            Cell::text(&decision.of),
            Cell::text(&decision.message),
            Cell::length(decision.waited_ms.unwrap_or_default()),
        ]
    };
    let head = ["when", "who", "what", "of", "message", "after"];
    let rows = report.decisions.iter().map(row).collect();
    table("Approvals and decisions", String::new(), &head, rows, "decision")
}

fn waits(report: &Report<'_>) -> Option<Section> {
    let row = |wait: &super::Wait| {
        let what = match &wait.for_ {
            WaitFor::Gate { gate, name } => format!("{} ({gate})", sanitize(name)),
            WaitFor::PullRequest { lane, url } => format!("pull request of {lane}: {url}"),
            WaitFor::Person { after } => format!("somebody to act after it {}", stopped(*after)),
        };
        let until = wait.until.map_or(Cell::text("still waiting"), |at: At| Cell::Time(at.0));
        vec![Cell::text(&what), Cell::Time(wait.from.0), until, Cell::length(wait.waited_ms)]
    };
    let note = format!("{} in all; what overlaps counts once.", report.times.waiting_ms);
    let head = ["for", "from", "until", "time"];
    table("Waiting for people", note, &head, report.waits.iter().map(row).collect(), "wait")
}

fn stopped(cause: super::Cause) -> &'static str {
    if cause == super::Cause::Blocked { "was blocked" } else { "failed" }
}

fn attempts(report: &Report<'_>) -> Option<Section> {
    let mut all: Vec<(StepPath, &Attempt)> = Vec::new();
    for (phase, lane) in report.lanes() {
        for (step, attempt) in lane.attempts() {
            all.push((StepPath::new(&phase.id, &lane.id, &step.id), attempt));
        }
    }
    all.sort_by_key(|(_, attempt)| attempt.started_at.0);
    let earlier = all.len().saturating_sub(ROWS_MAX);
    let row = |(path, attempt): &(StepPath, &Attempt)| {
        vec![
            Cell::Time(attempt.started_at.0),
            Cell::text(&path.to_string()),
            Cell::number(attempt.number),
            Cell::Ended(attempt.outcome),
            Cell::length(attempt.duration_ms),
            Cell::number(attempt.tokens),
            Cell::money(attempt.money_micros),
        ]
    };
    let note = match earlier {
        0 => String::new(),
        earlier => {
            format!("{} left out: `--json` has them all.", count(earlier, "earlier attempt"))
        }
    };
    let head = ["began", "step", "attempt", "outcome", "time", "tokens", "cost"];
    let rows = all.iter().skip(earlier).map(row).collect();
    detail(table("Attempts", note, &head, rows, "attempt"))
}

fn artifacts(report: &Report<'_>) -> Option<Section> {
    let row = |artifact: &super::Artifact<'_>| {
        vec![
            Cell::code(&artifact.file.path),
            Cell::text(&artifact.step.to_string()),
            Cell::code(&artifact.file.sha256.0),
        ]
    };
    let rows = report.artifacts.iter().map(row).collect();
    detail(table("Artifacts", String::new(), &["file", "made by", "sha256"], rows, "artifact"))
}
