//! Templates in prompts and commands: `MiniJinja` with a fixed set of names.
//!
//! Unknown names are errors, never empty text, and the work of a template is limited, so that every
//! loop ends (see `language.rs`). There are no includes and no access to files or the environment.
//! Text without template marks, or with only names between them, is filled in without the engine:
//! most commands and messages are that simple.

use std::ops::Range;
use std::sync::LazyLock;

use minijinja::{Environment, ErrorKind, Template, Value, context};

pub mod language;

/// Attempts that a template is tried for: the first, one after a failure, and one more.
const ATTEMPTS_TRIED: u32 = 3;
/// Texts that a template is tried with, until one works. They include a text of many parts and a
/// number: a template that fails with all of them would fail with any text.
const SAMPLES: [&str; 3] =
    ["a/b-c_d.e:f g/h-i_j.k:l m/n-o_p.q:r s/t-u_v.w:x y/z-1_2.3:4 5/6", "7", ""];

/// The names that a template may use; a name before a point is a table.
pub const NAMES: &[(&str, &str)] = &[
    ("run.id", "id of the run"),
    ("phase.id", "id of the phase"),
    ("lane.id", "id of the lane"),
    ("step.id", "id of the step"),
    ("attempt", "number of the attempt, from 1"),
    ("spec", "path of the plan's spec; empty if it has none"),
    ("title", "title of the plan"),
    ("root", "absolute path of the project's root"),
    ("failure_context", "errors and last log lines of earlier attempts; empty in the first"),
];

/// The values of the names of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vars {
    /// `run.id`
    pub run_id: String,
    /// `phase.id`
    pub phase: String,
    /// `lane.id`
    pub lane: String,
    /// `step.id`
    pub step: String,
    /// `attempt`, from 1.
    pub attempt: u32,
    /// `spec`
    pub spec: Option<String>,
    /// `title`
    pub title: String,
    /// `root`
    pub root: String,
    /// `failure_context`: the accumulated text.
    pub failure_context: String,
}

/// A template that could not be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the template: {message}; correct it in the plan")]
pub struct Error {
    /// Line within the template, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// A problem of a template, found before anything runs.
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

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(language::engine);

/// Whether a text needs the engine.
pub fn is_template(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// Fills in a template.
pub fn render(template: &str, vars: &Vars) -> Result<String, Error> {
    if !is_template(template) {
        return Ok(template.to_owned());
    }
    if let Some(filled) = only_names(template, vars) {
        return Ok(filled);
    }
    fill(&ENGINE, template, values(vars))
}

/// Fills in a template with an engine.
pub fn fill(engine: &Environment<'_>, template: &str, values: Value) -> Result<String, Error> {
    if let Some((span, message)) = language::refused(template) {
        let line = template[..span.start].matches('\n').count() + 1;
        return Err(Error { line, message });
    }
    let parsed = engine.template_from_str(template);
    let filled = parsed.and_then(|parsed| language::fill(&parsed, values));
    filled.map_err(|error| Error { line: error.line().unwrap_or(1), message: describe(&error) })
}

/// Fills in a template that has only names between its marks.
fn only_names(template: &str, vars: &Vars) -> Option<String> {
    let mut out = String::with_capacity(2 * template.len());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, mark) = rest.split_at(at);
        out.push_str(before);
        match mark.as_bytes().get(1) {
            Some(b'{') => {
                let (name, after) = mark[2..].split_once("}}")?;
                write_name(&mut out, name.trim_matches(' '), vars)?;
                rest = after;
            }
            Some(b'%' | b'#') => return None,
            _ => {
                out.push('{');
                rest = &mark[1..];
            }
        }
    }
    out.push_str(rest);
    Some(out)
}

/// The value of a name; `None` if only the engine knows it.
fn write_name(out: &mut String, name: &str, vars: &Vars) -> Option<()> {
    let number;
    out.push_str(match name {
        "run.id" => &vars.run_id,
        "phase.id" => &vars.phase,
        "lane.id" => &vars.lane,
        "step.id" => &vars.step,
        "attempt" => {
            number = vars.attempt.to_string();
            &number
        }
        "spec" => vars.spec.as_deref().unwrap_or_default(),
        "title" => &vars.title,
        "root" => &vars.root,
        "failure_context" => &vars.failure_context,
        _ => return None,
    });
    Some(())
}

