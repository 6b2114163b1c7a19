//! A server that the agent of a step started.

use piton_core::Event;
use serde_json::{Value, json};

use super::client::meta;
use super::common::{Project, wait_until};

/// A step that sends lines to a server and keeps what it says.
fn plan(calls: &[(&str, Value)]) -> String {
    let line = |(at, (tool, arguments)): (usize, &(&str, Value))| {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta() });
        json!({ "jsonrpc": "2.0", "id": at, "method": "tools/call", "params": params }).to_string()
    };
    let lines: Vec<String> = calls.iter().enumerate().map(line).collect();
    format!(
        "[[phase]]\nid = \"P1\"\nrun = '''\ncat > lines.txt <<'END'\n{}\nEND\n$PROGRAM mcp < lines.txt > answers.txt\n'''\n\n\
         [[phase]]\nid = \"P2\"\ngate = \"Go\"\nrun = \"true\"\n",
        lines.join("\n")
    )
}

fn answers(project: &Project) -> Vec<Value> {
    let mut all: Vec<Value> = project
        .lines("answers.txt")
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    all.sort_by_key(|answer| answer["id"].as_u64());
    all.into_iter().map(|answer| answer["result"].clone()).collect()
}

/// Lost: an agent in a step could write the record of its own work, or could not ask for help.
#[test]
fn inside_a_step_requests_go_to_its_run_and_the_rest_is_refused() {
    let session = json!({ "task": "T001", "session": "a" });
    let calls = [
        ("checkpoint", json!({ "message": "half way" })),
        ("ask_approval", json!({ "question": "Drop the table?" })),
        ("approval", json!({ "approval": "ask:1" })),
        ("request_replan", json!({ "reason": "too large" })),
        ("brief", json!({})),
        ("list", json!({ "what": "checkpoints" })),
        ("task_start", session.clone()),
        ("task_finish", session),
        ("phase_start", json!({ "phase": "x" })),
        ("record_artifact", json!({ "path": "plan.toml" })),
        ("report_tokens", json!({ "used": 190_000 })),
        ("resume", json!({})),
    ];
    let project = Project::with_plan(&plan(&calls));
    project.write(
        "work/backlog.yaml",
        "backlog:\n  - id: T001\n    title: A\ninProgress: []\nblocked: []\ndone: []\n",
    );
    project.commit();
    let output = project.piton(&["run", "plan.toml", "--run-id", "r"]);
    let all = answers(&project);
    assert_eq!(all.len(), calls.len(), "{output:?}");
    assert_eq!(all[0]["structuredContent"]["checkpoint"], "manual-1", "{}", all[0]);
    assert_eq!(all[1]["structuredContent"]["approval"], "ask:1", "{}", all[1]);
    assert_eq!(all[2]["structuredContent"]["approvals"][0]["standing"], "waiting", "{}", all[2]);
    assert_eq!(all[3]["structuredContent"]["phase"], "P1", "{}", all[3]);
    assert_eq!(all[4]["structuredContent"]["run_id"], "r", "{}", all[4]);
    for (at, answer) in all.iter().enumerate().skip(6) {
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        assert_eq!(answer["isError"], true, "{}: {answer}", calls[at].0);
        assert!(
            text.contains("this is a step of run r") && text.contains("use checkpoint"),
            "{text}"
        );
    }
    let asked = project.events("r").into_iter().find_map(|event| match event {
        Event::ApprovalAsked(e) => e.step,
        _ => None,
    });
    assert_eq!(asked.map(|step| step.to_string()).as_deref(), Some("P1/main/work"));
    assert!(!project.has("checkpoints/latest.json"));
}

/// Lost: a question of a step would hold its run up, fail it, or be answered by the step.
#[test]
fn a_step_sees_the_answer_that_a_person_gives() {
    let ask = plan(&[("ask_approval", json!({ "question": "Drop it?" }))]);
    let look = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "approval", "arguments": {}, "_meta": meta() } });
    let wait = format!(
        "$PROGRAM approve ask:1 2> refused.txt; echo $? > code.txt\ntouch asked\nwhile [ ! -e go ]; do sleep 0.05; done\n\
         echo '{look}' | $PROGRAM mcp > seen.txt\n'''\n\n[[phase]]\nid = \"P2\"\ngate"
    );
    let project =
        Project::with_plan(&ask.replacen("'''\n\n[[phase]]\nid = \"P2\"\ngate", &wait, 1));
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("asked");
    assert_eq!(
        project.lines("code.txt"),
        ["4"],
        "a step cannot answer: {}",
        project.read("refused.txt")
    );
    project.piton(&["reject", "r", "ask:1", "-m", "keep it"]).exits(0);
    project.write("go", "");
    let output = driver.wait();
    let seen: Value =
        serde_json::from_str(project.lines("seen.txt").last().expect("a line")).expect("JSON");
    let text = seen["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("rejected by tester: keep it"), "{text}");
    // The gate of the plan is what the run waits for.
    assert_eq!(output.code, 3, "{output:?}");
    wait_until("the run waits", || project.status("r") == "waiting");
}
