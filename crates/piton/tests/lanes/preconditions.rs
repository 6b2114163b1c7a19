//! What must hold before a lane begins: each refusal says what and how to fix it, creates nothing,
//! and a resume goes on once it is fixed.

use super::common::{Output, Project};
use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// Checks that a lane was refused and nothing was made.
#[track_caller]
fn refused(scene: &Scene, said: Output, what: &str, fix: &str) {
    let said = said.exits(4).says(what).says(fix);
    assert_eq!(scene.branches(), Vec::<String>::new(), "{}", said.stderr);
    assert_eq!(scene.worktrees(), Vec::<String>::new(), "{}", said.stderr);
    assert!(!scene.workspace("SL-1").exists());
}

/// Lost: lanes would start without what the user has not committed yet, and say nothing.
#[test]
fn a_dirty_base_is_refused_by_name_until_it_is_clean() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.write("README", "changed\n");
    scene.project.write("new file.txt", "new\n");
    let said = scene.run(&[]);
    refused(&scene, said.clone(), "README", "--seed-dirty");
    refused(&scene, scene.resume(&[]), "new file.txt", "commit");
    assert_eq!(scene.stage_status("SL-1", "before_lane_start"), "blocked");
    let record = scene.record("SL-1", "before_lane_start");
    let notes = record["notes"].as_str().unwrap();
    assert!(notes.contains("README"), "{record:#}");
    assert_eq!(notes.matches("--seed-dirty").count(), 1, "the way out is told once: {notes}");
    assert!(said.stderr.contains("before_lane_start (blocked)"), "{}", said.stderr);
    scene.project.commit();
    scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    assert_eq!(scene.stage_status("SL-1", "before_lane_start"), "ready");
    scene.nothing_left();
}

/// Lost: our own files would stop the next lane.
#[test]
fn views_and_worktrees_are_no_dirt() {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    scene.run(&["--lane", "SL-1"]).exits(0);
    scene.run(&["--resume", "--lane", "SL-2"]).exits(0);
    assert!(scene.project.has(".claude/run-logs"), "the views are there");
    let dirt = scene.project.git(&["status", "--porcelain"]);
    assert!(!dirt.contains(".claude"), "and git ignores them: {dirt}");
    scene.nothing_left();
}

/// Lost: with `--seed-dirty`, what the user has at hand would not reach the lane.
#[test]
fn a_seeded_lane_starts_from_the_uncommitted_state() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.write("gone.txt", "soon\n");
    scene.project.commit();
    scene.project.write("README", "changed\n");
    scene.project.write("dir/new.txt", "untracked\n");
    scene.project.remove("gone.txt");
    let seen = scene.outside("seen");
    scene.agent(
        "SL-1",
        &format!(
            "cat README dir/new.txt > {0}; test -e gone.txt || echo gone >> {0}\n\
             echo x > SL-1-01.txt",
            seen.display()
        ),
    );
    let said = scene.run(&["--seed-dirty"]).exits(0);
    assert_eq!(scene.told("seen"), ["changed", "untracked", "gone"], "{}", said.stderr);
    assert_eq!(scene.project.read("README"), "changed\n");
    assert_eq!(scene.project.read("dir/new.txt"), "untracked\n");
    assert!(!scene.project.has("gone.txt"));
    assert_eq!(scene.project.git(&["show", "main:dir/new.txt"]), "untracked\n");
    scene.nothing_left();
}

/// Lost: the plan itself would be committed under the name of a lane.
#[test]
fn a_plan_that_is_not_committed_is_no_work_of_a_seeded_lane() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.git(&["rm", "--quiet", "--cached", super::scene::DOCUMENT]);
    scene.project.git(&["commit", "--quiet", "-m", "without the plan"]);
    scene.project.write("new.txt", "untracked\n");
    scene.run(&["--seed-dirty"]).exits(0);
    let files = scene.project.git(&["ls-tree", "-r", "--name-only", "main"]);
    assert!(files.contains("new.txt") && !files.contains(super::scene::DOCUMENT), "{files}");
    assert!(scene.project.has(super::scene::DOCUMENT));
}

