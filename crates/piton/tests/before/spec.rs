//! The spec is compared before each phase, and decides whether a complete run is enough.

use super::common::Project;

const PLAN: &str = "spec = \"SPEC.md\"\n[[phase]]\nid = \"A\"\nrun = \"echo a >> ../ran; test ! -e ../change || echo more >> SPEC.md\"\n\
                    [[phase]]\nid = \"B\"\nrun = \"echo b >> ../ran\"\n";

fn project(git: bool) -> Project {
    let project = if git { Project::new() } else { Project::without_git("plain") };
    project.write("plan.toml", PLAN);
    project.write("SPEC.md", "one\n");
    if git {
        project.commit();
    }
    project
}

fn ran(project: &Project) -> String {
    std::fs::read_to_string(project.outside().join("ran")).unwrap_or_default()
}

/// Lost: hours of work would be built on a spec that nobody agreed to.
#[test]
fn a_spec_that_changed_meanwhile_holds_the_next_phase() {
    for git in [true, false] {
        let project = project(git);
        std::fs::write(project.outside().join("change"), "").unwrap();
        let said = project.piton(&["run", "plan.toml"]).exits(4);
        said.says("the spec was SPEC.md").says("--accept-spec");
        assert_eq!(ran(&project), "a\n", "with git: {git}");
        project.piton(&["resume"]).exits(4).says("spec");
        project.piton(&["resume", "--accept-spec"]).exits(0);
        assert_eq!(ran(&project), "a\nb\n");
    }
}

/// Lost: "nothing to do" would be the answer to a spec that asks for more.
#[test]
fn after_a_complete_run_a_changed_spec_means_a_new_one() {
    let project = project(true);
    project.piton(&["run", "plan.toml"]).exits(0);
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(ran(&project), "a\nb\n", "the same spec asks for nothing");
    project.write("SPEC.md", "two\n");
    let said = project.piton(&["run", "plan.toml"]).exits(4);
    said.says("is complete").says("SPEC.md changed").says("--fresh");
    assert_eq!(ran(&project), "a\nb\n");
    project.piton(&["run", "plan.toml", "--yes"]).exits(0).says("a new run starts");
    assert_eq!(ran(&project), "a\nb\na\nb\n");
}
