//! (k) A large implementation plan: read, scheduled and shown by a dry run, against parsing its
//! Markdown.

use std::fmt::Write as _;

use super::measure::{in_turn, millis, quiet, repository, time, time_command};
use super::table::{Outcome, Row};
use super::{Bench, Measured};

/// Phases of the plan, and tasks of each.
const PHASES: usize = 2_000;
const TASKS: usize = 10;
/// Rounds for the medians.
const ROUNDS: usize = 11;
/// Most times the parse that the dry run may take.
const LIMIT: f64 = 20.0;
/// The plan in its repository.
const PLAN: &str = "specs/027_large/plans/001_implementation.md";

/// Measures both.
pub(super) fn measure(bench: &Bench) -> Measured {
    let dir = bench.folder("workflow")?;
    repository(&dir)?;
    let plan = plan();
    let settings = "[agents.bot]\ncommand = [\"true\"]\n\n[workflow]\nagent = \"bot\"\n";
    for (path, text) in [(PLAN, plan.as_str()), ("piton.toml", settings)] {
        let path = dir.join(path);
        let folder = path.parent().unwrap_or(&dir);
        std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
        std::fs::write(&path, text).map_err(|e| e.to_string())?;
    }
    let (floor, ours) = in_turn(
        bench.rounds(ROUNDS),
        || {
            let (events, took) = time(|| pulldown_cmark::Parser::new(&plan).count());
            if events == 0 { Err("nothing was parsed".to_owned()) } else { Ok(millis(took)) }
        },
        || time_command(&mut quiet(&bench.piton, &["run", PLAN, "--dry-run"], &dir)),
    )?;
    let kilobytes = plan.len() / 1000;
    Ok(vec![Row {
        id: "k",
        what: format!("dry run of {PHASES} phases, {} tasks", PHASES * TASKS),
        floor_name: "pulldown-cmark",
        result: Outcome::Measured { floor, ours, unit: "ms" },
        limit: Some(LIMIT),
        remark: format!("a plan of {kilobytes} kB; ours is a process from start to end"),
    }])
}

/// A plan as people write it: a goal, files, tasks and a test in each phase.
fn plan() -> String {
    let mut plan = "# A large plan\n\n## Overview\n\nAll of it, step by step.\n\n".to_owned();
    for phase in 1..=PHASES {
        let before = phase - 1;
        let needs = if phase == 1 { String::new() } else { before.to_string() };
        let _ = write!(
            plan,
            "### Phase {phase}: Part {phase} of the work\n\n**Objective**: bring part {phase} to \
             an end that can be tested\n**Dependencies**: [{needs}]\n**Complexity**: 5/10\n\nTasks:\n"
        );
        for task in 1..=TASKS {
            let _ = writeln!(
                plan,
                "- [ ] Write `src/part_{phase}/module_{task}.rs`, with its tests and a page of docs"
            );
        }
        let _ = write!(plan, "\n**Testing**:\n```bash\ncargo test part_{phase}\n```\n\n");
    }
    plan
}
