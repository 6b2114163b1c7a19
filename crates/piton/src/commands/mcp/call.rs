//! What each tool does: the functions of the commands, with the arguments of a call.
//!
//! No tool decides, ends or deletes. Inside a step the driver keeps the record, so only what asks or
//! reads is carried out there, for the run of the step.

use piton_core::event::Reason;
use piton_engine::{Loaded, Store};
use piton_protocols::session::tokens::Usage;
use piton_view::answers::Outcome;
use piton_view::mcp::answers::{Approval, Approvals, Checkpointed, Differences, Tokens, Wanted};
use piton_view::mcp::tools::LIST_DEFAULT;
use piton_view::mcp::{Arguments, Reply};
use piton_view::session::Unsaved;

use super::read;
use crate::cli::{BriefArgs, DiffArgs, ReplanArgs, TaskArgs, Which};
use crate::commands::session::{self, Here, Recording, SaveAsked};
use crate::commands::{approval, brief, checkpoint, diff, hook, replan, request};
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};

/// Most bytes of a comparison: about what a model takes in at once.
const DIFF_BYTES_MAX: usize = 48 << 10;
/// Most paths of a comparison.
const DIFF_PATHS_MAX: usize = 200;

/// Who calls.
pub struct Caller {
    /// The project.
    pub project: Context,
    /// The session, if the program names it.
    pub session: Option<String>,
}

/// Carries out a call.
pub fn call(caller: &Caller, tool: &str, given: &Arguments) -> Result<Reply> {
    match tool {
        "checkpoint" => save(caller, given),
        "list" => list(caller, given),
        "brief" => sum_up(caller, given),
        "resume" => resume(&caller.outside_steps(tool)?, given),
        "report_tokens" => report_tokens(&caller.outside_steps(tool)?, given),
        "task_start" | "task_finish" => task(&caller.outside_steps(tool)?, given, tool),
        "phase_start" | "phase_finish" => phase(&caller.outside_steps(tool)?, given, tool),
        "record_artifact" => artifact(&caller.outside_steps(tool)?, given),
        "request_replan" => want_replan(caller, given),
        "ask_approval" => ask(caller, given),
        "approval" => look(caller, given),
        "diff" => compare(caller, given),
        _ => Err(CommandError::usage("usage", format!("there is no tool `{tool}`"))),
    }
}

/// A caller that is not part of a step.
struct Outside<'c>(&'c Caller);

impl Caller {
    /// Refuses a tool of sessions inside a step.
    fn outside_steps(&self, tool: &str) -> Result<Outside<'_>> {
        match request::own_run(&self.project) {
            None => Ok(Outside(self)),
            Some(run) => {
                let message = format!(
                    "this is a step of run {run}: its driver keeps the record, so `{tool}` is not for it"
                );
                Err(CommandError::new(Kind::Blocked, "inside-a-step", message).hint(
                    "use checkpoint, request_replan, ask_approval, approval, brief, diff or list",
                ))
            }
        }
    }

    /// The session: as the program says, else as the agent does.
    fn session(&self, given: &Arguments) -> Result<Option<String>> {
        match (&self.session, given.text("session")) {
            (Some(own), Some(other)) if own != other => {
                let message = format!("this is session {own}; `session` names {other}");
                Err(CommandError::usage("usage", message).hint("leave `session` out"))
            }
            (own, other) => Ok(own.clone().or_else(|| other.map(str::to_owned))),
        }
    }

    /// The run that is meant, if it can be told: named, or of the step, or of the session.
    fn run(&self, given: &Arguments) -> Result<Option<String>> {
        if let Some(run) = given.text("run") {
            return Ok(Some(run.to_owned()));
        }
        if let Some(run) = request::own_run(&self.project) {
            return Ok(Some(run));
        }
        let Some(session) = self.session(given)? else { return Ok(None) };
        let here = Here::find_within(&self.project)?;
        Ok(here.note(&session).map(|note| note.run))
    }

    fn load(&self, run: Option<&str>) -> Result<(Store, Loaded)> {
        let mut store = request::open(&self.project)?;
        let row = Context::pick(&mut store, run, |_| true, "run")?;
        let loaded = store.load_row(row)?;
        Ok((store, loaded))
    }
}

impl<'c> Outside<'c> {
    fn bank(&self) -> Result<Here<'c>> {
        Here::find_within(&self.0.project)
    }
}

fn tokens(here: &Here<'_>, given: &Arguments) -> Option<Usage> {
    given.count("tokens_used").map(|used| here.used(used, given.count("tokens_window")))
}

