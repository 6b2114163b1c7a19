//! The interface freeze gates: reading their boxes, ticking one and taking that back.
//!
//! A tick changes one byte; the rest of the document stays as a person wrote it.

use super::model::Gate;
use super::names::{id_and_text, id_at_start, is_gate_id};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::inline::{bullet, checkbox, plain, undecorated};
use piton_formats::markdown::{Document, Line, Section};
use piton_formats::sink::Sink;

/// Tells whether a heading is one of gates.
fn is_gates(title: &str) -> bool {
    let crossing = title.starts_with("cross") && title.ends_with("gates");
    title.contains("freeze gate") || crossing
}

/// The sections with gates.
pub(super) fn sections<'d, 'a>(document: &'d Document<'a>) -> Vec<Section<'d, 'a>> {
    document.sections(is_gates)
}

/// Reads all gates; a gate that is listed twice is closed only if both boxes are ticked.
pub(super) fn read(document: &Document<'_>, sink: &mut Sink<'_>) -> Vec<Gate> {
    let mut gates: Vec<Gate> = Vec::new();
    let mut passed: Vec<(String, &Line<'_>)> = Vec::new();
    for section in sections(document) {
        let mut open_item = false;
        for line in section.lines.iter().filter(|line| line.is_content()) {
            let Some(item) = bullet(line.text) else {
                let more = line.text.trim();
                open_item &= !more.is_empty() && line.heading().is_none() && line.indent() > 0;
                if let Some(gate) = gates.last_mut().filter(|_| open_item) {
                    if !gate.text.is_empty() {
                        gate.text.push(' ');
                    }
                    gate.text.push_str(more);
                } else {
                    passed.extend(headed(line).map(|id| (id, line)));
                }
                continue;
            };
            open_item = false;
            if let Some(gate) = gate(item, line, sink) {
                open_item = true;
                add(&mut gates, gate, line, sink);
            } else if checkbox(item).is_none() {
                passed.extend(headed(line).map(|id| (id, line)));
            }
        }
    }
    for (id, line) in passed {
        if !gates.iter().any(|gate| gate.id.eq_ignore_ascii_case(&id)) {
            let message = format!("this line names {}, but it is not read as a gate", quoted(&id));
            let hint = format!("write `- [ ] {id}: text`, or `- [x]` if it is closed");
            sink.warn(code::BAD_GATE, &line.span(), message, hint);
        }
    }
    gates
}

/// The gate that a line begins with, after any marks; deeper lines only mention gates.
fn headed(line: &Line<'_>) -> Option<String> {
    if line.indent() > 1 {
        return None;
    }
    let bare = |text: &str| text.trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let text = bare(line.text);
    // `[ x ]` is such a mark too.
    let boxed = text.strip_prefix(['x', 'X']).filter(|rest| rest.trim_start().starts_with(']'));
    let text = boxed.map_or(text.clone(), bare);
    id_at_start(&text).filter(|id| is_gate_id(id)).map(str::to_owned)
}

/// The text of an item without pictures and emphasis.
fn bare(text: &str) -> String {
    undecorated(&plain(undecorated(text))).to_owned()
}

/// One list item as a gate; an item with a box but without an id is reported.
fn gate(item: &str, line: &Line<'_>, sink: &mut Sink<'_>) -> Option<Gate> {
    let boxed = checkbox(item);
    let rest = boxed.map_or(item, |b| b.rest);
    // A picture without a box may mean that it is closed; it is reported.
    let bare = if boxed.is_some() { bare(rest) } else { plain(rest) };
    let Some(id) = id_at_start(&bare).filter(|id| is_gate_id(id)) else {
        if boxed.is_some() {
            let message = format!("the gate {} has no id", quoted(rest));
            let hint = "start it with an id, like `- [ ] IF-0-P1-AUTH: text`";
            sink.warn(code::BAD_GATE, &line.span(), message, hint);
        }
        return None;
    };
    match boxed {
        // Deeper items without a box only mention gates.
        None if line.indent() > 1 => return None,
        None => {
            let message = format!("the gate {} has no box, so it is open", quoted(id));
            sink.warn(code::BAD_GATE, &line.span(), message, "write `- [ ]` or `- [x]` before it");
        }
        Some(boxed) if !boxed.is_plain() => {
            let message = format!("unknown box `[{}]`, so the gate is open", boxed.mark);
            sink.warn(code::BAD_GATE, &line.span(), message, "write `[ ]` or `[x]`");
        }
        Some(_) => {}
    }
    let text = match id_and_text(&bare) {
        Some((_, text)) => text,
        None => bare[id.len()..].trim().to_owned(),
    };
    let closed = boxed.is_some_and(|b| b.is_ticked());
    Some(Gate { id: id.to_owned(), text, closed, line: line.number })
}

fn add(gates: &mut Vec<Gate>, gate: Gate, line: &Line<'_>, sink: &mut Sink<'_>) {
    if let Some(first) = gates.iter_mut().find(|known| known.id == gate.id) {
        let message = format!("the gate {} is also on line {}", quoted(&gate.id), first.line);
        sink.warn(
            code::BAD_GATE,
            &line.span(),
            message,
            "remove one; the gate is closed only if both are",
        );
        first.closed &= gate.closed;
        return;
    }
    gates.push(gate);
}

/// The document with a gate's box ticked; `None` if the gate has no open box.
///
/// Every other byte stays, line endings included. A gate that is listed several times is ticked
/// everywhere.
pub fn tick(text: &str, gate_id: &str) -> Option<String> {
    mark(text, gate_id, "x")
}

/// The same with the tick removed.
pub fn untick(text: &str, gate_id: &str) -> Option<String> {
    mark(text, gate_id, " ")
}

fn mark(text: &str, gate_id: &str, mark: &str) -> Option<String> {
    let document = Document::new(text);
    let mut out = text.to_owned();
    let mut boxes: Vec<std::ops::Range<usize>> = Vec::new();
    for section in sections(&document) {
        for line in section.lines.iter().filter(|line| line.is_content()) {
            let Some(boxed) = bullet(line.text).and_then(checkbox) else { continue };
            let is_so = boxed.is_ticked() == (mark == "x");
            if is_so || id_at_start(&bare(boxed.rest)) != Some(gate_id) {
                continue;
            }
            let open = line.start + line.text.find('[')? + 1;
            boxes.push(open..open + boxed.mark.len());
        }
    }
    // From the end, so that a box without a space between does not move the others.
    for place in boxes.iter().rev() {
        out.replace_range(place.clone(), mark);
    }
    (!boxes.is_empty()).then_some(out)
}
