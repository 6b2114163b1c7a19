//! `piton demo`: a run that is killed and resumed, in a scratch repository, for all to see.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use piton_protocols::Table;
use piton_view::answers::{Demo, Ran};
use rustix::process::{Pid, Signal, kill_process};

use crate::cli::DemoArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// Longest wait for a step of the demo to begin.
const STEP_WAIT: Duration = Duration::from_secs(20);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

const PLAN: &str = r#"title = "Demo"

[[phase]]
id = "build"

[[phase.lane]]
id = "api"
steps = [
  { id = "schema", run = "echo $PITON_STEP_KEY attempt $PITON_ATTEMPT >> ran.txt; sleep 0.4" },
  { id = "server", run = "echo $PITON_STEP_KEY attempt $PITON_ATTEMPT >> ran.txt; sleep 1.2" },
]

[[phase.lane]]
id = "web"
steps = [
  { id = "page", run = "echo $PITON_STEP_KEY attempt $PITON_ATTEMPT >> ran.txt; sleep 0.4" },
  { id = "style", run = "echo $PITON_STEP_KEY attempt $PITON_ATTEMPT >> ran.txt; sleep 0.4; echo done > style.css", artifacts = ["style.css"] },
]

[[phase]]
id = "release"
run = "echo $PITON_STEP_KEY attempt $PITON_ATTEMPT >> ran.txt"
"#;

/// Shows it.
pub fn run(context: &Context, args: &DemoArgs) -> Result<()> {
    let scratch = Scratch::new(args.keep)?;
    ui::say(&format!("A scratch repository: {}", scratch.dir.display()));
    ui::say("\n== 1. The driver is killed (SIGKILL) in mid-step, then resumed");
    let mut driver = scratch.piton(&["run", "plan.toml", "--run-id", "demo-1"])?;
    scratch.wait_for("demo-1/build/api/server")?;
    kill(driver.id());
    let _ = driver.wait();
    ui::say("   killed while build/api/server runs; its keeper holds it on");
    scratch.resume("demo-1")?;
    let driver_rounds = scratch.count("demo-1");

    ui::say("\n== 2. Driver, keeper and steps are killed at once, then resumed");
    let mut driver = scratch.piton(&["run", "plan.toml", "--fresh", "--run-id", "demo-2"])?;
    scratch.wait_for("demo-2/build/api/server")?;
    scratch.kill_everything(context.table, "demo-2", driver.id())?;
    let _ = driver.wait();
    ui::say("   killed everything while build/api/server runs");
    scratch.resume("demo-2")?;
    let all_rounds = scratch.count("demo-2");

    let ran = driver_rounds.into_iter().map(|(step, driver_killed)| {
        let everything_killed = all_rounds.get(&step).copied().unwrap_or(0);
        Ran { step, driver_killed, everything_killed }
    });
    ui::tell(context.json, &Demo { ran: ran.collect() });
    Ok(())
}

struct Scratch {
    dir: PathBuf,
    keep: bool,
}

impl Scratch {
    fn new(keep: bool) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("piton-demo-{}", std::process::id()));
        let made = std::fs::create_dir(&dir)
            .and_then(|()| std::fs::write(dir.join("plan.toml"), PLAN))
            .map_err(|e| failed(&format!("{}: {e}", dir.display())));
        made?;
        piton_workspace::git(&dir, &["init", "--quiet"]).map_err(|e| failed(&e.message))?;
        Ok(Self { dir, keep })
    }

    fn command(&self, args: &[&str]) -> Result<Command> {
        let exe = std::env::current_exe().map_err(|e| failed(&e.to_string()))?;
        let mut command = Command::new(exe);
        command.arg("-C").arg(&self.dir).args(args).stdin(Stdio::null());
        Ok(command)
    }

    fn piton(&self, args: &[&str]) -> Result<Child> {
        let mut command = self.command(args)?;
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map_err(|e| failed(&e.to_string()))
    }

    fn resume(&self, run_id: &str) -> Result<()> {
        ui::say(&format!("   $ piton resume {run_id}"));
        let status = self.command(&["resume", run_id])?.status();
        match status {
            Ok(status) if status.success() => Ok(()),
            other => Err(failed(&format!("the resumed run ended with {other:?}"))),
        }
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.join("ran.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn wait_for(&self, key: &str) -> Result<()> {
        let deadline = Instant::now() + STEP_WAIT;
        while Instant::now() < deadline {
            if self.lines().iter().any(|l| l.starts_with(key)) {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Err(failed(&format!("step {key} did not begin")))
    }

    fn count(&self, run_id: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in self.lines() {
            let key = line.split(' ').next().unwrap_or_default();
            if let Some(step) = key.strip_prefix(run_id).and_then(|k| k.strip_prefix('/')) {
                *counts.entry(step.to_owned()).or_default() += 1;
            }
        }
        counts
    }

    fn kill_everything(&self, table: &'static Table, run_id: &str, driver: u32) -> Result<()> {
        let context = Context::new(table, &self.dir, (false, true), false)?;
        let state = context.read_store()?.load(run_id)?.state;
        let keeper = piton_process::keeper_alive(&context.run_dir(run_id));
        kill(driver);
        keeper.into_iter().for_each(kill);
        piton_process::strays::sweep(&state.mark, None, &[])
            .map(|_| ())
            .map_err(|_| failed("a step could not be killed"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn failed(message: &str) -> CommandError {
    CommandError::failed("demo", format!("the demo could not go on: {message}"))
}
