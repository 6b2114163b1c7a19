//! The rules for single strings of a plan: ids, paths, globs and templates.
//!
//! Each rule checks one string. Rules across parts of a plan (unique ids, known references, no
//! cycle) are checked elsewhere.

use std::ops::Range;

use globset::GlobBuilder;
use piton_core::id::{ID_BYTES_MAX, is_valid_id};
use piton_core::plan::Command;

use crate::diagnostic::{code, quoted};
use crate::sink::{Located, Sink};
use crate::template;
use crate::toml_reader::Node;

/// Reports an id that cannot be a file name or part of a branch name.
pub(crate) fn check_id(id: &Located<String>, sink: &mut Sink<'_>) {
    if is_valid_id(&id.value) {
        return;
    }
    let message = if id.value.len() > ID_BYTES_MAX {
        format!("the id {} is longer than {ID_BYTES_MAX} characters", quoted(&id.value))
    } else {
        format!("{} is not a valid id", quoted(&id.value))
    };
    let hint = "use letters, digits, `.`, `_` and `-`; start with a letter or digit; \
                no `..`, and no `.` or `.lock` at the end";
    sink.error(code::BAD_ID, &id.span, message, hint);
}

/// A normalized path below the project's root, or a report.
pub(crate) fn check_path(
    name: &str,
    path: &Located<String>,
    sink: &mut Sink<'_>,
) -> Option<String> {
    match plain_path(&path.value) {
        Ok(plain) => Some(plain),
        Err(why) => {
            let message = format!("`{name}` {why}: {}", quoted(&path.value));
            let hint = "use a path relative to the project's root, without `..`";
            sink.error(code::BAD_PATH, &path.span, message, hint);
            None
        }
    }
}

/// Paths or globs of files below the project's root.
pub(crate) fn check_globs(
    name: &str,
    globs: Vec<Located<String>>,
    sink: &mut Sink<'_>,
) -> Vec<Located<String>> {
    let mut plain = Vec::new();
    for glob in globs {
        let Some(value) = check_path(name, &glob, sink) else {
            continue;
        };
        let problem = if value.is_empty() {
            Some("it names the project's root itself".to_owned())
        } else if value.contains("{{") {
            Some("templates are not allowed here".to_owned())
        } else {
            let built = GlobBuilder::new(&value).literal_separator(true).build();
            built.err().map(|error| error.kind().to_string())
        };
        match problem {
            Some(why) => {
                let message = format!("`{name}` contains an invalid glob: {why}");
                let hint = "name files, or use `*`, `**`, `?`, `[…]` and `{a,b}`; a backslash makes one literal";
                sink.error(code::BAD_GLOB, &glob.span, message, hint);
            }
            None => plain.push(Located { value, span: glob.span }),
        }
    }
    plain
}

/// A path without `.` and doubled separators, or why it leaves the project.
pub(crate) fn plain_path(path: &str) -> Result<String, &'static str> {
    if path.is_empty() {
        return Err("is empty");
    }
    if path.starts_with(['/', '\\']) {
        return Err("is an absolute path");
    }
    if path.starts_with('~') {
        return Err("starts in a home directory");
    }
    let mut start = path.chars();
    if start.next().is_some_and(|c| c.is_ascii_alphabetic()) && start.next() == Some(':') {
        return Err("starts with a drive letter");
    }
    // Braces and commas too: `{a,../b}` is a glob that leaves.
    if path.split(['/', '\\', '{', '}', ',']).any(|part| part == "..") {
        return Err("leaves the project");
    }
    Ok(path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect::<Vec<_>>()
        .join("/"))
}

/// Reads a command and checks its strings as templates.
pub(crate) fn read_command(
    node: &Node<'_, '_>,
    name: &str,
    has_spec: bool,
    sink: &mut Sink<'_>,
) -> Option<Command> {
    let command = node.command(name, sink)?;
    match &command.value {
        Command::Shell(line) => {
            check_template(line, &command.span, has_spec, sink);
            check_quoting(line, &command.span, sink);
        }
        Command::Args(args) => {
            for (arg, span) in args.iter().zip(node.argument_spans(name)) {
                check_template(arg, &span, has_spec, sink);
            }
        }
    }
    Some(command.value)
}

/// Reports the problems of the template at `span` of the document.
pub(crate) fn check_template(text: &str, span: &Range<usize>, has_spec: bool, sink: &mut Sink<'_>) {
    for problem in template::check(text) {
        let hint = problem.hint.unwrap_or_default();
        // A string with escapes differs from the document's text: then all of it is underlined.
        if sink.text().get(span.clone()) == Some(text) {
            let place = span.start + problem.span.start..span.start + problem.span.end;
            sink.error(code::BAD_TEMPLATE, &place, problem.message, hint);
        } else {
            let message = format!("{} (line {} of the text)", problem.message, problem.line);
            sink.error(code::BAD_TEMPLATE, span, message, hint);
        }
    }
    if !has_spec && template::uses(text, "spec") {
        let message = "the template uses `spec`, but the plan has none, so it will be empty";
        sink.warn(code::NO_SPEC, span, message, "add `spec = \"PATH\"` at the top of the plan");
    }
}

/// Warns if a shell would run text from logs.
fn check_quoting(line: &str, span: &Range<usize>, sink: &mut Sink<'_>) {
    if !template::is_template(line) {
        return;
    }
    let unquoted = line.split("{{").skip(1).any(|part| {
        let expression: String =
            part.split("}}").next().unwrap_or_default().split_whitespace().collect();
        expression.contains("failure_context") && !expression.trim_end_matches('-').ends_with("|sh")
    });
    if unquoted {
        let message =
            "`failure_context` is text from logs; without quotes, the shell may run parts of it";
        sink.warn(code::UNQUOTED, span, message, "write {{ failure_context | sh }}");
    }
}
