//! Documents: each can be found from the front page, no link leads nowhere, and each is short enough
//! to be read.

use std::path::{Component, Path, PathBuf};

use super::{none_of, project_files, root, text};

/// Words of a paragraph or list item. What is longer holds several ideas, and hides all but the first.
const PARAGRAPH_WORDS_MAX: usize = 80;

/// Words of prose on a page: what a person reads in about six minutes.
const PAGE_WORDS_MAX: usize = 1500;

fn documents() -> Vec<PathBuf> {
    project_files().into_iter().filter(|file| file.extension().is_some_and(|e| e == "md")).collect()
}

/// The targets of a document's links, code blocks apart.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| target.to_owned()));
    }
    found
}

/// The file that a link names; nothing when it leads out of the project or within its page.
fn target(document: &Path, link: &str) -> Option<PathBuf> {
    if link.contains("://") || link.starts_with("mailto:") || link.starts_with('#') {
        return None;
    }
    let path = link.split(['#', ' ']).next().unwrap_or_default();
    let mut whole = PathBuf::new();
    for part in document.parent().unwrap_or(Path::new("")).join(path).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    Some(whole)
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept =
        heading.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for document in documents() {
        let own = text(&document);
        for link in links(&own) {
            let place = target(&document, &link);
            if let Some(place) = &place
                && !root().join(place).exists()
            {
                broken.push(format!("{}: {link}", document.display()));
                continue;
            }
            let Some((_, wanted)) = link.split_once('#').filter(|_| !link.contains("://")) else {
                continue;
            };
            let page = place.map_or_else(|| own.clone(), |place| text(&place));
            let mut headings = page.lines().filter(|line| line.starts_with('#'));
            if !headings.any(|line| anchor(line.trim_start_matches('#')) == wanted) {
                broken.push(format!("{}: {link}: there is no such heading", document.display()));
            }
        }
    }
    none_of("mend the link", &broken);
}

#[test]
fn every_document_is_linked_from_the_front() {
    let fronts = ["README.md", "docs/README.md"].map(PathBuf::from);
    let linked: Vec<PathBuf> = fronts
        .iter()
        .filter(|front| root().join(front).is_file())
        .flat_map(|front| links(&text(front)).into_iter().filter_map(|link| target(front, &link)))
        .collect();
    let hidden: Vec<String> = documents()
        .iter()
        .filter(|document| document.starts_with("docs") && !fronts.contains(document))
        .filter(|document| !linked.contains(document))
        .map(|document| document.display().to_string())
        .collect();
    none_of("link it from README.md or docs/README.md", &hidden);
}

/// The paragraphs, list items and headings of a page: the line each begins on, and its words. Code,
/// tables, comments and what is made from the code (from `<!-- table: NAME -->` or another marker with
/// a region to `<!-- end -->`) are left out.
fn paragraphs(text: &str) -> Vec<(usize, usize)> {
    let made = |line: &str| ["<!-- table:", "<!-- rust:"].iter().any(|mark| line.starts_with(mark));
    let item = |line: &str| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        ["- ", "* ", ". "].iter().any(|mark| rest.starts_with(mark))
    };
    let (mut found, mut code, mut region, mut open) = (Vec::new(), false, false, false);
    for (index, line) in text.lines().map(str::trim).enumerate() {
        region = region || made(line);
        let fence = line.starts_with("```");
        let prose = !code && !fence && !region && !line.starts_with(['|', '#']);
        if prose && !line.is_empty() && !line.starts_with("<!--") {
            if !open || item(line) {
                found.push((index + 1, 0));
            }
            let words = line.split_whitespace().filter(|w| w.contains(char::is_alphanumeric));
            if let Some((_, count)) = found.last_mut() {
                *count += words.count();
            }
            open = true;
        } else {
            open = false;
        }
        code ^= fence;
        region = region && line != "<!-- end -->";
    }
    found
}

#[test]
fn pages_and_paragraphs_are_short() {
    let mut long = Vec::new();
    // Prompts for agents lie among the sources.
    for document in documents().into_iter().filter(|document| !document.starts_with("crates")) {
        let name = document.display();
        let paragraphs = paragraphs(&text(&document));
        let all: usize = paragraphs.iter().map(|(_, words)| words).sum();
        if all > PAGE_WORDS_MAX {
            long.push(format!("{name}: {all} words, at most {PAGE_WORDS_MAX} on a page"));
        }
        long.extend(paragraphs.iter().filter(|(_, words)| *words > PARAGRAPH_WORDS_MAX).map(
            |(line, words)| format!("{name}:{line}: {words} words, at most {PARAGRAPH_WORDS_MAX}"),
        ));
    }
    none_of("say less, split it, or make a list of cases a table", &long);
}

#[test]
fn paragraphs_are_counted_without_code_tables_and_what_is_made() {
    let text = "# A title\n\none two\nthree\n- four five\n  six\n1. seven\n\n| a | b |\n```\ncode\n\
                ```\n<!-- table: x -->\n\nmade here\n<!-- end -->\nlast `one` … is it\n";
    assert_eq!(paragraphs(text), [(3, 3), (5, 3), (7, 2), (17, 4)]);
}

#[test]
fn links_and_anchors_are_recognised() {
    let text = "see [a](b.md#the-end) and [c](../d.md)\n```\n[no](link.md)\n```\n";
    assert_eq!(links(text), ["b.md#the-end", "../d.md"]);
    assert_eq!(target(Path::new("docs/x.md"), "../d.md"), Some(PathBuf::from("d.md")));
    assert_eq!(target(Path::new("docs/x.md"), "https://example.org"), None);
    assert_eq!(anchor(" What is *not* promised"), "what-is-not-promised");
}