/// Lost: a seeded lane that changed the seed would overwrite what the user has at hand.
#[test]
fn a_seeded_file_that_the_lane_changed_holds_the_merge_until_it_is_away() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.write("README", "changed\n");
    scene.project.write("dir/new.txt", "untracked\n");
    scene.agent("SL-1", "echo more >> README; echo more >> dir/new.txt; echo x > SL-1-01.txt");
    scene.run(&["--seed-dirty"]).exits(4).says("dir/new.txt");
    assert_eq!(scene.project.read("README"), "changed\n");
    assert_eq!(scene.project.read("dir/new.txt"), "untracked\n");
    // Out of the way, the lane's work brings them back.
    scene.project.git(&["stash", "push", "--quiet", "--include-untracked", "--", "README", "dir"]);
    scene.resume(&[]).exits(0);
    assert_eq!(scene.project.read("dir/new.txt"), "untracked\nmore\n");
    scene.nothing_left();
}

/// Lost: a lane would start from the middle of a merge, with its conflict markers.
#[test]
fn a_merge_under_way_is_no_seed() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.git(&["checkout", "--quiet", "-b", "other"]);
    scene.project.write("README", "theirs\n");
    scene.project.commit();
    scene.project.git(&["checkout", "--quiet", "main"]);
    scene.project.write("README", "ours\n");
    scene.project.commit();
    scene.project.sh("git merge --quiet other");
    scene.run(&["--seed-dirty"]).exits(4).says("in progress");
    assert_eq!(scene.worktrees(), Vec::<String>::new());
}

/// Lost: lanes would start from a branch nobody meant.
#[test]
fn another_base_is_refused_unless_it_is_named() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.write(
        "piton.toml",
        &format!("[lanes]\nbase = \"main\"\n{}", scene.project.read("piton.toml")),
    );
    scene.project.commit();
    scene.project.git(&["checkout", "--quiet", "-b", "topic"]);
    let said = scene.run(&[]).exits(4).says("main").says("topic");
    assert!(
        said.stderr.contains("git switch") || said.stderr.contains("--base"),
        "{}",
        said.stderr
    );
    assert_eq!(scene.branches(), ["topic"]);
    scene.resume(&["--base", "topic"]).exits(0);
    assert!(scene.subjects("topic").len() > scene.subjects("main").len());
    let record = scene.record("SL-1", "pre_pr");
    assert_eq!(record["target_branch"], "topic", "{record:#}");
}

/// Lost: a mistyped base.
#[test]
fn a_base_that_is_not_there_is_refused() {
    let scene = Scene::of(&[lane("SL-1")]);
    refused(&scene, scene.run(&["--base", "mian"]), "mian", "");
}

/// Lost: a lane would start although the interface it needs is not frozen.
#[test]
fn open_gates_are_listed_and_hold_only_the_lanes_that_need_them() {
    let gates = "## Interface Freeze Gates\n\n\
                 - [ ] IF-0-P1-AUTH: the interface\n- [ ] IF-0-P1-DATA: the data\n\
                 - [ ] IF-0-P1-OTHER: not needed\n\n";
    let mut first = lane("SL-1");
    first.index = &["Depends on: IF-0-P1-AUTH, IF-0-P1-DATA"];
    let scene = Scene::with(&document(gates, &[first, lane("SL-2")], ""), "");
    let said = scene.run(&[]).exits(4).says("IF-0-P1-AUTH").says("IF-0-P1-DATA").says("- [x]");
    assert!(!said.stderr.contains("IF-0-P1-OTHER"), "{}", said.stderr);
    let record = scene.record("SL-1", "before_lane_start");
    assert_eq!((&record["status"], &record["base_branch"]), (&"blocked".into(), &"main".into()));
    assert_eq!(scene.stage_status("SL-2", "pre_pr"), "complete");
    assert!(!scene.workspace("SL-1").exists());
    let text = scene.project.read(DOCUMENT);
    let text = text.replace("- [ ] IF-0-P1-AUTH", "- [x] IF-0-P1-AUTH");
    scene.project.write(DOCUMENT, &text.replace("- [ ] IF-0-P1-DATA", "- [x] IF-0-P1-DATA"));
    scene.resume(&[]).exits(0);
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "complete");
    scene.nothing_left();
}

