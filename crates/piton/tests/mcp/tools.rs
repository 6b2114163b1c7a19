//! Each tool, and what it leaves on disk.

use serde_json::{Value, json};

use super::client::{Client, REVISIONS, Revision, server};
use super::scene::{BOARD, Scene};

/// Lost: an agent could not work through a task, save it, and have another one continue.
#[test]
fn a_task_goes_from_one_session_to_the_next() {
    for revision in REVISIONS {
        let scene = Scene::new();
        let mut client = Client::new(&scene.project, revision);
        let moved = client.call("task_start", json!({ "task": "T001", "session": "a" }));
        assert_eq!(moved["column"], "inProgress");
        assert_eq!(scene.board()["in_progress"], json!(["T001"]));
        // A second time nothing moves.
        client.call("task_start", json!({ "task": "T001", "session": "a" }));
        let phase = client.call("phase_start", json!({ "phase": "hardening", "session": "a" }));
        assert_eq!(phase["current"], "hardening");
        let low = client.call("report_tokens", json!({ "used": 1000, "session": "a" }));
        assert_eq!((&low["percent"], &low["halt"]), (&json!(0), &json!(false)));
        let saved = client.call("checkpoint", json!({ "message": "before lunch", "session": "a" }));
        assert_eq!((&saved["saved"], &saved["checkpoint"]), (&json!(true), &json!("session-1")));
        assert_eq!(scene.latest()["reason"], "manual");
        assert_eq!(scene.latest()["state"]["currentPhase"], "hardening");
        let full = json!({ "used": 182_000, "window": 200_000, "session": "a" });
        let critical = client.call("report_tokens", full.clone());
        assert_eq!(
            (&critical["halt"], &critical["reason"]),
            (&json!(true), &json!("token_critical"))
        );
        assert_eq!(scene.files("checkpoints", "emergency-").len(), 1);
        let again = client.call("report_tokens", full);
        assert_eq!((&again["halt"], &again["checkpoint"]), (&json!(true), &Value::Null));
        let mut next = Client::new(&scene.project, revision);
        let resumed = next.call("resume", json!({ "session": "b" }));
        assert_eq!((&resumed["start"], &resumed["task"]), (&json!("resumed"), &json!("T001-1")));
        assert!(
            resumed["context"].as_str().is_some_and(|text| text.contains("T001-1")),
            "{resumed}"
        );
        let done = next.call("task_finish", json!({ "task": "T001-1", "session": "b" }));
        assert_eq!((&done["column"], &done["synced"]), (&json!("done"), &json!(true)));
        let twice = next.call("task_finish", json!({ "task": "T001-1", "session": "b" }));
        assert_eq!(twice["column"], "done");
        assert_eq!(scene.latest()["timestamp"], "");
        let fresh = next.call("resume", json!({ "session": "b" }));
        assert_eq!(fresh["start"], "fresh");
        let ended = next.call("phase_finish", json!({ "phase": "hardening", "session": "b" }));
        assert_eq!(ended["current"], Value::Null);
    }
}

/// Lost: a brief of a session says nothing of its task, and the next session not what was made.
#[test]
fn a_brief_of_a_session_tells_its_task_and_files() {
    let scene = Scene::new();
    let mut client = Client::new(&scene.project, Revision::Current);
    client.call("task_start", json!({ "task": "T001", "session": "a" }));
    client.call("phase_start", json!({ "phase": "hardening", "session": "a" }));
    scene.project.write("docs/adr.md", "We use SQLite.\n");
    let made = json!({ "path": "docs/adr.md", "message": "the decision", "session": "a" });
    client.call("record_artifact", made);
    client.call("checkpoint", json!({ "session": "a" }));
    let told = client.call("brief", json!({}));
    let text = told["text"].as_str().unwrap_or_default();
    for words in [
        "T001: Sign in is in inProgress",
        "hardening",
        "Token",
        "docs/adr.md: the decision",
        "Finish T001",
        "T003",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains("work/tasks"), "{text}");
    let resumed = client.call("resume", json!({ "session": "b" }));
    let text = resumed["context"].as_str().unwrap_or_default();
    assert!(text.contains("- docs/adr.md: the decision"), "{text}");
}

