//! Lanes with worktrees: merged, in conflict, blocked.

use super::scene::{LaneDoc, Scene, document, lane};
use super::screen::Screen;

const RUN: &str = "run plans/phase-1.md --run-id r1 --jobs 1";

/// Lost: what a person reads while lanes are worked on and merged would be unread.
#[test]
fn lanes_that_are_merged() {
    let after = LaneDoc { index: &["Depends on: SL-1"], ..lane("SL-2") };
    let mut screen = Screen::with_lanes(|| Scene::of(&[lane("SL-1"), after]));
    screen.piton("run plans/phase-1.md --dry-run").is("lanes-dry");
    screen.piton(RUN).is("lanes-complete");
    screen.piton("status").is("lanes-status");
    screen.piton("show r1/P1/SL-1").is("lanes-show-lane");
    screen.piton("undo --list").piton("undo --dry-run").is("lanes-undo-list");
    screen.piton("undo --yes").is("lanes-undo-merge");
    screen.piton("rollback --lane SL-1 --dry-run").is("lanes-rollback-dry");
}

/// Lost: what is said about a conflict, and to whom, would be unread.
#[test]
fn lanes_in_conflict() {
    let quiet = |id, index| LaneDoc { test: "true".to_owned(), index, ..lane(id) };
    let mut screen = Screen::with_lanes(|| {
        let scene = Scene::of(&[quiet("SL-1", &[]), quiet("SL-2", &["Retries: 1"])]);
        let begun = scene.outside("begun").display().to_string();
        let root = scene.project.root().display().to_string();
        scene.agent(
            "SL-1",
            &format!("until [ -e {begun} ]; do sleep 0.02; done\necho one > README"),
        );
        scene.agent(
            "SL-2",
            &format!(
                "touch {begun}\nwhile [ -d {root}/.worktrees/P1/SL-1 ]; do sleep 0.02; done\n\
                 test $PITON_ATTEMPT != 1 || echo two > README"
            ),
        );
        scene
    });
    screen.piton("run plans/phase-1.md --run-id r1").is("lanes-conflict");
    screen.piton("status").is("lanes-conflict-status");
}

/// Lost: a start that needs the person would be unread, and how long it is.
#[test]
fn lanes_that_cannot_start() {
    let mut screen = Screen::with_lanes(|| Scene::of(&[lane("SL-1"), lane("SL-2"), lane("SL-3")]));
    screen.project.write("README", "changed\n");
    screen.project.write("new file.txt", "new\n");
    screen.piton(RUN).is("lanes-dirty-base");
    screen.piton("status").is("lanes-dirty-base-status");
    screen.piton("resume").is("lanes-dirty-base-resume");
}

/// Lost: what is said where an agent is not installed would be unread.
#[test]
fn an_agent_that_is_missing() {
    let mut screen = Screen::with_lanes(|| Scene::of(&[lane("SL-1")]));
    screen.project.write(
        "piton.toml",
        "[defaults]\nagent = \"claude\"\n[agents.claude]\ncommand = [\"no-such-agent\", \"-p\"]\n",
    );
    screen.project.commit();
    screen.piton(RUN).is("lanes-missing-agent");
}

/// Lost: what keeps a plan from running would be unread.
#[test]
fn a_plan_is_checked() {
    let mut screen = Screen::with_lanes(|| Scene::of(&[lane("SL-1")]));
    screen.piton("check plans/phase-1.md");
    screen.project.write(
        "piton.toml",
        "[defaults]\nagent = \"mine\"\n[agents.mine]\ncommand = [\"no-such-agent\", \"-p\"]\n",
    );
    screen.piton("check plans/phase-1.md").piton(RUN).is("check");
}

/// Lost: open gates of a document, and lanes without a repository, would be unread.
#[test]
fn gates_of_a_document() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-AUTH: the interface\n\n";
    let needs = LaneDoc { index: &["Depends on: IF-0-P1-AUTH"], ..lane("SL-1") };
    let mut screen = Screen::with_lanes(|| Scene::with(&document(gates, &[needs], ""), ""));
    screen.piton("inspect plans/phase-1.md").is("inspect");
    screen.piton(RUN).is("lanes-open-gate");
    screen.piton("approve IF-0-P1-AUTH").is("lanes-approve-gate");
}
