//! What is wrong with a template, found before anything runs.

use std::collections::BTreeMap;
use std::ops::Range;

use minijinja::{ErrorKind, Template};

use super::{CONTEXT, ENGINE, NAMES, Vars, describe, first_mark, is_template};

/// Attempts that a template is tried for: the first, one after a failure, and one more.
const ATTEMPTS_TRIED: u32 = 3;
/// Texts that a template is tried with, until one works. They include a text of many parts and a
/// number: a template that fails with all of them would fail with any text.
const SAMPLES: [&str; 3] =
    ["a/b-c_d.e:f g/h-i_j.k:l m/n-o_p.q:r s/t-u_v.w:x y/z-1_2.3:4 5/6", "7", ""];

/// A problem of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line within the template, from 1.
    pub line: usize,
    /// Column within the line in characters, from 1.
    pub column: usize,
    /// The offending bytes of the template.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Finds what is wrong with a template without running it for real.
pub fn check(template: &str) -> Vec<Problem> {
    if !is_template(template) {
        return Vec::new();
    }
    let parsed = match ENGINE.template_from_str(template) {
        Ok(parsed) => parsed,
        Err(error) => return vec![engine_problem(template, &error)],
    };
    let mut unknown: Vec<String> =
        parsed.undeclared_variables(true).into_iter().filter(|name| !is_known(name)).collect();
    unknown.sort();
    let mut found: Vec<Problem> = unknown.iter().map(|n| unknown_name(template, n)).collect();
    if found.is_empty() {
        found.extend(trials(&parsed).map(|error| engine_problem(template, &error)));
    }
    found
}

/// What goes wrong when a template is filled in for the first attempts, with various values:
/// unknown filters, tests and functions, endless work, and what fails with any values. Otherwise a
/// mistake in text that only a later attempt sees would be found only by that attempt.
fn trials(template: &Template<'_, '_>) -> Option<minijinja::Error> {
    (1..=ATTEMPTS_TRIED).find_map(|attempt| {
        let mut first = None;
        for text in SAMPLES {
            // A template that works with some values is accepted.
            let error = template.render(sample(text, attempt).values()).err()?;
            if is_sure(&error) {
                return Some(error);
            }
            first.get_or_insert(error);
        }
        first
    })
}

/// Whether a template with this error fails with all values.
fn is_sure(error: &minijinja::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnknownFilter
            | ErrorKind::UnknownTest
            | ErrorKind::UnknownFunction
            | ErrorKind::UnknownMethod
            | ErrorKind::TemplateNotFound
            | ErrorKind::OutOfFuel
    )
}

/// Sample values.
fn sample(text: &str, attempt: u32) -> Vars {
    let text = text.to_owned();
    let failed = "Attempt 1: exit code 1\n  the last line\n";
    Vars {
        run_id: text.clone(),
        phase: text.clone(),
        lane: text.clone(),
        step: text.clone(),
        attempt,
        spec: Some(text.clone()),
        title: text.clone(),
        root: text,
        failure_context: if attempt > 1 { failed.to_owned() } else { String::new() },
        context: BTreeMap::new(),
    }
}

/// Whether a name is one of ours or built into the engine.
fn is_known(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    first == CONTEXT
        || NAMES.iter().any(|(known, _)| *known == name)
        || NAMES.iter().any(|(known, _)| known.split_once('.').is_some_and(|(t, _)| t == name))
        || ENGINE.globals().any(|(global, _)| global == first)
}

fn unknown_name(template: &str, name: &str) -> Problem {
    let near = crate::keys::nearest(name, NAMES.iter().map(|(known, _)| *known));
    let hint = if let Some(near) = near {
        format!("did you mean `{near}`?")
    } else {
        let all: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
        format!("known names: {}", all.join(", "))
    };
    let span = find_name(template, name);
    let message = format!("unknown name `{name}` in a template");
    problem(template, span, message, Some(hint))
}

/// The first place of a name within template marks.
fn find_name(template: &str, name: &str) -> Range<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let marks = first_mark(template).unwrap_or(0);
    for (at, _) in template.match_indices(name).filter(|(at, _)| *at >= marks) {
        let before = template[..at].chars().next_back().is_some_and(is_word);
        let after = template[at + name.len()..].chars().next().is_some_and(is_word);
        if !before && !after {
            return at..at + name.len();
        }
    }
    marks..(marks + 2).min(template.len())
}

fn engine_problem(template: &str, error: &minijinja::Error) -> Problem {
    let line = error.line().unwrap_or(1);
    let span = error.range().filter(|r| template.get(r.clone()).is_some()).unwrap_or_else(|| {
        let start = template.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let rest = template[start..].lines().next().unwrap_or_default();
        start..start + rest.len()
    });
    let hint = match error.kind() {
        ErrorKind::OutOfFuel => "use fewer or smaller loops".to_owned(),
        ErrorKind::UnknownFilter => "use a filter of MiniJinja, or `sh`".to_owned(),
        _ => "put text that is not a template between {% raw %} and {% endraw %}".to_owned(),
    };
    problem(template, span, format!("invalid template: {}", describe(error)), Some(hint))
}

fn problem(template: &str, span: Range<usize>, message: String, hint: Option<String>) -> Problem {
    let before = &template[..span.start];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Problem {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        span,
        message,
        hint,
    }
}
