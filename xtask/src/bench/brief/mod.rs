//! (l) A cold `piton brief` of a run of 1,000 steps, against the start of `/bin/true`; and beside it how
//! much of what matters is in briefs of different sizes.

mod complete;
mod script;

use std::path::Path;

use super::fixture::{Driven, RUN};
use super::measure::{in_turn, quiet, repository, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured};

/// Steps of the run.
const STEPS: usize = 1000;
/// Rounds; each takes milliseconds.
const ROUNDS: usize = 40;
/// Most starts of `/bin/true` that a brief may take, with the tokenizer.
const LIMIT: f64 = 400.0;

/// Measures a brief, and prints how complete briefs are.
pub(super) fn measure(bench: &Bench) -> Measured {
    eprint!("{}", complete::table()?);
    let dir = bench.folder("brief")?;
    repository(&dir)?;
    let mut driven = Driven::create(&dir.join(".git/piton"), &dir, STEPS)?;
    for _ in 1..STEPS {
        driven.step()?;
    }
    driven.leave()?;
    let truth = Path::new("/bin/true");
    let (floor, ours) = in_turn(
        bench.rounds(ROUNDS),
        || time_command(&mut quiet(truth, &[], &dir)),
        || time_command(&mut quiet(&bench.piton, &["brief", RUN], &dir)),
    )?;
    Ok(vec![Row {
        id: "l",
        what: "cold brief of 1,000 steps".to_owned(),
        floor_name: "start of /bin/true",
        result: Outcome::Measured { floor, ours, unit: "ms" },
        limit: Some(LIMIT),
        remark: String::new(),
    }])
}
