//! The validation across lanes: its evidence is about base, and about the base of now.

use super::scene::{Scene, document, lane};

fn validated(commands: &str) -> Scene {
    let plan = format!("## H. Test Execution Plan\n\n```bash\n{commands}\n```\n");
    Scene::with(&document("", &[lane("SL-1")], &plan), "")
}

/// Lost: what was validated would be another branch than the one the lanes went to.
#[test]
fn a_validation_runs_where_base_is_checked_out() {
    let scene = validated("git rev-parse --abbrev-ref HEAD >> ../validated");
    scene.project.git(&["branch", "rel"]);
    scene.project.git(&["checkout", "--quiet", "-b", "dev"]);
    let said = scene.run(&["--run-id", "v1", "--base", "rel"]).exits(4);
    let words = "the validation runs on rel, but dev is checked out";
    said.says(words).says("piton resume v1");
    assert_eq!(scene.told("validated"), Vec::<String>::new());
    assert_eq!(scene.subjects("rel").len(), 2);
    scene.resume(&[]).exits(4).says(words);
    scene.project.git(&["switch", "--quiet", "rel"]);
    scene.resume(&[]).exits(0);
    assert_eq!(scene.told("validated"), ["rel"]);
}

/// Lost: a command that passed on an older base would count for the one that was mended.
#[test]
fn all_commands_run_again_on_a_base_that_was_mended() {
    let scene = validated("cat SL-1-01.txt && echo one >> ../ran\ntest -e fixed.txt");
    scene.run(&[]).exits(1).says("FIX-P1-001");
    assert_eq!(scene.told("ran").len(), 1);
    // Nothing changed: what passed is not run again.
    scene.resume(&[]).exits(1);
    assert_eq!(scene.told("ran").len(), 1);
    // Mended, and what passed is broken by it.
    scene.project.write("fixed.txt", "");
    scene.project.git(&["rm", "--quiet", "SL-1-01.txt"]);
    scene.project.commit();
    scene.resume(&[]).exits(1).says("FIX-P1-001: cat SL-1-01.txt");
    scene.project.write("SL-1-01.txt", "again\n");
    scene.project.commit();
    scene.resume(&[]).exits(0);
    assert_eq!(scene.told("ran").len(), 2);
}

/// Lost: a person who checked out something else meanwhile would have that validated.
#[test]
fn a_validation_that_goes_on_looks_where_it_is() {
    let scene = validated("test -e fixed.txt");
    scene.run(&[]).exits(1);
    scene.project.git(&["checkout", "--quiet", "-b", "dev"]);
    scene.project.write("fixed.txt", "");
    scene.project.git(&["add", "fixed.txt"]);
    scene.project.git(&["commit", "--quiet", "-m", "fixed"]);
    scene.resume(&[]).exits(4).says("the validation runs on main, but dev is checked out");
    scene.project.git(&["switch", "--quiet", "main"]);
    scene.resume(&[]).exits(1).says("FIX-P1-001");
    scene.project.git(&["merge", "--quiet", "--ff-only", "dev"]);
    scene.resume(&[]).exits(0);
}

/// Lost: a command that passed on other files would count for those that were mended by hand.
#[test]
fn all_commands_run_again_on_files_that_were_mended_without_a_commit() {
    let scene = validated("echo one >> ../ran\ntest -e fixed.txt");
    scene.run(&[]).exits(1).says("FIX-P1-001");
    assert_eq!(scene.told("ran").len(), 1);
    scene.project.write("fixed.txt", "");
    let said = scene.resume(&[]).exits(0);
    assert_eq!(scene.told("ran").len(), 2, "{}", said.stderr);
    said.says("fixed.txt").says("commit");
}

/// Lost: the task that a phase is blocked by would have a name and nobody to do it.
#[test]
fn the_task_that_fixes_a_phase_can_be_run_as_a_lane() {
    let scene = validated("echo 'TOPAZ is missing'; test -e fixed.txt");
    scene.run(&[]).exits(1).says("FIX-P1-001");
    let out = scene.outside("prompt").display().to_string();
    scene.run(&["--lane", "FIX-P1-002"]).exits(2).says("the plan has no lane `FIX-P1-002`");
    scene.agent("FIX-P1-001", &format!("cat > {out}; exit 1"));
    scene.run(&["--lane", "FIX-P1-001"]).exits(1);
    let prompt = scene.told("prompt").join("\n");
    for words in ["test -e fixed.txt", "exit code 1", "TOPAZ is missing", super::scene::DOCUMENT] {
        assert!(prompt.contains(words), "{words}\n---\n{prompt}");
    }
    scene.agent("FIX-P1-001", "echo x > fixed.txt");
    scene.run(&["--lane", "FIX-P1-001"]).exits(0);
    assert!(scene.subjects("main")[0].starts_with("feat(P1-FIX-P1-001): "));
    let runs = scene.project.piton(&["runs"]).exits(0).stdout;
    assert_eq!(runs.matches("complete").count(), 2, "{runs}");
    scene.nothing_left();
}

/// Lost: an agent whose fix misses is never asked again, and a night ends there.
#[test]
fn a_fix_that_misses_is_asked_for_again() {
    let scene = validated("test -e fixed.txt");
    scene.run(&[]).exits(1).says("FIX-P1-001");
    let out = scene.outside("prompt").display().to_string();
    let second = "[ \"$PITON_ATTEMPT\" -lt 2 ] || echo x > fixed.txt";
    scene.agent("FIX-P1-001", &format!("cat > {out}; {second}"));
    scene.run(&["--lane", "FIX-P1-001"]).exits(0).says("attempt 2");
    let prompt = scene.told("prompt").join("\n");
    assert!(prompt.contains("or of the run log if it wrote nothing"), "{prompt}");
    scene.nothing_left();
}

/// Lost: a phase with two mistakes could be mended once, and then never again.
#[test]
fn a_phase_can_be_fixed_as_often_as_its_validation_fails() {
    let scene = validated("test -e one.txt\ntest -e two.txt");
    scene.run(&[]).exits(1).says("FIX-P1-001");
    let out = scene.outside("prompt").display().to_string();
    scene.agent("FIX-P1-001", "echo x > one.txt");
    scene.run(&["--lane", "FIX-P1-001"]).exits(1).says("FIX-P1-001: test -e two.txt");
    scene.agent("FIX-P1-001", &format!("cat > {out}; echo x > two.txt"));
    scene.run(&["--lane", "FIX-P1-001"]).exits(0);
    assert!(scene.told("prompt").join("\n").contains("test -e two.txt"));
    assert_eq!(scene.subjects("main").len(), 4);
    scene.nothing_left();
}
