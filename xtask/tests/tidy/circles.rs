//! No circle between the top modules of a crate: each can be read knowing only those below it.
//!
//! Arrows are the paths `crate::…` and `super::…` in code that ships, also through what the root of
//! the crate re-exports. Paths in macros of other crates are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::code::{shipped, sources};
use super::{none_of, text};

/// What each top module uses of the others, and where it does first.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// A file's module, as names from the root of its crate; nothing for the root itself.
fn module(folder: &Path, file: &Path) -> Vec<String> {
    let inner = file.strip_prefix(folder.join("src")).unwrap_or(file).with_extension("");
    let mut names: Vec<String> =
        inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    names.pop_if(|last| *last == "mod");
    if names == ["lib"] || names == ["main"] { Vec::new() } else { names }
}

/// The words and signs of code, with the line of each.
fn tokens(lines: &[String]) -> Vec<(usize, String)> {
    let mut tokens: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let mut in_word = false;
        for c in line.chars() {
            let is_word = c.is_alphanumeric() || c == '_';
            match tokens.last_mut() {
                Some((_, word)) if is_word && in_word => word.push(c),
                _ if !c.is_whitespace() => tokens.push((number, c.to_string())),
                _ => {}
            }
            in_word = is_word;
        }
    }
    tokens
}

/// Reads the path that begins at a token, of `use` trees every branch: each as names from the root.
fn paths(tokens: &[(usize, String)], at: &mut usize, base: &[String]) -> Vec<Vec<String>> {
    let word = |at: usize| tokens.get(at).map_or("", |(_, word)| word.as_str());
    let mut path = base.to_vec();
    loop {
        match word(*at) {
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" => {}
            "{" => {
                let mut all = Vec::new();
                while !matches!(word(*at), "}" | "") {
                    *at += 1;
                    all.extend(paths(tokens, at, &path));
                }
                *at += 1;
                return all;
            }
            name if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                path.push(name.to_owned());
            }
            _ => return vec![path],
        }
        *at += 1;
        if word(*at) == ":" && word(*at + 1) == ":" {
            *at += 2;
            continue;
        }
        // The new name of `as` is not a part of it.
        while !matches!(word(*at), "," | "}" | ";" | "") && word(*at) == "as" {
            *at += 2;
        }
        return vec![path];
    }
}

/// Every path of a file that begins with `crate` or `super`, with its line.
fn used(file: &Path, module: &[String]) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(&shipped(&text(file)));
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (line, word) = &tokens[at];
        let follows = at > 0 && tokens[at - 1].1 == ":";
        let is_path = tokens.get(at + 1).is_some_and(|(_, next)| next == ":");
        if matches!(word.as_str(), "crate" | "super") && is_path && !follows {
            found.extend(paths(&tokens, &mut at, module).into_iter().map(|path| (*line, path)));
        } else {
            at += 1;
        }
    }
    found
}

/// What the root of a crate re-exports: the name, and the top module that it is from.
fn exported(root: &Path, tops: &BTreeSet<String>) -> BTreeMap<String, String> {
    let tokens = tokens(&shipped(&text(root)));
    let mut found = BTreeMap::new();
    let mut at = 0;
    while at < tokens.len() {
        at += 1;
        if tokens[at - 1].1 != "use" {
            continue;
        }
        for path in paths(&tokens, &mut at, &[]) {
            if let [top, .., name] = path.as_slice()
                && tops.contains(top)
            {
                found.insert(name.clone(), top.clone());
            }
        }
    }
    found
}

fn arrows(folder: &Path, files: &[PathBuf]) -> Arrows {
    let modules: Vec<(Vec<String>, &PathBuf)> =
        files.iter().map(|file| (module(folder, file), file)).collect();
    let tops: BTreeSet<String> =
        modules.iter().filter_map(|(module, _)| module.first().cloned()).collect();
    let roots = modules.iter().filter(|(module, _)| module.is_empty());
    let exported: BTreeMap<String, String> =
        roots.flat_map(|(_, file)| exported(file, &tops)).collect();
    let mut arrows = Arrows::new();
    for (module, file) in &modules {
        let Some(from) = module.first() else { continue };
        for (line, path) in used(file, module) {
            let Some(name) = path.first() else { continue };
            let to = tops.get(name).or_else(|| exported.get(name));
            if let Some(to) = to.filter(|to| *to != from) {
                let place = format!("{}:{line}", file.display());
                arrows.entry(from.clone()).or_default().entry(to.clone()).or_insert(place);
            }
        }
    }
    arrows
}

/// The shortest way from a module back to itself.
fn circle(arrows: &Arrows, start: &str) -> Option<Vec<String>> {
    let mut open = std::collections::VecDeque::from([vec![start.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = open.pop_front() {
        for next in arrows.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            let longer = [&way[..], std::slice::from_ref(next)].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                open.push_back(longer);
            }
        }
    }
    None
}

/// The circles of a crate, each arrow with its place; one that is part of another is named once.
fn circles(arrows: &Arrows) -> Vec<String> {
    let mut named = BTreeSet::new();
    let mut found = Vec::new();
    for start in arrows.keys() {
        let Some(way) = circle(arrows, start) else { continue };
        let mut members = way[1..].to_vec();
        members.sort();
        if named.insert(members) {
            let arrow = |pair: &[String]| {
                format!("{} -> {} ({})", pair[0], pair[1], arrows[&pair[0]][&pair[1]])
            };
            found.push(way.windows(2).map(arrow).collect::<Vec<_>>().join(", "));
        }
    }
    found
}

/// Lost: a change of one module is a change of all, and none can be understood alone.
#[test]
fn top_modules_have_no_circles() {
    let mut crates: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for (folder, file) in sources() {
        if !file.starts_with(folder.join("src/bin")) {
            crates.entry(folder).or_default().push(file);
        }
    }
    let mut found = Vec::new();
    for (folder, files) in &crates {
        let circles = circles(&arrows(folder, files));
        let name = folder.display();
        found.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    none_of("move what both need below both", &found);
}

#[test]
fn paths_of_every_form_are_read() {
    let lines = ["use crate::{a::{self, B}, c as d, e};", "super::super::f(super::g::H);"];
    let tokens = tokens(&lines.map(str::to_owned));
    let mut at = 1;
    let all = paths(&tokens, &mut at, &["x".to_owned(), "y".to_owned()]);
    assert_eq!(all, [vec!["a"], vec!["a", "B"], vec!["c"], vec!["e"]]);
    assert_eq!(tokens[at].1, ";");
    at += 1;
    assert_eq!(paths(&tokens, &mut at, &["x".to_owned(), "y".to_owned()]), [["f"]]);
    at += 1;
    assert_eq!(paths(&tokens, &mut at, &["x".to_owned(), "y".to_owned()]), [["x", "g", "H"]]);
}

#[test]
fn a_circle_is_named_once() {
    let arrow = |to: &str| (to.to_owned(), "x.rs:1".to_owned());
    let arrows: Arrows = [("a", vec!["b", "d"]), ("b", vec!["c"]), ("c", vec!["a"])]
        .into_iter()
        .map(|(from, to)| (from.to_owned(), to.into_iter().map(arrow).collect()))
        .collect();
    assert_eq!(circles(&arrows), ["a -> b (x.rs:1), b -> c (x.rs:1), c -> a (x.rs:1)"]);
}
