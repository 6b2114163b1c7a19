//! `piton waiting`: everything that a person has to decide, and nothing else.

use serde_json::Value;

use super::scene::{FOLDER, Feature, SPEC};

/// What waits: kind and command.
fn waiting(feature: &Feature) -> Vec<(String, String)> {
    let items = feature.project.piton(&["waiting", "--json"]).exits(0).json();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    items.as_array().unwrap().iter().map(|i| (text(i, "kind"), text(i, "next"))).collect()
}

/// Lost: a run stands still because somebody edited a file, and nobody sees that it waits.
#[test]
fn changed_files_are_listed_with_the_command_that_accepts_them() {
    let feature = Feature::at_architecture();
    feature.tick("Architecture sign-off");
    feature.run().exits(3);
    let run = feature.project.run_id();
    let gate = ("gate".to_owned(), format!("piton approve {run} refactor"));
    assert_eq!(waiting(&feature), std::slice::from_ref(&gate));
    let adr = format!("{FOLDER}/adr.md");
    feature.project.write(&adr, &format!("{}By hand.\n", feature.project.read(&adr)));
    let accept = format!("piton resume {run} --accept-outputs");
    assert_eq!(waiting(&feature), [gate.clone(), ("output".to_owned(), accept)]);
    feature.project.piton(&["waiting"]).says("changed output architect/main/work, for ");
    feature.project.write(SPEC, "# Other\n");
    let accept = format!("piton resume {run} --accept-spec --accept-outputs");
    let both = ["output", "spec"].map(|kind| (kind.to_owned(), accept.clone()));
    assert_eq!(waiting(&feature)[1..], both);
    // The command that is listed answers both.
    let words: Vec<&str> = accept.split(' ').skip(1).collect();
    feature.project.piton(&words).exits(3);
    assert_eq!(waiting(&feature), [gate]);
}

/// Lost: a person is asked to accept what a stage is still writing.
#[test]
fn a_spec_that_a_stage_is_writing_is_not_listed() {
    let feature = Feature::new();
    feature.does("clarify", "echo \"half $n\" >> $d/feature.spec.md; exit 1");
    feature.run().exits(1);
    let run = feature.project.run_id();
    let failed = ("failed_step".to_owned(), format!("piton retry {run} clarify/main/work"));
    assert_eq!(waiting(&feature), [failed]);
    // Nor while a driver is at work.
    let feature = Feature::new();
    feature.does("clarify", "echo half >> $d/feature.spec.md; touch ../log/at; while [ -e ../log/at ]; do sleep 0.02; done");
    let mut driver = feature.project.spawn(&["run", FOLDER]);
    feature.project.wait_for("../log/at");
    assert_eq!(waiting(&feature), []);
    driver.kill();
    feature.project.kill_all();
    assert_eq!(waiting(&feature), []);
}

/// Lost: what waits longest is at the end of the list, or another run's question is missing.
#[test]
fn all_runs_are_listed_the_oldest_first() {
    let feature = Feature::at_spec_approval();
    let plan = "[[phase]]\nid = \"P1\"\nrun = \"false\"\n";
    feature.project.write("plan.toml", plan);
    feature.project.piton(&["run", "plan.toml", "--run-id", "later"]).exits(1);
    let kinds: Vec<String> = waiting(&feature).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["gate", "failed_step"]);
    // A run that was rejected or stopped waits for nobody.
    feature.project.piton(&["abort", "later"]).exits(0);
    feature.project.piton(&["reject", "architect", "-m", "no"]).exits(0);
    feature.project.write(SPEC, "# Other\n");
    assert_eq!(waiting(&feature), []);
}
