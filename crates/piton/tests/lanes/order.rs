//! Which lanes run when, and whose names are used.

use super::common::wait_until;
use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// Makes lanes note when they come and go.
fn noted(lanes: &[LaneDoc], more: &str) -> Scene {
    let scene = Scene::with(&document("", lanes, more), "");
    for lane in lanes {
        let log = scene.outside("order");
        scene.agent(
            lane.id,
            &format!(
                "echo +{id} >> {log}; sleep 0.1; echo x > {id}-01.txt; echo -{id} >> {log}",
                id = lane.id,
                log = log.display()
            ),
        );
    }
    scene
}

/// Most lanes that were at work at once.
fn most(order: &[String]) -> i32 {
    let (mut now, mut most) = (0, 0);
    for line in order {
        now += if line.starts_with('+') { 1 } else { -1 };
        most = most.max(now);
    }
    most
}

/// Lost: more agents at once than asked for.
#[test]
fn jobs_limit_the_lanes_at_work() {
    let lanes = [lane("SL-1"), lane("SL-2"), lane("SL-3")];
    let scene = noted(&lanes, "");
    scene.run(&["--jobs", "1"]).exits(0);
    assert_eq!(most(&scene.told("order")), 1);
    assert_eq!(scene.subjects("main").len(), 4);
    scene.nothing_left();
}

/// Lost: a lane that shares something with all others would run beside them.
#[test]
fn a_lane_that_is_not_parallel_safe_runs_alone() {
    let alone = LaneDoc { index: &["Parallel-safe: no (shares the router)"], ..lane("SL-2") };
    let scene = noted(&[lane("SL-1"), alone, lane("SL-3")], "");
    scene.run(&["--jobs", "3"]).exits(0);
    let order = scene.told("order");
    let at = |line: &str| order.iter().position(|l| l == line).unwrap();
    assert_eq!(at("-SL-2"), at("+SL-2") + 1, "{order:?}");
    let before = &order[..at("+SL-2")];
    assert_eq!(before.iter().filter(|l| l.starts_with('+')).count() * 2, before.len(), "{order:?}");
    scene.nothing_left();
}

/// Lost: a lane would start without the work of the lanes it needs.
#[test]
fn a_lane_finds_the_merged_work_of_those_it_depends_on() {
    let second = LaneDoc { index: &["Depends on: SL-1"], ..lane("SL-2") };
    let third = LaneDoc { test: "test -e SL-1-01.txt".to_owned(), ..lane("SL-3") };
    let first = LaneDoc { index: &["Blocks: SL-3"], ..lane("SL-1") };
    let scene = Scene::of(&[first, second, third]);
    for id in ["SL-2", "SL-3"] {
        scene.agent(id, &format!("test -e SL-1-01.txt && echo x > {id}-01.txt"));
    }
    scene.run(&[]).exits(0);
    assert_eq!(scene.subjects("main").len(), 4);
    scene.nothing_left();
}

/// Lost: lanes that need a failed one would start, or the others would not.
#[test]
fn what_needs_a_failed_lane_waits() {
    let second = LaneDoc { index: &["Depends on: SL-1"], ..lane("SL-2") };
    let scene = Scene::of(&[lane("SL-1"), second, lane("SL-3")]);
    scene.agent("SL-1", "exit 7");
    scene.run(&["--keep-going"]).exits(1);
    assert!(scene.project.has("SL-3-01.txt") && !scene.project.has("SL-2-01.txt"));
    assert_eq!(scene.stage_status("SL-2", "before_lane_start"), "");
    scene.usual_agent("SL-1");
    scene.resume(&[]).exits(0);
    scene.nothing_left();
}

/// Lost: gates that a lane provides would stay open in the document, or hold the lane behind it.
#[test]
fn gates_that_a_lane_provides_are_ticked_when_it_completes() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-API: the interface\n\n";
    let first = LaneDoc {
        prose: "**Interfaces Provided**:\n\n- `IF-0-P1-API`: the interface",
        ..lane("SL-1")
    };
    let second = LaneDoc { index: &["Depends on: IF-0-P1-API"], ..lane("SL-2") };
    let scene = Scene::with(&document(gates, &[first, second], ""), "");
    let seen = scene.outside("seen");
    scene.agent(
        "SL-2",
        &format!("ls > {0}; cat \"$(git rev-parse --git-common-dir)/../{DOCUMENT}\" >> {0}; echo x > SL-2-01.txt", seen.display()),
    );
    scene.run(&[]).exits(0);
    let text = scene.project.read(DOCUMENT);
    assert!(text.contains("- [x] IF-0-P1-API: the interface"), "{text}");
    let seen = scene.told("seen");
    assert!(seen.iter().any(|l| l == "SL-1-01.txt"), "{seen:?}");
    assert!(seen.iter().any(|l| l.contains("- [x] IF-0-P1-API")), "{seen:?}");
}

