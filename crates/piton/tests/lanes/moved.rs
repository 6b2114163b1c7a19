//! A base that moves while lanes work: by other runs, by the user; and what is said of it.

use super::scene::{DOCUMENT, LaneDoc, Scene, document, lane};

/// A plan with one lane that brings a new file to base.
const OTHER: &str = "title = \"Other\"\n[[phase]]\nid = \"P2\"\n[[phase.lane]]\nid = \"L\"\n\
                     isolation = \"worktree\"\nrun = \"mktemp new.XXXXXX\"\n";

/// A lane whose tests move base the first `times` they run, by this command in the project's folder.
fn outrun(times: u32, command: &str) -> Scene {
    let test = format!(
        "cd ../../.. && n=$(cat ../times 2>/dev/null || echo 0) && echo $((n+1)) > ../times && \
         if [ $n -lt {times} ]; then {command} >> ../moves 2>&1; fi"
    );
    let scene = Scene::with(
        &document("", &[LaneDoc { test, ..lane("SL-1") }], ""),
        "[lanes]\nmerge_rounds = 1\n",
    );
    scene.project.write("other.toml", OTHER);
    scene.project.commit();
    scene
}

/// Lost: a lane would give up because other runs merge their work too.
#[test]
fn merges_of_other_runs_are_waited_for_and_count_for_no_round() {
    let scene = outrun(4, "$PROGRAM run other.toml --fresh");
    let said = scene.run(&[]).exits(0).stderr;
    assert_eq!(scene.subjects("main").len(), 7, "{said}\n{:?}", scene.told("moves"));
    assert!(said.contains("meanwhile, by another run"), "{said}");
    scene.nothing_left();
}

/// Confusing: what to do was followed by words that it goes on.
#[test]
fn the_last_round_is_not_followed_by_another_in_words() {
    let scene = outrun(9, "f=$(mktemp x.XXXXXX) && git add $f && git commit -qm x");
    let said = scene.run(&[]).exits(4).stderr;
    let last = said.find("base moved 1 times while it was being merged; resume when").unwrap();
    assert_eq!(said[..last].matches("meanwhile").count(), 2, "{said}");
    assert!(!said[last..].contains("meanwhile") && !said.contains("once more"), "{said}");
}

/// Lost: two runs at the same time, of which one gives up.
#[test]
fn two_runs_at_once_bring_all_their_lanes_to_base() {
    let lanes = |phase: &str, ids: [&'static str; 6]| {
        document("", &ids.map(lane), "").replace("# P1: First", &format!("# {phase}: Some"))
    };
    let scene = Scene::with(
        &lanes("P1", ["A1", "A2", "A3", "A4", "A5", "A6"]),
        "[lanes]\nmerge_rounds = 1\n",
    );
    scene.project.write("plans/phase-2.md", &lanes("P2", ["B1", "B2", "B3", "B4", "B5", "B6"]));
    scene.project.commit();
    let one = scene.project.spawn(&["run", DOCUMENT, "--jobs", "6"]);
    let two = scene.project.spawn(&["run", "plans/phase-2.md", "--jobs", "6"]);
    one.wait().exits(0);
    two.wait().exits(0);
    assert_eq!(scene.subjects("main").len(), 14);
    scene.nothing_left();
}

/// Lost: that the lane works on files which are not those of base any more.
#[test]
fn a_base_that_moved_is_told_on_resume_in_status_and_at_the_merge() {
    let scene = Scene::of(&[lane("SL-1")]);
    scene.agent("SL-1", "exit 1");
    let short = || scene.project.git(&["rev-parse", "main"])[..10].to_owned();
    let first = short();
    scene.run(&[]).exits(1);
    let status = scene.project.piton(&["status"]).exits(0).stdout;
    assert!(!status.contains("moved"), "{status}");
    scene.project.write("mine.txt", "mine\n");
    scene.project.commit();
    let words = format!("main moved from {first} to {}", short());
    let status = scene.project.piton(&["status"]).exits(0).stdout;
    assert!(status.contains(&words), "{status}");
    let json = scene.project.status_json("");
    assert!(json["moved"][0]["from"].as_str().unwrap().starts_with(&first), "{json:#}");
    scene.resume(&[]).exits(1).says(&format!("P1/SL-1: {words}"));
    scene.agent("SL-1", "echo x > SL-1-01.txt");
    let said = scene.resume(&[]).exits(0).stderr;
    let merged = said.lines().find(|l| l.contains("P1/SL-1 is merged")).unwrap();
    assert!(merged.contains(&words), "{merged}");
    let notes = scene.record("SL-1", "pre_pr")["notes"].as_str().unwrap().to_owned();
    assert!(notes.contains(&words), "{notes}");
    let status = scene.project.piton(&["status"]).exits(0).stdout;
    assert!(!status.contains("moved from"), "{status}");
}
