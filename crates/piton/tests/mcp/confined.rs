//! Nothing outside of the project is read.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::client::{Client, Revision};
use super::scene::{BOARD, Scene};

/// Lost: an agent could have files of the person read and recorded that are none of its business.
#[test]
fn a_path_that_leaves_the_project_is_refused() {
    let scene = Scene::new();
    let root = scene.project.root().to_owned();
    let secret = scene.project.outside().join("secret.txt");
    std::fs::write(&secret, "hunter2").expect("a file outside");
    symlink(&secret, root.join("link.txt")).expect("a link");
    symlink(scene.project.outside(), root.join("folder")).expect("a link");
    symlink(scene.project.outside().join("not-yet"), root.join("dangling")).expect("a link");
    let mut client = Client::new(&scene.project, Revision::Current);
    let whole = secret.to_string_lossy().into_owned();
    for path in [
        "../secret.txt",
        whole.as_str(),
        "link.txt",
        "folder/secret.txt",
        "dangling",
        ".git/config",
    ] {
        let text = client.refused("record_artifact", json!({ "path": path, "session": "a" }));
        assert!(text.contains("outside-project"), "{path}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    // The whole path of a file of the project is one of the project.
    let own = root.join(BOARD).to_string_lossy().into_owned();
    assert_eq!(
        client.call("record_artifact", json!({ "path": own, "session": "a" }))["path"],
        BOARD
    );
}

/// Lost: a memory bank whose files are links would be a way to read anything.
#[test]
fn a_bank_that_links_out_of_the_project_is_not_read() {
    let scene = Scene::new();
    let outside = scene.project.outside().join("board.yaml");
    std::fs::rename(scene.project.root().join(BOARD), &outside).expect("moved");
    symlink(&outside, scene.project.root().join(BOARD)).expect("a link");
    let mut client = Client::new(&scene.project, Revision::Before);
    for (tool, arguments) in [
        ("task_start", json!({ "task": "T001", "session": "a" })),
        ("checkpoint", json!({ "session": "a" })),
        ("resume", json!({ "session": "a" })),
        ("report_tokens", json!({ "used": 190_000, "session": "a" })),
    ] {
        let text = client.refused(tool, arguments);
        assert!(text.contains("outside-project") && text.contains(BOARD), "{tool}: {text}");
    }
}

/// Lost: a server started in one project would show the runs of another.
#[test]
fn a_run_of_another_project_is_not_known() {
    let (here, there) = (Scene::new(), Scene::new());
    let mut other = Client::new(&there.project, Revision::Current);
    other.call("task_start", json!({ "task": "T001", "session": "a" }));
    let run = other.call("list", json!({ "what": "runs" }))["runs"][0]["run_id"].clone();
    let mut client = Client::new(&here.project, Revision::Current);
    let text = client.refused("brief", json!({ "run": run }));
    assert!(text.contains("no-run") || text.contains("no-ledger"), "{text}");
}
