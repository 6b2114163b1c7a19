//! Scenes of workflows: a phase that fails, the choice of a person, a checkpoint nobody can read.

use super::screen::Screen;
use super::workflow::{CHECKPOINT, PLAN, Scene};

/// Lost: what a person reads whose phase fails, who looks at the checkpoint and resumes.
#[test]
fn a_workflow_that_fails_and_resumes() {
    let mut screen = Screen::made_by(|| Scene::new().project);
    screen.project.write("../log/do-2.sh", "echo no table; exit 1");
    screen.asked(&format!("run {PLAN} --run-id auth"), &["later"]).is("workflow-failed");
    screen.asked(&format!("run {PLAN}"), &["view", "cancel"]).is("workflow-offer");
    screen.project.remove("../log/do-2.sh");
    screen.asked(&format!("run {PLAN}"), &["resume"]).is("workflow-resumed");
}

/// Lost: what a person reads where the checkpoint of another tool cannot be read.
#[test]
fn checkpoints_that_are_refused() {
    let mut screen = Screen::made_by(|| Scene::new().project);
    screen.project.write(CHECKPOINT, "{ invalid json");
    screen.piton(&format!("run {PLAN}")).is("errors-checkpoint-unclear");
}