/// Lost: a gate would hold nothing where the phase has a name that no plan can have.
#[test]
fn an_open_gate_holds_its_lane_whatever_the_phase_is_called() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-AUTH: the interface\n\n";
    let first = LaneDoc { index: &["Depends on: IF-0-P1-AUTH"], ..lane("SL-1") };
    let text = document(gates, &[first], "").replace("# P1:", "# Phase 1:");
    let scene = Scene::with(&text, "[lanes]\nworktrees = \"workspaces\"");
    scene.run(&[]).exits(4).says("Phase-1/SL-1 is blocked: open gates: IF-0-P1-AUTH");
    assert!(!scene.project.has("SL-1-01.txt"));
    // The settings say where it will work.
    let record = scene.record("SL-1", "before_lane_start");
    let workspace = scene.project.root().join("workspaces/Phase-1/SL-1").display().to_string();
    assert_eq!(record["worktree_path"], workspace, "{record:#}");
    scene.project.write(DOCUMENT, &text.replace("- [ ] IF", "- [x] IF"));
    scene.resume(&[]).exits(0);
    assert!(scene.project.has("SL-1-01.txt"));
}

/// Lost: a lane that was chosen without what it needs would be refused without a reason.
#[test]
fn a_chosen_lane_names_the_lane_and_the_gate_it_waits_for() {
    let gates = "## Interface Freeze Gates\n\n- [ ] IF-0-P1-API: the interface\n\n";
    let (mut first, mut second) = (lane("SL-1"), lane("SL-2"));
    first.prose = "**Provides**: IF-0-P1-API";
    first.index = &["Parallel-safe: no"];
    second.index = &["Depends on: IF-0-P1-API"];
    let scene = Scene::with(&document(gates, &[first, second], ""), "");
    let said = scene.run(&["--lane", "SL-2", "--dry-run"]).exits(0);
    assert!(said.stdout.contains("P1/SL-2 cannot start: it needs P1/SL-1"), "{}", said.stdout);
    let said = scene.run(&["--lane", "SL-2", "--run-id", "r"]).exits(4);
    let said = said.says("P1/SL-1").says("IF-0-P1-API").says("piton resume r --lane SL-1");
    assert!(!said.stderr.contains("skipped or rejected"), "{}", said.stderr);
    let record = scene.record("SL-2", "before_lane_start");
    assert_eq!((&record["status"], &record["base_branch"]), (&"blocked".into(), &"main".into()));
    assert!(record["notes"].as_str().unwrap().contains("P1/SL-1"), "{record:#}");
    // What was refused does not keep the other from running alone.
    scene.resume(&["r"]).exits(0);
    assert_eq!(scene.stage_status("SL-2", "before_lane_start"), "ready");
    assert_eq!(scene.stage_status("SL-2", "pre_pr"), "complete");
    scene.nothing_left();
}

/// Lost: a task without its fields would be given to an agent.
#[test]
fn missing_task_fields_are_a_request_for_a_plan_update() {
    let text = document("", &[lane("SL-1")], "");
    let scene = Scene::with(&text.replace("| SL-1-01.txt | - | `test", "| | - | `test"), "");
    let said = scene.run(&[]).exits(4).says("SL-1-01").says("plan update");
    assert!(said.stderr.contains("phase-1.md:"), "it names the line: {}", said.stderr);
    assert_eq!(scene.branches(), Vec::<String>::new());
    assert!(!scene.project.has(super::scene::CHECKPOINTS));
}

/// Lost: lanes that were only guessed would run.
#[test]
fn without_a_lane_index_the_lanes_are_confirmed() {
    let text = document("", &[lane("SL-1")], "");
    let (start, end) =
        (text.find("## Lane Index").unwrap(), text.find("## D. Swim Lanes").unwrap());
    let scene = Scene::with(&format!("{}{}", &text[..start], &text[end..]), "");
    scene.run(&["--dry-run"]).exits(0).says("SL-1").says("no lane index");
    scene.run(&[]).exits(3).says("SL-1").says("--yes");
    assert_eq!(scene.worktrees(), Vec::<String>::new());
    scene.run(&["--yes"]).exits(0);
    scene.nothing_left();
}

