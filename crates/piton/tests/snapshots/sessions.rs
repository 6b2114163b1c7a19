//! Scenes of sessions: a hand-off at the limit, and what is refused.

use super::screen::Screen;
use super::session::{BOARD, LATEST, Scene};

fn screen() -> Screen {
    Screen::made_by(|| Scene::new().project)
}

/// Lost: what a person reads whose session stops at its limit, and who continues in the next.
#[test]
fn a_session_that_is_interrupted_and_resumes() {
    let mut screen = screen();
    screen
        .piton("session start --session monday")
        .piton("session task start T001 --session monday");
    screen.piton("session checkpoint --session monday --tokens 150000/200000");
    screen.piton("session checkpoint --session monday --tokens 182000/200000").piton("status");
    screen.piton("resume").piton("resume session-").is("session-interrupted");
    screen.piton("session start --session tuesday --tokens 4000").piton("show");
    screen.piton("session task finish T001-1 --session tuesday --tokens 9000");
    screen.piton("session end --session tuesday").piton("status").is("session-resumed");
}

/// Lost: what a person reads where a session cannot be recorded or resumed.
#[test]
fn sessions_that_are_refused() {
    let mut screen = screen();
    screen.piton("session task start T009").piton("session checkpoint --tokens many");
    screen.project.write(LATEST, "{ \"timestamp\": \"2020-01-01T00:00:00Z\" }");
    screen.piton("session start --session a");
    screen.project.write(BOARD, "backlog: [\n");
    screen.piton("session task start T001").piton(&format!("inspect {BOARD}"));
    screen.project.write(BOARD, "backlog: [{id: T001}]\n");
    screen.piton("session task start T001");
    screen.project.write("recovery-protocol.md", "---\nenabled: false\n---\n");
    screen.piton("session start").piton("session task start T001").is("errors-session");
}
