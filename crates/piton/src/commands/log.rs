//! `piton log`: the output of a run's steps, attempt by attempt, or as it comes.
//!
//! Children write straight to two files per lane; which bytes belong to which attempt is told by the
//! ledger ([`attempts`]). What is shown is redacted, and harmless to a terminal ([`mod@print`]).

mod attempts;
mod print;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use piton_core::{RunState, StepPath, remedy};
use piton_engine::Store;
use piton_ledger::RunRow;
use piton_process::logs::{self, AttemptLog, Piece, Selection};
use piton_process::protocol::{Dropped, Range};

use self::attempts::{Attempt, Attempts};
use self::print::{Form, Printer};
use super::request::names;
use crate::cli::{LogArgs, Stream};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::plan_file::redactor_of_run;
use crate::ui;

/// The pause between two looks while following: quick enough to feel live.
const FOLLOW_EVERY: Duration = Duration::from_millis(100);

/// Shows the output of a run's steps.
pub fn run(context: &Context, args: &LogArgs) -> Result<()> {
    let mut store = context.read_store()?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let loaded = store.load_row(row)?;
    if loaded.seq == 0 && !Context::driver_lives(&loaded.row) {
        let run = &loaded.row.run_id;
        ui::say(
            remedy![Words "run {run} has not started, so it has no output; start it with ", Piton "resume {run}"],
        );
        return Ok(());
    }
    check_names(&loaded.state, args)?;
    let form = match (context.json, std::io::stdout().is_terminal()) {
        (true, _) => Form::Json,
        (false, true) => Form::Terminal,
        (false, false) => Form::Plain,
    };
    let redactor = redactor_of_run(context, &loaded.row.run_id, &loaded.state.plan_path);
    let mut view = View {
        args,
        dir: context.run_dir(&loaded.row.run_id).join("logs"),
        attempts: Attempts::default(),
        cursors: BTreeMap::new(),
        ends: BTreeMap::new(),
        printer: Printer::new(&redactor, form),
    };
    let seq = view.learn(&mut store, &loaded.row, 0)?;
    view.printer.headings = args.follow || view.selected().count() > 1;
    if args.follow {
        return follow(context, &mut store, &loaded.row, &mut view, seq);
    }
    if let (Some(attempt), None) = (args.attempt, view.selected().next()) {
        let message = format!("there is no attempt {attempt} of what is selected");
        return Err(CommandError::usage("no-step", message)
            .hint(remedy![Piton "show STEP", Words " lists the attempts of a step"]));
    }
    view.show(true)?;
    if !view.printer.printed {
        ui::say("no output yet");
    }
    Ok(())
}

/// A name that fits nothing is a mistake, not an empty answer.
fn check_names(state: &RunState, args: &LogArgs) -> Result<()> {
    let fits = |path: &StepPath| {
        args.lane.as_ref().is_none_or(|lane| names::fits_lane(path, lane))
            && args.step.as_ref().is_none_or(|step| names::fits(path, step))
    };
    let replans = state.replans.phases.keys().map(|phase| attempts::replan(phase));
    if state.steps().map(|(path, _)| path).chain(replans).any(|path| fits(&path)) {
        return Ok(());
    }
    let wanted: Vec<String> = [("lane", &args.lane), ("step", &args.step)]
        .iter()
        .filter_map(|(kind, name)| name.as_ref().map(|name| format!("{kind} `{name}`")))
        .collect();
    let run = state.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let message = format!("run {run} has no {}", wanted.join(" with "));
    Err(CommandError::usage("no-step", message)
        .hint(remedy![Piton "status {run}", Words " shows its lanes and steps"]))
}

fn follow(
    context: &Context,
    store: &mut Store,
    row: &RunRow,
    view: &mut View<'_>,
    mut seq: u64,
) -> Result<()> {
    let dir = context.run_dir(&row.run_id);
    loop {
        // Looked at before the output, so that what was written last is still shown.
        let row = store.ledger().run(&row.run_id)?.unwrap_or_else(|| row.clone());
        let goes_on = Context::driver_lives(&row) || piton_process::keeper_alive(&dir).is_some();
        if row.seq > seq {
            seq = view.learn(store, &row, seq)?;
        }
        view.show(!goes_on)?;
        if !goes_on {
            return Ok(());
        }
        thread::sleep(FOLLOW_EVERY);
    }
}

