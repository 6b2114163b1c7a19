//! Roadmaps: several phase documents, one after the other.

use super::common::terminal::Terminal;
use super::common::wait_until;
use super::scene::{Scene, document, lane};

/// The document of a phase `P<N>` with the lane `SL-<N>`.
fn phase(number: u32, validation: bool) -> String {
    let id: &'static str = ["SL-0", "SL-1", "SL-2", "SL-3"][number as usize];
    let more = format!("## Verification\n\n- `test -e {id}-01.txt`\n");
    let gates = format!("## Interface Freeze Gates\n\n- [ ] IF-0-P{number}-A: it\n");
    let mut lane = lane(id);
    lane.index = &["Provides: IF-0-PN-A"];
    let text = document(&gates, &[lane], if validation { &more } else { "" });
    text.replace("# P1:", &format!("# P{number}:")).replace("PN-A", &format!("P{number}-A"))
}

const TABLE: &str = "\
# Roadmap

## Phases

| Phase | Document | About |
|---|---|---|
| P1 | plans/phase-1.md | the first |
| P2 | [the second](plans/phase-2.md) | another |
| P3 | `plans/phase-3.md` | the last |
";

/// Three phases and their roadmap.
fn scene() -> Scene {
    let scene = Scene::with(&phase(1, true), "");
    for number in [2, 3] {
        scene.project.write(&format!("plans/phase-{number}.md"), &phase(number, true));
    }
    scene.project.write("ROADMAP.md", TABLE);
    scene.project.commit();
    let out = scene.outside("ran").display().to_string();
    for id in ["SL-1", "SL-2", "SL-3"] {
        scene.agent(id, &format!("echo {id} >> {out}; echo x > {id}-01.txt"));
    }
    scene
}

/// Lost: a night's phases would need a person between them, or be done twice.
#[test]
fn a_roadmap_runs_its_phases_in_order_and_goes_on_at_the_one_that_failed() {
    let scene = scene();
    scene.agent("SL-2", "exit 1");
    let said = scene.project.piton(&["run", "ROADMAP.md"]).exits(1);
    let said = said.says("PHASE_COMPLETE_CONTINUE: plans/phase-2.md").says("PHASE_COMPLETE_STOP: ");
    let said = said.says("the roadmap stopped at phase P2 (2 of 3)");
    said.says("afterwards `piton run ROADMAP.md` goes on with phase P2");
    assert_eq!(scene.told("ran"), ["SL-1"]);
    assert!(!scene.project.has("SL-3-01.txt"));
    // Ticks of the first phase lie uncommitted in the work tree, and block nothing.
    assert!(scene.project.read("plans/phase-1.md").contains("- [x] IF-0-P1-A"));
    scene.agent("SL-2", "echo x > SL-2-01.txt");
    let said = scene.project.piton(&["run", "ROADMAP.md"]).exits(0);
    let said = said.says("phase P1 (1 of 3) is complete: run P1-");
    said.says("PHASE_COMPLETE_CONTINUE: plans/phase-3.md").says("all 3 phases are complete");
    assert_eq!(scene.told("ran"), ["SL-1", "SL-3"]);
    let subjects = scene.subjects("main");
    let wanted =
        ["feat(P3-SL-3): Lane SL-3", "feat(P2-SL-2): Lane SL-2", "feat(P1-SL-1): Lane SL-1"];
    assert_eq!(subjects[..3], wanted);
    scene.nothing_left();
    scene.project.piton(&["run", "ROADMAP.md"]).exits(0).says("phase P3 (3 of 3) is complete");
}

/// Lost: what stops the third phase is heard of after the first two, in the middle of the night.
#[test]
fn a_roadmap_is_checked_phase_by_phase() {
    let scene = scene();
    let said = scene.project.piton(&["check", "ROADMAP.md"]).exits(0);
    said.says("plans/phase-1.md can run").says("plans/phase-3.md can run");
    let settings =
        scene.project.read("piton.toml").replace("agent = \"writer\"", "agent = \"claude\"");
    let claude = "[agents.claude]\ncommand = [\"no-such-agent\"]\n";
    scene.project.write("piton.toml", &format!("{settings}{claude}"));
    scene.project.commit();
    let said = scene.project.piton(&["check", "plans", "--json"]).exits(4).json();
    assert_eq!(said["ready"], false);
    assert_eq!(said["phases"].as_array().map(Vec::len), Some(3), "{said}");
}

/// Lost: a crash in the second phase would cost the first.
#[test]
fn a_killed_roadmap_goes_on_with_the_phase_it_was_in() {
    let scene = scene();
    let begun = scene.outside("begun").display().to_string();
    scene.agent("SL-2", &format!(": > {begun}; sleep 600"));
    let _driver = scene.project.spawn(&["run", "plans"]);
    wait_until("the second phase", || scene.outside("begun").exists());
    scene.project.kill_all();
    scene.agent("SL-2", "echo x > SL-2-01.txt");
    scene.project.piton(&["run", "plans"]).exits(0).says("all 3 phases are complete");
    assert_eq!(scene.told("ran"), ["SL-1", "SL-3"]);
    scene.nothing_left();
}

