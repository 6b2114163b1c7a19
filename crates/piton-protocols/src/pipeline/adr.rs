//! The Constitution Check of an `adr.md`: which articles the architecture complies with.
//!
//! The check is complete if every article has a status and every exception a justification. Whether
//! the justification convinces is for people to decide.

use piton_formats::diagnostic::{Diagnostic, code, quoted};
use piton_formats::markdown::inline::{is_none, plain, title};
use piton_formats::markdown::table::{Table, tables};
use piton_formats::markdown::{Document, Line};
use piton_formats::sink::Sink;

use super::gaps::placeholders;

/// Largest document: a hundred times the longest known; a larger file is the wrong one.
pub const ADR_BYTES_MAX: usize = 8 << 20;

/// The Constitution Check of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstitutionCheck {
    /// How far it is.
    pub outcome: Outcome,
    /// Its articles, in their order.
    pub articles: Vec<Article>,
}

impl ConstitutionCheck {
    /// The number of articles with a status.
    pub fn count(&self, status: Verdict) -> usize {
        self.articles.iter().filter(|article| article.verdict == Some(status)).count()
    }
}

/// How far a Constitution Check is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Every article has a status, and every exception a justification.
    Complete,
    /// Something is left open.
    Incomplete,
    /// The document has no such section.
    #[default]
    Missing,
}

impl Outcome {
    /// Its word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Missing => "missing",
        }
    }
}

/// One article.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// Number and name, such as `I — Library-First`.
    pub name: String,
    /// Its status; `None` if nobody has chosen one, or if it is unknown.
    pub verdict: Option<Verdict>,
    /// The status as it is written.
    pub status: String,
    /// The notes.
    pub notes: String,
    /// Whether the document justifies it; only exceptions need that.
    pub is_justified: bool,
    /// Its line, from 1.
    pub line: usize,
}

/// The status of an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The architecture complies.
    Complies,
    /// It does not, for a reason that the document gives.
    Exception,
    /// The article does not apply.
    NotApplicable,
}

impl Verdict {
    /// The word in the document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complies => "COMPLIES",
            Self::Exception => "EXCEPTION",
            Self::NotApplicable => "N/A",
        }
    }

    /// Reads a status; prose may follow the word. Several words are a template's choice.
    fn read(status: &str) -> Option<Self> {
        let text = plain(status).to_uppercase();
        let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let all = [Self::Complies, Self::Exception, Self::NotApplicable];
        let begins = |verdict: &&Self| {
            let rest = text.strip_prefix(verdict.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        };
        let found = *all.iter().find(begins)?;
        let rest = text[found.as_str().len()..].trim_start();
        (!rest.starts_with(['/', '|'])).then_some(found)
    }
}

/// Reads the Constitution Check of a document, and all its problems.
pub fn read(file: &str, text: &str) -> (ConstitutionCheck, Vec<Diagnostic>) {
    let mut sink = Sink::new(file, text);
    if text.len() > ADR_BYTES_MAX {
        let message = format!("the document is larger than {ADR_BYTES_MAX} bytes");
        sink.error(code::TOO_LARGE, &(0..0), message, "check that this is the right file");
        return (ConstitutionCheck::default(), sink.finish());
    }
    let document = Document::new(text);
    let Some(heading) = heading(&document) else {
        let hint = "add `## Constitution Check` with `| Article | Status | Notes |`";
        let message = "the document has no Constitution Check";
        sink.error(code::CONSTITUTION_CHECK, &(0..0), message, hint);
        return (ConstitutionCheck::default(), sink.finish());
    };
    let sections = document.sections(is_check);
    let articles = sections.iter().flat_map(|section| articles(section.lines)).collect();
    let mut check = ConstitutionCheck { outcome: Outcome::Incomplete, articles };
    let justified = justifications(&document);
    for article in &mut check.articles {
        article.is_justified = justified.iter().any(|text| is_about(text, &article.name));
    }
    report(&check, &heading, &mut sink);
    if !sink.has_errors() {
        check.outcome = Outcome::Complete;
    }
    (check, sink.finish())
}

/// Tells whether a text is an ADR of the protocol: its check has articles.
pub fn is_adr(text: &str) -> bool {
    let document = Document::new(text);
    let sections = document.sections(is_check);
    sections.iter().any(|section| !articles(section.lines).is_empty())
}

fn is_check(title: &str) -> bool {
    title == "constitution check"
}

fn heading<'a>(document: &Document<'a>) -> Option<Line<'a>> {
    let is_own = |line: &&Line<'a>| line.heading().is_some_and(|(_, text)| is_check(&title(text)));
    document.lines.iter().find(is_own).copied()
}

