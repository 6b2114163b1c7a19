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
