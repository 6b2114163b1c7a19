//! Lanes that reach base through a pull request: a bare remote, and a `gh` that is a script.
//!
//! The script keeps one file for each request and counts its calls; so a test sees whether one was
//! opened twice, and merges them like a person elsewhere would.

use std::os::unix::fs::PermissionsExt as _;

use super::common::Output;
use super::scene::{DOCUMENT, Scene, document, lane};

/// A `gh` with a folder as its memory. `fail` in it makes the creation fail, `lost` makes it fail
/// after the request was opened.
const GH: &str = r#"#!/bin/sh
at=$(dirname "$0")/../gh; mkdir -p "$at/prs"
echo "$1 $2" >> "$at/calls"
case "$2" in
list) name=$(echo "$4" | tr / _); cat "$at/prs/$name" 2>/dev/null; exit 0;;
create)
  if [ -e "$at/fail" ]; then cat "$at/fail" >&2; exit 1; fi
  name=$(echo "$4" | tr / _)
  [ -e "$at/prs/$name" ] && { echo "a pull request exists already" >&2; exit 1; }
  echo "https://forge.example/pull/$name" > "$at/prs/$name"
  echo "$name" >> "$at/opened"
  if [ -e "$at/lost" ]; then echo "the answer was lost" >&2; exit 1; fi
  cat "$at/prs/$name";;
view)
  if [ -e "$at/merged" ]; then echo MERGED; elif [ -e "$at/closed" ]; then echo CLOSED
  elif [ -e "$at/missing" ]; then echo "no pull requests found" >&2; exit 1; else echo OPEN; fi;;
esac
"#;

pub fn scene() -> Scene {
    scene_with(str::to_owned)
}

/// The same with the address of the remote made from its path.
fn scene_with(address: impl Fn(&str) -> String) -> Scene {
    let scene = Scene::with(&document("", &[lane("SL-1")], ""), "");
    let settings = scene.project.read("piton.toml");
    scene
        .project
        .write("piton.toml", &settings.replace("[defaults]", "[defaults]\nmerge = \"pr\""));
    scene.project.commit();
    let remote = scene.outside("remote.git").display().to_string();
    scene.project.git(&["init", "--quiet", "--bare", &remote]);
    scene.project.git(&["remote", "add", "origin", &address(&remote)]);
    scene.project.git(&["push", "--quiet", "-u", "origin", "main"]);
    scene.program("gh", GH);
    std::fs::create_dir_all(scene.outside("gh")).unwrap();
    scene
}

#[track_caller]
pub fn piton(scene: &Scene, args: &[&str]) -> Output {
    scene.project.finish(scene.command("piton").args(args))
}

/// The commit of a branch of the remote.
fn remote_head(scene: &Scene, branch: &str) -> String {
    let remote = scene.outside("remote.git").display().to_string();
    scene.project.git(&["ls-remote", &remote, branch])[..40].to_owned()
}

/// Lost: a lane would be complete although nobody has merged it, or wait for ever.
#[test]
fn a_lane_waits_until_base_contains_its_commit() {
    let scene = scene();
    piton(&scene, &["run", DOCUMENT]).exits(3);
    assert_eq!(scene.told("gh/opened"), ["lane_P1_SL-1"]);
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
    let record = scene.record("SL-1", "pre_pr");
    assert_eq!(record["status"], "in_progress", "{record:#}");
    assert!(
        record["notes"].as_str().unwrap().contains("https://forge.example/pull/"),
        "{record:#}"
    );
    assert_eq!(record["head_sha"], remote_head(&scene, "lane/P1/SL-1"));
    assert!(!scene.project.has("SL-1-01.txt"));
    piton(&scene, &["resume"]).exits(3);
    assert_eq!(scene.told("gh/opened").len(), 1, "it is not opened twice");
    assert_eq!(scene.worktrees().len(), 1);
    // Somebody merges it elsewhere, and the user pulls.
    scene.project.git(&["merge", "--quiet", "--ff-only", "lane/P1/SL-1"]);
    piton(&scene, &["resume"]).exits(0);
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "complete");
    assert!(scene.project.has("SL-1-01.txt"));
    scene.nothing_left();
    let refused = piton(&scene, &["rollback", "--yes"]).exits(2);
    refused.says("was merged through https://forge.example/pull/").says("git revert");
    assert_eq!(scene.project.status(""), "complete");
    scene.project.git(&["revert", "--no-edit", "HEAD"]);
    piton(&scene, &["rollback", "--yes"]).exits(0).says("does not have it here");
    assert_eq!(scene.project.status(""), "rolled_back");
}

