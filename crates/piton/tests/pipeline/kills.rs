//! Kills, and state files that are gone or damaged.

use super::common::wait_until;
use super::scene::{FOLDER, Feature, STATE};

/// Lost: an agent that outlived its driver is asked again for what it has done.
#[test]
fn an_agent_outlives_its_driver_and_ran_once() {
    let feature = Feature::at_spec_approval();
    feature.hold("architect");
    feature.tick("Spec approval");
    let mut driver = feature.project.spawn(&["run", FOLDER]);
    feature.wait_at("architect");
    feature.shows("- status: IN_PROGRESS");
    feature.shows("- current_stage: architect");
    driver.kill();
    feature.release("architect");
    wait_until("its output", || feature.project.has(&format!("{FOLDER}/adr.md")));
    feature.run().exits(3).says("Architecture sign-off");
    assert_eq!(feature.times("architect"), 1);
    feature.shows("- retry_count: 0");
    feature.mentions("Prior session ended at stage: architect.");
}

/// Lost: a tick made while the driver is dead is not seen.
#[test]
fn a_tick_after_a_kill_counts() {
    let feature = Feature::at_spec_approval();
    feature.project.kill_all();
    feature.tick("Spec approval");
    feature.run().exits(3).says("Architecture sign-off");
    assert_eq!(feature.ran(), ["spec", "clarify", "architect"]);
}

/// Lost: a state file that somebody deletes takes the run with it.
#[test]
fn a_deleted_state_file_comes_back() {
    let feature = Feature::at_architecture();
    feature.project.remove(STATE);
    feature.run().exits(3).says(" tasks");
    assert_eq!(feature.ran(), ["spec", "clarify", "architect"]);
    feature.mentions("- [x] Spec approval");
    feature.mentions("- [ ] Architecture sign-off");
    feature.shows("- current_stage: architect");
    feature.mentions("| architect | 20");
}

/// Lost: a file that is something else is overwritten.
#[test]
fn an_unreadable_state_file_is_left_alone() {
    let feature = Feature::at_architecture();
    feature.project.write(STATE, "My shopping list.\n");
    feature.project.piton(&["approve", "tasks"]).exits(0);
    let said = feature.run();
    assert!(said.stderr.contains(STATE), "{}", said.stderr);
    assert_eq!(feature.state(), "My shopping list.\n");
    feature.project.remove(STATE);
    feature.run().exits(3).says(" refactor");
    feature.mentions("- [x] Architecture sign-off");
    assert_eq!(feature.times("architect"), 1);
}
