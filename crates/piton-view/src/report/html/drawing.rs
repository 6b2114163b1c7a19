//! The time line as an SVG within the page.
//!
//! Places are percentages, heights are pixels: it fills any width, and its text keeps its size. Names
//! stand left of it, in its padding; on a narrow screen the style puts them above the boxes.

use std::fmt::Write as _;

use super::super::Cause;
use super::super::scale::LENGTH;
use super::super::time_line::{Box, Row, RowKind, TimeLine, Tone};
use super::escape;

/// Height of the marks above the first row.
const HEAD_PX: usize = 34;
/// Height of a row: a name and, on a phone, a box below it.
const ROW_PX: usize = 28;
/// Space above a row that begins something new.
const SPACE_PX: usize = 8;
/// Widest name, in tenths of a pixel: as much as fits beside the boxes.
const NAME_WIDE_MAX: u32 = 1_930;
/// Space between boxes that touch, in units of the line.
const APART: u32 = 8;

/// Draws a time line, with what its looks mean.
pub(super) fn draw(out: &mut String, line: &TimeLine) {
    let (rows, height) = stacked(&line.rows);
    let _ = writeln!(
        out,
        "<svg class=\"line\" role=\"img\" aria-label=\"Time line\" width=\"100%\" height=\"{height}\">"
    );
    out.push_str(HATCHES);
    grid(out, line, height);
    for (row, top) in rows {
        self::row(out, row, top);
    }
    out.push_str("</svg>\n");
    legend(out, line);
    if line.more > 0 {
        let _ = writeln!(out, "<p class=\"more\">… and {} more lanes</p>", line.more);
    }
}

/// Lines across a fill, so that it can be told from others without colour.
const HATCHES: &str = "<defs>\
    <pattern id=\"h-bad\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
    patternTransform=\"rotate(45)\"><rect class=\"f-bad\" width=\"6\" height=\"6\"/>\
    <rect class=\"f-gap\" width=\"2\" height=\"6\"/></pattern>\
    <pattern id=\"h-wait\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
    patternTransform=\"rotate(45)\"><rect class=\"f-wait\" width=\"2\" height=\"5\"/></pattern>\
    <pattern id=\"h-cut\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
    patternTransform=\"rotate(-45)\"><rect class=\"f-line\" width=\"1\" height=\"6\"/></pattern>\
    </defs>\n";

/// The rows with their tops, and the height of all.
fn stacked(rows: &[Row]) -> (Vec<(&Row, usize)>, usize) {
    let mut top = HEAD_PX;
    let mut placed = Vec::with_capacity(rows.len());
    let mut before = None;
    for row in rows {
        let is_new = row.kind != RowKind::Lane && before.is_some_and(|kind| kind != row.kind);
        top +=
            if is_new || (row.kind == RowKind::Phase && before.is_some()) { SPACE_PX } else { 0 };
        placed.push((row, top));
        top += ROW_PX;
        before = Some(row.kind);
    }
    (placed, top + SPACE_PX)
}

/// A place as a percentage.
fn percent(units: u32) -> String {
    format!("{}.{:02}%", units / 100, units % 100)
}

/// What lies behind the rows: marks, cuts and stops.
fn grid(out: &mut String, line: &TimeLine, height: usize) {
    for cut in &line.cuts {
        let (x, wide) = (percent(cut.from), percent(cut.to - cut.from));
        let _ = writeln!(
            out,
            "<rect class=\"cut\" x=\"{x}\" y=\"{HEAD_PX}\" width=\"{wide}\" height=\"{}\">\
             <title>{} without work</title></rect>",
            height - HEAD_PX - SPACE_PX,
            cut.length,
        );
    }
    for mark in &line.marks {
        let x = percent(mark.at);
        let end = if mark.at == 0 { "start" } else { "middle" };
        let _ = writeln!(
            out,
            "<line class=\"mark\" x1=\"{x}\" x2=\"{x}\" y1=\"{HEAD_PX}\" y2=\"{}\"/>\
             <text class=\"mark\" x=\"{x}\" y=\"12\" text-anchor=\"{end}\">{}</text>",
            height - SPACE_PX,
            mark.text,
        );
    }
    for stop in &line.stops {
        let (x, class) = (percent(stop.at), stop_class(stop.cause));
        let end = if stop.at < LENGTH / 100 {
            "start"
        } else if stop.at > LENGTH - LENGTH / 100 {
            "end"
        } else {
            "middle"
        };
        let _ = writeln!(
            out,
            "<g class=\"stop {class}\"><title>{}</title>\
             <line x1=\"{x}\" x2=\"{x}\" y1=\"{HEAD_PX}\" y2=\"{}\"/>\
             <text x=\"{x}\" y=\"29\" text-anchor=\"{end}\">{}</text></g>",
            escape(&stop.words),
            height - SPACE_PX,
            if stop.cause == Cause::Replan { "↻" } else { "↯" },
        );
    }
}

