//! (d) Appends to a long history against appends to a short one.

use std::fs;

use piton_ledger::DATABASE_FILE;

use super::durable::Samples;
use super::fixture::Driven;
use super::measure::time;
use super::table::{Outcome, Row};
use super::{Bench, Measured};

/// Steps of the plan.
const STEPS: usize = 400;
/// Events of the short and of the long history.
const EVENTS: [u64; 2] = [1_000, 1_000_000];
/// Events in one commit while a history is written.
const EVENTS_PER_COMMIT: usize = 5_000;
/// Appends measured on each side.
const APPENDS: usize = 3_000;
/// Most times an append to a short history may cost.
const LIMIT: f64 = 1.1;

/// Measures both in turn, each in a ledger of its own.
pub(super) fn measure(bench: &Bench) -> Measured {
    let mut sides = Vec::new();
    for events in EVENTS {
        let dir = bench.folder(&format!("growth-{events}"))?;
        let mut driven = Driven::create(&dir, &dir, STEPS)?;
        driven.fill(events, EVENTS_PER_COMMIT)?;
        sides.push((driven, dir.join(format!("{DATABASE_FILE}-wal")), Samples::default()));
    }
    // What both wrote so far is on its way to the disk; the first appends would pay for it.
    rustix::fs::sync();
    for round in 0..bench.rounds(APPENDS) {
        for turn in 0..sides.len() {
            let index = (turn + round) % sides.len();
            let (driven, wal, samples) = &mut sides[index];
            let bytes = || fs::metadata(&*wal).map_or(0, |about| about.len());
            let before = bytes();
            let (done, took) = time(|| driven.step());
            done?;
            samples.push(took, bytes() > before);
        }
    }
    // Both WALs were filled to their size while the histories were written: appends reuse them.
    let mut medians = sides.into_iter().map(|(_, _, samples)| samples.medians()[0]);
    let result = match (medians.next().flatten(), medians.next().flatten()) {
        (Some(floor), Some(ours)) => Outcome::Measured { floor, ours, unit: "us" },
        _ => Outcome::NotMeasured("no append found its WAL reused".to_owned()),
    };
    Ok(vec![Row {
        id: "d",
        what: "append at 1,000,000 events".to_owned(),
        floor_name: "at 1,000 events",
        result,
        limit: Some(LIMIT),
        remark: String::new(),
    }])
}