/// Lost: somebody who did the first phase by hand could not have the rest done.
#[test]
fn a_roadmap_can_begin_with_a_later_phase() {
    let scene = scene();
    let said = scene.project.piton(&["run", "ROADMAP.md", "--start-phase", "P9"]).exits(2);
    said.says("the roadmap has no phase `P9`").says("it has: P1, P2, P3");
    scene.project.piton(&["run", "ROADMAP.md", "--start-phase", "P3"]).exits(0);
    assert_eq!(scene.told("ran"), ["SL-3"]);
    let said = scene.project.piton(&["run", "plans/phase-1.md", "--start-phase", "P1"]).exits(2);
    said.says("is for a roadmap");
}

/// Lost: a mistake in the last document would be found after hours.
#[test]
fn a_document_that_cannot_be_read_stops_a_roadmap_before_its_first_phase() {
    let scene = scene();
    scene.project.write("plans/phase-3.md", &phase(3, true).replace("| impl |", "| |"));
    scene.project.commit();
    let said = scene.project.piton(&["run", "ROADMAP.md"]).exits(2);
    said.says("plans/phase-3.md").says("piton inspect plans/phase-3.md");
    assert_eq!(scene.told("ran"), Vec::<String>::new());
}

/// Lost: what nothing validated, or nobody planned, would be built upon.
#[test]
fn a_roadmap_stops_where_a_person_has_to_look_first() {
    let scene = scene();
    scene.project.write("plans/phase-1.md", &phase(1, false));
    std::fs::remove_file(scene.project.root().join("plans/phase-3.md")).unwrap();
    scene.project.commit();
    let said = scene.project.piton(&["run", "ROADMAP.md"]).exits(4);
    let said = said.says("note: phase P3 has no document yet");
    let said = said.says("plans/phase-1.md names no command that validates the phase");
    said.says("piton run ROADMAP.md --start-phase P2");
    let said = scene.project.piton(&["run", "ROADMAP.md", "--start-phase", "P2"]).exits(4);
    said.says("phase P3 of the roadmap has no document yet");
    assert_eq!(scene.told("ran"), ["SL-1", "SL-2"]);
    scene.project.write("plans/phase-3.md", &phase(3, true));
    scene.project.commit();
    scene.project.piton(&["run", "ROADMAP.md"]).exits(0);
    assert_eq!(scene.told("ran"), ["SL-1", "SL-2", "SL-3"]);
}

/// Lost: a night that went on without its terminal would be told of its first phase only.
#[test]
fn each_phase_that_ran_without_a_terminal_is_told_of() {
    let scene = scene();
    let (begun, go) = (scene.outside("begun"), scene.outside("go"));
    let waits = "while [ ! -e $GO ]; do sleep 0.05; done; echo x > SL-1-01.txt";
    let waits = waits.replace("$GO", &go.display().to_string());
    scene.agent("SL-1", &format!(": > {}; {waits}", begun.display()));
    let driver = scene.project.spawn(&["run", "ROADMAP.md"]);
    wait_until("the first phase", || begun.exists());
    driver.signal(rustix::process::Signal::HUP);
    wait_until("it says so", || driver.stderr().contains("continues in the background"));
    std::fs::write(&go, "").unwrap();
    driver.wait().exits(0);
    let Some(next) = Terminal::start(&scene.project, "run ROADMAP.md") else { return };
    let told = next.ends(0);
    assert_eq!(told.matches("was closed at").count(), 3, "{told}");
    let Some(later) = Terminal::start(&scene.project, "run ROADMAP.md") else { return };
    assert!(!later.ends(0).contains("was closed at"), "each is told once");
}

/// Lost: a phase between others would be passed over, and all be called complete.
#[test]
fn a_roadmap_does_not_pass_over_a_phase_that_cannot_be_run() {
    let scene = scene();
    let list = "# R\n\n1. plans/phase-1.md\n2. plans/missing.md\n3. plans/phase-3.md\n";
    scene.project.write("LIST.md", list);
    scene.project.commit();
    let said = scene.project.piton(&["run", "LIST.md"]).exits(4);
    said.says("phase missing of the roadmap has no document yet");
    assert_eq!(scene.told("ran"), ["SL-1"]);
    let bare = phase(2, true)
        .replace("- SL-2 -- Lane SL-2", "- Lane Two")
        .replace("### SL-2 --", "### Two");
    scene.project.write("plans/phase-2.md", &bare);
    scene.project.commit();
    for roadmap in ["ROADMAP.md", "plans"] {
        let said = scene.project.piton(&["run", roadmap]).exits(2);
        said.says("plans/phase-2.md").says("no lane");
    }
    assert_eq!(scene.told("ran"), ["SL-1"]);
}
