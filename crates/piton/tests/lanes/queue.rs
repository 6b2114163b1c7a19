//! The merge queue: one lane at a time, rebased and fast-forwarded, whatever the user does beside it.

use std::fs;

use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// Two lanes that write the same file; `SL-2` starts when `SL-1` has started.
fn at_odds(retries: &'static [&'static str]) -> Scene {
    let writes = |id| LaneDoc { test: "test -e both.txt".to_owned(), index: retries, ..lane(id) };
    let scene = Scene::of(&[writes("SL-1"), writes("SL-2")]);
    let meet = scene.outside("meet");
    for (own, other) in [("SL-1", "SL-2"), ("SL-2", "SL-1")] {
        // Both have begun before one of them is merged.
        scene.agent(
            own,
            &format!(
                "mkdir -p {0}; touch {0}/{own}; while [ ! -e {0}/{other} ]; do sleep 0.02; done\n\
                 if grep -q '^<<<<<<< ' both.txt 2>/dev/null; then\n\
                 cp both.txt {0}/markers; cp \"$PITON_PROMPT_FILE\" {0}/prompt\n\
                 sed -i '/^[<=>|]\\{{7\\}}/d' both.txt\n\
                 else echo {own} > both.txt; fi",
                meet.display()
            ),
        );
    }
    scene
}

/// Lost: a commit of the user's, made while lanes work.
#[test]
fn commits_of_the_user_to_base_stay_and_lanes_come_after_them() {
    let scene = Scene::of(&[lane("SL-1")]);
    let root = scene.project.root().display().to_string();
    scene.agent(
        "SL-1",
        &format!(
            "echo x > SL-1-01.txt; cd {root} && unset GIT_DIR GIT_INDEX_FILE\n\
             echo mine > mine.txt && git add mine.txt && git commit -q -m mine"
        ),
    );
    scene.run(&[]).exits(0);
    assert_eq!(scene.subjects("main")[1], "mine");
    assert!(scene.project.has("mine.txt") && scene.project.has("SL-1-01.txt"));
    scene.nothing_left();
}

/// Lost: a lane whose tested tree changed by the rebase would be merged untested.
#[test]
fn a_rebased_lane_is_tested_again_on_what_is_merged() {
    let tests = LaneDoc {
        test: "ls >> ../../../../tested; test -e SL-1-01.txt".to_owned(),
        ..lane("SL-1")
    };
    let scene = Scene::of(&[tests]);
    let root = scene.project.root().display().to_string();
    scene.agent(
        "SL-1",
        &format!(
            "echo x > SL-1-01.txt; cd {root} && echo mine > mine.txt && git add mine.txt && \
             git commit -q -m mine"
        ),
    );
    scene.run(&[]).exits(0);
    let tested = scene.told("tested");
    assert_eq!(tested.iter().filter(|l| *l == "SL-1-01.txt").count(), 2, "{tested:?}");
    assert_eq!(tested.iter().filter(|l| *l == "mine.txt").count(), 1, "{tested:?}");
    scene.nothing_left();
}

/// A lane whose test notes all files that it finds, then does something to them; what was merged, and
/// what each run of the test found.
fn stirring(writes: &str) -> (Scene, Vec<String>, Vec<Vec<String>>) {
    let test = "sh ../../../../test.sh".to_owned();
    let scene = Scene::of(&[LaneDoc { test, ..lane("SL-1") }]);
    let look = "find . -name .git -prune -o -type f -print | sort | xargs sha1sum";
    let script = format!(
        "at=$(cd ../../../.. && pwd)\nn=$(ls \"$at\" | grep -c ^seen-)\n{look} > \"$at/seen-$n\"\n{writes}\n"
    );
    fs::write(scene.outside("test.sh"), script).unwrap();
    scene.run(&[]).exits(0);
    scene.nothing_left();
    scene.project.git(&["clone", "-q", ".", "../merged"]);
    let merged = format!("cd {} && {look} > ../merged-files", scene.outside("merged").display());
    scene.project.finish(scene.project.command("sh").args(["-c", &merged])).exits(0);
    let runs = (0..).map(|n| format!("seen-{n}")).take_while(|name| scene.outside(name).exists());
    let seen = runs.map(|name| scene.told(&name)).collect();
    let merged = scene.told("merged-files");
    (scene, merged, seen)
}

