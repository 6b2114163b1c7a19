//! JSON Schemas (draft 2020-12) of the plan and the settings, made from the table of keys.
//!
//! They serve editors: completion, types and explanations. Only the reader checks cycles, unknown
//! ids and templates.

use serde_json::{Value, json};

use crate::keys::{self, Key, Kind, Section};
use crate::settings::Sections;

/// The schema of `plan.toml`.
pub fn plan_schema() -> Value {
    document("Piton plan", &keys::PLAN)
}

/// The schema of `piton.toml`.
pub fn settings_schema(protocols: &Sections) -> Value {
    let mut schema = document("Piton settings", &keys::SETTINGS);
    for (id, section) in protocols {
        schema["properties"][*id] = table(section);
    }
    schema
}

fn document(title: &str, section: &Section) -> Value {
    let mut schema = table(section);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema
}

fn table(section: &Section) -> Value {
    let properties: serde_json::Map<String, Value> =
        section.keys().iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = match section.title {
        "the plan" => vec!["phase"],
        "a phase" | "a lane" | "a step" => vec!["id"],
        _ => Vec::new(),
    };
    let mut schema = json!({
        "type": "object",
        "description": section.doc,
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    // Exactly one: work of its own, or the parts that have work.
    let works: &[&str] = match section.title {
        "a phase" => &["run", "prompt", "prompt_file", "lane"],
        "a lane" => &["run", "prompt", "prompt_file", "steps", "step"],
        "a step" => &["run", "prompt", "prompt_file"],
        _ => return schema,
    };
    let one = |name: &&str| json!({ "required": [name] });
    schema["oneOf"] = works.iter().map(one).collect();
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = value(key.kind);
    schema["description"] = json!(key.doc);
    schema
}

fn value(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string", "pattern": TEXT_PATTERN }),
        Kind::Id => {
            let max = piton_core::id::ID_BYTES_MAX;
            let not = json!({ "pattern": ID_NO_PATTERN });
            json!({ "type": "string", "pattern": ID_PATTERN, "not": not, "maxLength": max })
        }
        Kind::Ids | Kind::Words => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Paths | Kind::Globs => json!({ "type": "array", "items": path() }),
        Kind::Path => path(),
        Kind::Command => {
            let program = json!({ "type": "string", "pattern": TEXT_PATTERN });
            let (first, rest) = (json!([program]), json!({ "type": "string" }));
            let list =
                json!({ "type": "array", "prefixItems": first, "items": rest, "minItems": 1 });
            json!({ "oneOf": [program, list] })
        }
        Kind::Duration => {
            json!({ "type": "string", "pattern": duration_pattern(), "examples": ["500ms", "45m", "1h30m"] })
        }
        Kind::Size => json!({
            "oneOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": SIZE_PATTERN }],
            "examples": ["64MB", "1GiB"],
        }),
        Kind::Money => json!({
            "oneOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": MONEY_PATTERN }],
            "examples": ["12.50"],
        }),
        Kind::Decimal => json!({ "type": "number", "minimum": 0 }),
        Kind::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Env => json!({
            "type": "object",
            "propertyNames": { "not": { "pattern": ENV_NO_PATTERN } },
            "additionalProperties": { "type": "string" },
        }),
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::Table(section) => table(section),
        Kind::Tables(section) => json!({ "type": "array", "items": table(section), "minItems": 1 }),
        Kind::Named(section) => json!({ "type": "object", "additionalProperties": table(section) }),
    }
}

fn path() -> Value {
    json!({ "type": "string", "minLength": 1, "not": { "pattern": PATH_NO_PATTERN } })
}

/// What every string must match.
const TEXT_PATTERN: &str = r"\S";
/// What no path may match: it would leave the project.
const PATH_NO_PATTERN: &str = r"^[/\\~]|^[A-Za-z]:|(^|[/\\{},])\.\.([/\\{},]|$)";
/// What no variable name may match.
const ENV_NO_PATTERN: &str = "^$|=|^PITON_";
const ID_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
/// What no id may match, because git refuses it in a branch name.
const ID_NO_PATTERN: &str = r"\.\.|\.$|\.lock$";
const SIZE_PATTERN: &str = r"^\s*[0-9][0-9_]*(\.[0-9]{1,6})?\s*(([kKmMgGtT][iI]?)?[bB])?\s*$";
const MONEY_PATTERN: &str = r"^\s*[0-9][0-9_]*(\.[0-9]{1,6})?\s*$";

