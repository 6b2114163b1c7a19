//! (b) A thousand spawned steps: ours, durable, against make, which forgets.

use std::fs;
use std::path::Path;

use super::fixture::plan_text;
use super::measure::{in_turn, median, quiet, repository, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured};

/// Steps and recipes.
const STEPS: usize = 1000;
/// Rounds; each takes some seconds.
const ROUNDS: usize = 7;
/// Rounds of the short run, which takes milliseconds.
const ROUNDS_SHORT: usize = 15;
/// Most times a recipe may cost.
const LIMIT: f64 = 1.6;

/// Measures both, per step.
pub(super) fn measure(bench: &Bench) -> Measured {
    let make = bench.folder("make")?;
    fs::write(make.join("Makefile"), makefile()).map_err(|e| e.to_string())?;
    let floor_name = "make -j1";
    let what = "1,000 spawned steps `true`, per step".to_owned();
    if time_command(&mut quiet(Path::new("make"), &["--version"], &make)).is_err() {
        let result =
            Outcome::NotMeasured("make is not installed (apt-get install make)".to_owned());
        return Ok(vec![Row {
            id: "b",
            what,
            floor_name,
            result,
            limit: Some(LIMIT),
            remark: String::new(),
        }]);
    }
    let (theirs, ours) = in_turn(
        bench.rounds(ROUNDS),
        || time_command(&mut quiet(Path::new("make"), &["-s", "-j1"], &make)),
        || run(bench, STEPS),
    )?;
    let fixed: Result<Vec<f64>, String> = (0..ROUNDS_SHORT).map(|_| run(bench, 1)).collect();
    let fixed = median(fixed?).unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "a thousand")]
    let steps = STEPS as f64;
    let result = Outcome::Measured { floor: theirs / steps, ours: ours / steps, unit: "ms" };
    let remark = format!("a run of one step takes {fixed:.1} ms; nothing is subtracted");
    Ok(vec![Row { id: "b", what, floor_name, result, limit: Some(LIMIT), remark }])
}

/// Runs a plan in a fresh repository; how long that took in milliseconds.
fn run(bench: &Bench, steps: usize) -> Result<f64, String> {
    let dir = bench.folder("spawned")?;
    repository(&dir)?;
    fs::write(dir.join("plan.toml"), plan_text(steps)).map_err(|e| e.to_string())?;
    time_command(&mut quiet(&bench.piton, &["run", "plan.toml"], &dir))
}

fn makefile() -> String {
    let names: Vec<String> = (1..=STEPS).map(|number| format!("t{number}")).collect();
    let all = names.join(" ");
    // The semicolon makes it a line for the shell, as our steps are.
    let recipes: Vec<String> = names.iter().map(|name| format!("{name}:\n\t@true;\n")).collect();
    format!("all: {all}\n.PHONY: all {all}\n{}", recipes.concat())
}
