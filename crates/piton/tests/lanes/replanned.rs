//! Replans of phase documents.

use super::scene::{DOCUMENT, Scene};

const PLAN: &str = "\
# P1: Greeting

## Lane Index & Dependencies

- SL-1 - Greet
- SL-2 - Part

## Lanes

### SL-1 - Greet

- **Tasks**:
  - impl: Greet in a way that nobody can.

### SL-2 - Part

- **Tasks**:
  - impl: Say goodbye.
";

/// Lost: an agent that finds the document wrong can only fail, and the night ends.
#[test]
fn a_task_that_cannot_be_done_has_its_document_revised() {
    let revise = format!("sed -i 's/in a way that nobody can/politely/' {DOCUMENT}");
    let scene = Scene::with(PLAN, &format!("[replan]\nrun = \"{revise}\"\n"));
    let out = scene.outside("prompt").display().to_string();
    let agent = format!("cat > {out}; ! grep -q 'nobody can' {out} || exit 86; echo x > hello.txt");
    scene.agent("SL-1.impl.1", &agent);
    let said = scene.run(&[]).exits(0).says("it asks for a replan");
    said.says("P1: replan 1 started").says("SL-1/SL-1.impl.1: prompt");
    assert!(scene.told("prompt").join("\n").contains("Greet politely"));
    assert!(scene.project.has("hello.txt"));
    let subjects = scene.subjects("main");
    assert!(subjects.iter().any(|subject| subject == "feat(P1-SL-2): Part"), "{subjects:?}");
    scene.nothing_left();
}