/// The pattern of a duration: units from large to small, each once, at least one.
fn duration_pattern() -> String {
    let units = ["d", "h", "(m|min)", "(s|sec)", "ms"];
    let one = |unit: &&str| format!(r"[0-9][0-9_]*(\.[0-9]{{1,6}})?\s*{unit}\s*");
    // Each choice begins with a different unit; smaller units may follow.
    let choices = (0..units.len()).map(|first| {
        let rest = units[first + 1..].iter().map(|unit| format!("({})?", one(unit)));
        format!("{}{}", one(&units[first]), rest.collect::<String>())
    });
    format!(r"^\s*({})$", choices.collect::<Vec<_>>().join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{parse_duration, parse_money, parse_size};

    /// Lost: an editor would let pass what the reader refuses, or the other way round.
    #[test]
    fn patterns_and_reader_agree_on_quantities() -> Result<(), regex::Error> {
        let pattern = regex::Regex::new(SIZE_PATTERN)?;
        for text in [
            "5",
            "5K",
            "5 m",
            "5 MiB",
            "1.5GB",
            "1.2345678GB",
            "1_000",
            "_5",
            "5.MB",
            "",
            " 5 GB ",
            "5 XB",
        ] {
            assert_eq!(pattern.is_match(text), parse_size(text).is_ok(), "{text}");
        }
        let pattern = regex::Regex::new(&duration_pattern())?;
        for text in [
            "500ms",
            "90sec",
            "10 min",
            "1h 30m 5s",
            "5m1h",
            "",
            "5",
            "1.2345678s",
            "1_0s",
            " 1h ",
            "1h30",
            "1d2h3m4s5ms",
        ] {
            assert_eq!(pattern.is_match(text), parse_duration(text).is_ok(), "{text}");
        }
        let pattern = regex::Regex::new(MONEY_PATTERN)?;
        for text in ["12.50", "12", "12.1234567", "1_000", "$5", "-1", "", ".5", "5.", " 5 "] {
            assert_eq!(pattern.is_match(text), parse_money(text).is_ok(), "{text}");
        }
        Ok(())
    }

    /// Lost: an editor is content with a path that the reader refuses, or refuses one that it
    /// takes.
    #[test]
    fn pattern_and_reader_agree_on_paths() -> Result<(), regex::Error> {
        let pattern = regex::Regex::new(PATH_NO_PATTERN)?;
        for text in [
            "a/b", "/a", "\\a", "~/a", "a~", "C:/a", "a:b", "..", "../a", "a/..", "a/../b", "..a",
            "a..", "a/..b", "{a,../b}", "{..,b}", "a\\..\\b", "./a", "**/*.rs", "...", "a/.../b",
        ] {
            let taken = crate::text_rules::plain_path(text).is_ok();
            assert_eq!(!pattern.is_match(text), taken, "{text}");
        }
        Ok(())
    }

    /// Every key of a section, and of those below it, is in its schema with type and explanation.
    fn covers(section: &Section, schema: &Value) {
        for key in section.keys() {
            let property = &schema["properties"][key.name];
            assert!(property.is_object(), "{}: {}", section.title, key.name);
            assert!(!key.doc.is_empty() && property["description"] == key.doc, "{}", key.name);
            match key.kind {
                Kind::Table(below) => covers(below, property),
                Kind::Tables(below) => covers(below, &property["items"]),
                Kind::Named(below) => covers(below, &property["additionalProperties"]),
                _ => {}
            }
        }
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn an_editor_knows_every_key_the_reader_knows() {
        covers(&keys::PLAN, &plan_schema());
        covers(&keys::SETTINGS, &settings_schema(&[]));
    }

    #[test]
    fn lane_keys_have_their_types() {
        let schema = plan_schema();
        let lane = &schema["properties"]["phase"]["items"]["properties"]["lane"]["items"];
        assert_eq!(lane["properties"]["alone"]["type"], "boolean");
        assert_eq!(lane["properties"]["merge"]["enum"], json!(["queue", "pr", "none"]));
        assert_eq!(lane["properties"]["copy"]["type"], "array");
        let step = &lane["properties"]["steps"]["items"];
        assert!(step["properties"]["isolation"].is_null(), "a step works where its lane does");
    }

    #[test]
    fn names_its_draft() {
        assert_eq!(plan_schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(plan_schema()["required"], json!(["phase"]));
    }
}
