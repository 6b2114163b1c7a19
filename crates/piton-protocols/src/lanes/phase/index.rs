//! The lanes of a document: from its lane index or, without one, from its swim lanes.
//!
//! The index may be in a fence, as bullets, as plain lines, or as one line with semicolons per lane.
//! The sections of the lanes add gates that they provide, and retries.

use std::collections::BTreeSet;
use std::ops::Range;

use super::brackets;
use super::draft::{At, Draft, attribute};
use super::model::DependencyKind;
use super::names::{
    Known, LaneNames, id_and_text, id_at_start, is_gate_id, is_lane_id, is_plain_lane_id,
};
use piton_formats::diagnostic::{code, quoted};
use piton_formats::markdown::inline::{bullet, plain, split_outside, undecorated};
use piton_formats::markdown::table::tables;
use piton_formats::markdown::{Document, Line, Place, Section};
use piton_formats::sink::Sink;

/// Languages of fences that draw the lanes rather than list them.
const DIAGRAMS: [&str; 4] = ["mermaid", "dot", "graphviz", "plantuml"];
/// What lanes are drawn with in a fence without such a language.
const STROKES: [&str; 8] = ["->", "─", "→", "│", "└", "├", "▶", "==>"];

/// The lanes, and whether a person must confirm them.
pub(super) fn read(document: &Document<'_>, sink: &mut Sink<'_>) -> (Vec<Draft>, bool) {
    let mut lanes = Vec::new();
    for section in document.sections(is_index) {
        tabled(&section, &mut lanes, sink);
        listed(document, &section, &mut lanes, sink);
    }
    let from_index = !lanes.is_empty();
    let described = described(document, sink);
    if from_index {
        add_described(&mut lanes, described);
        let more = elsewhere(document, &lanes, sink);
        add_described(&mut lanes, more);
        brackets::check(&lanes, sink);
        return (unique(lanes, sink), false);
    }
    let needs_confirmation = !described.is_empty();
    if let Some(first) = described.first() {
        let message = "the document has no lane index, so its lanes are read from the swim lanes";
        let hint = "confirm them when asked, or add `## Lane Index & Dependencies`";
        sink.warn(code::NO_LANE_INDEX, &first.span, message, hint);
    }
    brackets::check(&described, sink);
    (unique(described, sink), needs_confirmation)
}

/// Lanes as rows of a table: a column of ids, one of names, and attributes as columns.
fn tabled(section: &Section<'_, '_>, lanes: &mut Vec<Draft>, sink: &mut Sink<'_>) {
    for table in tables(section.lines) {
        let columns = table.columns();
        let is_id = |c: &String| matches!(c.as_str(), "lane" | "lane id" | "id" | "swim lane");
        let is_name =
            |c: &String| matches!(c.as_str(), "name" | "lane name" | "title" | "description");
        let Some(id_at) = columns.iter().position(is_id) else { continue };
        for row in &table.rows {
            let line = &section.lines[row.index];
            let cell = |at: usize| row.cells.get(at).map_or("", String::as_str);
            let Some((id, mut name)) = lane_heading(cell(id_at)) else { continue };
            if let Some(at) = columns.iter().position(is_name).filter(|_| name.is_empty()) {
                name = plain(cell(at));
            }
            let mut lane = brackets::lane(id, &name, line, sink);
            for (at, column) in columns.iter().enumerate().filter(|(at, _)| *at != id_at) {
                if let Some((key, _)) = attribute(&format!("{column}:")) {
                    lane.set(key, cell(at), line, sink);
                }
            }
            lanes.push(lane);
        }
    }
}