/// What is shown of a run's output, and how far it has been.
struct View<'a> {
    args: &'a LogArgs,
    dir: PathBuf,
    attempts: Attempts,
    /// How far each attempt has been shown: places in the lane's two files.
    cursors: BTreeMap<usize, (u64, u64)>,
    /// Where the output of each attempt ended at the last look: a long line that is not whole is
    /// not read again before it has grown.
    ends: BTreeMap<usize, (u64, u64)>,
    printer: Printer<'a>,
}

impl View<'_> {
    /// Takes in the events after a sequence number.
    fn learn(&mut self, store: &mut Store, row: &RunRow, seq: u64) -> Result<u64> {
        Ok(store.each_event(row, seq, |_, _, event| self.attempts.take(event))?)
    }

    fn selected(&self) -> impl Iterator<Item = (usize, &Attempt)> {
        let args = self.args;
        self.attempts.list.iter().enumerate().filter(move |(_, a)| {
            args.lane.as_ref().is_none_or(|lane| names::fits_lane(&a.step, lane))
                && args.step.as_ref().is_none_or(|step| names::fits(&a.step, step))
                && args.attempt.is_none_or(|attempt| attempt == a.number)
        })
    }

    /// Prints what is new; the last line of a running attempt only when it is whole, or `all`.
    fn show(&mut self, all: bool) -> Result<()> {
        // What is over and was shown is passed over: a long run has many attempts.
        let shown = |index: &usize, a: &Attempt| {
            a.outcome.is_some()
                && self.cursors.get(index).is_some_and(|c| *c == self.attempts.end(*index, || *c))
        };
        let selected: Vec<(usize, Attempt)> = self
            .selected()
            .filter(|(index, a)| !shown(index, a))
            .map(|(index, a)| (index, a.clone()))
            .collect();
        for (index, attempt) in selected {
            let (out, err) = attempt.files(&self.dir);
            let end = self.attempts.end(index, || (length(&out), length(&err)));
            let start = attempt.start;
            let at =
                self.cursors.get(&index).map_or(start, |c| (c.0.max(start.0), c.1.max(start.1)));
            let whole = all || attempt.outcome.is_some();
            if self.ends.insert(index, end) == Some(end) && !whole {
                continue;
            }
            let reached = self
                .piece(&attempt, (out, err), at, end, whole)
                .map_err(|e| CommandError::failed("log", format!("cannot read the log: {e}")))?;
            self.cursors.insert(index, reached);
        }
        if all {
            self.printer.end_all();
        }
        self.printer.flush();
        Ok(())
    }

    fn piece(
        &mut self,
        attempt: &Attempt,
        (stdout, stderr): (PathBuf, PathBuf),
        (mut out, mut err): (u64, u64),
        end: (u64, u64),
        whole: bool,
    ) -> std::io::Result<(u64, u64)> {
        let selection = match self.args.stream {
            Stream::Both => Selection::Both,
            Stream::Stdout => Selection::Stdout,
            Stream::Stderr => Selection::Stderr,
        };
        let grown = (selection != Selection::Stderr && end.0 > out)
            || (selection != Selection::Stdout && end.1 > err);
        if !grown {
            return Ok((out, err));
        }
        let range = |(start, end): (u64, u64)| Range { start, end: end.max(start) };
        let log = AttemptLog {
            stdout,
            stderr,
            stdout_range: range((out, end.0)),
            stderr_range: range((err, end.1)),
            dropped: Dropped {
                stdout: attempt.dropped.0.map(range),
                stderr: attempt.dropped.1.map(range),
            },
        };
        for piece in logs::read(&log, selection)? {
            let (stream, bytes) = match piece? {
                Piece::Line { stream, bytes, more } => {
                    if !bytes.ends_with(b"\n") && !more && !whole {
                        continue;
                    }
                    self.printer.line(attempt, stream, &bytes, more);
                    (stream, bytes.len() as u64)
                }
                Piece::Dropped { stream, bytes } => {
                    self.printer.dropped(attempt, stream, bytes);
                    (stream, bytes)
                }
            };
            match stream {
                logs::Stream::Stdout => out += bytes,
                logs::Stream::Stderr => err += bytes,
            }
        }
        Ok((out, err))
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |m| m.len())
}
