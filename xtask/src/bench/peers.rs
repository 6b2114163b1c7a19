//! Peers: a workflow of a thousand durable steps in LangGraph and DBOS, each beside plain commits.
//!
//! They are installed into an environment below cargo's target folder, so nothing of the machine
//! changes; without Python or a network the rows say why they are empty.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::Bench;
use super::durable::{Floor, Samples};
use super::table::{Outcome, Row};
use crate::shell;

/// Steps of the workflow.
const STEPS: usize = 1000;
/// Plain commits measured before and after: enough to see the WAL reused.
const COMMITS: usize = 3_000;

/// A peer: what it is called, what it is installed from, and its workflow.
struct Peer {
    name: &'static str,
    packages: &'static [&'static str],
    script: &'static str,
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "LangGraph SqliteSaver, sync",
        packages: &["langgraph", "langgraph-checkpoint-sqlite"],
        script: include_str!("peers/langgraph_steps.py"),
    },
    Peer {
        name: "DBOS on SQLite",
        packages: &["dbos"],
        script: include_str!("peers/dbos_steps.py"),
    },
];

/// Measures each peer that can be had.
pub(super) fn measure(bench: &Bench) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, peer) in PEERS.iter().enumerate() {
        let result = one(bench, index, peer);
        let remark = "a durable step in a workflow of 1,000".to_owned();
        rows.push(Row {
            id: "peer",
            what: peer.name.to_owned(),
            floor_name: "SQLite WAL FULL commit",
            result: result.unwrap_or_else(Outcome::NotMeasured),
            limit: None,
            remark,
        });
    }
    rows
}

fn one(bench: &Bench, index: usize, peer: &Peer) -> Result<Outcome, String> {
    let python = environment(index, peer.packages)?;
    let dir = bench.folder(&format!("peer-{index}"))?;
    let script = dir.join("steps.py");
    fs::write(&script, peer.script).map_err(|e| e.to_string())?;
    let mut samples = Samples::default();
    let floor = Floor::open(&dir)?;
    commits(&floor, &mut samples)?;
    let output =
        Command::new(&python).arg(&script).arg(STEPS.to_string()).current_dir(&dir).output();
    let output = output.map_err(|e| e.to_string())?;
    commits(&floor, &mut samples)?;
    let said = String::from_utf8_lossy(&output.stdout);
    let took =
        said.lines().rev().find_map(|line| line.strip_prefix("seconds ")?.parse::<f64>().ok());
    let Some(seconds) = took.filter(|_| output.status.success()) else {
        return Err(format!("it failed: {}", last_line(&output.stderr)));
    };
    #[expect(clippy::cast_precision_loss, reason = "a thousand")]
    let ours = seconds * 1e6 / STEPS as f64;
    let floor = samples.medians()[0].ok_or("no plain commit found its WAL reused")?;
    Ok(Outcome::Measured { floor, ours, unit: "us" })
}

fn commits(floor: &Floor, samples: &mut Samples) -> Result<(), String> {
    for _ in 0..COMMITS {
        let (took, grew) = floor.commit()?;
        samples.push(took, grew);
    }
    Ok(())
}

/// The Python of an environment with these packages, made on first use.
fn environment(index: usize, packages: &[&str]) -> Result<PathBuf, String> {
    let dir = shell::target_dir()?.join(format!("bench-peer-{index}"));
    let python = dir.join("bin/python");
    let ready = dir.join("ready");
    if ready.exists() {
        return Ok(python);
    }
    let step = |command: &mut Command, what: &str| {
        let output = command.output().map_err(|e| format!("{what}: {e}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{what} failed: {}", last_line(&output.stderr)))
    };
    step(Command::new("python3").args(["-m", "venv"]).arg(&dir), "python3 -m venv")?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    step(Command::new(&python).args(install).args(packages), "pip install")?;
    fs::write(&ready, "").map_err(|e| e.to_string())?;
    Ok(python)
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
}