/// Lanes as bullets or lines.
fn listed(
    document: &Document<'_>,
    section: &Section<'_, '_>,
    lanes: &mut Vec<Draft>,
    sink: &mut Sink<'_>,
) {
    let mut current = None;
    // Lanes are indented no deeper than the first one; deeper lines belong to a lane.
    let mut depth = None;
    let mut passed: Vec<(String, &Line<'_>)> = Vec::new();
    let drawn = drawings(document, section);
    for line in section.lines.iter().filter(|line| line.is_content()) {
        if matches!(line.place, Place::Fence(b) if drawn.contains(&b)) {
            continue;
        }
        if line.place == Place::Text && line.text.trim_start().starts_with('|') {
            continue;
        }
        let text = line.heading().map_or(line.text, |(_, title)| title);
        let item = bullet(text).unwrap_or(text.trim());
        let parts = split_outside(item, b";");
        let (head, rest) = parts.split_first().map_or(("", &[][..]), |(head, rest)| (*head, rest));
        let shallow = depth.is_none_or(|depth| line.indent() <= depth);
        if let Some((id, name)) = lane_head(head).filter(|_| shallow) {
            depth = depth.or(Some(line.indent()));
            // A heading that names a lane of the list adds to it.
            let known = lanes.iter().position(|l| l.lane.id == id && line.heading().is_some());
            current = Some(known.unwrap_or(lanes.len()));
            if known.is_none() {
                lanes.push(brackets::lane(id, &name, line, sink));
            }
            if let Some(lane) = current.and_then(|at| lanes.get_mut(at)) {
                semicolons(lane, rest, line, sink);
            }
            continue;
        }
        let bare = plain(head);
        let named = id_at_start(&bare).filter(|id| shallow && is_plain_lane_id(id));
        passed.extend(named.map(|id| (id.to_owned(), line)));
        if let Some(lane) = current.and_then(|at| lanes.get_mut(at)) {
            if rest.is_empty() {
                lane.line(line, sink);
            } else {
                semicolons(lane, &parts, line, sink);
            }
        }
    }
    for (id, line) in passed {
        if !lanes.iter().any(|lane| lane.lane.id.eq_ignore_ascii_case(&id)) {
            let message = format!("this line names {}, but it is not read as a lane", quoted(&id));
            let hint = format!("write `- {id} -- Name`");
            sink.warn(code::UNLISTED_LANE, &line.span(), message, hint);
        }
    }
}

/// The fences that draw the lanes: by their language, or because they have strokes and no attribute.
fn drawings(document: &Document<'_>, section: &Section<'_, '_>) -> BTreeSet<usize> {
    let lines = section.lines.iter().filter_map(|line| match line.place {
        Place::Fence(block) => Some((block, line.text)),
        _ => None,
    });
    let (mut drawn, mut listed) = (BTreeSet::new(), BTreeSet::new());
    for (block, text) in lines {
        let is_stroked = STROKES.iter().any(|stroke| text.contains(stroke));
        if is_stroked || DIAGRAMS.contains(&document.language(block)) {
            drawn.insert(block);
        }
        let parts = split_outside(bullet(text).unwrap_or(text.trim()), b";");
        if parts.iter().any(|part| attribute(part).is_some()) {
            listed.insert(block);
        }
    }
    drawn.retain(|block| DIAGRAMS.contains(&document.language(*block)) || !listed.contains(block));
    drawn
}

/// Id and name, when a text begins a lane.
fn lane_head(text: &str) -> Option<(String, String)> {
    let (id, name) = id_and_text(undecorated(text))?;
    let is_attribute = attribute(text).is_some();
    // `W1: SL-1, SL-2` says when lanes run.
    let is_list = id_at_start(&name).is_some_and(is_plain_lane_id);
    (is_lane_id(&id) && !is_attribute && !is_list).then_some((id, name))
}

/// The parts of a line with semicolons: attributes, parts of a list, or of the name.
fn semicolons(lane: &mut Draft, parts: &[&str], line: &Line<'_>, sink: &mut Sink<'_>) {
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if let Some((key, value)) = attribute(part) {
            lane.set(key, value, line, sink);
        } else if lane.lane.line == line.number && !lane.has_attributes() {
            lane.lane.name = format!("{}; {}", lane.lane.name, plain(part));
        } else {
            lane.more(part, line);
        }
    }
}

/// The lane a heading names: `SL-1 -- Name`, `SL-1 Name`, `Lane SL-1: Name`, `D.1 SL-1 — Name`.
pub(super) fn lane_heading(title: &str) -> Option<(String, String)> {
    let title = plain(undecorated(title));
    if let Some(found) = lane_head(&title).or_else(|| unmarked(&title)) {
        return Some(found);
    }
    // A number or the word "lane" may precede the id.
    let (first, rest) = title.split_once(' ')?;
    let numbered = first.trim_end_matches(['.', ')']);
    let short = numbered.len() <= 4 && numbered.chars().all(|c| c.is_alphanumeric() || c == '.');
    let word = first.eq_ignore_ascii_case("lane") || (short && !is_gate_id(first));
    if word { lane_head(rest.trim()).or_else(|| unmarked(rest.trim())) } else { None }
}