/// Lost: what an agent made could not be found again, or would be recorded again and again.
#[test]
fn artifacts_are_recorded_with_their_hash() {
    let scene = Scene::new();
    let mut client = Client::new(&scene.project, Revision::Current);
    scene.project.write("docs/adr.md", "We use SQLite.\n");
    let asked = json!({ "path": "docs/adr.md", "message": "the decision", "session": "a" });
    let first = client.call("record_artifact", asked.clone());
    assert_eq!((&first["path"], &first["bytes"]), (&json!("docs/adr.md"), &json!(15)));
    let run = first["run_id"].as_str().expect("a run").to_owned();
    let count = || scene.project.events(&run).len();
    let before = count();
    client.call("record_artifact", asked.clone());
    assert_eq!(count(), before, "the same file is recorded once");
    scene.project.write("docs/adr.md", "We use a file.\n");
    let second = client.call("record_artifact", asked);
    assert_ne!(first["sha256"], second["sha256"]);
    scene.project.piton(&["status", &run]).exits(0).says("docs/adr.md");
    scene.project.piton(&["report", &run]).exits(0);
}

/// Lost: an agent could not see what there is, or what changed.
#[test]
fn runs_checkpoints_briefs_and_differences_can_be_read() {
    let scene = Scene::new();
    let mut client = Client::new(&scene.project, Revision::Before);
    assert_eq!(client.call("list", json!({ "what": "runs" })), json!({ "runs": [], "all": 0 }));
    client.call("task_start", json!({ "task": "T001", "session": "a" }));
    client.call("checkpoint", json!({ "message": "one", "session": "a" }));
    scene.project.write("src/new.rs", "fn new() {}\n");
    let runs = client.call("list", json!({ "what": "runs", "limit": 1 }));
    let run = runs["runs"][0]["run_id"].as_str().expect("a run").to_owned();
    let points = client.call("list", json!({ "what": "checkpoints", "run": run }));
    assert_eq!(
        (&points["checkpoints"][0]["name"], &points["checkpoints"][0]["message"]),
        (&json!("session-1"), &json!("one"))
    );
    let brief = client.call("brief", json!({ "run": run, "tokens": 500 }));
    assert!(brief["text"].as_str().is_some_and(|text| !text.is_empty()), "{brief}");
    let diff = client.call("diff", json!({ "from": "session-1", "run": run }));
    assert_eq!(diff["changes"], json!([{ "path": "src/new.rs", "kind": "added" }]));
    assert!(diff["text"].as_str().is_some_and(|text| text.contains("+fn new() {}")), "{diff}");
    let stat = client.call("diff", json!({ "from": "session-1", "stat": true, "run": run }));
    assert!(
        stat["text"]
            .as_str()
            .is_some_and(|text| text.contains("src/new.rs") && !text.contains("+fn"))
    );
    // The same as resources.
    let listed = client.ask("resources/list", json!({}));
    let uris: Vec<&str> = listed["result"]["resources"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["uri"].as_str())
        .collect();
    assert!(uris.contains(&format!("piton://runs/{run}").as_str()), "{uris:?}");
    for uri in &uris {
        assert!(!client.read(uri).is_empty(), "{uri}");
    }
    let all: Value =
        serde_json::from_str(&client.read(&format!("piton://runs/{run}"))).expect("JSON");
    let shown = scene.project.piton(&["show", &run, "--json"]).exits(0).json();
    assert_eq!((&all["run_id"], &all["checkpoints"]), (&shown["run_id"], &shown["checkpoints"]));
    let point = client.read(&format!("piton://runs/{run}/checkpoints/session-1"));
    assert!(point.contains("\"message\": \"one\""), "{point}");
    let templates = client.ask("resources/templates/list", json!({}));
    assert_eq!(templates["result"]["resourceTemplates"].as_array().map(Vec::len), Some(4));
    let missing = client.ask("resources/read", json!({ "uri": "piton://runs/none" }));
    assert!(
        missing["error"]["message"].as_str().is_some_and(|text| text.contains("no run `none`")),
        "{missing}"
    );
    let odd = client.ask("resources/read", json!({ "uri": "file:///etc/passwd" }));
    assert!(
        odd["error"]["message"].as_str().is_some_and(|text| text.contains("no resource")),
        "{odd}"
    );
}

/// Lost: an agent's question would not reach the person, or be answered by the agent itself.
#[test]
fn a_person_is_asked_once_and_alone_answers() {
    let scene = Scene::new();
    let mut client = Client::new(&scene.project, Revision::Current);
    let question = json!({ "question": "Delete the old table?", "session": "a" });
    let asked = client.call("ask_approval", question.clone());
    assert_eq!((&asked["approval"], &asked["standing"]), (&json!("ask:1"), &json!("waiting")));
    let run = asked["run_id"].as_str().expect("a run").to_owned();
    scene.project.piton(&["waiting"]).exits(0).says("Delete the old table?");
    assert_eq!(client.call("ask_approval", question.clone()), asked, "asked once");
    // From below the program that started a server, as an agent's shell is.
    let own = format!(
        "\"{}\" mcp < /dev/zero & server=$!; \"{}\" approve {run} ask:1; code=$?; kill $server; exit $code",
        super::common::PITON,
        super::common::PITON
    );
    scene.project.sh(&own).exits(4).says("comes from an agent");
    scene.project.piton(&["approve", &run, "ask:1", "-m", "go ahead"]).exits(0);
    let seen = client.call("approval", json!({ "approval": "ask:1", "session": "a" }));
    let seen = &seen["approvals"][0];
    assert_eq!((&seen["standing"], &seen["message"]), (&json!("approved"), &json!("go ahead")));
    assert_eq!(client.call("ask_approval", question)["standing"], "approved");
    client.call("ask_approval", json!({ "question": "And the new one?", "session": "a" }));
    scene.project.piton(&["reject", &run, "And the new one?"]).exits(0);
    let all = client.call("approval", json!({ "session": "a" }));
    assert_eq!(all["approvals"][1]["standing"], "rejected");
    // An answer of no is not a failure of the work.
    client.call("task_start", json!({ "task": "T001", "session": "a" }));
    scene.project.piton(&["status", &run]).exits(0);
}