/// Quotes a text so that a shell reads it as one word, whatever it contains.
pub fn quote_for_shell(text: &str) -> String {
    piton_core::shell::quoted(text)
}

/// Turns a text into a template that renders to exactly that text.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.as_bytes().windows(2).position(|p| matches!(p, b"{{" | b"{%" | b"{#"))
    {
        let (mark, after) = rest[at..].split_at(2);
        out.push_str(&rest[..at]);
        out.push_str("{{ \"");
        out.push_str(mark);
        out.push_str("\" }}");
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Finds what is wrong with a template without running it for real.
pub fn check(template: &str) -> Vec<Problem> {
    if !is_template(template) {
        return Vec::new();
    }
    if let Some((span, message)) = language::refused(template) {
        let hint = "templates have names, filters, `if`, `for` and `raw`; use a script for everything else";
        return vec![problem(template, span, message, Some(hint.to_owned()))];
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
            let error = language::fill(template, values(&sample(text, attempt))).err()?;
            if is_sure(&error) {
                return Some(error);
            }
            first.get_or_insert(error);
        }
        first
    })
}

/// Whether it fails with any values.
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

/// Whether a template uses a name, such as `spec`.
pub fn uses(template: &str, name: &str) -> bool {
    is_template(template)
        && language::refused(template).is_none()
        && ENGINE
            .template_from_str(template)
            .is_ok_and(|parsed| parsed.undeclared_variables(true).contains(name))
}

/// Values that stand for the real ones.
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
    }
}

/// The values under the names of [`NAMES`].
fn values(vars: &Vars) -> Value {
    context! {
        run => context! { id => &vars.run_id },
        phase => context! { id => &vars.phase },
        lane => context! { id => &vars.lane },
        step => context! { id => &vars.step },
        attempt => vars.attempt,
        spec => vars.spec.as_deref().unwrap_or_default(),
        title => &vars.title,
        root => &vars.root,
        failure_context => &vars.failure_context,
    }
}