/// Lost: a lane would be merged with files that no test has seen.
#[test]
fn what_is_merged_is_what_the_tests_ran_on_though_they_write_each_time() {
    let (scene, merged, seen) = stirring("echo \"run $n\" > report.txt; rm -f SL-1-01.txt.bak");
    assert_eq!(seen.len(), 2, "once with the work, once on what that left");
    assert_eq!(merged, seen[1]);
    assert_eq!(scene.project.read("report.txt"), "run 0\n");
}

/// Lost: what the tests write once and for all, such as a lock file, would not be merged.
#[test]
fn what_the_tests_write_once_is_tested_and_merged() {
    let (scene, merged, seen) = stirring("echo locked > lock.txt");
    assert_eq!((seen.len(), &merged), (2, &seen[1]));
    assert_eq!(scene.project.read("lock.txt"), "locked\n");
}

/// Lost: every lane would run its tests twice.
#[test]
fn tests_that_leave_the_work_tree_alone_run_once() {
    let (_scene, merged, seen) = stirring("echo more >> ../../../../elsewhere");
    assert_eq!((seen.len(), &merged), (1, &seen[0]));
}

/// Lost: tests that commit would leave the lane's worktree and branch behind once they ran again on what
/// was merged, or get commits to base that nobody tested.
#[test]
fn commits_of_the_tests_that_run_again_are_kept_and_leave_nothing_behind() {
    let commits = "git commit -q --allow-empty -m \"report $n\"";
    for report in ["", "echo \"$n\" > report.txt; git add report.txt;"] {
        let test = "sh ../../../../test.sh".to_owned();
        let scene = Scene::of(&[LaneDoc { test, ..lane("SL-1") }]);
        let count = "at=../../../..; n=$(ls $at | grep -c ^ran-); touch $at/ran-$n";
        fs::write(scene.outside("test.sh"), format!("{count}; {report} {commits}\n")).unwrap();
        let root = scene.project.root().display().to_string();
        scene.agent(
            "SL-1",
            &format!(
                "echo x > SL-1-01.txt; cd {root} && echo mine > mine.txt && git add mine.txt && \
                 git commit -q -m mine"
            ),
        );
        scene.run(&[]).exits(0);
        scene.nothing_left();
        let ran = (0..9).filter(|n| scene.outside(&format!("ran-{n}")).exists()).max();
        let last = format!("report {}", ran.unwrap());
        let merged = scene.subjects("main");
        assert!(!merged.contains(&last), "{report}: {merged:?}");
        let all = scene.project.git(&["log", "--format=%s", "--glob=refs/piton/"]);
        assert!(all.lines().any(|subject| subject == last), "{report}: {all}");
    }
}

/// Lost: lanes that change the same lines would overwrite each other, or stop at once.
#[test]
fn a_conflict_goes_back_to_the_lane_with_both_sides() {
    let scene = at_odds(&["Retries: 1"]);
    scene.run(&[]).exits(0);
    let both = scene.project.read("both.txt");
    assert!(both.contains("SL-1") && both.contains("SL-2") && !both.contains("<<<"), "{both}");
    let markers = scene.told("meet/markers").join("\n");
    assert!(markers.contains("SL-1") && markers.contains("SL-2"), "{markers}");
    let prompt = scene.told("meet/prompt").join("\n");
    assert!(prompt.contains("conflict") && prompt.contains("both.txt"), "{prompt}");
    let second =
        if scene.stage_status("SL-1", "retry_attempt").is_empty() { "SL-2" } else { "SL-1" };
    let record = scene.record(second, "retry_attempt");
    assert_eq!(
        (record["retry_attempt"].as_u64(), record["max_retries"].as_u64()),
        (Some(1), Some(1))
    );
    assert!(record["failure_context"].to_string().contains("both.txt"), "{record:#}");
    scene.nothing_left();
}

/// Lost: a lane whose work had succeeded would be stopped by a conflict, though it has retries.
#[test]
fn a_conflict_is_no_failed_attempt() {
    let scene = at_odds(&["Retries: 1"]);
    let settings = scene.project.read("piton.toml");
    scene.project.write("piton.toml", &format!("{settings}\n[budgets]\nattempts = 1\n"));
    scene.project.commit();
    scene.run(&[]).exits(0);
    scene.nothing_left();
}

