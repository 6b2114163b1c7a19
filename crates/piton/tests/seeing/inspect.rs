//! `piton inspect` on files of the lanes protocol: what it prints, and its exit codes.

use serde_json::json;

use super::common::Project;

const PHASE: &str = "# P2: Search\n## Interface Freeze Gates\n- [ ] IF-0-P2-INDEX: frozen\n\
    ## Lane Index & Dependencies\n- SL-INDEX -- Index\n  - Depends on: (none)\n\
    - SL-QUERY -- Query\n  - Depends on: IF-0-P2-INDEX\n\
    ## Tasks\n\
    | Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
    |---|---|---|---|---|---|\n\
    | SL-INDEX-1 | impl | - | a | - | `true` |\n\
    | SL-QUERY-1 | impl | - | b | - | `true` |\n";

/// Lost: a program could not ask what a document says, nor whether it is good.
#[test]
fn a_file_is_told_apart_read_and_left_alone() {
    let project = Project::without_git("plain");
    project.write("phase.md", PHASE);
    let found = project.piton(&["inspect", "phase.md", "--json"]).exits(0).json();
    assert_eq!((&found["format"], &found["valid"]), (&json!("lanes/phase"), &json!(true)));
    assert_eq!(found["data"]["phase_id"], "P2");
    assert_eq!(found["data"]["lanes"][1]["blocked_by"], json!(["IF-0-P2-INDEX"]));
    let said = project.piton(&["inspect", "phase.md"]).exits(0);
    assert!(said.stdout.contains("SL-QUERY (Query): 1 task, waits for IF-0-P2-INDEX"), "{said:?}");
    assert_eq!(project.read("phase.md"), PHASE);
    assert!(!project.state_dir().exists(), "looking at a file makes no state");

    project.write("checkpoints.json", "[{\"run_id\": ");
    let found = project.piton(&["inspect", "checkpoints.json", "--json"]).exits(1).json();
    assert_eq!((&found["format"], &found["valid"]), (&json!("lanes/checkpoints"), &json!(false)));
    assert_eq!(found["problems"][0]["severity"], "error");
    let said = project.piton(&["inspect", "checkpoints.json"]).exits(1);
    assert!(
        said.stderr.contains("checkpoints.json:1:") && said.stderr.contains("hint:"),
        "{said:?}"
    );

    project.write("notes.md", "# Notes\n");
    let found = project.piton(&["inspect", "notes.md", "--json"]).exits(2).json();
    assert_eq!((&found["format"], &found["data"]), (&json!(null), &json!(null)));
    let missing = project.piton(&["inspect", "none.md", "--json"]).exits(2).json();
    assert_eq!(missing["error"]["code"], "unreadable-file");
}