/// Id and name of a heading without a mark in between, if the id can only be a lane's.
fn unmarked(title: &str) -> Option<(String, String)> {
    let id = id_at_start(title).filter(|id| is_plain_lane_id(id))?;
    let name = title[id.len()..].strip_prefix(' ')?.trim();
    let is_name = name.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '(' | '[' | '/'));
    is_name.then(|| (id.to_owned(), name.to_owned()))
}

fn is_index(title: &str) -> bool {
    title.contains("lane index")
        || title == "lane dependencies"
        || (title.starts_with("lanes") && title.ends_with("dependencies"))
}

fn is_lanes(title: &str) -> bool {
    !is_index(title)
        && (title.contains("swim lane") || title == "lanes" || title.ends_with(" lanes"))
}

/// The names of the lanes.
pub(super) fn names(lanes: &[Draft]) -> LaneNames {
    LaneNames::new(lanes.iter().map(|draft| (draft.lane.id.as_str(), &draft.lane.aliases[..])))
}

/// The lanes as other headings describe them, such as those of the task tables.
fn elsewhere(document: &Document<'_>, known: &[Draft], sink: &mut Sink<'_>) -> Vec<Draft> {
    let known = names(known);
    let read = document.sections(|title| is_index(title) || is_lanes(title));
    let read: BTreeSet<usize> = read.iter().flat_map(|s| s.lines).map(|l| l.number).collect();
    let mut found: Vec<Draft> = Vec::new();
    // Whether the lines belong to the one found last, and the level of its heading.
    let mut within: Option<usize> = None;
    let own = document.lines.iter().filter(|l| l.place == Place::Text && !read.contains(&l.number));
    for line in own {
        if let Some((level, title)) = line.heading() {
            if let Some((id, name)) = lane_heading(title).filter(|(id, _)| known.find(id).is_some())
            {
                found.push(brackets::lane(id, &name, line, sink));
                within = Some(level);
            } else if within.is_some_and(|above| level <= above) {
                within = None;
            }
        } else if let (Some(lane), true) = (found.last_mut(), within.is_some()) {
            lane.line(line, sink);
        }
    }
    found
}

/// The lanes as the sections below `Swim Lanes` or `Lanes` describe them; without those, as headings
/// with ids that only lanes have.
fn described(document: &Document<'_>, sink: &mut Sink<'_>) -> Vec<Draft> {
    let mut lanes: Vec<Draft> = Vec::new();
    let mut sections = document.sections(is_lanes);
    if sections.is_empty() && document.sections(is_index).is_empty() {
        sections.push(Section { lines: &document.lines });
    }
    let anywhere = document.sections(is_lanes).is_empty();
    for section in sections {
        let (mut within, mut depth) = (None, 0);
        for line in section.lines.iter().filter(|line| line.place == Place::Text) {
            if let Some((level, title)) = line.heading() {
                let found = lane_heading(title).filter(|(id, _)| !anywhere || is_plain_lane_id(id));
                // Elsewhere, any other heading of that level is about something else.
                if anywhere && found.is_none() && level <= depth {
                    within = None;
                }
                if let Some((id, name)) = found {
                    depth = level;
                    // `SL-1 Tasks` below `SL-1 -- Name` adds to that lane.
                    let more = unmarked(&plain(title)).is_some();
                    let known = lanes.iter().position(|l| more && l.lane.id == id);
                    within = Some(known.unwrap_or(lanes.len()));
                    if known.is_none() {
                        lanes.push(brackets::lane(id, &name, line, sink));
                    }
                }
            } else if let Some(lane) = within.and_then(|at| lanes.get_mut(at)) {
                lane.line(line, sink);
            }
        }
    }
    lanes
}

/// The first line of the lane index: for an index that lists no lane.
pub(super) fn first_line(document: &Document<'_>) -> Option<Range<usize>> {
    let sections = document.sections(is_index);
    let mut lines = sections.iter().flat_map(|section| section.lines);
    let first = lines.find(|line| line.is_content() && !line.text.trim().is_empty());
    first.map(Line::span)
}