fn stop_class(cause: Cause) -> &'static str {
    match cause {
        Cause::Replan => "replan",
        Cause::Failed | Cause::Blocked | Cause::Killed => "bad",
        _ => "note",
    }
}

/// As much of a name as fits beside the boxes. The reader's font is not known: this is for a wide one.
fn fitted(name: &str) -> String {
    let wide = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '-' | '.' | '/' | ' ' | ':' | '\'' => 52,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 128,
        'a'..='z' | '0'..='9' | '_' => 82,
        c if c.is_ascii() => 95,
        // Signs of other scripts may be as wide as they are high.
        _ => 140,
    };
    let mut used = 0;
    let fits = |c: &char| {
        used += wide(*c);
        used <= NAME_WIDE_MAX
    };
    let short: String = name.chars().take_while(fits).collect();
    if short.len() == name.len() { short } else { format!("{short}…") }
}

fn row(out: &mut String, row: &Row, top: usize) {
    let class = match row.kind {
        RowKind::Phase => "phase",
        RowKind::Lane => "lane",
        RowKind::Only => "lane only",
        RowKind::People | RowKind::Replans => "extra",
    };
    let (full, short) = (escape(&row.name), escape(&fitted(&row.name)));
    let status = row.status.map(|s| format!(", {}", s.as_str().replace('_', " ")));
    let _ = write!(
        out,
        "<g class=\"{class}\" transform=\"translate(0 {top})\">\
         <text class=\"name\"><title>{full}{}</title>{short}</text>",
        status.unwrap_or_default(),
    );
    for one in &row.boxes {
        self::one(out, one);
    }
    out.push_str("</g>\n");
}

fn one(out: &mut String, one: &Box) {
    let (x, wide) = (percent(one.from), percent((one.to - one.from).saturating_sub(APART)));
    let _ = write!(
        out,
        "<rect class=\"box {}\" x=\"{x}\" width=\"{wide}\" rx=\"2\"><title>{}</title></rect>",
        tone_class(one.tone),
        escape(&one.words),
    );
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Extent => "extent",
        Tone::Good => "good",
        Tone::Busy => "busy",
        Tone::Wait => "wait",
        Tone::Replan => "replan",
        Tone::Cut => "note",
        Tone::Bad => "bad",
    }
}

fn legend(out: &mut String, line: &TimeLine) {
    let all = [
        (Tone::Good, "succeeded"),
        (Tone::Bad, "failed"),
        (Tone::Cut, "interrupted"),
        (Tone::Busy, "running"),
        (Tone::Wait, "waiting for people"),
        (Tone::Replan, "replan"),
    ];
    let is_used = |tone: Tone| line.rows.iter().flat_map(|row| &row.boxes).any(|b| b.tone == tone);
    out.push_str("<ul class=\"legend\">\n");
    for (tone, words) in all.into_iter().filter(|(tone, _)| is_used(*tone)) {
        let class = tone_class(tone);
        let _ = writeln!(
            out,
            "<li><svg width=\"14\" height=\"10\"><rect class=\"{class}\" width=\"14\" height=\"10\" \
             rx=\"2\"/></svg>{words}</li>"
        );
    }
    if line.stops.iter().any(|stop| stop.cause != Cause::Replan) {
        out.push_str("<li><span class=\"sign\">↯</span>stop</li>\n");
    }
    if !line.cuts.is_empty() {
        out.push_str(
            "<li><svg width=\"14\" height=\"10\"><rect class=\"cut\" width=\"14\" height=\"10\"/>\
             </svg>time without work, cut</li>\n",
        );
    }
    out.push_str("</ul>\n");
}
