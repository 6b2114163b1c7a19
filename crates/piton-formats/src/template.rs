//! Templates in prompts and commands: `MiniJinja` with a fixed set of names.
//!
//! Unknown names are errors, never empty text, and the work of a template is limited, so that every
//! loop ends. There are no includes, no macros and no access to files or the environment.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Object;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use piton_core::state::StepState;
use piton_core::{Plan, RunState, StepPath};

mod check;

pub use check::{Problem, check};
pub use piton_core::shell::quoted as quote_for_shell;

/// Instructions one template may execute: enough for loops over thousands of items, and soon used
/// up by nested loops.
const FUEL: u64 = 20_000;

/// The table with what the protocol of a run gives a step.
const CONTEXT: &str = "context";

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
    ("context.NAME", "what the run's protocol gives the step as NAME; empty if it gives nothing"),
];

/// What the protocol of a run gives an attempt besides what its plan says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Texts that templates of the step use as `context.NAME`.
    pub context: BTreeMap<String, String>,
    /// Environment variables; those of the step and of Piton win.
    pub env: BTreeMap<String, String>,
    /// Stands before the prompt; not a template.
    pub before_prompt: String,
    /// Stands after the prompt; not a template.
    pub after_prompt: String,
}

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
    /// `context.NAME`, by name.
    pub context: BTreeMap<String, String>,
}

impl Vars {
    /// The values for an attempt of a step, without what the protocol gives.
    pub fn new(plan: &Plan, state: &RunState, path: &StepPath, attempt: u32) -> Self {
        Self {
            run_id: state.run_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            phase: path.phase.clone(),
            lane: path.lane.clone(),
            step: path.step.clone(),
            attempt,
            spec: plan.spec.clone(),
            title: plan.title.clone(),
            root: state.root.clone(),
            failure_context: state.failing(path).map(StepState::failure_text).unwrap_or_default(),
            context: BTreeMap::new(),
        }
    }

    /// The values under the names of [`NAMES`].
    fn values(&self) -> Value {
        context! {
            run => context! { id => &self.run_id },
            phase => context! { id => &self.phase },
            lane => context! { id => &self.lane },
            step => context! { id => &self.step },
            attempt => self.attempt,
            spec => self.spec.as_deref().unwrap_or_default(),
            title => &self.title,
            root => &self.root,
            failure_context => &self.failure_context,
            context => Value::from_object(Context(self.context.clone())),
        }
    }
}

/// The table `context`, in which every name has a text.
#[derive(Debug)]
struct Context(BTreeMap<String, String>);

impl Object for Context {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let text = key.as_str().and_then(|name| self.0.get(name));
        Some(Value::from(text.map(String::as_str).unwrap_or_default()))
    }
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

impl From<minijinja::Error> for Error {
    fn from(error: minijinja::Error) -> Self {
        Self { line: error.line().unwrap_or(1), message: describe(&error) }
    }
}

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(engine);

/// An engine with the rules of all our templates.
pub fn engine() -> Environment<'static> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    // With it, errors have a column.
    engine.set_debug(true);
    engine.set_fuel(Some(FUEL));
    // The engine would drop the last newline of a prompt.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        engine.set_syntax(syntax);
    }
    engine.add_filter("sh", |text: Value| quote_for_shell(&text.to_string()));
    engine
}

/// Whether a text needs the engine.
pub fn is_template(text: &str) -> bool {
    first_mark(text).is_some()
}

/// Where the first mark of a template begins.
fn first_mark(text: &str) -> Option<usize> {
    text.as_bytes().windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// Fills in a template.
pub fn render(template: &str, vars: &Vars) -> Result<String, Error> {
    if !is_template(template) {
        return Ok(template.to_owned());
    }
    Ok(ENGINE.render_str(template, vars.values())?)
}

/// Turns a text into a template that renders to exactly that text.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = first_mark(rest) {
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

/// Whether a template uses a name, such as `spec`.
pub fn uses(template: &str, name: &str) -> bool {
    let uses = |parsed: minijinja::Template<'_, '_>| {
        parsed.undeclared_variables(true).iter().any(|used| used == name)
    };
    is_template(template) && ENGINE.template_from_str(template).is_ok_and(uses)
}

/// The engine's own words, without its line numbers.
fn describe(error: &minijinja::Error) -> String {
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
            context: [("NAME".to_owned(), "given".to_owned())].into(),
        }
    }

    #[test]
    fn fills_in_every_name() {
        let all = NAMES.iter().map(|(name, _)| format!("{{{{ {name} }}}}")).collect::<Vec<_>>();
        assert_eq!(check(&all.join(" ")), []);
        assert_eq!(
            render(&all.join("|"), &vars()),
            Ok("r1|P1|L|work|2|spec.md|T|/p|it's <bad> & worse|given".to_owned())
        );
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
        let optional = "{{ context.other }}{% if context.other %}x{% endif %}";
        assert_eq!(check(optional), []);
        assert_eq!(render(optional, &vars()), Ok(String::new()), "a protocol may give nothing");
    }

    #[test]
    fn every_loop_ends() {
        let text = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(render(text, &vars()).is_err());
        assert!(check(text)[0].hint.as_ref().is_some_and(|h| h.contains("loops")));
    }

    /// Lost: a plan that is right is refused.
    #[test]
    fn what_templates_are_for_is_allowed() {
        for text in [
            "{% raw %}{% any %}{% endraw %}{{ title }}{# {% any %} #}{{ '{% any %}' }}",
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
