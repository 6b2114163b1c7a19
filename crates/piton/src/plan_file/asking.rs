//! What a plan leaves open is asked before a run of it begins, or said.

use piton_protocols::protocol::{Need, Otherwise, Reading};

use super::is_news;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use piton_view::text::sanitize;

/// The plan as a person wants it; `asks` lets them be asked.
pub fn answered(context: &Context, mut reading: Reading, asks: bool) -> Result<Reading> {
    let mut said: Vec<String> = Vec::new();
    for question in &reading.questions {
        let text = sanitize(&question.text);
        match &question.otherwise {
            Otherwise::Stop { instead, .. } if asks => confirm(context, &text, instead)?,
            Otherwise::Stop { unasked, .. } => said.extend(unasked.clone()),
            Otherwise::Alone { lane, said } if asks => {
                let beside = is_wanted(context, &text, said);
                let lanes = reading.plan.phases.iter_mut().flat_map(|p| &mut p.lanes);
                lanes.filter(|l| l.id == lane.lane).for_each(|l| l.rules.alone = !beside);
            }
            Otherwise::Alone { .. } => {}
        }
    }
    said.extend(reading.needs.iter().map(Need::words));
    said.iter()
        .map(|line| sanitize(line))
        .filter(|line| is_news(line.clone()))
        .for_each(|line| ui::say(&line));
    Ok(reading)
}

fn confirm(context: &Context, question: &str, instead: &str) -> Result<()> {
    if context.yes || context.confirms(question) {
        return Ok(());
    }
    Err(CommandError::new(Kind::Waiting, "not-confirmed", question.to_owned())
        .hint(format!("add `--yes`, or {instead}")))
}

/// Whether a person chooses what is not the safe way, which is taken unasked.
fn is_wanted(context: &Context, question: &str, otherwise: &str) -> bool {
    if context.can_ask() && !context.yes {
        return context.confirms(question);
    }
    ui::say(sanitize(otherwise));
    false
}