/// Lost: other phases would start on an interface that was taken back, or a person's tick would go.
#[test]
fn a_gate_is_open_again_when_its_lane_is_rolled_back() {
    let gates =
        "## Interface Freeze Gates\n\n- [ ] IF-0-P1-API: ours\n- [x] IF-0-P1-UI: theirs\n\n";
    let first =
        LaneDoc { prose: "**Interfaces Provided**: IF-0-P1-API, IF-0-P1-UI", ..lane("SL-1") };
    let scene = Scene::with(&document(gates, &[first, lane("SL-2")], ""), "");
    let boxes = || {
        let text = scene.project.read(DOCUMENT);
        let ticked = |gate: &str| text.contains(&format!("- [x] {gate}"));
        (ticked("IF-0-P1-API"), ticked("IF-0-P1-UI"))
    };
    scene.run(&[]).exits(0);
    assert_eq!(boxes(), (true, true));
    let back = ["rollback", "--to", "before_lane_start", "--lane", "SL-1", "--yes"];
    scene.project.piton(&back).exits(0);
    assert_eq!(boxes(), (false, true));
    scene.project.piton(&["undo", "--yes"]).exits(0);
    assert_eq!(boxes(), (true, true));
    scene.project.piton(&back).exits(0);
    assert_eq!(boxes(), (false, true));
    scene.resume(&[]).exits(0);
    assert_eq!(boxes(), (true, true));
    scene.nothing_left();
}

/// Lost: a phase whose lanes do not work together would be complete.
#[test]
fn a_failing_validation_after_the_last_merge_blocks_the_phase() {
    let plan = "## H. Test Execution Plan\n\n```bash\ntest -e SL-1-01.txt && test -e SL-2-01.txt && test -e fixed.txt\n```\n";
    let scene = Scene::with(&document("", &[lane("SL-1"), lane("SL-2")], plan), "");
    scene.run(&[]).exits(1).says("validation");
    assert!(scene.project.has("SL-1-01.txt") && scene.project.has("SL-2-01.txt"));
    let record = scene.record("-", "after_lane_tests");
    assert_eq!(record["status"], "failed", "{record:#}");
    assert_eq!(record["worktree_path"], scene.project.root().display().to_string());
    scene.project.write("fixed.txt", "");
    scene.project.commit();
    scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    scene.nothing_left();
}

/// Lost: a branch or folder of the user's that happens to have our name.
#[test]
fn branches_and_folders_of_others_are_left_alone() {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    scene.project.git(&["branch", "lane/P1/SL-1"]);
    let own = scene.workspace("SL-2");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("mine.txt"), "mine\n").unwrap();
    let before = scene.project.git(&["rev-parse", "lane/P1/SL-1"]);
    scene.run(&[]).exits(0).says("was not created by piton");
    assert_eq!(scene.project.git(&["rev-parse", "lane/P1/SL-1"]), before);
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
    assert_eq!(std::fs::read_to_string(own.join("mine.txt")).unwrap(), "mine\n");
    assert!(scene.project.has("SL-1-01.txt") && scene.project.has("SL-2-01.txt"));
    assert_eq!(scene.worktrees(), Vec::<String>::new());
}

/// Lost: a lane could not start, because git has no branch below another.
#[test]
fn a_branch_of_the_user_above_ours_is_left_alone() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.git(&["branch", "lane"]);
    scene
        .run(&[])
        .exits(0)
        .says("the branch lane/P1/SL-1, or one above it, was not created by piton");
    assert!(scene.project.has("SL-1-01.txt"));
    assert_eq!(scene.project.git(&["branch", "--list", "lane"]).trim(), "lane");
}

/// Lost: a worktree of the user's on our branch.
#[test]
fn a_worktree_of_the_user_on_our_path_is_left_alone() {
    let scene = Scene::of(&[lane("SL-1")]);
    let workspace = scene.workspace("SL-1").display().to_string();
    scene.project.git(&["worktree", "add", "--quiet", "-b", "lane/P1/SL-1", &workspace]);
    std::fs::write(scene.workspace("SL-1").join("mine.txt"), "mine\n").unwrap();
    scene.run(&[]).exits(0);
    assert_eq!(scene.worktrees(), [workspace]);
    assert!(scene.workspace("SL-1").join("mine.txt").exists());
    assert!(scene.project.has("SL-1-01.txt"));
}

/// Lost: what a lane had done when its driver was killed would be made again from nothing.
#[test]
fn after_a_kill_the_worktree_of_the_lane_is_used_again() {
    let scene = Scene::of(&[lane("SL-1")]);
    let here = scene.outside("here").display().to_string();
    scene.agent(
        "SL-1",
        &format!("echo $PITON_ATTEMPT >> kept.txt; touch {here}; while [ ! -e {here}.go ]; do sleep 0.02; done; echo x > SL-1-01.txt"),
    );
    let mut driver = scene.project.spawn(&["run", DOCUMENT]);
    wait_until("the agent works", || scene.outside("here").exists());
    driver.kill();
    scene.project.kill_all();
    std::fs::write(scene.outside("here.go"), "").unwrap();
    scene.resume(&[]).exits(0);
    assert_eq!(scene.project.read("kept.txt"), "1\n2\n");
    scene.nothing_left();
}
