//! Which agent does a task, and who goes on if it cannot.

use super::scene::{DOCUMENT, Scene};

/// One lane with two tasks of code.
const TASKS: &str = "\
# P1: First

## Lane Index & Dependencies

- SL-1 -- One

## Lanes

### SL-1 -- One

- **Tasks**:
  - impl: Begin.
  - impl: Finish.
";

/// A scene in which `first` and then `second` write code; `more` is said of the first.
fn scene(first: &str, more: &str) -> Scene {
    let scene = Scene::with(TASKS, "[lanes.agents]\nimpl = [\"first\", \"second\"]\n");
    let out = scene.outside("").display().to_string();
    let settings = scene.project.read("piton.toml");
    scene.project.write(
        "piton.toml",
        &format!(
            "{settings}\n[agents.first]\ncommand = {first}\n{more}\n[agents.second]\n\
             command = \"cat > {out}/given; echo $PITON_STEP >> {out}/second; echo x > $PITON_STEP.txt\"\n"
        ),
    );
    scene.project.git(&["commit", "--quiet", "--all", "--message", "agents"]);
    scene
}

/// Lost: a night would end because one of several agents is not installed.
#[test]
fn an_agent_that_is_missing_is_replaced_by_the_next() {
    let scene = scene("[\"no-such-agent\", \"-p\"]", "");
    scene.run(&[]).exits(0);
    assert_eq!(scene.told("second"), ["SL-1.impl.1", "SL-1.impl.2"]);
    assert!(scene.told("given").join("\n").contains("Finish."), "it gets the prompt");
    scene.nothing_left();
}

/// Lost: a night would wait for one account although another agent could go on.
#[test]
fn an_agent_at_a_limit_is_replaced_by_the_next_until_the_limit_ends() {
    let first = "\"echo $PITON_STEP >> ../../../../first; echo 'rate limit, resets in 2 hours' >&2; exit 1\"";
    let limited = scene(first, "");
    limited.run(&[]).exits(0);
    assert_eq!(limited.told("first"), ["SL-1.impl.1"], "it is not asked again");
    assert_eq!(limited.told("second"), ["SL-1.impl.1", "SL-1.impl.2"]);
}

/// Lost: a limit that ends in a moment would move the work to another agent.
#[test]
fn a_limit_that_ends_soon_is_waited_for() {
    let first = "\"echo x >> ../../../../first; if [ -e ../../../../limited ]; then echo x > $PITON_STEP.txt; \
                 else : > ../../../../limited; echo 'rate limit: retry after 1s' >&2; exit 1; fi\"";
    let limited = scene(first, "limit_wait = \"5m\"");
    limited.run(&[]).exits(0);
    assert_eq!(limited.told("second"), Vec::<String>::new());
    assert_eq!(limited.told("first").len(), 3);
    assert!(limited.project.has("SL-1.impl.2.txt"), "{}", limited.project.read(DOCUMENT));
}
