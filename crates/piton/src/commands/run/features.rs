//! What is meant by `piton run` without a plan, where files of protocols tell of unfinished features.

use std::path::PathBuf;

use piton_protocols::protocol::{Candidate, Look};
use piton_world::read;

use crate::context::{Context, now};
use crate::error::{CommandError, Result};
use crate::ui;
use piton_core::remedy;
use piton_formats::plan::PROMPT_BYTES_MAX;

/// Most features that a person is asked about: each has a digit.
const ASKED_MAX: usize = 9;

/// The feature that is to be continued, if there is one.
pub fn choose(context: &Context) -> Result<Option<PathBuf>> {
    let root = &context.project.root;
    let list = |folder: &str| read::names(&root.join(folder));
    let read = |path: &str| read::text(&root.join(path), PROMPT_BYTES_MAX);
    let look = Look { list: &list, read: &read, settings: &context.settings };
    let all: Vec<Candidate> = context.table.iter().flat_map(|p| p.unfinished(&look)).collect();
    let path = |candidate: &Candidate| Some(root.join(&candidate.path));
    match all.as_slice() {
        [] => Ok(None),
        [one] if !context.can_ask() => {
            ui::say(format!("continuing {}", words(one)));
            Ok(path(one))
        }
        many if !context.can_ask() => {
            let message = format!("{} features are in progress; name one", many.len());
            Err(many.iter().fold(CommandError::usage("several-features", message), |error, one| {
                let (typed, stands) = (context.plan_argument(&one.path), words(one));
                error.hint(remedy![Piton "run {typed}", Words " ({stands})"])
            }))
        }
        [one] => {
            let question = "Is there an active feature in progress?";
            ui::say(format!("found: {}", words(one)));
            let answer = ui::ask(question, &["yes", "no"], 'y', &mut || false);
            Ok(if answer == Some('y') { path(one) } else { None })
        }
        many => {
            let shown = &many[..many.len().min(ASKED_MAX)];
            for (index, one) in shown.iter().enumerate() {
                ui::say(format!("  {}  {}", index + 1, words(one)));
            }
            let digits: Vec<String> = (1..=shown.len()).map(|n| n.to_string()).collect();
            let choices: Vec<&str> = digits.iter().map(String::as_str).chain(["no"]).collect();
            let question = "Is there an active feature in progress?";
            let answer = ui::ask(question, &choices, 'n', &mut || false);
            let chosen =
                answer.and_then(|c| c.to_digit(10)).and_then(|n| shown.get(n as usize - 1));
            Ok(chosen.and_then(path))
        }
    }
}

/// A feature in words: stage, status and age.
fn words(one: &Candidate) -> String {
    let age = one.at.map(|at| format!(", {} ago", now().since(at))).unwrap_or_default();
    format!("{} ({}{age})", one.name, one.stands)
}
