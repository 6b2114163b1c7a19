//! Roadmaps: files and folders that list phase documents, in the order in which they are to be run.
//!
//! A roadmap names its documents by their paths, in a table, a list or links. Or it only describes its
//! phases, `### Phase 1 — Title (ALIAS)`, and the documents say in their metadata which phase of which
//! roadmap they are. A phase without a document, or with one that cannot be run, is listed too, so that a
//! run stops there rather than passing it over.

use std::cmp::Ordering;
use std::io;
use std::path::Path;

use piton_formats::markdown::inline::{code_spans, plain};
use piton_formats::markdown::table::tables;
use piton_formats::markdown::{Document, Line, Place};

use super::phase;
use crate::protocol::{Link, Source};

/// The folder in which documents are looked for, besides that of the roadmap.
const PLANS: &str = "plans";

/// The phases that a file or folder lists; nothing if it is a phase document itself, or lists none.
pub fn links(source: &Source<'_>) -> Vec<Link> {
    let Some(text) = source.text else { return folder(source) };
    if !source.has_extension("md") || is_document(text) {
        return Vec::new();
    }
    let document = Document::new(text);
    let forms = [rows, described, mentioned];
    forms.iter().map(|form| form(source, &document)).find(|f| !f.is_empty()).unwrap_or_default()
}

/// Tells whether a text is a phase document with lanes, and not only about them.
fn is_document(text: &str) -> bool {
    phase::is_phase(text) && !phase::inspect("", text).0.lanes.is_empty()
}

/// What lies at a path.
enum Found {
    /// Nothing.
    Missing,
    /// The document of a phase with this id: it has lanes, or headings that only such documents have.
    Phase(String),
    /// Something else.
    Other,
}

fn found(source: &Source<'_>, path: &str) -> Found {
    let text = match (source.read)(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Missing,
        // Whoever runs it says why it cannot be read.
        Err(_) => return Found::Phase(String::new()),
    };
    // A roadmap tells of the headings of its phases too.
    if !phase::is_phase(&text) || !(is_document(&text) || aliases(&Document::new(&text)).is_empty())
    {
        return Found::Other;
    }
    Found::Phase(phase::inspect("", &text).0.id)
}

/// A document of a phase, if it is one.
fn link(source: &Source<'_>, path: &str) -> Option<Link> {
    let Found::Phase(phase) = found(source, path) else { return None };
    let phase = if phase.is_empty() { stem(path) } else { phase };
    Some(Link { phase, document: Some(path.to_owned()) })
}

/// What a phase is called that says nothing of it: as its file is.
fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The documents of a folder, in the order of the roadmap that all of them name, else by their names:
/// `phase-2.md` before `phase-10.md`.
fn folder(source: &Source<'_>) -> Vec<Link> {
    let mut names = markdown(source, source.path);
    names.sort_by(|a, b| by_numbers(a, b));
    let mut found: Vec<Link> = names.iter().filter_map(|name| link(source, name)).collect();
    let of = |link: &Link| {
        let text = (source.read)(link.document.as_ref()?).ok()?;
        phase::metadata(&text, "roadmap")
    };
    let first = found.first().and_then(of);
    let roadmap = first.filter(|first| found.iter().all(|link| of(link).as_ref() == Some(first)));
    let text = roadmap.and_then(|path| (source.read)(&path).ok()).unwrap_or_default();
    let order = aliases(&Document::new(&text));
    let place = |link: &Link| order.iter().position(|a| a.eq_ignore_ascii_case(&link.phase));
    found.sort_by_key(|link| place(link).unwrap_or(usize::MAX));
    found
}

/// The Markdown files of a folder, by their paths from the root.
fn markdown(source: &Source<'_>, folder: &str) -> Vec<String> {
    let names = (source.list)(folder).into_iter();
    let names = names.filter(|name| name.to_ascii_lowercase().ends_with(".md"));
    names.map(|name| joined(folder, &name)).collect()
}