/// Lost: a lane would start before what it waits for, only because the words were not understood.
#[test]
fn a_dependency_that_is_not_understood_is_asked_about_once() {
    let waits = LaneDoc { index: &["Depends on: the other team"], ..lane("SL-1") };
    let scene = Scene::of(&[waits]);
    let said = scene.run(&[]).exits(3);
    said.says("\"the other team\", which is not a lane, gate or phase").says("--yes");
    assert_eq!(scene.worktrees(), Vec::<String>::new());
    scene.agent("SL-1", "exit 1");
    scene.run(&["--yes"]).exits(1);
    scene.agent("SL-1", "echo x > SL-1-01.txt");
    let hint = scene.record("SL-1", "after_lane_start")["resume_hint"].as_str().unwrap().to_owned();
    scene.paste(&hint).exits(0);
}

/// Lost: work would be merged to a branch that nobody named.
#[test]
fn a_detached_head_is_refused_and_base_may_be_named() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.git(&["checkout", "--quiet", "--detach"]);
    refused(&scene, scene.run(&[]), "detached", "--base");
    // The branch is checked out nowhere: it moves, the user's HEAD does not.
    let head = scene.project.git(&["rev-parse", "HEAD"]);
    scene.resume(&["--base", "main"]).exits(0);
    assert_eq!(scene.project.git(&["rev-parse", "HEAD"]), head);
    assert!(!scene.project.has("SL-1-01.txt"));
    assert_eq!(scene.project.git(&["show", "main:SL-1-01.txt"]), "work of SL-1-01\n");
}

/// Lost: a repository that has just begun would fail with words of git.
#[test]
fn a_repository_without_commits_is_refused() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    let said = scene.run(&[]).exits(4).says("commit");
    assert!(!said.stderr.contains("fatal:"), "{}", said.stderr);
    assert_eq!(scene.worktrees(), Vec::<String>::new());
}

/// Lost: without git, lanes that need worktrees would run over each other.
#[test]
fn without_git_lanes_in_worktrees_are_refused() {
    let project = Project::without_git("plain");
    project.write("piton.toml", "[defaults]\nagent = \"a\"\n[agents.a]\ncommand = [\"true\"]\n");
    project.write(DOCUMENT, &document("", &[lane("SL-1")], ""));
    project.piton(&["run", DOCUMENT]).exits(4).says("git init").says("in-place");
    assert!(!project.state_dir().exists(), "no run was made");
}

/// Lost: a run that was told its base and stopped before a lane began would continue with another.
#[test]
fn the_base_that_was_asked_for_holds_for_the_resume() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.project.git(&["branch", "rel"]);
    scene.project.git(&["checkout", "--quiet", "-b", "dev"]);
    let other = scene.outside("wrel");
    scene.project.git(&["worktree", "add", "--quiet", other.to_str().unwrap(), "rel"]);
    std::fs::write(other.join("dirt"), "d").unwrap();
    scene.run(&["--run-id", "b1", "--base", "rel"]).exits(4).says("dirt");
    std::fs::remove_file(other.join("dirt")).unwrap();
    let record = scene.record("SL-1", "before_lane_start");
    scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    assert_eq!(scene.subjects("rel").len(), 2);
    assert_eq!(scene.subjects("dev").len(), 1);
    assert_eq!(scene.record("SL-1", "pre_pr")["base_branch"], "rel");
}

/// Refused on resume: changes that the run was told to start from.
#[test]
fn a_run_goes_on_with_the_users_changes_as_it_was_begun() {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    scene.project.write("mine.txt", "mine\n");
    scene.agent("SL-1", "exit 1");
    scene.run(&["--seed-dirty", "--jobs", "1"]).exits(1);
    scene.usual_agent("SL-1");
    scene.resume(&[]).exits(0);
    assert_eq!(scene.project.git(&["show", "main:mine.txt"]), "mine\n");
    assert!(scene.project.has("SL-2-01.txt"));
}

