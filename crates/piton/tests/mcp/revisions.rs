//! How a conversation begins, goes wrong and ends.

use serde_json::{Value, json};

use super::client::{Client, REVISIONS, Revision, meta, server};
use super::scene::Scene;

/// Lost: one of the programs could not talk to the server at all.
#[test]
fn both_revisions_are_spoken() {
    let scene = Scene::new();
    let mut current = Client::of(server(&scene.project), Revision::Current);
    let found = current.ask("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().expect("versions").clone();
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&json!(version)), "{found}");
    }
    let info = &found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "piton", "{found}");
    let mut before = Client::of(server(&scene.project), Revision::Before);
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = before.ask("initialize", hello);
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(hello["result"]["serverInfo"]["name"], "piton");
    let words = hello["result"]["instructions"].as_str().expect("instructions");
    assert!(words.contains("Save progress"), "{words}");
    let tools =
        |client: &mut Client| client.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(tools(&mut current), tools(&mut before));
}

/// Lost: a client of the current revision would depend on what the connection heard before.
#[test]
fn a_request_that_says_all_needs_nothing_before_it() {
    let scene = Scene::new();
    for _ in 0..2 {
        let mut client = Client::of(server(&scene.project), Revision::Current);
        let moved = client.call("task_start", json!({ "task": "T001", "session": "a" }));
        assert_eq!(moved["task"], "T001");
    }
    assert_eq!(scene.board()["in_progress"], json!(["T001"]));
}

/// Lost: a slow start, after which a client cancels its probe and falls back, would end the server.
#[test]
fn a_probe_that_was_given_up_does_not_end_the_server() {
    let scene = Scene::new();
    let mut client = Client::of(server(&scene.project), Revision::Before);
    client.line(&json!({ "jsonrpc": "2.0", "id": "probe", "method": "server/discover", "params": { "_meta": meta() } }).to_string());
    client.line(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "probe" } }).to_string());
    assert_eq!(client.heard()["id"], "probe");
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert!(client.ask("initialize", hello)["result"].is_object());
}

/// Lost: a line of rubbish would end the connection, or fill the memory.
#[test]
fn bad_lines_are_survived() {
    let scene = Scene::new();
    for revision in REVISIONS {
        let mut client = Client::new(&scene.project, revision);
        client.line("this is not JSON");
        client.line("");
        client.line(&"x".repeat(3 << 20));
        client.line("{\"jsonrpc\":\"2.0\",\"id\":");
        client.line(&json!({ "jsonrpc": "2.0", "id": 77, "result": {} }).to_string());
        let answer = client.ask("tools/list", json!({}));
        assert!(answer["result"]["tools"].is_array(), "{answer}");
        let unknown = client.ask("no/such", json!({}));
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
        client.line("[1, 2]");
        let odd = client.heard();
        assert_eq!((&odd["id"], &odd["error"]["code"]), (&Value::Null, &json!(-32600)), "{odd}");
        assert!(client.ask("resources/list", json!({}))["result"].is_object());
        assert_eq!(client.end(), Some(0));
    }
}

/// Lost: the first bare request of a client of the revision before would end the server.
#[test]
fn a_request_that_says_too_little_is_told_so() {
    let scene = Scene::new();
    let mut client = Client::of(server(&scene.project), Revision::Before);
    let answer = client.ask("tools/list", json!({}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    assert!(client.ask("initialize", hello)["result"].is_object());
    let old = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1999-01-01" } });
    assert!(client.ask("tools/list", old)["error"]["message"].is_string());
}

/// Lost: a server would outlive its client, or fail because the client went away.
#[test]
fn it_ends_with_its_input() {
    let scene = Scene::new();
    assert_eq!(Client::of(server(&scene.project), Revision::Current).end(), Some(0));
    let mut client = Client::new(&scene.project, Revision::Before);
    // What was asked before the end is still done.
    client.send(
        "tools/call",
        json!({ "name": "task_start", "arguments": { "task": "T001", "session": "a" } }),
    );
    assert_eq!(client.end(), Some(0));
    assert_eq!(scene.board()["in_progress"], json!(["T001"]));
}

/// Lost: many requests at once would be answered out of order of their effects, or not at all.
#[test]
fn requests_may_come_faster_than_answers_are_read() {
    let scene = Scene::new();
    let mut client = Client::new(&scene.project, Revision::Current);
    let asked: Vec<u64> = (0..64).map(|_| client.send("resources/list", json!({}))).collect();
    let mut heard: Vec<u64> =
        asked.iter().map(|_| client.heard()["id"].as_u64().expect("an id")).collect();
    heard.sort_unstable();
    assert_eq!(heard, asked);
}

/// Lost: an agent would not know what a tool takes and gives, and a client could not check it.
#[test]
fn every_tool_has_complete_schemas() {
    let scene = Scene::new();
    let mut client = Client::new(&scene.project, Revision::Current);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().expect("tools");
    assert!(tools.len() >= 14, "{}", tools.len());
    for tool in tools {
        let name = &tool["name"];
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 30), "{name}");
        assert_eq!(tool["annotations"]["destructiveHint"], false, "{name}");
        for side in ["inputSchema", "outputSchema"] {
            let schema = &tool[side];
            assert_eq!(schema["type"], "object", "{name}");
            assert!(schema["required"].is_array(), "{name}");
            for (key, property) in schema["properties"].as_object().expect("properties") {
                assert!(property["description"].is_string(), "{name} {side} {key}");
                let is_text = side == "inputSchema" && property["type"] == "string";
                let is_limited = property["maxLength"].is_u64() || property["enum"].is_array();
                assert!(!is_text || is_limited, "{name} {key}");
            }
        }
    }
}