/// The documents that a roadmap mentions, in that order, each once; and what is missing among them.
fn mentioned(source: &Source<'_>, document: &Document<'_>) -> Vec<Link> {
    let mut all: Vec<Mention> = Vec::new();
    let lines = document.lines.iter().filter(|line| line.place == Place::Text);
    for line in lines {
        let heading = line.heading().map(|(level, title)| (level, plain(title)));
        if let Some((level, title)) = heading {
            let phase = phase_of_heading(&title);
            all.push(Mention::Heading { level, phase });
        }
        for path in paths(line.text) {
            let places = places(source, &path);
            let known = |path: &String| all.iter().any(|m| m.path() == Some(path));
            if places.iter().any(known) {
                continue;
            }
            let link = places.iter().find_map(|path| link(source, path));
            let is_missing = |path: &&String| matches!(found(source, path), Found::Missing);
            match (link, places.iter().find(is_missing)) {
                (Some(link), _) => all.push(Mention::Document(link)),
                // Something else of that name is no phase.
                (None, Some(path)) if places.iter().all(|path| is_missing(&path)) => {
                    all.push(Mention::Missing(path.clone()));
                }
                _ => {}
            }
        }
    }
    let folders: Vec<String> =
        all.iter().filter_map(Mention::link).map(|l| folder_of(l.document.as_deref())).collect();
    if folders.is_empty() {
        return Vec::new();
    }
    // What is missing where no phase lies is about something else.
    let is_phase =
        |path: &str| places(source, path).iter().any(|p| folders.contains(&folder_of(Some(p))));
    let mut links: Vec<Link> = Vec::new();
    for (at, mention) in all.iter().enumerate() {
        match mention {
            Mention::Document(link) => links.push(link.clone()),
            Mention::Missing(path) if is_phase(path) => {
                links.push(Link { phase: stem(path), document: None });
            }
            Mention::Heading { level, phase: Some(phase) } if is_unplanned(&all, at, *level) => {
                links.push(Link { phase: phase.clone(), document: None });
            }
            Mention::Missing(_) | Mention::Heading { .. } => {}
        }
    }
    links
}

/// What a roadmap mentions.
enum Mention {
    /// A heading, with its phase if it is one of a phase.
    Heading { level: usize, phase: Option<String> },
    /// A document of a phase.
    Document(Link),
    /// A file that is not there.
    Missing(String),
}

impl Mention {
    fn link(&self) -> Option<&Link> {
        if let Self::Document(link) = self { Some(link) } else { None }
    }

    fn path(&self) -> Option<&String> {
        match self {
            Self::Document(link) => link.document.as_ref(),
            Self::Missing(path) => Some(path),
            Self::Heading { .. } => None,
        }
    }
}

/// Whether a heading of a phase has no document below it, and others have one.
fn is_unplanned(all: &[Mention], at: usize, level: usize) -> bool {
    let below = |at: usize, level: usize| {
        let rest = all.get(at + 1..).unwrap_or_default().iter();
        let mut own = rest
            .take_while(move |m| !matches!(m, Mention::Heading { level: l, .. } if *l <= level));
        own.any(|m| !matches!(m, Mention::Heading { .. }))
    };
    let has_own = |(at, mention): (usize, &Mention)| matches!(mention, Mention::Heading { level: l, phase: Some(_) } if *l == level && below(at, *l));
    !below(at, level) && all.iter().enumerate().any(has_own)
}

/// The phase of a heading such as `Phase 2: Title` or `P2 — Title`.
fn phase_of_heading(title: &str) -> Option<String> {
    let head = title.split([':', '—', '–']).next()?.trim();
    let words: Vec<&str> = head.split_whitespace().take(3).collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    match words.as_slice() {
        [word, number, ..] if word.eq_ignore_ascii_case("phase") && is_number(number) => {
            Some(format!("{word} {number}"))
        }
        [id] if phase::is_id(id) => Some((*id).to_owned()),
        _ => None,
    }
}