/// Lost: work that was merged as another commit would be deleted though base does not contain it.
#[test]
fn a_request_reported_as_merged_completes_but_its_branch_stays() {
    let scene = scene();
    piton(&scene, &["run", DOCUMENT]).exits(3);
    std::fs::write(scene.outside("gh/merged"), "").unwrap();
    let said = piton(&scene, &["resume"]).exits(0);
    assert!(said.stderr.contains("its branch is kept"), "{}", said.stderr);
    assert!(said.stderr.contains("lane/P1/SL-1 stays until main contains it"), "{}", said.stderr);
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "complete");
    assert_eq!(scene.branches(), ["lane/P1/SL-1"], "base does not contain it");
    assert_eq!(scene.worktrees(), Vec::<String>::new());
    for args in [&["status"][..], &["doctor"], &["gc", "--dry-run"], &["status", "--json"]] {
        let said = piton(&scene, args).exits(0);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(all.contains("lane/P1/SL-1"), "{args:?} names what is left: {all}");
    }
    piton(&scene, &["gc", "--yes"]).exits(0);
    assert_eq!(scene.branches(), ["lane/P1/SL-1"], "base does not contain it yet");
}

/// Lost: a branch that base contains by now would stay for ever, and its name with it.
#[test]
fn what_a_merge_elsewhere_left_goes_when_base_contains_it() {
    for args in [&["resume", "r"][..], &["run", DOCUMENT, "--fresh"], &["gc", "--yes"]] {
        let scene = scene();
        piton(&scene, &["run", DOCUMENT, "--run-id", "r"]).exits(3);
        std::fs::write(scene.outside("gh/merged"), "").unwrap();
        piton(&scene, &["resume", "r"]).exits(0);
        scene.project.git(&["merge", "--quiet", "--ff-only", "lane/P1/SL-1"]);
        let said = piton(&scene, &["gc", "--dry-run"]).exits(0);
        assert!(said.stdout.contains("delete branch lane/P1/SL-1"), "{}", said.stdout);
        piton(&scene, args).exits(0);
        scene.nothing_left();
        let said = piton(&scene, &["status", "r"]).exits(0);
        assert!(!said.stdout.contains("left "), "{}", said.stdout);
    }
}

/// Lost: the worktree of a lane that was merged elsewhere could not be brought back.
#[test]
fn the_worktree_of_a_lane_merged_elsewhere_can_be_brought_back() {
    let scene = scene();
    piton(&scene, &["run", DOCUMENT]).exits(3);
    std::fs::write(scene.outside("gh/merged"), "").unwrap();
    piton(&scene, &["resume"]).exits(0);
    piton(&scene, &["undo", "--yes"]).exits(0);
    assert!(scene.workspace("SL-1").join("SL-1-01.txt").exists());
    assert_eq!(scene.branches(), ["lane/P1/SL-1"]);
}

/// Shown: what the command said that looks at a request, secrets and all.
#[test]
fn what_is_told_of_a_request_holds_no_secret() {
    let scene = scene();
    piton(&scene, &["run", DOCUMENT]).exits(3);
    std::fs::write(scene.outside("gh/missing"), "").unwrap();
    let mut resume = scene.command("piton");
    resume.arg("resume").env("FORGE_TOKEN", "requests found");
    let said = scene.project.finish(&mut resume).exits(3).says("is not merged: no pull ");
    assert!(!said.stderr.contains("requests found"), "{}", said.stderr);
}

/// Lost: a run would wait for ever for a request that nobody can merge, without a word.
#[test]
fn a_request_that_was_closed_or_is_gone_is_told_with_what_to_do() {
    let scene = scene();
    let said = piton(&scene, &["run", DOCUMENT, "--run-id", "r"]).exits(3);
    assert!(!said.stderr.contains("is not merged"), "{}", said.stderr);
    std::fs::write(scene.outside("gh/missing"), "").unwrap();
    piton(&scene, &["resume"]).exits(3).says("is not merged: no pull requests found");
    std::fs::write(scene.outside("gh/closed"), "").unwrap();
    let again = "piton retry r P1/SL-1/pull-request --again";
    piton(&scene, &["resume"]).exits(3).says("it was closed").says(again);
    // Another one is opened as the words say.
    std::fs::remove_file(scene.outside("gh/prs/lane_P1_SL-1")).unwrap();
    std::fs::remove_file(scene.outside("gh/closed")).unwrap();
    std::fs::remove_file(scene.outside("gh/missing")).unwrap();
    scene.paste(&format!("cd {} && {again}", scene.project.root().display())).exits(0);
    piton(&scene, &["resume"]).exits(3);
    assert_eq!(scene.told("gh/opened").len(), 2);
}

