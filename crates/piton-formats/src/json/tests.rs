//! What an edit leaves alone must stay byte for byte, whatever the document looks like.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn edited(text: &str, edit: impl FnOnce(&mut Object) -> bool) -> String {
    let mut object = Object::new("x.json", text).unwrap();
    assert!(edit(&mut object), "{text}");
    assert!(Object::new("x.json", object.text()).is_ok(), "{}", object.text());
    object.into_text()
}

#[test]
fn a_value_is_replaced_where_it_is() {
    let text = "\u{feff}{\r\n\t\"b\" : 1.50,\r\n\t\"a\":  \"x\"\r\n}";
    let set = edited(text, |o| o.set(&["a"], "y"));
    assert_eq!(set, text.replace("\"x\"", "\"y\""));
    assert_eq!(edited(text, |o| o.set(&["b"], json!(1.5))), text);
    let more = edited(text, |o| o.set(&["c"], json!({ "d": [1, 2] })));
    let added = "\"x\",\r\n\t\"c\":  {\r\n\t\t\"d\":  [1, 2]\r\n\t}\r\n}";
    assert_eq!(more, text.replace("\"x\"\r\n}", added));
}

#[test]
fn documents_on_one_line_stay_on_one_line() {
    let text = r#"{"a":{"b":1},"c":[1]}"#;
    assert_eq!(
        edited(text, |o| o.set(&["a", "d"], json!([1, 2]))),
        r#"{"a":{"b":1,"d":[1,2]},"c":[1]}"#
    );
    assert_eq!(
        edited(text, |o| o.push(&["c"], json!({"x": 1}))),
        r#"{"a":{"b":1},"c":[1,{"x":1}]}"#
    );
    let text = r#"{"a": {}, "c": [1]}"#;
    assert_eq!(edited(text, |o| o.set(&["a", "d"], 1_u64)), r#"{"a": {"d": 1}, "c": [1]}"#);
    assert_eq!(edited(text, |o| o.push(&["c"], 2_u64)), r#"{"a": {}, "c": [1, 2]}"#);
}

#[test]
fn lists_keep_their_form() {
    let tall = "{\n  \"a\": [\n    1\n  ],\n  \"b\": [],\n  \"c\": {\"d\": null}\n}\n";
    let pushed = edited(tall, |o| o.push(&["a"], 2_u64));
    assert_eq!(pushed, tall.replace("    1\n", "    1,\n    2\n"));
    let set = edited(tall, |o| o.set(&["a"], json!([3, 4])));
    assert_eq!(set, tall.replace("    1\n", "    3,\n    4\n"));
    assert_eq!(edited(tall, |o| o.push(&["b"], 7_u64)), tall.replace("[]", "[7]"));
    let object = edited(tall, |o| o.push(&["b"], json!({ "x": 1 })));
    assert_eq!(object, tall.replace("[]", "[\n    {\n      \"x\": 1\n    }\n  ]"));
    let inner = edited(tall, |o| o.set(&["c", "d", "e"], json!([1, { "f": 2 }])));
    assert_eq!(inner, tall.replace("null", "{\"e\": [1, {\"f\": 2}]}"));
}

#[test]
fn members_are_removed_with_their_comma() {
    let text = "{\n  \"a\": 1,\n  \"b\": {\"x\": 1},\n  \"a\": 2\n}\n";
    assert_eq!(edited(text, |o| o.remove(&["a"])), "{\n  \"b\": {\"x\": 1}\n}\n");
    assert_eq!(edited(text, |o| o.remove(&["b", "x"])), text.replace("{\"x\": 1}", "{}"));
    let mut object = Object::new("x", text).unwrap();
    assert!(!object.remove(&["c"]) && !object.remove(&["a", "c"]));
    assert_eq!(object.get(&["a"]), Some(json!(2)));
}

#[test]
fn what_is_not_an_object_on_the_way_is_not_overwritten() {
    let text = r#"{"a": [1], "b": "x"}"#;
    let mut object = Object::new("x", text).unwrap();
    assert!(
        !object.set(&["a", "b"], 1_u64) && !object.push(&["b"], 1_u64) && !object.set(&[], 1_u64)
    );
    assert_eq!(object.text(), text);
}

#[test]
fn a_text_that_is_not_an_object_is_refused_with_its_line() {
    for (text, line, words) in [
        ("{ invalid json\n", 1, "not valid JSON"),
        ("\u{feff}{\n\"a\": 1,\n", 3, "cut off"),
        ("[1]", 1, "not an object"),
        ("", 1, "empty"),
    ] {
        let problem = Object::new("x.json", text).unwrap_err();
        assert_eq!(problem.line, line, "{text}");
        assert!(problem.message.contains(words), "{}", problem.message);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\{}\\[\\],:ä\n]{0,6}".prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d\"]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d\"]", value(), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// A document in one of several layouts.
fn laid_out(value: &Value, layout: u8) -> String {
    let tall = serde_json::to_string_pretty(value).unwrap();
    match layout % 4 {
        0 => value.to_string(),
        1 => tall,
        2 => format!("\u{feff}{}\r\n", tall.replace('\n', "\r\n")),
        _ => format!("\n{} \n\n", tall.replace("  ", "\t")),
    }
}

proptest! {
    /// Lost: an edit changes what it was not asked to change.
    #[test]
    fn an_edit_changes_one_value(
        value in object(), layout in 0_u8..4, name in "[a-e\"]", inner in "[a-e]",
        new in value(), deep in any::<bool>(),
    ) {
        let text = laid_out(&value, layout);
        let mut object = Object::new("x", &text).unwrap();
        let path = [name.as_str(), inner.as_str()];
        let path = if deep { &path[..] } else { &path[..1] };
        let done = object.set(path, new.clone());
        let read = |text: &str| serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')).unwrap();
        let mut wanted = value.clone();
        if done && deep {
            let within = &mut wanted[&name];
            if within.is_null() { *within = json!({}); }
            within[&inner] = new;
        } else if done {
            wanted[&name] = new;
        }
        prop_assert_eq!(read(object.text()), wanted.clone());
        // Everything before the first and after the last changed byte is as it was.
        if wanted == value {
            prop_assert_eq!(object.text(), &text);
        }
        for (other, raw) in Object::new("x", &text).unwrap().members() {
            if other != name {
                prop_assert!(object.members().contains(&(other, raw)));
            }
        }
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,40}") {
        if let Ok(mut object) = Object::new("x", &text) {
            object.set(&["a", "b"], 1_u64);
            object.push(&["c"], 1_u64);
            object.remove(&["a"]);
        }
    }
}

/// Lost: a remark in somebody's settings, or the settings are refused because of one.
#[test]
fn comments_stay_where_they_are() {
    let text = "{ // first, \"a\": [\n\t\"url\": \"http://x/*y*/\", // mine\n\t\"mcp\": {}, /* none */\n}\n";
    let mut object = Object::with_comments("f", text).unwrap();
    assert!(object.set(&["mcp", "piton"], 1));
    assert!(object.set(&["new"], true));
    let wanted = "{ // first, \"a\": [\n\t\"url\": \"http://x/*y*/\", // mine\n\t\"mcp\": {\n\t\t\"piton\": 1\n\t},\n\t\"new\": true, /* none */\n}\n";
    assert_eq!(object.text(), wanted);
    assert_eq!(object.get(&["url"]), Some("http://x/*y*/".into()));
    assert!(object.remove(&["mcp"]));
    let left = object.text();
    assert!(left.contains("// mine") && left.contains("\"new\": true"), "{left}");
    assert!(Object::with_comments("f", left).is_ok(), "{left}");
    for (text, left) in [
        ("{\n  // mine\n  \"mcp\": 1, /* none */\n}\n", "{\n  // mine\n   /* none */\n}\n"),
        ("{\"a\": 1, // mine\n \"mcp\": 1}", "{\"a\": 1 // mine\n }"),
        ("{\"mcp\": 1, // mine\n \"a\": 1}", "{ // mine\n \"a\": 1}"),
    ] {
        let mut object = Object::with_comments("f", text).unwrap();
        assert!(object.remove(&["mcp"]));
        assert_eq!(object.text(), left);
        assert!(Object::with_comments("f", left).is_ok(), "{left}");
    }
    for bad in ["{ /", "{ /* }", "{,}", "{\"a\": 1,, }", "[1, ]"] {
        assert!(Object::with_comments("f", bad).is_err(), "{bad}");
    }
    assert!(Object::new("f", text).is_err());
}
