//! What single texts of a plan must keep to: ids, paths, globs and templates.
//!
//! Each rule looks at one text and reports at its place. What several parts of a plan must keep to
//! together (unique ids, known references, no cycle) is checked elsewhere.

use std::ops::Range;

use globset::GlobBuilder;
use piton_core::id::{ID_BYTES_MAX, is_valid_id};
use piton_core::plan::Command;

use crate::diagnostic::{code, quoted};
use crate::sink::{Located, Sink};
use crate::template;
use crate::toml_reader::Node;

/// Reports an id that could not be the name of a file or a part of a branch.
pub(crate) fn check_id(id: &Located<String>, sink: &mut Sink<'_>) {
    if is_valid_id(&id.value) {
        return;
    }
    let message = if id.value.len() > ID_BYTES_MAX {
        format!("the id {} is longer than {ID_BYTES_MAX} characters", quoted(&id.value))
    } else {
        format!("{} cannot be an id", quoted(&id.value))
    };
    let hint = "start with a letter or digit, go on with letters, digits, `.`, `_` or `-`; \
                no `..`, no `.` or `.lock` at its end";
    sink.error(code::BAD_ID, &id.span, message, hint);
}

/// A path below the project's root in its plainest form, or a report.
pub(crate) fn check_path(
    name: &str,
    path: &Located<String>,
    sink: &mut Sink<'_>,
) -> Option<String> {
    match plain_path(&path.value) {
        Ok(plain) => Some(plain),
        Err(why) => {
            let message = format!("`{name}` {why}: {}", quoted(&path.value));
            let hint = "write a path relative to the project's root, without `..`";
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
            Some("templates are not filled in here".to_owned())
        } else {
            let built = GlobBuilder::new(&value).literal_separator(true).build();
            built.err().map(|error| error.kind().to_string())
        };
        match problem {
            Some(why) => {
                let message = format!("`{name}` has a glob that cannot be used: {why}");
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
        return Err("begins in a home directory");
    }
    let mut start = path.chars();
    if start.next().is_some_and(|c| c.is_ascii_alphabetic()) && start.next() == Some(':') {
        return Err("begins with a drive");
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

/// Reads a command and checks its texts as templates.
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

/// Reports the problems of a template that stands at `span` of the document.
pub(crate) fn check_template(text: &str, span: &Range<usize>, has_spec: bool, sink: &mut Sink<'_>) {
    for problem in template::check(text) {
        let hint = problem.hint.unwrap_or_default();
        // A text with escapes is not in the document as it is: then its whole is underlined.
        if sink.text().get(span.clone()) == Some(text) {
            let place = span.start + problem.span.start..span.start + problem.span.end;
            sink.error(code::BAD_TEMPLATE, &place, problem.message, hint);
        } else {
            let message = format!("{} (line {} of the text)", problem.message, problem.line);
            sink.error(code::BAD_TEMPLATE, span, message, hint);
        }
    }
    if !has_spec && template::uses(text, "spec") {
        let message = "a template uses `spec`, but the plan names none: it will be empty";
        sink.warn(code::NO_SPEC, span, message, "add `spec = \"PATH\"` at the top of the plan");
    }
}

/// Warns when text from logs would be run by a shell.
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
            "the failure context is text from logs; unquoted, the shell would run parts of it";
        sink.warn(code::UNQUOTED, span, message, "write {{ failure_context | sh }}");
    }
}
