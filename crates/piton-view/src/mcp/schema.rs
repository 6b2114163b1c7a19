//! JSON Schemas of what tools take and give, made from the same table that arguments are read by.

use serde_json::{Map, Value, json};

use super::tools::{Field, Kind, Param, Tool};

/// The schema of what a tool takes.
pub fn input(tool: &Tool) -> Map<String, Value> {
    let property = |param: &Param| (param.name.to_owned(), kind(&param.kind, param.about));
    let required: Vec<&str> =
        tool.params.iter().filter(|param| param.required).map(|param| param.name).collect();
    object(json!({
        "type": "object",
        "properties": tool.params.iter().map(property).collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    }))
}

/// The schema of what a tool gives.
pub fn output(tool: &Tool) -> Map<String, Value> {
    let property = |field: &Field| {
        // Some clients know only one type for each schema.
        let types: Vec<Value> = field.types.split('|').map(|one| json!({ "type": one })).collect();
        let mut schema = match types.as_slice() {
            [one] => one.clone(),
            many => json!({ "anyOf": many }),
        };
        schema["description"] = json!(field.about);
        (field.name.to_owned(), schema)
    };
    let required: Vec<&str> = tool.gives.iter().map(|field| field.name).collect();
    object(json!({
        "type": "object",
        "properties": tool.gives.iter().map(property).collect::<Map<_, _>>(),
        "required": required,
    }))
}

fn kind(kind: &Kind, about: &str) -> Value {
    let mut schema = match kind {
        Kind::Text { max } => json!({ "type": "string", "minLength": 1, "maxLength": max }),
        Kind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Texts { count, max } => json!({
            "type": "array",
            "items": { "type": "string", "minLength": 1, "maxLength": max },
            "maxItems": count,
        }),
    };
    schema["description"] = json!(about);
    schema
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
