//! The pages of the documentation as the tests see them: blocks with their markers, and regions that
//! are made from the code. Knows nothing of what a page should say.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Tests that write regions of one page take turns.
static WRITING: Mutex<()> = Mutex::new(());

/// Writes the regions anew instead of comparing them.
pub const UPDATE_VARIABLE: &str = "PITON_UPDATE_DOCS";

/// A fenced block of a page.
#[derive(Debug)]
pub struct Block {
    /// The page, relative to the repository.
    pub page: String,
    /// Line of its fence, from 1.
    pub line: usize,
    /// The word after the fence.
    pub language: String,
    /// What the comment on the line before the fence says; empty without one.
    pub marker: String,
    /// The text between the fences.
    pub text: String,
}

/// The top of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads a page.
pub fn read(page: &str) -> String {
    let path = repository().join(page);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All pages, relative to the repository.
pub fn all() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    let names = fs::read_dir(repository().join("docs")).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    names.retain(|n| Path::new(n).extension().is_some_and(|e| e == "md"));
    names.sort();
    pages.extend(names.into_iter().map(|n| format!("docs/{n}")));
    pages
}

/// The fenced blocks of a page, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let text = read(page);
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let marker = comment(before).unwrap_or_default().to_owned();
                let (page, language) = (page.to_owned(), language.to_owned());
                open = Some(Block { page, line: index + 1, language, marker, text: String::new() });
            }
            (Some(_), Some("")) => found.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
        before = line;
    }
    assert!(open.is_none(), "{page}: a block is not closed");
    found
}

fn comment(line: &str) -> Option<&str> {
    Some(line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

/// Compares a region of a page with what the code says, or writes it.
pub fn region(page: &str, name: &str, wanted: &str) {
    let _turn = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let text = read(page);
    let begin = format!("<!-- {name} -->\n");
    let (head, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("{page} has no region `{}`", begin.trim()));
    let end = "<!-- end -->";
    let at = rest.find(end).unwrap_or_else(|| panic!("{page}: region {name} has no `{end}`"));
    let wanted = format!("\n{}\n\n", wanted.trim_end());
    if rest[..at] == wanted {
        return;
    }
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        fs::write(repository().join(page), format!("{head}{begin}{wanted}{}", &rest[at..]))
            .unwrap();
        return;
    }
    panic!(
        "{page}: `{name}` is not what the code says; `{UPDATE_VARIABLE}=1 cargo test -p piton \
         --test docs` writes it anew:\n{wanted}"
    );
}

/// A table of Markdown.
pub fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|&h| h.to_owned()).collect();
    let mut text = line(&head) + &format!("|{}\n", "---|".repeat(head.len()));
    for row in rows {
        // A bar inside a cell would end it.
        let cells: Vec<String> = row.iter().map(|c| c.replace('|', "\\|")).collect();
        text.push_str(&line(&cells));
    }
    text
}
