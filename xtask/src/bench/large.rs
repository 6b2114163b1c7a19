//! (i) A dry run of a plan in which every lane needs all before it. (j) `piton gc` of very many runs.
//!
//! Nobody else does the same, so both are held against the time that a person waits for.

use std::fmt::Write as _;
use std::path::Path;

use super::measure::{quiet, repository, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured};

/// Lanes of the plan: half a million needs.
const LANES: usize = 1000;
/// Runs that go, beside the last good one.
const RUNS: usize = 1000;
/// Most seconds for each.
const DRY_RUN_SECS: f64 = 2.0;
const GC_SECS: f64 = 10.0;

/// What each of the runs does: two snapshots that differ from those of all others.
const PLAN: &str = r#"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
steps = [{ id = "one", run = "echo $PITON_RUN_ID > out" }, { id = "two", run = "date >> out" }]
"#;

/// Measures both, each once: they take seconds.
pub(super) fn measure(bench: &Bench) -> Measured {
    let row = |id, what: String, millis: f64, limit| Row {
        id,
        what,
        floor_name: "seconds",
        result: Outcome::Counted(millis / 1000.0),
        limit: Some(limit),
        remark: String::new(),
    };
    let dir = bench.folder("dense")?;
    repository(&dir)?;
    write(&dir, &dense(LANES))?;
    let took = time_command(&mut quiet(&bench.piton, &["run", "plan.toml", "--dry-run"], &dir))?;
    let needs = LANES * (LANES - 1) / 2;
    let dry = row("i", format!("dry run of {LANES} lanes, {needs} needs"), took, DRY_RUN_SECS);

    let dir = bench.folder("many-runs")?;
    repository(&dir)?;
    write(&dir, PLAN)?;
    for number in 0..=RUNS {
        let (run_id, fresh) = (format!("run-{number}"), ["run", "plan.toml", "--fresh"]);
        time_command(&mut quiet(
            &bench.piton,
            &[&fresh[..], &["--run-id", &run_id]].concat(),
            &dir,
        ))?;
    }
    let gc = ["gc", "--yes", "--keep-runs", "0"];
    let took = time_command(&mut quiet(&bench.piton, &gc, &dir))?;
    Ok(vec![dry, row("j", format!("gc of {RUNS} runs"), took, GC_SECS)])
}

fn write(dir: &Path, plan: &str) -> Result<(), String> {
    std::fs::write(dir.join("plan.toml"), plan).map_err(|e| e.to_string())
}

/// A plan in which each lane needs all before it.
fn dense(lanes: usize) -> String {
    let mut plan = "[[phase]]\nid = \"P\"\n".to_owned();
    let mut needs = String::new();
    for lane in 0..lanes {
        let _ =
            writeln!(plan, "[[phase.lane]]\nid = \"L{lane}\"\nneeds = [{needs}]\nrun = \"true\"");
        let _ = write!(needs, "\"L{lane}\", ");
    }
    plan
}
