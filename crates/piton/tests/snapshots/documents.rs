//! Plans and settings that are wrong.

use super::screen::{PLAN, Screen};

/// Lost: what a person reads about mistakes in a plan would be unread.
#[test]
fn wrong_plans() {
    let mut screen = Screen::new();
    screen.project.write(
        "plan.toml",
        "titel = \"Nightly\"\n\n[[phase]]\nid = \"build it\"\ntimeout = \"ten minutes\"\nrun = \"make\"\n\n\
         [[phase]]\nid = \"test\"\nneeds = [\"biuld\"]\nprompt = \"test it\"\nrun = \"make test\"\n\n\
         [[phase]]\nid = \"test\"\nretries = \"3\"\n",
    );
    screen.piton("run").is("plan-problems");
    screen.project.write("plan.toml", &PLAN.replace("run = \"echo page", "rnu = \"echo page"));
    screen.piton("run").is("plan-unknown-key");
    screen.project.write("plan.toml", "[[phase]\nid = 1\n");
    screen.piton("run").is("plan-not-toml");
    screen.project.write("plan.toml", &PLAN.replace("run = \"cat", "run = \"echo {{ nope }} cat"));
    screen.piton("run").is("plan-template");
    screen
        .project
        .write("plan.toml", "[[phase]]\nid = \"a\"\nprompt = \"do it\"\nagent = \"claud\"\n");
    screen.piton("run").is("plan-unknown-agent");
    screen.project.write("plan.toml", "");
    screen.piton("run").is("plan-empty");
    screen.project.write("notes.md", "# Notes\n\nBuy milk.\n");
    screen.piton("run notes.md").is("plan-notes");
    screen.piton("inspect notes.md").piton("inspect nowhere.md").is("inspect-notes");
    screen.project.write("plan.toml", PLAN);
    screen
        .project
        .write("piton.toml", "jobs = \"many\"\non_failure = \"explode\"\ncolour = true\n");
    screen.piton("run").piton("status").is("settings-problems");
}

/// Lost: mistakes in a phase document would be unread.
#[test]
fn wrong_phase_documents() {
    let mut screen = Screen::new();
    screen.project.write("plans/phase-1.md", "# P1: First\n\n## Lane Index & Dependencies\n\n\
        - SL-1 -- One\n  - Depends on: SL-9\n- SL-1 -- Again\n\n## D. Swim Lanes\n\n### SL-1 -- One\n\n\
        | Task ID | Type | Depends On |\n|---|---|---|\n| SL-1-01 | impl | - |\n");
    screen.piton("run plans/phase-1.md").is("document-problems");
    screen.piton("inspect plans/phase-1.md").is("inspect-problems");
}

/// Lost: what a roadmap without one of its documents says would be unread.
#[test]
fn roadmaps_that_cannot_go_on() {
    let mut screen = Screen::new();
    let document = "# P1: First\n\n## Lane Index & Dependencies\n\n- SL-1 -- One\n\n### SL-1 -- One\n\n\
                    - **Tasks**:\n  - impl: Begin.\n";
    screen.project.write("plans/p1.md", document);
    screen.project.write(
        "ROADMAP.md",
        "# Roadmap\n\n| Phase | Document |\n|---|---|\n| P1 | plans/p1.md |\n| P2 | - |\n",
    );
    screen.project.write("piton.toml", "[agents.worker]\ncommand = \"echo x > x.txt\"\n");
    screen.project.commit();
    screen.quietly("run ROADMAP.md --yes");
    screen.piton("run ROADMAP.md --start-phase P2").is("roadmap-stopped");
}

/// Lost: what keeps an agent from working without a person would be unread.
#[test]
fn agents_that_would_ask_at_night() {
    let mut screen = Screen::with_plan(
        "[agents.night]\nprogram = \"claude\"\ncommand = \"./claude\"\npermissions = \"own\"\n\n\
         [[phase]]\nid = \"P1\"\nagent = \"night\"\nprompt = \"write\"\n",
    );
    screen.project.write("claude", "#!/bin/sh\necho 2.1.325\n");
    screen.project.sh("chmod +x claude").exits(0);
    screen.project.commit();
    screen.piton("check plan.toml").is("check-agent");
}