fn save(caller: &Caller, given: &Arguments) -> Result<Reply> {
    let message = given.text("message").unwrap_or_default();
    let named = given.text("run").map(str::to_owned);
    if let Some(run) = named.or_else(|| request::own_run(&caller.project)) {
        return save_run(caller, Some(&run), message);
    }
    let here = Here::find_within(&caller.project)?;
    let asked = SaveAsked {
        session: caller.session(given)?,
        reason: Some(Reason::Manual),
        usage: tokens(&here, given),
        parts: given.texts("parts"),
        message: message.to_owned(),
        is_routine: false,
    };
    let saved = session::checkpoint(here, &asked)?;
    if saved.why == Some(Unsaved::NoBank) {
        return save_run(caller, None, message).map_err(no_place);
    }
    let words = saved.words();
    Ok(Reply::said(&Checkpointed::from(saved), words))
}

/// A project that has neither a memory bank nor a run.
fn no_place(error: CommandError) -> CommandError {
    if !matches!(&*error.code, "no-run" | "no-ledger") {
        return error;
    }
    CommandError::usage("no-session", "there is neither a memory bank nor an unfinished run here")
        .hint("write a task board to `work/backlog.yaml`, or a `projectConfig.md`, and call again")
}

fn save_run(caller: &Caller, run: Option<&str>, message: &str) -> Result<Reply> {
    let mut store = request::open(&caller.project)?;
    let message = if message.is_empty() { "asked for by an agent" } else { message };
    let recorded = checkpoint::record(&caller.project, &mut store, run, message)?;
    let checkpoint::Recorded { run_id, sent, checkpoint } = recorded;
    if sent.outcome == Outcome::Refused {
        return Err(CommandError::usage("refused", sent.answer));
    }
    let (saved, why) = match sent.outcome {
        Outcome::Done => (true, None),
        _ => (false, Some(sent.answer.clone())),
    };
    let answer = Checkpointed { saved, run_id: Some(run_id), session: None, checkpoint, why };
    Ok(Reply::said(&answer, sent.answer))
}

fn list(caller: &Caller, given: &Arguments) -> Result<Reply> {
    let limit = given.count("limit").unwrap_or(LIST_DEFAULT);
    if given.text("what") == Some("runs") {
        return Ok(Reply::of(&read::listed(&caller.project, limit)?));
    }
    let run = caller.run(given)?;
    Ok(Reply::of(&read::points(&caller.project, run.as_deref(), limit)?))
}

fn sum_up(caller: &Caller, given: &Arguments) -> Result<Reply> {
    let tokens = given.count("tokens").and_then(|tokens| usize::try_from(tokens).ok());
    let args = BriefArgs::of(caller.run(given)?, tokens);
    let (run_id, brief) = brief::of(&caller.project, &args)?;
    let Some(brief) = brief else {
        let message = format!("run {run_id} has not started, so there is nothing to sum up");
        return Err(CommandError::usage("no-run", message).hint("name another run"));
    };
    let shown = piton_view::brief::Brief::new(&run_id, &brief);
    Ok(Reply::said(&shown, brief.text.clone()))
}

fn resume(caller: &Outside<'_>, given: &Arguments) -> Result<Reply> {
    let (here, session) = (caller.bank()?, caller.0.session(given)?);
    let state_dir = &caller.0.project.project.state_dir;
    if hook::is_of_another(state_dir, &here, session.as_deref().unwrap_or_default()) {
        let message = "the last checkpoint is that of another session, whose agent is at work";
        return Err(CommandError::new(Kind::Driven, "run-driven", message)
            .hint("work on another task of the board, or wait until that session has ended"));
    }
    let started = session::resume(here, session, given.count("tokens_used"))?;
    let words = started.warnings().join("\n");
    let text = started.context.clone().unwrap_or(words);
    Ok(Reply::said(&started, text))
}

fn report_tokens(caller: &Outside<'_>, given: &Arguments) -> Result<Reply> {
    let here = caller.bank()?;
    let usage = here.used(given.count("used").unwrap_or_default(), given.count("window"));
    let Usage { used, window, .. } = usage;
    let session = caller.0.session(given)?;
    let asked = SaveAsked { session, usage: Some(usage), ..SaveAsked::default() };
    let saved = session::checkpoint(here, &asked)?;
    let percent = usage.percent();
    let text = match &saved.checkpoint {
        Some(_) => saved.words(),
        None => format!("{percent} % of the context is in use; {}", saved.words()),
    };
    // A threshold that was passed before stops the agent as it did then.
    let halt = saved.halt || usage.trigger() == Some(Reason::TokenCritical);
    let (checkpoint, reason, run_id, talk) =
        (saved.checkpoint, saved.reason, saved.run_id, saved.talk);
    let answer = Tokens { used, window, percent, halt, checkpoint, reason, run_id, talk };
    Ok(Reply::said(&answer, text))
}