/// Lost: a request that can't be opened would leave no head and target, and no way on.
#[test]
fn a_request_that_fails_is_recorded_with_head_and_target() {
    let scene = scene();
    std::fs::write(scene.outside("gh/fail"), "HTTP 403: resource not accessible").unwrap();
    let said = piton(&scene, &["run", DOCUMENT]).exits(1);
    assert!(said.stderr.contains("current stage: P1/SL-1 pre_pr (failed)"), "{}", said.stderr);
    let record = scene.record("SL-1", "pre_pr");
    assert_eq!(record["status"], "failed", "{record:#}");
    assert_eq!(record["target_branch"], "main");
    assert_eq!(record["head_sha"], remote_head(&scene, "lane/P1/SL-1"));
    let command = "gh pr create --head \"lane/P1/SL-1\" --base \"main\" --fill";
    assert!(record["last_command"] == command && record["exit_code"] == 1, "{record:#}");
    assert!(record["notes"].as_str().unwrap().contains(command), "{record:#}");
    assert!(!record["notes"].as_str().unwrap().contains("PITON_"), "{record:#}");
    let hint = record["resume_hint"].as_str().unwrap().to_owned();
    scene.paste(&hint).exits(1);
    std::fs::remove_file(scene.outside("gh/fail")).unwrap();
    scene.paste(&hint).exits(3);
    assert_eq!(scene.told("gh/opened").len(), 1);
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "in_progress");
}

/// Lost: nobody could see from the records which command failed, nor call it again.
#[test]
fn a_request_that_fails_is_recorded_with_the_command_that_was_tried() {
    let scene = scene();
    let last =
        |scene: &Scene| scene.record("SL-1", "pre_pr")["last_command"].as_str().unwrap().to_owned();
    let (root, remote) = (scene.project.root(), scene.outside("remote.git"));
    let away = scene.outside("away.git");
    std::fs::rename(&remote, &away).unwrap();
    piton(&scene, &["run", DOCUMENT, "--run-id", "r"]).exits(1);
    let looks = "ls-remote origin \"refs/heads/lane/P1/SL-1\"";
    assert_eq!(last(&scene), format!("git -C \"{}\" {looks}", root.display()));
    scene.paste(&last(&scene)).exits(128);
    std::fs::rename(&away, &remote).unwrap();
    scene.paste(&last(&scene)).exits(0);
    // It refuses what is pushed.
    let hook = remote.join("hooks/pre-receive");
    std::fs::write(&hook, "#!/bin/sh\necho not now; exit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    piton(&scene, &["resume"]).exits(1);
    let head = scene.project.git(&["rev-parse", "lane/P1/SL-1"]);
    let pushes = format!("push -q origin \"{}:refs/heads/lane/P1/SL-1\"", head.trim());
    assert_eq!(last(&scene), format!("git -C \"{}\" {pushes}", root.display()));
    scene.paste(&last(&scene)).exits(1).says("not now");
    std::fs::remove_file(&hook).unwrap();
    scene.paste(&last(&scene)).exits(0);
    // What is said of it is for the record only.
    piton(&scene, &["resume"]).exits(3);
    let shown = piton(&scene, &["show", "P1/SL-1/pull-request", "--json"]).exits(0).json();
    let notes = shown["history"].as_array().unwrap().iter().map(|attempt| &attempt["notes"]);
    assert!(notes.filter_map(serde_json::Value::as_array).all(Vec::is_empty), "{shown:#}");
}

/// Lost: rollback of a lane whose request failed would leave its branch where it was.
#[test]
fn a_lane_whose_request_failed_rolls_back_to_its_start() {
    let scene = scene();
    std::fs::write(scene.outside("gh/fail"), "no").unwrap();
    piton(&scene, &["run", DOCUMENT]).exits(1);
    let base = scene.project.git(&["rev-parse", "main"]);
    let hint = scene.record("SL-1", "pre_pr")["rollback_hint"].as_str().unwrap().to_owned();
    scene.paste(&format!("{hint} --yes")).exits(0);
    assert_eq!(scene.project.git(&["rev-parse", "lane/P1/SL-1"]), base);
    assert!(!scene.workspace("SL-1").join("SL-1-01.txt").exists());
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "rolled_back");
    std::fs::remove_file(scene.outside("gh/fail")).unwrap();
    scene.agent("SL-1", "echo other > SL-1-01.txt");
    // The branch of the remote has the work that was taken back: it must not stand in the way.
    piton(&scene, &["resume"]).exits(3);
    assert_eq!(scene.told("gh/opened").len(), 1);
    let head = scene.project.git(&["rev-parse", "lane/P1/SL-1"]);
    assert_eq!(head.trim(), remote_head(&scene, "lane/P1/SL-1"));
}

