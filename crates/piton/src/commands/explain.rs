//! `piton explain`: what an error code means and what to do.

use piton_core::error_codes::{Entry, TABLE};
use piton_core::remedy;
use piton_formats::diagnostic::CODES;
use piton_view::text;

use crate::cli::ExplainArgs;
use crate::error::{CommandError, Result};
use crate::ui;

/// Explains one code, or lists all.
pub fn run(as_json: bool, args: &ExplainArgs) -> Result<()> {
    let Some(wanted) = &args.code else {
        list(as_json);
        return Ok(());
    };
    // A code may be pasted with what stands around it.
    let wanted = wanted.trim().trim_start_matches("error").trim_matches(['[', ']', ':']);
    let entry = find(wanted).ok_or_else(|| unknown(wanted))?;
    ui::show(as_json, entry, || explained(entry, ui::stdout().width));
    Ok(())
}

/// Every error that can be explained: the program's and those of documents, by code.
fn entries() -> Vec<&'static Entry> {
    let mut all: Vec<&Entry> = TABLE.iter().chain(CODES).collect();
    all.sort_by_key(|entry| entry.code);
    all
}

/// Finds an entry by its code, whatever its case.
fn find(code: &str) -> Option<&'static Entry> {
    entries().into_iter().find(|e| e.code.eq_ignore_ascii_case(code))
}

fn explained(entry: &Entry, width: usize) -> String {
    let cause = text::wrap(entry.cause, width, 0);
    let next = text::wrap(&format!("next: {}", entry.next), width, 6);
    format!("{}: {}\n\n{cause}\n\n{next}", entry.code, entry.title)
}

fn list(as_json: bool) {
    let all = entries();
    let wide = all.iter().map(|e| e.code.len()).max().unwrap_or(0);
    let line = |e: &&Entry| format!("{:wide$}  {}\n", e.code, e.title);
    ui::show(as_json, &all, || all.iter().map(line).collect());
}

fn unknown(wanted: &str) -> CommandError {
    let lower = wanted.to_lowercase();
    let distance = |e: &&Entry| strsim::damerau_levenshtein(e.code, &lower);
    let near =
        entries().into_iter().min_by_key(distance).filter(|e| distance(e) <= e.code.len() / 2);
    let error = CommandError::usage("unknown-code", format!("there is no error code `{wanted}`"));
    match near {
        Some(near) => error.hint(format!("did you mean `{}`?", near.code)),
        None => error.hint(remedy![Piton "explain", Words " lists all codes"]),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Every code that a source file makes an error with.
    fn codes(source: &str) -> BTreeSet<String> {
        let dense: String = source.chars().filter(|c| !c.is_whitespace()).collect();
        let literal = |rest: &str| {
            let rest = rest.strip_prefix('"')?;
            rest.split_once('"').map(|(code, _)| code.to_owned()).filter(|c| !c.is_empty())
        };
        let mut found = BTreeSet::new();
        for maker in ["::failed(", "::usage(", "Refusal::new("] {
            found.extend(dense.split(maker).skip(1).filter_map(literal));
        }
        let kinds = dense.split("::new(Kind::").skip(1).chain(dense.split("::new(kind").skip(1));
        found.extend(kinds.filter_map(|rest| literal(rest.split_once(',')?.1)));
        found
    }

    fn sources(dir: &Path, all: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                // Tests may make errors of their own.
                all.push_str(text.split("#[cfg(test)]").next().unwrap());
            }
        }
    }

    #[test]
    fn every_error_of_the_program_is_explained() {
        let mut all = String::new();
        for own in ["src", "../piton-workspace/src", "../piton-world/src"] {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(own), &mut all);
        }
        let used = codes(&all);
        assert!(used.contains("no-run") && used.contains("ledger-newer"), "{used:?}");
        let missing: Vec<_> = used.iter().filter(|code| find(code).is_none()).collect();
        assert!(missing.is_empty(), "not in the table: {missing:?}");
    }

    #[test]
    fn no_code_is_explained_twice() {
        let all = entries();
        let twice: Vec<_> = all.windows(2).filter(|pair| pair[0].code == pair[1].code).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn a_code_is_found_as_it_was_printed_and_the_nearest_is_named() {
        assert!(find("NO-RUN").is_some());
        let error = unknown("no-rum");
        assert_eq!(error.hints[0].to_string(), "did you mean `no-run`?");
        assert_eq!(
            unknown("something else altogether").hints[0].to_string(),
            "`piton explain` lists all codes"
        );
    }
}