fn folder_of(path: Option<&str>) -> String {
    path.and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder).to_owned()
}

/// The rows of a table with a column of phases and one of documents, if there is one that exists.
fn rows(source: &Source<'_>, document: &Document<'_>) -> Vec<Link> {
    let mut found: Vec<Link> = Vec::new();
    for table in tables(&document.lines) {
        let columns = table.columns();
        let at = |names: &[&str]| columns.iter().position(|c| names.contains(&c.as_str()));
        let Some(phase_at) = at(&["phase", "phase id", "id"]) else { continue };
        let Some(file_at) =
            at(&["document", "plan", "file", "path", "phase document", "phase plan"])
        else {
            continue;
        };
        for row in &table.rows {
            let cell = |at: usize| row.cells.get(at).map_or("", String::as_str);
            let written = paths(cell(file_at)).into_iter();
            let places: Vec<String> = written.flat_map(|path| places(source, &path)).collect();
            let phase = plain(cell(phase_at));
            // A file that is no document of a phase is refused when it is its turn.
            let is_there = |path: &&String| !matches!(self::found(source, path), Found::Missing);
            let other = || places.iter().find(is_there).cloned();
            let named = places.iter().find_map(|path| link(source, path));
            found.push(named.unwrap_or_else(|| Link { phase, document: other() }));
        }
    }
    if found.iter().any(|link| link.document.is_some()) { found } else { Vec::new() }
}

/// The phases that a roadmap describes, with the documents that say that they are theirs.
fn described(source: &Source<'_>, document: &Document<'_>) -> Vec<Link> {
    let phases = aliases(document);
    if phases.is_empty() {
        return Vec::new();
    }
    let own = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut files = markdown(source, PLANS);
    files.extend(markdown(source, own).into_iter().filter(|path| path != source.path));
    let mut written: Vec<(String, String)> = Vec::new();
    for path in files {
        let Ok(text) = (source.read)(&path) else { continue };
        let of = phase::metadata(&text, "roadmap");
        let is_own = of.is_some_and(|of| places(source, &of).iter().any(|p| p == source.path));
        if let Some(phase) = phase::metadata(&text, "phase").filter(|_| is_own) {
            written.push((phase, path));
        }
    }
    let document = |alias: &String| {
        let mut own = written.iter().filter(|(phase, _)| phase.eq_ignore_ascii_case(alias));
        own.find(|(_, path)| link(source, path).is_some()).map(|(_, path)| path.clone())
    };
    let links = phases.iter().map(|a| Link { phase: a.clone(), document: document(a) });
    let links: Vec<Link> = links.collect();
    if links.iter().any(|link| link.document.is_some()) { links } else { Vec::new() }
}

/// The aliases of the phases that a roadmap describes, in order.
fn aliases(document: &Document<'_>) -> Vec<String> {
    let headings = document.lines.iter().filter_map(Line::heading);
    headings.filter_map(|(_, title)| alias(&plain(title))).collect()
}

/// The alias at the end of `Phase 1 — Title (ALIAS)`.
fn alias(title: &str) -> Option<String> {
    let word = title.split_whitespace().next()?;
    let (_, end) = title.strip_suffix(')')?.rsplit_once('(')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = word.eq_ignore_ascii_case("phase") && !end.is_empty() && end.chars().all(is_name);
    fits.then(|| end.to_owned())
}