fn task(caller: &Outside<'_>, given: &Arguments, tool: &str) -> Result<Reply> {
    let here = caller.bank()?;
    let tokens = tokens(&here, given);
    let tokens = tokens.map(|usage| format!("{}/{}", usage.used, usage.window));
    let which = Which { session: caller.0.session(given)?, tokens };
    let args = TaskArgs { id: given.needed("task").to_owned(), which };
    let moved = match tool {
        "task_start" => session::start_task(here, &args)?,
        _ => session::finish_task(here, &args)?,
    };
    let words = moved.words();
    Ok(Reply::said(&moved, words))
}

fn phase(caller: &Outside<'_>, given: &Arguments, tool: &str) -> Result<Reply> {
    let (here, session) = (caller.bank()?, caller.0.session(given)?);
    let ended = tool == "phase_finish";
    let phase = session::phase(here, session.as_deref(), given.needed("phase"), ended)?;
    Ok(Reply::of(&phase))
}

fn artifact(caller: &Outside<'_>, given: &Arguments) -> Result<Reply> {
    let (here, session) = (caller.bank()?, caller.0.session(given)?);
    let (path, message) = (given.needed("path"), given.text("message").unwrap_or_default());
    Ok(Reply::of(&session::record_artifact(here, session.as_deref(), path, message)?))
}

fn want_replan(caller: &Caller, given: &Arguments) -> Result<Reply> {
    let run = given.text("run").map(str::to_owned);
    let args = ReplanArgs {
        phase: given.text("phase").map(str::to_owned),
        run: run.or_else(|| request::own_run(&caller.project)),
        reason: given.needed("reason").to_owned(),
        force_replan: false,
        no_resume: true,
    };
    let mut store = request::open(&caller.project)?;
    let replan::Wanted { run_id, phase, sent, .. } =
        replan::ask(&caller.project, &mut store, &args)?;
    if sent.outcome == Outcome::Refused {
        return Err(CommandError::usage("refused", sent.answer));
    }
    let words = sent.answer.clone();
    Ok(Reply::said(&Wanted::new(run_id, phase, sent), words))
}

fn ask(caller: &Caller, given: &Arguments) -> Result<Reply> {
    let (context, question) = (&caller.project, given.needed("question"));
    let named = given.text("run").map(str::to_owned).or_else(|| request::own_run(context));
    let here = Here::find_within(context)?;
    let is_session = named.is_none() && here.config.enabled && here.bank.is_there();
    let asked = if is_session {
        let session = caller.session(given)?;
        let Recording { mut store, loaded, session, here } =
            Recording::of(here.alone()?, session.as_deref())?;
        let asked = approval::ask(context, &mut store, &loaded, Some(session), question)?;
        drop(here);
        asked
    } else {
        let mut store = request::open(context).map_err(no_place)?;
        let fits = request::unfinished;
        let row = Context::pick(&mut store, named.as_deref(), fits, "unfinished run");
        let loaded = store.load_row(row.map_err(no_place)?)?;
        let session = caller.session(given)?;
        approval::ask(context, &mut store, &loaded, session, question)?
    };
    let words = asked.words();
    Ok(Reply::said(&asked, words))
}

fn look(caller: &Caller, given: &Arguments) -> Result<Reply> {
    let run = caller.run(given)?;
    let (_, loaded) = caller.load(run.as_deref())?;
    let approvals = approval::answers(&loaded, given.text("approval"))?;
    let words: Vec<String> = approvals.iter().map(Approval::words).collect();
    let words = if words.is_empty() { "nothing was asked".to_owned() } else { words.join("\n") };
    Ok(Reply::said(&Approvals { run_id: loaded.row.run_id, approvals }, words))
}

fn compare(caller: &Caller, given: &Arguments) -> Result<Reply> {
    let text = |name| given.text(name).map(str::to_owned);
    let args = DiffArgs {
        a: given.needed("from").to_owned(),
        b: text("to"),
        run: caller.run(given)?,
        lane: text("lane"),
        stat: given.flag("stat"),
    };
    let how = if args.stat { diff::Text::Stat } else { diff::Text::Full };
    let found = diff::between(&caller.project, &args, how)?;
    let diff::Compared { run_id, from, to, mut changes, mut text, .. } = found;
    let all = changes.len();
    let mut end = text.len().min(DIFF_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = text.len() > end || all > DIFF_PATHS_MAX;
    text.truncate(end);
    changes.truncate(DIFF_PATHS_MAX);
    let mut words = if all == 0 { "no differences".to_owned() } else { text.clone() };
    if cut {
        words.push_str("\n… the rest is left out; compare fewer files, or use `stat`");
    }
    Ok(Reply::said(&Differences { run_id, from, to, changes, all, text, cut }, words))
}
