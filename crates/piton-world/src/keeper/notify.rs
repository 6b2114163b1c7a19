//! The notify command: it runs under the keeper, and the driver waits a moment for its end.

use std::path::Path;
use std::time::{Duration, Instant};

use piton_engine::Result;
use piton_engine::world::Notice;
use piton_process::protocol::{Event, Exit, HELPER_KEY, Request, Spawn};

use super::{Connection, SLICE, Stop};
use crate::failed;

/// Longest time of a notify command.
const NOTIFY_MS: u64 = 60_000;
/// How long a driver that leaves listens to its notify command: one that is slow is believed.
const NOTIFY_PATIENCE: Duration = Duration::from_secs(2);

impl Connection {
    /// Starts the command, and says whether it failed at once.
    pub fn notify(
        &mut self,
        root: &Path,
        argv: Vec<String>,
        run: &str,
        notice: &Notice,
        stop: Stop<'_>,
    ) -> Result<()> {
        self.ensure()?;
        self.queue.push(Request::Spawn(Spawn {
            argv,
            env: vec![
                ("PITON_RUN_ID".to_owned(), run.to_owned()),
                ("PITON_STATUS".to_owned(), notice.status.clone()),
                ("PITON_MESSAGE".to_owned(), notice.message.clone()),
            ],
            dir: root.to_owned(),
            log: self.dir.join("notify.log"),
            timeout_ms: NOTIFY_MS,
            tell: true,
        }));
        self.flush();
        self.hear_helper(stop)
    }

    /// Waits a moment for the end of a helper: one that can't work fails at once.
    fn hear_helper(&mut self, stop: Stop<'_>) -> Result<()> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let log = self.dir.join("notify.log");
        let deadline = Instant::now() + NOTIFY_PATIENCE;
        while Instant::now() < deadline && !stop() {
            for event in keeper.receive(Some(SLICE)).map_err(failed)? {
                let (key, problem) = match &event {
                    Event::NotStarted(not) => (&not.key, Some(not.error.clone())),
                    Event::Exited(exit) => (&exit.key, problem_of(exit)),
                    Event::Gone => return Ok(()),
                    _ => continue,
                };
                if !key.starts_with(HELPER_KEY) {
                    continue;
                }
                let told = |why| failed(format!("{why}; what it printed is in {}", log.display()));
                return problem.map_or(Ok(()), |why| Err(told(why)));
            }
        }
        Ok(())
    }
}

/// What is wrong with the end of a helper.
fn problem_of(exit: &Exit) -> Option<String> {
    match (exit.code, exit.signal) {
        (Some(0), _) => None,
        (Some(127), _) => Some("exit code 127 (command not found)".to_owned()),
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("ended by signal {signal}")),
        (None, None) => Some("it ended in a way the system did not tell".to_owned()),
    }
}