/// Whether a name is one of ours or built into the engine.
fn is_known(name: &str) -> bool {
    let first = name.split('.').next().unwrap_or_default();
    NAMES.iter().any(|(known, _)| *known == name)
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
    let marks = template.find("{{").into_iter().chain(template.find("{%")).min().unwrap_or(0);
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

/// The engine's own words, without its line numbers.
pub fn describe(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars() -> Vars {
        Vars {
            run_id: "r1".to_owned(),
            phase: "P1".to_owned(),
            lane: "L".to_owned(),
            step: "work".to_owned(),
            attempt: 2,
            spec: Some("spec.md".to_owned()),
            title: "T".to_owned(),
            root: "/p".to_owned(),
            failure_context: "it's <bad> & worse".to_owned(),
        }
    }

    #[test]
    fn fills_in_every_name() {
        let all = NAMES.iter().map(|(name, _)| format!("{{{{ {name} }}}}")).collect::<Vec<_>>();
        assert_eq!(check(&all.join(" ")), []);
        assert_eq!(
            render(&all.join("|"), &vars()),
            Ok("r1|P1|L|work|2|spec.md|T|/p|it's <bad> & worse".to_owned())
        );
    }

    #[test]
    fn names_alone_are_filled_in_as_the_engine_does() {
        let all = NAMES.iter().map(|(name, _)| format!("{{{{ {name} }}}}")).collect::<Vec<_>>();
        let all = all.join("|");
        let texts = [
            all.as_str(),
            "{{title}}\n",
            "{ {{title }}}{{ attempt}}{",
            "{{ spec }}\n\n{a{{ failure_context }}",
            "\u{e4}{{ title }}\u{e4}\r\n",
        ];
        for vars in [vars(), Vars::default()] {
            for text in texts {
                let engine = ENGINE.render_str(text, values(&vars)).ok();
                assert_eq!(only_names(text, &vars), engine, "{text}");
            }
        }
        let others = [
            "{{- title }}",
            "{{ title -}} x",
            "{{ title | sh }}",
            "{{ none }}",
            "{{ run }}",
            "{{ title }}{% if attempt %}a{% endif %}",
            "{{ title }}{# no #}",
            "{{ title",
            "{{ \"}}\" }}",
            "{{\ttitle }}",
            "{{{ title }}}",
        ];
        for text in others {
            assert_eq!(only_names(text, &vars()), None, "{text}");
        }
    }

    #[test]
    fn plain_text_and_the_last_newline_stay_as_they_are() {
        for text in ["echo $HOME {a,b} }}\n", "", "\n\n"] {
            assert_eq!(render(text, &vars()), Ok(text.to_owned()));
        }
        assert_eq!(render("{{ title }}\n", &vars()), Ok("T\n".to_owned()));
    }

    #[test]
    fn an_escaped_text_says_itself() {
        for text in ["{{{ a }}", "{% x %}{#", "docker --format '{{.Names}}'", "{{{{", "plain {", ""]
        {
            assert_eq!(render(&escape(text), &vars()).as_deref(), Ok(text), "{text}");
        }
    }

    #[test]
    fn sh_makes_one_word_of_anything() {
        assert_eq!(
            render("echo {{ failure_context | sh }}", &vars()),
            Ok(r"echo 'it'\''s <bad> & worse'".to_owned())
        );
        assert_eq!(quote_for_shell(""), "''");
        assert_eq!(quote_for_shell("a/b-c.d"), "a/b-c.d");
        assert_eq!(quote_for_shell("a\0b c"), "'ab c'");
        assert_eq!(quote_for_shell("~x"), "'~x'");
    }

    #[test]
    fn problems_are_found_before_the_run() {
        for (text, line, column, message, hint) in [
            ("a\n {{ attemt }}", 2, 5, "unknown name `attemt`", "`attempt`"),
            ("{{ run.idd }}", 1, 4, "unknown name `run.idd`", "`run.id`"),
            ("{{ zzzzzzzz }}", 1, 4, "unknown name `zzzzzzzz`", "known names: run.id"),
            ("x {{ title", 1, 6, "invalid template", "raw"),
            ("{% if title %}", 1, 13, "invalid template", "raw"),
            ("{{ title | shh }}", 1, 12, "unknown filter", "`sh`"),
            ("{% if attempt > 1 %}{{ title | shh }}{% endif %}", 1, 32, "unknown filter", "`sh`"),
            ("{% if failure_context %}{{ 1 + lane }}{% endif %}", 1, 28, "invalid template", "raw"),
            ("{{ phase['title'] }}", 1, 4, "undefined", "raw"),
            ("{{ 1 // 0 }}", 1, 4, "invalid template", "raw"),
        ] {
            let found = check(text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].message.contains(message), "{text}: {found:?}");
            assert!(found[0].hint.as_ref().is_some_and(|h| h.contains(hint)), "{text}: {found:?}");
            assert_eq!((found[0].line, found[0].column), (line, column), "{text}: {found:?}");
        }
    }

    /// Lost: a plan that is right is refused.
    #[test]
    fn what_some_values_bear_is_no_problem() {
        for text in [
            "{{ title[0] }}{{ title[30] }}",
            "{{ (spec | split('/'))[1] }}",
            "{{ lane.id | int + 1 }}",
            "{{ 60 // (attempt - 1) if attempt > 1 else 0 }}",
        ] {
            assert_eq!(check(text), [], "{text}");
        }
    }

    #[test]
    fn an_unknown_name_is_never_empty_text() {
        assert!(render("{{ nothing }}", &vars()).is_err());
        assert!(render("{{ run.nothing }}", &vars()).is_err());
    }

    #[test]
    fn every_loop_ends() {
        let text = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(render(text, &vars()).is_err());
        assert!(check(text)[0].hint.as_ref().is_some_and(|h| h.contains("loops")));
    }

    /// Lost: a few hundred bytes take minutes and all memory there is, or a name of the language
    /// does.
    #[test]
    fn little_text_makes_little_work() {
        let twice = "{% set a = a ~ a %}".repeat(40);
        let nested = "{% for a in [a~a~a~a] %}".repeat(20) + &"{% endfor %}".repeat(20);
        for (text, word) in [
            (format!("{{% set a = 'x' %}}{twice}{{{{ a }}}}"), "no tag `set`"),
            (format!("{{{{ {} }}}}", vec!["'x' * 99999999"; 20].join(" ~ ")), "multiply"),
            ("{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m(title) }}".to_owned(), "`macro`"),
            ("{% with a = title ~ title %}{% endwith %}".to_owned(), "`with`"),
            ("{% block b %}{{ self.b() }}{% endblock %}".to_owned(), "`block`"),
            (
                "{%- for x in [1] recursive %}{{ loop([x ~ x]) }}{% endfor %}".to_owned(),
                "recursive",
            ),
            (format!("{{% for a in [title] %}}{nested}{{% endfor %}}"), "cannot add"),
            ("{{ {'a': {'b': 1}}, 'x' * 9 }}".to_owned(), "multiply"),
            ("{{ '{#' }}{% set a = 1 %}".to_owned(), "`set`"),
            ("{# {% raw %} #}{% set a = 1 %}".to_owned(), "`set`"),
            ("{{ 'a' | indent(999999999, true) }}".to_owned(), "too large"),
            ("{{ 'aaaa' | replace('a', 'b' | indent(99999, true)) | length }}".to_owned(), "large"),
            ("{{ range(9999) | join('b' | indent(9999, true)) }}".to_owned(), "too large"),
            ("{{ range(9999) | map('indent', 99999, true) | length }}".to_owned(), "too large"),
            ("{{ [1] | batch(999999999, 1) }}".to_owned(), "unknown filter"),
            ("{{ '%999999999d' | format(1) }}".to_owned(), "unknown filter"),
            ("{{ range(99999) | sort | first }}".to_owned(), "too large"),
            (
                format!("{{% for a in range(999) %}}{}{{% endfor %}}", "x".repeat(9_999)),
                "too large",
            ),
        ] {
            let found = check(&text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].message.contains(word), "{text}: {found:?}");
            let said = render(&text, &vars()).map(|filled| filled.len());
            assert!(said.as_ref().is_err_and(|e| e.message.contains(word)), "{text}: {said:?}");
        }
    }

    /// Lost: the stack overflows, and the program is gone without a word.
    #[test]
    fn deep_expressions_are_refused() {
        for (open, close) in [
            ("not ", ""),
            ("-", ""),
            ("(", ")"),
            ("[", "]"),
            ("1 + ", ""),
            ("1 ~ ", ""),
            ("1 if 1 else ", ""),
        ] {
            let text = format!("{{{{ {}1{} }}}}", open.repeat(50_000), close.repeat(50_000));
            assert!(check(&text)[0].message.contains("more than 200 words"), "{open}");
            assert!(render(&text, &vars()).is_err());
            assert!(!uses(&text, "spec"));
        }
        let chain = format!("{{{{ title{} }}}}", " | upper".repeat(50_000));
        let elifs = format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(50_000));
        let nested = "{% if 1 %}".repeat(50_000) + &"{% endif %}".repeat(50_000);
        for text in [chain, elifs, nested] {
            assert_eq!(check(&text).len(), 1);
        }
        // What is just within the limits is borne.
        let elifs = format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(100));
        let sum = format!("{{{{ {}1 }}}}", "- ".repeat(198));
        for text in [elifs, sum] {
            assert_eq!(check(&text), []);
        }
    }

    /// Lost: a plan that is right is refused.
    #[test]
    fn what_templates_are_for_is_allowed() {
        for text in [
            "{% raw %}{% set a = 2 * 3 %}{% endraw %}{{ title }}",
            "{# 2 * 3 {% set %} #}{{ '2 * 3 {% set %}' }}",
            "{%- for part in title | split(' ') -%} {{ loop.index }}. {{ part }} {%- endfor %}",
            "{% for a in range(3) %}{% for b in range(a) %}{{ a + b }}{% endfor %}{% endfor %}",
            "{{ failure_context | indent(2) }}{{ failure_context | indent(width=2, first=true) }}",
            "{{ ['a', 'b'] | join(', ') }}{{ title | replace('a', 'b') | upper }}",
            "{{ [{'a': 1}] | map(attribute='a') | join(', ') }}",
            "{{ ['a'] | map('upper') | list | join }}",
            "{% if attempt > 1 and not failure_context %}again{% elif attempt %}x{% else %}y{% endif %}",
        ] {
            assert_eq!(check(text), [], "{text}");
        }
    }
}