/// The first table of some lines with a column for each name, and where those columns are.
fn columns(table: &Table, fits: [fn(&str) -> bool; 2]) -> Option<[usize; 2]> {
    let names = table.columns();
    let place = |fits: fn(&str) -> bool| names.iter().position(|name| fits(name));
    Some([place(fits[0])?, place(fits[1])?])
}

fn articles(lines: &[Line<'_>]) -> Vec<Article> {
    let is_article: fn(&str) -> bool = |name| name.starts_with("article");
    let is_status: fn(&str) -> bool = |name| name == "status";
    let mut tables = tables(lines).into_iter();
    let found = tables
        .find_map(|table| columns(&table, [is_article, is_status]).map(|columns| (table, columns)));
    let Some((table, [name, status])) = found else { return Vec::new() };
    let notes = table.columns().iter().position(|column| column == "notes");
    let cell = |row: &[String], at: usize| row.get(at).cloned().unwrap_or_default();
    let rows = table.rows.iter().filter(|row| !plain(&cell(&row.cells, name)).is_empty());
    rows.map(|row| {
        let status = cell(&row.cells, status);
        Article {
            name: plain(&cell(&row.cells, name)),
            verdict: Verdict::read(&status),
            status,
            notes: notes.map(|at| cell(&row.cells, at)).unwrap_or_default(),
            is_justified: false,
            line: lines[row.index].number,
        }
    })
    .collect()
}

/// What the rows of the Complexity Justification name as the article; only rows that say something.
fn justifications(document: &Document<'_>) -> Vec<String> {
    let is_article: fn(&str) -> bool =
        |name| name.starts_with("article") || name.contains("violat") || name == "exception";
    let mut found = Vec::new();
    for section in document.sections(|title| title.starts_with("complexity justification")) {
        for table in tables(section.lines) {
            let at = table.columns().iter().position(|name| is_article(name));
            let Some(at) = at else { continue };
            for row in &table.rows {
                let is_said = |(column, cell): (usize, &String)| {
                    column != at && !is_none(cell) && placeholders(cell).is_empty()
                };
                let says = row.cells.iter().enumerate().any(is_said);
                found.extend(row.cells.get(at).filter(|_| says).map(|cell| plain(cell)));
            }
        }
    }
    found
}

/// Tells whether a text names an article, by its number or by its name.
fn is_about(text: &str, article: &str) -> bool {
    let (number, name) = parts(article);
    let words = |text: &str| -> Vec<String> {
        let all = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        all.map(str::to_lowercase).collect()
    };
    let has_number =
        number.is_some_and(|n| words(text).iter().any(|word| self::number(word) == Some(n)));
    let joined = format!(" {} ", words(text).join(" "));
    let has_name = !name.is_empty() && joined.contains(&format!(" {} ", words(&name).join(" ")));
    has_number || has_name
}

/// Number and name of an article: `Article I — Library-First`, `2. Test-First`.
fn parts(article: &str) -> (Option<u32>, String) {
    let text = article.trim();
    let lower = text.to_lowercase();
    let lead = ["article ", "art. "].iter().find(|lead| lower.starts_with(**lead));
    let text = lead.and_then(|lead| text.get(lead.len()..)).unwrap_or(text).trim_start();
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    match number(&text[..end]) {
        Some(number) => {
            let name = text[end..].trim_start_matches(|c: char| !c.is_alphanumeric());
            (Some(number), name.to_owned())
        }
        None => (None, text.to_owned()),
    }
}

/// A number in Arabic or Roman digits.
fn number(word: &str) -> Option<u32> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let digit = |c: char| match c.to_ascii_uppercase() {
        'I' => Some(1),
        'V' => Some(5),
        'X' => Some(10),
        'L' => Some(50),
        _ => None,
    };
    // More digits are a word.
    let digits: Vec<i32> = word.chars().take(9).map(digit).collect::<Option<_>>()?;
    let mut total = 0;
    for (at, value) in digits.iter().enumerate() {
        let is_before = digits.get(at + 1).is_some_and(|next| next > value);
        total += if is_before { -value } else { *value };
    }
    u32::try_from(total).ok().filter(|number| *number > 0)
}

