//! JSON Schemas (draft 2020-12) of plan and settings, made from the table of keys.
//!
//! They serve editors: completion, types and explanations while typing. What only the reader can
//! judge (cycles, unknown ids, templates) stays with the reader.

use serde_json::{Value, json};

use crate::keys::{self, Key, Kind, Section};

/// The schema of `plan.toml`.
pub fn plan_schema() -> Value {
    document("Piton plan", &keys::PLAN)
}

/// The schema of `piton.toml`.
pub fn settings_schema() -> Value {
    document("Piton settings", &keys::SETTINGS)
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
        "an agent" => vec!["command"],
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
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = value(key.kind);
    schema["description"] = json!(key.doc);
    schema
}

fn value(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Id => {
            json!({ "type": "string", "pattern": ID_PATTERN, "maxLength": piton_core::id::ID_BYTES_MAX })
        }
        Kind::Ids | Kind::Paths | Kind::Globs | Kind::Words => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        Kind::Path => json!({ "type": "string", "minLength": 1 }),
        Kind::Command => json!({
            "oneOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ]
        }),
        Kind::Duration => {
            json!({ "type": "string", "pattern": DURATION_PATTERN, "examples": ["500ms", "45m", "1h30m"] })
        }
        Kind::Size => json!({
            "oneOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": SIZE_PATTERN }],
            "examples": ["64MB", "1GiB"],
        }),
        Kind::Money => json!({
            "oneOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": MONEY_PATTERN }],
            "examples": ["12.50"],
        }),
        Kind::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Env => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::Table(section) => table(section),
        Kind::Tables(section) => json!({ "type": "array", "items": table(section), "minItems": 1 }),
        Kind::Named(section) => json!({ "type": "object", "additionalProperties": table(section) }),
    }
}

const ID_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
const DURATION_PATTERN: &str = r"^\s*([0-9][0-9_]*(\.[0-9]+)?\s*(ms|sec|s|min|m|h|d)\s*)+$";
const SIZE_PATTERN: &str = r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*([kKmMgGtT]([iI])?)?[bB]?\s*$";
const MONEY_PATTERN: &str = r"^\s*[0-9][0-9_]*(\.[0-9]{1,6})?\s*$";

#[cfg(test)]
mod tests {
    use super::*;

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
        covers(&keys::SETTINGS, &settings_schema());
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