/// Adds what their sections say to the lanes of the index. One that the index lacks is kept apart until
/// its tasks are known.
fn add_described(lanes: &mut Vec<Draft>, described: Vec<Draft>) {
    for mut more in described {
        let known = names(lanes);
        let names = Known { lanes: &known, tasks: &[] };
        // What a section says of its tasks is not said of the lane.
        let is_known = |at: &At| {
            let mut named = names.dependencies(&at.value, at.line).into_iter();
            named.any(|d| matches!(d.kind, DependencyKind::Lane | DependencyKind::Gate))
        };
        let found =
            known.find(&more.lane.id).and_then(|id| lanes.iter_mut().find(|l| l.lane.id == id));
        let Some(lane) = found else {
            more.is_unlisted = true;
            lanes.push(more);
            continue;
        };
        if lane.depends_on.is_empty() {
            lane.depends_on = more.depends_on.into_iter().filter(is_known).collect();
        }
        if lane.blocks.is_empty() {
            lane.blocks = more.blocks.into_iter().filter(is_known).collect();
        }
        for gate in more.lane.provides {
            if !lane.lane.provides.contains(&gate) {
                lane.lane.provides.push(gate);
            }
        }
        lane.lane.retries = lane.lane.retries.or(more.lane.retries);
        lane.lane.tests = lane.lane.tests.or(more.lane.tests);
        lane.lane.aliases.extend(more.lane.aliases);
        lane.lane.about.add(more.lane.about);
        if lane.lane.parallel_safe == super::model::ParallelSafe::Unknown {
            lane.lane.parallel_safe = more.lane.parallel_safe;
        }
    }
}

/// Keeps lanes that the index lacks only if they have tasks: then the index was forgotten, and without
/// them nothing is to be done.
pub(super) fn settle_unlisted(lanes: &mut Vec<Draft>, sink: &mut Sink<'_>) {
    for lane in lanes.iter().filter(|lane| lane.is_unlisted) {
        let id = quoted(&lane.lane.id);
        let (message, hint) = if lane.lane.tasks.is_empty() {
            let hint = "add it to `## Lane Index & Dependencies`, or remove its section";
            (format!("the lane {id} is not in the lane index, so it is ignored"), hint)
        } else {
            let hint = "add it to `## Lane Index & Dependencies`, or remove its tasks";
            (format!("the lane {id} has tasks, so it is run though the lane index lacks it"), hint)
        };
        sink.warn(code::UNLISTED_LANE, &lane.span, message, hint);
    }
    lanes.retain(|lane| !lane.is_unlisted || !lane.lane.tasks.is_empty());
}

/// Refuses a lane that is listed twice.
fn unique(lanes: Vec<Draft>, sink: &mut Sink<'_>) -> Vec<Draft> {
    let mut kept: Vec<Draft> = Vec::new();
    for lane in lanes {
        let same = |known: &&Draft| known.lane.id.eq_ignore_ascii_case(&lane.lane.id);
        if let Some(first) = kept.iter().find(same) {
            let id = quoted(&lane.lane.id);
            let message = format!("the lane {id} is also on line {}", first.lane.line);
            sink.error(code::DUPLICATE_ID, &lane.span, message, "rename one of the two");
        } else {
            kept.push(lane);
        }
    }
    kept
}

/// The lane an id of a task belongs to: `P1-SL-DB-01` and `SL-DB.1` are of `SL-DB`.
pub(super) fn lane_of_task<'l>(task: &str, lanes: &'l LaneNames) -> Option<&'l str> {
    let task = task.to_ascii_lowercase();
    let fits = |(lane, _): &(&str, &str)| {
        task.match_indices(&lane.to_ascii_lowercase()).any(|(at, _)| {
            let inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let before = task[..at].chars().next_back().is_some_and(inner);
            let after = task[at + lane.len()..].chars().next().is_some_and(inner);
            !before && !after
        })
    };
    // The longest: `SL-API-V2` rather than `SL-API`.
    lanes.names().filter(fits).max_by_key(|(lane, _)| lane.len()).map(|(_, id)| id)
}