/// Lost: a lane killed right after its push could never be pushed again once it was taken back.
#[test]
fn a_push_that_was_cut_short_is_known_and_that_of_others_is_not_overwritten() {
    let scene = scene();
    std::fs::write(scene.outside("gh/fail"), "no").unwrap();
    piton(&scene, &["run", DOCUMENT]).exits(1);
    let run = scene.record("SL-1", "pre_pr")["run_id"].as_str().unwrap().to_owned();
    let pushed = format!("refs/piton/{run}/pushed/lane/P1/SL-1");
    let first = remote_head(&scene, "lane/P1/SL-1");
    // As if it had been killed before it wrote down that the push is over.
    scene.project.git(&["update-ref", "-d", &pushed]);
    piton(&scene, &["rollback", "--yes"]).exits(0);
    scene.agent("SL-1", "echo other > SL-1-01.txt");
    std::fs::remove_file(scene.outside("gh/fail")).unwrap();
    piton(&scene, &["resume"]).exits(3);
    assert_ne!(remote_head(&scene, "lane/P1/SL-1"), first);
    // Somebody else's commit stays where it is.
    let remote = scene.outside("remote.git").display().to_string();
    let args = ["commit-tree", "-m", "theirs", "main^{tree}"];
    let theirs = scene.project.git(&args).trim().to_owned();
    let place = format!("{theirs}:refs/heads/lane/P1/SL-1");
    scene.project.git(&["push", "--quiet", "--force", &remote, &place]);
    piton(&scene, &["rollback", "--yes"]).exits(0);
    let said = piton(&scene, &["resume"]).exits(1);
    said.says("did not push").says(&theirs);
    assert_eq!(remote_head(&scene, "lane/P1/SL-1"), theirs);
}

/// Lost: a remote on this machine whose side was killed with the push would refuse every later one.
#[test]
fn a_lock_that_a_killed_push_left_at_the_remote_is_taken_away() {
    let scene = scene();
    let remote = scene.outside("remote.git");
    let (hook, mark) = (remote.join("hooks/reference-transaction"), scene.outside("killed"));
    // Once, while it holds the lock.
    let text = format!(
        "#!/bin/sh\n[ $1 != prepared ] || [ -e '{0}' ] || {{ : > '{0}'; kill -9 $PPID; }}\n",
        mark.display()
    );
    std::fs::write(&hook, text).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    piton(&scene, &["run", DOCUMENT]).exits(3).says("network");
    assert!(mark.exists());
    let head = scene.project.git(&["rev-parse", "lane/P1/SL-1"]);
    assert_eq!(head.trim(), remote_head(&scene, "lane/P1/SL-1"));
}

/// Lost: an answer that got lost would open a second request.
#[test]
fn a_request_whose_answer_was_lost_is_found() {
    let scene = scene();
    std::fs::write(scene.outside("gh/lost"), "").unwrap();
    piton(&scene, &["run", DOCUMENT, "--retries", "1"]).exits(3);
    assert_eq!(scene.told("gh/opened").len(), 1);
    let record = scene.record("SL-1", "pre_pr");
    assert!(record["notes"].as_str().unwrap().contains("/pull/"), "{record:#}");
}

/// Lost: a remote out of reach would be taken for a broken lane.
#[test]
fn a_push_without_network_is_a_network_failure_at_pre_pr() {
    let scene = scene();
    let settings = scene.project.read("piton.toml");
    scene.project.write("piton.toml", &format!("[budgets]\nnetwork_wait = \"1s\"\n{settings}"));
    scene.project.commit();
    std::fs::write(scene.outside("gh/fail"), "dial tcp: connection refused").unwrap();
    piton(&scene, &["run", DOCUMENT]).exits(1).says("network:");
    let record = scene.record("SL-1", "pre_pr");
    assert_eq!(record["status"], "failed", "{record:#}");
    std::fs::remove_file(scene.outside("gh/fail")).unwrap();
    piton(&scene, &["resume"]).exits(3);
}