/// The paths of Markdown files that a line mentions: in code spans, in links, or as words.
fn paths(line: &str) -> Vec<String> {
    let spans = code_spans(line).into_iter().map(|span| line[span].to_owned());
    let spans: Vec<String> = spans.collect();
    let marks = |c: char| {
        c.is_whitespace()
            || matches!(c, '(' | ')' | '[' | ']' | '|' | '`' | '<' | '>' | ',' | ';' | '"')
    };
    let words = line.split(marks).map(|word| word.trim_end_matches(['.', ':']).to_owned());
    let mut found: Vec<String> = Vec::new();
    for path in spans.into_iter().chain(words) {
        let path = path.split_once('#').map_or(path.as_str(), |(path, _)| path).trim().to_owned();
        let is_file = path.to_ascii_lowercase().ends_with(".md") && !path.contains("://");
        if is_file && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// What a path of a roadmap may mean: from the roadmap's folder, or from the root.
fn places(source: &Source<'_>, path: &str) -> Vec<String> {
    let own = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut found: Vec<String> = Vec::new();
    for from in [own, ""] {
        found.extend(within(&joined(from, path)).filter(|path| !found.contains(path)));
    }
    found
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() || folder == "." { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A path without `.` and `..`; `None` if it leads out of the project.
fn within(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" if parts.is_empty() => return None,
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Compares names; numbers in them by their value.
fn by_numbers(one: &str, other: &str) -> Ordering {
    parts(one).cmp(&parts(other)).then_with(|| one.cmp(other))
}

/// A name as its numbers, by how many digits they have, and what stands between them.
fn parts(name: &str) -> Vec<(usize, String)> {
    let mut parts: Vec<(usize, String)> = Vec::new();
    let mut is_number = false;
    for letter in name.to_ascii_lowercase().chars() {
        if parts.is_empty() || is_number != letter.is_ascii_digit() {
            is_number = letter.is_ascii_digit();
            parts.push((if is_number { 0 } else { usize::MAX }, String::new()));
        }
        if let Some((digits, text)) = parts.last_mut()
            && !(is_number && text.is_empty() && letter == '0')
        {
            *digits = digits.saturating_add(usize::from(is_number));
            text.push(letter);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io;

    use piton_formats::settings::Settings;

    use super::*;

    const LANES: &str = "## Lane Index & Dependencies\n- SL-1 -- One\n";

    /// The links of `path` among these files, as `PHASE=DOCUMENT`.
    fn read(files: &[(&str, &str)], path: &str) -> Vec<String> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        let text = |name: &str| {
            files.get(name).map(|t| (*t).to_owned()).ok_or(io::Error::from(io::ErrorKind::NotFound))
        };
        let list = |folder: &str| -> Vec<String> {
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let own = files.keys().filter_map(|name| name.strip_prefix(&prefix));
            own.filter(|name| !name.contains('/')).map(str::to_owned).collect()
        };
        let settings = Settings::default();
        let source = Source {
            file: path,
            path,
            text: files.get(path).copied(),
            read: &text,
            list: &list,
            modified: &|_| None,
            settings: &settings,
            git: true,
            task_worktrees: None,
        };
        let shown = |link: Link| format!("{}={}", link.phase, link.document.unwrap_or_default());
        links(&source).into_iter().map(shown).collect()
    }

    fn phase(id: &str, roadmap: &str) -> String {
        let metadata = if roadmap.is_empty() {
            String::new()
        } else {
            format!("---\nphase: {id}\nroadmap: {roadmap}\n---\n")
        };
        format!("{metadata}# {id}: Title\n\n{LANES}")
    }

    /// Lost: a roadmap would be run as something else, or in another order, or only in part.
    #[test]
    fn a_roadmap_lists_its_phases_in_each_of_its_forms() {
        let (one, two) = (phase("P1", ""), phase("P2", ""));
        let table = "# R\n\n## Phases\n\n| Phase | Document | About |\n|---|---|---|\n\
                     | P2 | `plans/b.md` | x |\n| P1 | [a](../plans/a.md) | y |\n| P3 | plans/c.md | z |\n";
        let list = "# R\n\n1. [The first](plans/b.md#top), see `notes.md`\n2. plans/a.md.\n- plans/b.md again\n";
        let files = [
            ("plans/a.md", &*one),
            ("plans/b.md", &*two),
            ("notes.md", "# Notes\n"),
            ("specs/R.md", table),
            ("R.md", list),
        ];
        assert_eq!(read(&files, "specs/R.md"), ["P2=plans/b.md", "P1=plans/a.md", "P3="]);
        assert_eq!(read(&files, "R.md"), ["P2=plans/b.md", "P1=plans/a.md"]);
        assert_eq!(read(&files, "plans/a.md"), Vec::<String>::new(), "it is a document");
        assert_eq!(read(&files, "notes.md"), Vec::<String>::new());
        let own = "specs/v7.md";
        let described = "# Roadmap\n\n### Phase 1 — First (ONE)\n\n### Phase 2 - Second (TWO)\n\n\
                         ### Phase 3 - Third (THREE)\n\nSee plans/x.md.\n";
        let (one, two) = (phase("ONE", own), phase("TWO", own));
        let files = [("plans/x.md", &*two), ("plans/y.md", &*one), (own, described)];
        assert_eq!(read(&files, own), ["ONE=plans/y.md", "TWO=plans/x.md", "THREE="]);
        assert_eq!(read(&files, "plans"), ["ONE=plans/y.md", "TWO=plans/x.md"]);
    }

    /// Lost: a phase that is misspelled, or not planned, would be passed over and the rest be built on it.
    #[test]
    fn a_phase_without_a_document_that_can_be_run_is_listed() {
        let (one, two) = (phase("P1", ""), phase("P2", ""));
        let bare = phase("P3", "").replace("SL-1 -- One", "Lane One");
        let list = "# R\n\n1. plans/a.md\n2. plans/missing.md, see `notes.md` and docs/gone.md\n\
                    3. plans/c.md\n4. plans/b.md\n";
        let table = "| Phase | Document |\n|---|---|\n| P1 | plans/a.md |\n| P3 | plans/c.md |\n\
                     | P4 | notes.md |\n";
        let headed = "# R\n\n## Phase 1: First\n\nplans/a.md\n\n## Phase 2: not yet planned\n\nWords.\n\n\
                      ## P3 — Third\n\n### Where\n\nplans/b.md\n\n## Phases\n";
        let files = [
            ("plans/a.md", &*one),
            ("plans/b.md", &*two),
            ("plans/c.md", &*bare),
            ("plans/README.md", "# Notes\n"),
            ("notes.md", "# Notes\n"),
            ("L.md", list),
            ("T.md", table),
            ("H.md", headed),
        ];
        let wanted = ["P1=plans/a.md", "missing=", "P3=plans/c.md", "P2=plans/b.md"];
        assert_eq!(read(&files, "L.md"), wanted);
        assert_eq!(read(&files, "T.md"), ["P1=plans/a.md", "P3=plans/c.md", "P4=notes.md"]);
        assert_eq!(read(&files, "H.md"), ["P1=plans/a.md", "Phase 2=", "P2=plans/b.md"]);
        let wanted = ["P1=plans/a.md", "P2=plans/b.md", "P3=plans/c.md"];
        assert_eq!(read(&files, "plans"), wanted);
    }

    /// Lost: the tenth phase would come before the second.
    #[test]
    fn a_folder_lists_its_documents_by_their_numbers() {
        let texts: Vec<(String, String)> = ["10", "9", "2b", "2a"]
            .map(|n| (format!("plans/phase-{n}.md"), phase(&format!("P{n}"), "")))
            .to_vec();
        let mut files: Vec<(&str, &str)> =
            texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        files.push(("plans/README.md", "# About\n"));
        let wanted = ["P2a", "P2b", "P9", "P10"];
        let found = read(&files, "plans");
        let found: Vec<&str> = found.iter().filter_map(|l| Some(l.split_once('=')?.0)).collect();
        assert_eq!(found, wanted);
    }
}
