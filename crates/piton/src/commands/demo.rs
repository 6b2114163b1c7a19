//! `piton demo`: a run that is killed and resumed, in a scratch repository, for all to see.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use piton_protocols::Table;
use piton_view::answers::{Demo, Ran};
use piton_workspace::Project;
use rustix::process::{Pid, Signal, kill_process};

use super::resume;
use crate::cli::{DemoArgs, DriveArgs, ResumeArgs};
use crate::context::Context;
use crate::environment::environment;
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
    ui::works_in(&scratch.dir);
    ui::say(format!("A temporary repository: {}", scratch.dir.display()));
    ui::say("\n== 1. The driver is killed (SIGKILL) during a step, then resumed");
    let mut driver = scratch.piton(&["run", "plan.toml", "--run-id", "demo-1"])?;
    scratch.wait_for("demo-1/build/api/server")?;
    kill(driver.id());
    let _ = driver.wait();
    ui::say("   killed while build/api/server is running; its keeper keeps it running");
    scratch.resume(context, "demo-1")?;
    let driver_rounds = scratch.count("demo-1");

    ui::say("\n== 2. Driver, keeper and steps are killed at once, then resumed");
    let mut driver = scratch.piton(&["run", "plan.toml", "--fresh", "--run-id", "demo-2"])?;
    scratch.wait_for("demo-2/build/api/server")?;
    scratch.kill_everything(context.table, "demo-2", driver.id())?;
    let _ = driver.wait();
    ui::say("   killed everything while build/api/server is running");
    scratch.resume(context, "demo-2")?;
    let all_rounds = scratch.count("demo-2");

    let ran = driver_rounds.into_iter().map(|(step, driver_killed)| {
        let everything_killed = all_rounds.get(&step).copied().unwrap_or(0);
        Ran { step, driver_killed, everything_killed }
    });
    ui::report(context.json, &Demo { ran: ran.collect() });
    Ok(())
}

struct Scratch {
    dir: PathBuf,
    keep: bool,
}

impl Scratch {
    fn new(keep: bool) -> Result<Self> {
        let dir =
            environment().inherited.temp_dir.join(format!("piton-demo-{}", std::process::id()));
        let made = std::fs::create_dir(&dir)
            .and_then(|()| std::fs::write(dir.join("plan.toml"), PLAN))
            .map_err(|e| failed(&format!("{}: {e}", dir.display())));
        made?;
        Project::init(&dir).map_err(|e| failed(&e.message))?;
        Ok(Self { dir, keep })
    }

    fn piton(&self, args: &[&str]) -> Result<Child> {
        let mut command = Command::new(&environment().inherited.program);
        command.arg("-C").arg(&self.dir).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map_err(|e| failed(&e.to_string()))
    }

    /// Resumes a run in this process; what to type next is only said of a folder that stays.
    fn resume(&self, context: &Context, run_id: &str) -> Result<()> {
        ui::say_as_is(&format!("   $ piton resume {run_id}"));
        let here = Context::new(context.table, &self.dir, (false, true), false)?;
        let drive = DriveArgs { no_next: !self.keep, ..DriveArgs::default() };
        resume::run(&here, ResumeArgs { at_boot: false, run: Some(run_id.to_owned()), drive })
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
        Err(failed(&format!("step {key} did not start")))
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
    CommandError::failed("demo", format!("the demo could not continue: {message}"))
}