/// Lost: what a command says to people would be taken for the address of the request.
#[test]
fn the_address_of_a_request_is_what_the_command_answers() {
    let scene = scene();
    let gh =
        GH.replace("  cat \"$at/prs/$name\";;", "  cat \"$at/prs/$name\"; echo; echo Done >&2;;");
    assert_ne!(gh, GH);
    scene.program("gh", &gh);
    piton(&scene, &["run", DOCUMENT]).exits(3);
    let notes = scene.record("SL-1", "pre_pr")["notes"].as_str().unwrap().to_owned();
    assert!(notes.contains("pull request https://forge.example/pull/lane_P1_SL-1;"), "{notes}");
}

/// Lost: a lane would start from a base without the work it needs, and say nothing.
#[test]
fn a_lane_that_needs_one_merged_elsewhere_waits_until_base_has_it() {
    let needs = super::scene::LaneDoc { index: &["Depends on: SL-1"], ..lane("SL-2") };
    let scene = scene();
    scene.project.write(DOCUMENT, &document("", &[lane("SL-1"), needs], ""));
    scene.project.commit();
    piton(&scene, &["run", DOCUMENT, "--run-id", "r"]).exits(3);
    std::fs::write(scene.outside("gh/merged"), "").unwrap();
    let words = "main does not contain P1/SL-1, which was merged elsewhere";
    piton(&scene, &["resume"]).exits(4).says(words).says("git pull");
    piton(&scene, &["resume"]).exits(4).says(words);
    // Merged there as another commit, which somebody pulls.
    scene.project.write("SL-1-01.txt", "work of SL-1-01\n");
    scene.project.commit();
    let said = piton(&scene, &["resume"]);
    assert!(!said.stderr.contains("merged elsewhere"), "{}", said.stderr);
    assert_eq!(scene.told("gh/opened"), ["lane_P1_SL-1", "lane_P1_SL-2"]);
}

/// Lost: a lane that starts over would find what it did before, on a branch that was left.
#[test]
fn a_lane_that_starts_over_does_not_begin_on_the_branch_that_was_left() {
    let scene = scene();
    scene.agent("SL-1", "ls >> $HOME/found; echo x > SL-1-01.txt");
    piton(&scene, &["run", DOCUMENT]).exits(3);
    std::fs::write(scene.outside("gh/merged"), "").unwrap();
    piton(&scene, &["resume"]).exits(0);
    assert_eq!(scene.branches(), ["lane/P1/SL-1"], "base has not got it");
    let left = scene.project.git(&["rev-parse", "lane/P1/SL-1"]);
    piton(&scene, &["rollback", "--yes"]).exits(0);
    std::fs::remove_file(scene.outside("gh/merged")).unwrap();
    let said = piton(&scene, &["resume"]).exits(3).stderr;
    assert!(said.contains("its branch existed at"), "{said}");
    assert!(!scene.told("home/found").contains(&"SL-1-01.txt".to_owned()));
    let kept = scene.project.git(&["for-each-ref", "--format=%(objectname)", "refs/piton"]);
    assert!(kept.contains(left.trim()), "what it held stays: {kept}");
}

/// Lost: a remote that lies beside the repository could not be pushed to from a lane's worktree.
#[test]
fn a_remote_with_a_relative_address_is_pushed_to() {
    let scene = scene_with(|_| "../remote.git".to_owned());
    piton(&scene, &["run", DOCUMENT]).exits(3);
    let head = scene.project.git(&["rev-parse", "lane/P1/SL-1"]);
    assert_eq!(head.trim(), remote_head(&scene, "lane/P1/SL-1"));
}

/// Sets the command that says whether a request is merged.
fn looks_with(scene: &Scene, command: &str) {
    let settings = scene.project.read("piton.toml");
    let table = format!("{settings}\n[pull_request]\nmerged = {command}\n");
    scene.project.write("piton.toml", &table);
    scene.project.commit();
}

/// Lost: a mistake in the settings would end the driver each time, and nobody would know where it is.
#[test]
fn a_command_that_looks_and_cannot_be_started_is_told() {
    let scene = scene();
    looks_with(&scene, "[\"no-such-program\"]");
    let told = "`no-such-program` could not be started";
    piton(&scene, &["run", DOCUMENT]).exits(3).says(told).says("correct `merged`");
    piton(&scene, &["resume"]).exits(3).says(told);
}

/// Lost: the command would look at another repository than the one that the page says.
#[test]
fn the_command_that_looks_knows_where_the_project_is() {
    let scene = scene();
    looks_with(
        &scene,
        "'test -d \"$PITON_ROOT/.git\" -a \"$PITON_ROOT\" -ef . -a -z \"$GIT_DIR\"'",
    );
    let mut run = scene.command("piton");
    run.args(["run", DOCUMENT]).env("GIT_DIR", "/nowhere");
    scene.project.finish(&mut run).exits(0);
}