fn report(check: &ConstitutionCheck, heading: &Line<'_>, sink: &mut Sink<'_>) {
    if check.articles.is_empty() {
        let message = "the Constitution Check has no table of articles";
        let hint = "add `| Article | Status | Notes |` with a row for each article";
        sink.error(code::CONSTITUTION_CHECK, &heading.span(), message, hint);
    }
    for article in &check.articles {
        let span = sink.line_span(article.line);
        let name = quoted(&article.name);
        match article.verdict {
            None => {
                let message = match plain(&article.status) {
                    status if status.is_empty() => format!("the article {name} has no status"),
                    status => format!("{} is not a status of the article {name}", quoted(&status)),
                };
                let hint = "choose COMPLIES, EXCEPTION or N/A";
                sink.error(code::CONSTITUTION_CHECK, &span, message, hint);
            }
            Some(Verdict::Exception) if !article.is_justified => {
                let message = format!("the exception to the article {name} is not justified");
                let hint = "add a row that names the article to the Complexity Justification table";
                sink.error(code::CONSTITUTION_CHECK, &span, message, hint);
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(rows: &str, justified: &str) -> String {
        format!(
            "# ADR: x\n\n## Constitution Check\n\n*Complete this first.*\n\n\
             | Article | Status | Notes |\n|---|---|---|\n{rows}\n## Research\n\n\
             ## Complexity Justification\n\n| Article Violated | Why | Simpler |\n|---|---|---|\n{justified}"
        )
    }

    fn outcome(rows: &str, justified: &str) -> Outcome {
        read("adr.md", &document(rows, justified)).0.outcome
    }

    #[test]
    fn a_check_with_a_status_for_each_article_is_complete() {
        let rows = "| I — Library-First | EXCEPTION | see below |\n| II — Test-First | **COMPLIES** | |\n\
            | III — Simplicity | complies (mostly) | |\n| IV | N/A | |\n";
        let text = document(rows, "| Article I exception | size | library |\n");
        let (check, problems) = read("adr.md", &text);
        assert_eq!((check.outcome, problems), (Outcome::Complete, vec![]));
        assert_eq!(check.articles.len(), 4);
        let counts = [Verdict::Complies, Verdict::Exception, Verdict::NotApplicable];
        assert_eq!(counts.map(|verdict| check.count(verdict)), [2, 1, 1]);
        assert!(is_adr(&text) && is_adr(&text.replace('\n', "\r\n")));
    }

    /// Lost: a template, or an exception that nobody justified, would pass for a check.
    #[test]
    fn what_is_left_open_makes_it_incomplete() {
        for (rows, justified, line) in [
            ("| I | COMPLIES / EXCEPTION / N/A | |\n", "", 9),
            ("| I | COMPLIES | |\n| II | | |\n", "", 10),
            ("| I | MOSTLY | |\n", "", 9),
            ("| I | COMPLIES_NOT | |\n", "", 9),
            ("| I | EXCEPTION | why |\n", "", 9),
            ("| I | EXCEPTION | why |\n", "| | | |\n", 9),
            ("| I | EXCEPTION | why |\n", "| Article I | | - |\n", 9),
            ("| I | EXCEPTION | why |\n", "| Article I | <why> | |\n", 9),
            ("| I | EXCEPTION | why |\n", "| Article II | size | |\n", 9),
            ("", "", 3),
        ] {
            let (check, problems) = read("adr.md", &document(rows, justified));
            assert_eq!(check.outcome, Outcome::Incomplete, "{rows}{justified}");
            assert_eq!(problems.iter().map(|p| p.line).collect::<Vec<_>>(), [line], "{rows}");
        }
        let (check, problems) = read("adr.md", "# ADR: x\n\n```\n## Constitution Check\n```\n");
        assert_eq!((check.outcome, problems.len()), (Outcome::Missing, 1));
    }

    #[test]
    fn articles_are_matched_by_number_or_name() {
        for (article, justified) in [
            ("I — Library-First", "Article I exception"),
            ("I — Library-First", "I"),
            ("I — Library-First", "library-first"),
            ("Article 4: Anti-Abstraction", "Art. IV"),
            ("IV", "4"),
            ("IX — Names", "Article 9 and Article 2"),
            ("Simplicity", "the Simplicity gate"),
        ] {
            let rows = format!("| {article} | EXCEPTION | |\n");
            let found = outcome(&rows, &format!("| {justified} | why | |\n"));
            assert_eq!(found, Outcome::Complete, "{article}: {justified}");
        }
        for (article, justified) in [
            ("I — Library-First", "Article II"),
            ("V", "Article IV"),
            ("Simplicity", "Simplicityx"),
        ] {
            let rows = format!("| {article} | EXCEPTION | |\n");
            let found = outcome(&rows, &format!("| {justified} | why | |\n"));
            assert_eq!(found, Outcome::Incomplete, "{article}: {justified}");
        }
    }
}