/// Lost: a run could never end once the steps of a lane that was refused, or taken back, are left out.
#[test]
fn a_lane_without_a_place_whose_steps_are_left_out_is_over() {
    let scene = Scene::of(&[lane("SL-1")]);
    let skip = || {
        for step in ["SL-1-01", "tests"] {
            scene.project.piton(&["skip", "r", step, "--satisfy"]).exits(0);
        }
        scene.resume(&["r"]).exits(0).says("is complete");
        scene.nothing_left();
    };
    scene.project.write("dirt", "");
    scene.run(&["--run-id", "r"]).exits(4).says("uncommitted changes");
    scene.project.remove("dirt");
    skip();
    for step in ["SL-1-01", "tests"] {
        scene.project.piton(&["retry", "r", step, "--again"]).exits(0);
    }
    scene.resume(&["r"]).exits(0).says("merged into main");
    assert!(scene.project.has("SL-1-01.txt"));
    scene.project.piton(&["rollback", "r", "--yes"]).exits(0);
    skip();
    assert!(!scene.project.has("SL-1-01.txt"));
}

/// A lane in a worktree, then a phase in place that says which branch it found.
const THEN_IN_PLACE: &str = "title = \"T\"\n[[phase]]\nid = \"P1\"\n[[phase.lane]]\nid = \"A\"\n\
     isolation = \"worktree\"\nrun = \"echo a > a.txt\"\n[[phase]]\nid = \"P2\"\ngate = \"Go\"\n\
     run = \"git rev-parse --abbrev-ref HEAD >> ../ran; test -e ../ok\"\n";

/// Lost: what lanes merged would be missing in the phase after them, which succeeds without it.
#[test]
fn a_phase_in_place_after_merged_lanes_runs_where_their_work_is() {
    let scene = Scene::planned(THEN_IN_PLACE);
    let project = &scene.project;
    project.git(&["branch", "other"]);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.git(&["switch", "--quiet", "other"]);
    project.piton(&["approve", "r", "P2"]).exits(0);
    let words = "the work of P1/A is in main, but other is checked out";
    project
        .piton(&["resume", "r"])
        .exits(4)
        .says(words)
        .says("next: `git switch main`, then piton resume r");
    assert_eq!(scene.told("ran"), Vec::<String>::new());
    // A branch that was made from there has it.
    project.git(&["switch", "--quiet", "--create", "release", "main"]);
    project.piton(&["resume", "r"]).exits(1);
    std::fs::write(scene.outside("ok"), "").unwrap();
    project.git(&["switch", "--quiet", "other"]);
    project.piton(&["retry", "r"]).exits(0);
    project.piton(&["resume", "r"]).exits(4).says(words);
    project.git(&["switch", "--quiet", "main"]);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(scene.told("ran"), ["release", "main"]);
}

/// Lost: lanes would go to one branch, and the phases in place would work on and test another.
#[test]
fn a_base_that_is_not_checked_out_is_refused_where_phases_work_in_place() {
    let first = "[[phase]]\nid = \"P0\"\nrun = \"echo ran >> ../ran\"\n";
    let (title, rest) = THEN_IN_PLACE.split_at(THEN_IN_PLACE.find("[[phase]]").unwrap());
    for plan in [THEN_IN_PLACE.to_owned(), format!("{title}{first}{rest}")] {
        let scene = Scene::planned(&plan);
        let project = &scene.project;
        project.git(&["switch", "--quiet", "--create", "other"]);
        std::fs::write(scene.outside("ok"), "").unwrap();
        let run = ["run", "plan.toml", "--run-id", "r", "--base", "main"];
        project.piton(&run).exits(4).says("other is checked out").says("`git switch main`");
        assert_eq!((scene.told("ran").len(), scene.branches().len()), (0, 1));
        assert_eq!(scene.subjects("main").len(), 1);
        project.git(&["switch", "--quiet", "main"]);
        // Where the first phase would not have found it, nothing was started.
        let is_begun = plan == THEN_IN_PLACE;
        project.piton(if is_begun { &["resume", "r"] } else { &run }).exits(3);
        project.piton(&["approve", "r", "P2"]).exits(0);
        project.piton(&["resume", "r"]).exits(0);
        assert_eq!(scene.told("ran").last().map(String::as_str), Some("main"));
    }
}