/// Lost: two agents in one project would work on each other's record.
#[test]
fn two_agents_are_told_apart_by_their_sessions() {
    let scene = Scene::new();
    let claude = |session: &str| {
        let mut command = server(&scene.project);
        command.env("CLAUDE_CODE_SESSION_ID", session);
        Client::of(command, Revision::Current)
    };
    let (mut one, mut two) = (claude("one"), claude("two"));
    let first = one.call("task_start", json!({ "task": "T001" }));
    let second = two.call("task_start", json!({ "task": "T003" }));
    assert_ne!(first["run_id"], second["run_id"]);
    let saved = one.call("checkpoint", json!({}));
    assert_eq!((&saved["run_id"], &saved["session"]), (&first["run_id"], &json!("one")));
    let other = one.refused("checkpoint", json!({ "session": "two" }));
    assert!(
        other.contains("this is session one") && other.contains("leave `session` out"),
        "{other}"
    );
    // Codex names its thread with each call.
    let mut codex = Client::new(&scene.project, Revision::Before);
    let turn = json!({ "x-codex-turn-metadata": { "thread_id": "three" } });
    let call = json!({ "name": "checkpoint", "arguments": {}, "_meta": turn });
    let answer = codex.ask("tools/call", call);
    assert_eq!(answer["result"]["structuredContent"]["session"], "three", "{answer}");
}

/// Lost: an agent that calls a tool in a wrong way would not learn what to do instead.
#[test]
fn errors_say_what_to_do_next() {
    let scene = Scene::new();
    let mut client = Client::new(&scene.project, Revision::Current);
    for (tool, arguments, words) in [
        ("task_start", json!({}), "needs the argument `task`"),
        ("task_start", json!({ "task": "T999" }), "open tasks: T001, T002, T003"),
        ("task_finish", json!({ "task": "T1", "extra": 1 }), "has no argument `extra`"),
        ("phase_finish", json!({ "phase": "x", "session": "a" }), "start the phase first"),
        ("record_artifact", json!({ "path": "none.md" }), "write the file first"),
        ("brief", json!({ "run": "nothing" }), "`piton runs` lists the runs"),
        ("diff", json!({ "from": "never", "session": "a" }), "hint:"),
        ("request_replan", json!({ "reason": "x" }), "there is no unfinished run here"),
        ("request_replan", json!({ "reason": "x", "run": "session-" }), "is an agent's session"),
        ("approval", json!({ "approval": "ask:9", "session": "a" }), "there is no gate `ask:9`"),
        ("ask_approval", json!({ "question": "" }), "a text of 1 to 1000 characters"),
        ("checkpoint", json!({ "run": "nothing" }), "there is no run `nothing`"),
    ] {
        let text = client.refused(tool, arguments);
        assert!(text.contains(words), "{tool}: {text}");
        assert!(text.contains("hint: "), "{tool}: {text}");
    }
    let unknown = client.ask("tools/call", json!({ "name": "approve", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("use checkpoint, list"))
    );
    assert!(!scene.project.read(BOARD).contains("T999"));
}

/// Lost: in a project without a memory bank an agent would be told nothing.
#[test]
fn a_project_without_a_memory_bank_is_said_to_be_one() {
    let project = super::common::Project::new();
    let mut client = Client::new(&project, Revision::Current);
    let text = client.refused("checkpoint", json!({}));
    assert!(
        text.contains("neither a memory bank nor an unfinished run")
            && text.contains("work/backlog.yaml"),
        "{text}"
    );
    assert_eq!(client.call("resume", json!({}))["start"], "no_bank");
    let text = client.refused("phase_start", json!({ "phase": "x" }));
    assert!(text.contains("there is no memory bank here"), "{text}");
    assert!(!project.state_dir().exists(), "nothing is left behind");
}
