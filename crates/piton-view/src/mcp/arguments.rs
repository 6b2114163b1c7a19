//! The arguments of a call, checked against the table of tools.

use serde_json::{Map, Value};

use super::tools::{Kind, Param, Tool};

/// What is wrong with an argument, in words for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

/// Arguments that fit the tool.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Checks what a client sent; says what is wrong with it.
    pub fn read(tool: &Tool, given: Map<String, Value>) -> Result<Self, Wrong> {
        // A client may send null for what it leaves out.
        let given: Map<_, _> = given.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let known: Vec<&str> = tool.params.iter().map(|param| param.name).collect();
        if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("`{}` has no argument `{name}`; it has: {known}", tool.name);
            return Err(Wrong(message));
        }
        for param in tool.params {
            match given.get(param.name) {
                Some(value) => check(param, value).map_err(|Wrong(wanted)| {
                    Wrong(format!("the argument `{}` must be {wanted}", param.name))
                })?,
                None if param.required => {
                    return Err(Wrong(format!(
                        "`{}` needs the argument `{}`: {}",
                        tool.name, param.name, param.about
                    )));
                }
                None => {}
            }
        }
        Ok(Self(given))
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A text that is there: the table says so.
    pub fn needed(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// A number.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// Texts.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let all = self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }

    /// Whether something is asked for.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }
}

fn check(param: &Param, value: &Value) -> Result<(), Wrong> {
    let must_be = |words: String| Err(Wrong(words));
    let is_text = |value: &Value, max: usize| {
        let text = value.as_str().unwrap_or_default();
        !text.trim().is_empty() && text.chars().count() <= max
    };
    match param.kind {
        Kind::Text { max } if is_text(value, max) => Ok(()),
        Kind::Text { max } => must_be(format!("a text of 1 to {max} characters")),
        Kind::Count { min, max } if value.as_u64().is_some_and(|n| (min..=max).contains(&n)) => {
            Ok(())
        }
        Kind::Count { min, max } => must_be(format!("a whole number from {min} to {max}")),
        Kind::Word(words) if value.as_str().is_some_and(|word| words.contains(&word)) => Ok(()),
        Kind::Word(words) => must_be(format!("one of: {}", words.join(", "))),
        Kind::Flag if value.is_boolean() => Ok(()),
        Kind::Flag => must_be("true or false".to_owned()),
        Kind::Texts { count, max } => {
            let fits =
                |all: &Vec<Value>| all.len() <= count && all.iter().all(|one| is_text(one, max));
            if value.as_array().is_some_and(fits) {
                Ok(())
            } else {
                must_be(format!("a list of at most {count} texts of 1 to {max} characters"))
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step is a failed test")]
mod tests {
    use serde_json::json;

    use super::super::TOOLS;
    use super::*;

    fn read(name: &str, given: &Value) -> Result<Arguments, Wrong> {
        let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
        Arguments::read(tool, given.as_object().unwrap().clone())
    }

    #[test]
    fn what_is_wrong_with_an_argument_is_said() {
        for (name, given, wanted) in [
            ("task_start", json!({}), "needs the argument `task`"),
            (
                "task_start",
                json!({ "task": "T1", "tsk": 1 }),
                "has no argument `tsk`; it has: task",
            ),
            ("task_start", json!({ "task": 7 }), "`task` must be a text of 1 to"),
            ("list", json!({ "what": "all" }), "`what` must be one of: runs, checkpoints"),
            ("report_tokens", json!({ "used": -1 }), "`used` must be a whole number from 0"),
            ("checkpoint", json!({ "parts": [""] }), "`parts` must be a list of at most 8 texts"),
            ("diff", json!({ "from": "now", "stat": "yes" }), "`stat` must be true or false"),
        ] {
            let Wrong(why) = read(name, &given).unwrap_err();
            assert!(why.contains(wanted), "{why}");
        }
    }

    #[test]
    fn null_stands_for_nothing() {
        let read = read("brief", &json!({ "run": null, "tokens": 500 })).unwrap();
        assert_eq!((read.text("run"), read.count("tokens")), (None, Some(500)));
    }
}