/// Lost: a conflict without a retry left would have no way on.
#[test]
fn a_conflict_without_retries_is_settled_by_hand() {
    let scene = at_odds(&[]);
    let said = scene.run(&[]).exits(4).says("conflict").says("both.txt").says("piton resume");
    let failed = ["SL-1", "SL-2"].into_iter().find(|l| scene.stage_status(l, "pre_pr") == "failed");
    let failed = failed.unwrap_or_else(|| panic!("{}", said.stderr));
    assert!(said.stderr.contains(&format!("current stage: P1/{failed} pre_pr")), "{}", said.stderr);
    // As the hint says: settle it in the worktree and commit.
    let workspace = scene.workspace(failed);
    let git = |args: &[&str]| {
        scene.project.finish(scene.project.command("git").args(args).current_dir(&workspace))
    };
    git(&["rebase", "main"]);
    fs::write(workspace.join("both.txt"), "SL-1\nSL-2\n").unwrap();
    git(&["add", "both.txt"]).exits(0);
    git(&["-c", "core.editor=true", "rebase", "--continue"]).exits(0);
    scene.resume(&[]).exits(0);
    assert_eq!(scene.project.read("both.txt"), "SL-1\nSL-2\n");
    scene.nothing_left();
}

/// Lost: a conflict settled by hand without a rebase would be refused.
#[test]
fn a_conflict_settled_by_a_merge_of_base_is_taken_too() {
    let scene = at_odds(&[]);
    scene.run(&[]).exits(4);
    let failed = ["SL-1", "SL-2"].into_iter().find(|l| scene.stage_status(l, "pre_pr") == "failed");
    let workspace = scene.workspace(failed.unwrap());
    let git = |args: &[&str]| {
        scene.project.finish(scene.project.command("git").args(args).current_dir(&workspace))
    };
    git(&["merge", "main"]);
    fs::write(workspace.join("both.txt"), "merged\n").unwrap();
    git(&["commit", "-q", "-a", "-m", "settled"]).exits(0);
    scene.resume(&[]).exits(0);
    assert_eq!(scene.project.read("both.txt"), "merged\n");
    scene.nothing_left();
}

/// Lost: an unrelated change in the user's work tree would be lost, or stop the merge.
#[test]
fn unrelated_changes_in_base_survive_a_merge() {
    let scene = Scene::of(&[lane("SL-1")]);
    let root = scene.project.root().display().to_string();
    scene.agent(
        "SL-1",
        &format!("echo x > SL-1-01.txt; echo edited > {root}/README; echo n > {root}/new.txt"),
    );
    scene.run(&[]).exits(0);
    assert_eq!(scene.project.read("README"), "edited\n");
    assert!(scene.project.has("new.txt") && scene.project.has("SL-1-01.txt"));
    let status =
        scene.project.git(&["status", "--porcelain", "--", "README", "new.txt", "SL-1-01.txt"]);
    assert_eq!(status, " M README\n?? new.txt\n");
}

/// Lost: what the user has in a file that the lane changes too.
#[test]
fn overlapping_changes_in_base_hold_the_merge_until_they_are_away() {
    let scene = Scene::of(&[lane("SL-1")]);
    let root = scene.project.root().display().to_string();
    scene.agent(
        "SL-1",
        &format!("echo x > SL-1-01.txt; echo theirs > README; echo mine > {root}/README"),
    );
    scene.run(&[]).exits(4).says("README").says("current stage: P1/SL-1 pre_pr (failed)");
    assert_eq!(scene.project.read("README"), "mine\n");
    assert_eq!(scene.subjects("main").len(), 1);
    let record = scene.record("SL-1", "pre_pr");
    assert!(record["head_sha"].is_string() && record["target_branch"] == "main", "{record:#}");
    scene.resume(&[]).exits(4);
    scene.project.git(&["checkout", "--quiet", "--", "README"]);
    scene.resume(&[]).exits(0);
    assert_eq!(scene.project.read("README"), "theirs\n");
    scene.nothing_left();
}

/// Lost: with `merge = "none"` work would reach base, or its branch would go.
#[test]
fn lanes_that_are_not_merged_keep_branch_and_worktree() {
    let scene = Scene::with(&document("", &[lane("SL-1")], ""), "");
    let settings = scene.project.read("piton.toml");
    scene
        .project
        .write("piton.toml", &settings.replace("[defaults]", "[defaults]\nmerge = \"none\""));
    scene.project.commit();
    scene.run(&[]).exits(0);
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
    assert_eq!(scene.worktrees().len(), 1);
    assert!(!scene.project.has("SL-1-01.txt"));
    assert_eq!(scene.project.git(&["show", "lane/P1/SL-1:SL-1-01.txt"]), "work of SL-1-01\n");
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "complete");
    // A later run of the plan leaves it alone, and says whose it is.
    let run = scene.record("SL-1", "pre_pr")["run_id"].as_str().unwrap().to_owned();
    scene.run(&["--fresh"]).exits(0).says(&format!("lane/P1/SL-1 is a branch of run {run}"));
}

/// Lost: a lane that changed nothing would make an empty commit.
#[test]
fn a_lane_without_a_change_has_nothing_to_merge() {
    let nothing = LaneDoc { test: "true".to_owned(), ..lane("SL-1") };
    let scene = Scene::of(&[nothing]);
    scene.agent("SL-1", "true");
    scene.run(&[]).exits(0).says("changed nothing");
    assert_eq!(scene.subjects("main").len(), 1);
    scene.nothing_left();
    assert!(scene.project.has(DOCUMENT));
}

/// Lost: the branch of a lane whose commits change nothing would stay for ever, or its commits would go.
#[test]
fn commits_that_change_nothing_leave_no_branch_and_are_kept() {
    for script in [
        "git commit -q --allow-empty -m idle",
        "echo x > x; git add x; git commit -q -m x; git rm -q x; git commit -q -m idle",
    ] {
        let nothing = LaneDoc { test: "true".to_owned(), ..lane("SL-1") };
        let scene = Scene::of(&[nothing]);
        scene.agent("SL-1", script);
        scene.run(&[]).exits(0).says("changed nothing").silent_about("stays");
        assert_eq!(scene.subjects("main").len(), 1);
        scene.nothing_left();
        let all = scene.project.git(&["log", "--format=%s", "--glob=refs/piton/"]);
        assert!(all.lines().any(|subject| subject == "idle"), "{all}");
        // The removal can be undone, and done again.
        scene.project.piton(&["undo", "--yes"]).exits(0);
        assert_eq!(scene.subjects("lane/P1/SL-1")[0], "idle");
    }
}

/// Lost: a branch that somebody had checked out when its lane was done would stay for ever.
#[test]
fn a_branch_that_changes_nothing_goes_with_the_next_collection() {
    let nothing = LaneDoc { test: "true".to_owned(), ..lane("SL-1") };
    let scene = Scene::of(&[nothing]);
    let elsewhere = scene.outside("elsewhere").display().to_string();
    let script = format!(
        "git commit -q --allow-empty -m idle; git worktree add -q -f {elsewhere} lane/P1/SL-1"
    );
    scene.agent("SL-1", &script);
    scene.run(&[]).exits(0).says("because it is checked out in");
    scene.project.git(&["worktree", "remove", &elsewhere]);
    scene
        .project
        .piton(&["gc", "--dry-run"])
        .says("it changes nothing")
        .says("`piton gc` removes it");
    scene.project.piton(&["gc", "--yes"]).exits(0);
    scene.nothing_left();
}

/// Lost: commits an agent made itself would be squashed or lost.
#[test]
fn commits_of_the_agent_reach_base_one_by_one() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent(
        "SL-1",
        "echo 1 > one.txt; git add . ; git commit -q -m first; echo 2 > two.txt; git add .\n\
         git commit -q -m second; echo x > SL-1-01.txt",
    );
    scene.run(&[]).exits(0);
    let subjects = scene.subjects("main");
    assert_eq!(subjects[1..3], ["second", "first"]);
    assert_eq!(subjects[0], "feat(P1-SL-1): Lane SL-1");
    scene.nothing_left();
}
