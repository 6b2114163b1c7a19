//! The files of a new feature: a spec to fill in, the articles that it must comply with, and the state
//! file of a run that has not begun.

use piton_core::hash::Sha;
use piton_core::remedy;

use super::plan;
use super::settings::Settings;
use super::stages::CONSTITUTION;
use super::state::{NewRun, fresh};
use crate::protocol::{Begun, New};
use crate::time::write_seconds;

/// The name of a feature that nobody named.
const UNNAMED: &str = "new-feature";
/// Digits of the number that a feature begins with.
const NUMBER_DIGITS: usize = 3;

/// A spec that says what belongs into it.
const SPEC: &str = "\
# FEATURE

## Purpose

[NEEDS CLARIFICATION: what is it for, and for whom?]

## Requirements

- R-01: [NEEDS CLARIFICATION: what must it do?]

## Acceptance criteria

- AC-01: [NEEDS CLARIFICATION: how is R-01 seen to hold?]

## Edge cases

- EC-01: [NEEDS CLARIFICATION: what happens with empty input?]
";

/// Articles to begin with.
const ARTICLES: &str = "\
# Constitution

Each decision of an architecture complies with these articles, or justifies an exception.

| Article | Text |
|---------|------|
| I — Library-First | Use a well-kept library before writing your own. |
| II — Test-First | Tests are written before the code that they test. |
| III — Simplicity | Nothing is built that no requirement asks for. |
| IV — Security | Every new surface is reviewed. |
";

/// The files of a new feature.
pub(super) fn begin(new: &New<'_>) -> Begun {
    let settings = Settings::of(new.look.settings);
    let features = settings.features().trim_end_matches('/').to_owned();
    let name = folder(new, &features);
    let path = format!("{features}/{name}");
    let spec = SPEC.replacen("FEATURE", &name, 1);
    let (stages, boxes) = (settings.stages(), plan::boxes(&settings));
    let boxes: Vec<&str> = boxes.iter().map(String::as_str).collect();
    let state = fresh(&NewRun {
        run_id: &write_seconds(new.now),
        feature: &name,
        spec_version: "0.1.0",
        spec_hash: &format!("sha256:{}", Sha::of(spec.as_bytes())),
        started_at: &write_seconds(new.now),
        stage: stages.first().map_or("spec", String::as_str),
        boxes: &boxes,
    });
    let spec_path = plan::below(&path, settings.spec());
    let record = settings.state.as_deref().unwrap_or(plan::HIDDEN_STATE);
    let files = vec![
        (spec_path.clone(), spec),
        (plan::below(&path, CONSTITUTION), ARTICLES.to_owned()),
        (plan::below(&path, record), state),
    ];
    let has_agent = settings.agent.is_some() || new.look.settings.defaults.agent.is_some();
    let mut next = vec![
        format!("write what you want into {spec_path}; leave open what an agent shall work out")
            .into(),
    ];
    if !has_agent {
        next.push(plan::NAME_AGENT.into());
    }
    next.push(remedy![Words "start with ", Piton "run {path}"]);
    Begun { path, files, next }
}

/// The folder of a feature: its number and its name.
fn folder(new: &New<'_>, features: &str) -> String {
    let safe: String = new
        .name
        .unwrap_or(UNNAMED)
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let words: Vec<&str> = safe.split('-').filter(|word| !word.is_empty()).collect();
    let name = if words.is_empty() { UNNAMED.to_owned() } else { words.join("-") };
    let number = |text: &str| text.split('-').next().and_then(|n| n.parse::<u32>().ok());
    if number(&name).is_some() {
        return name;
    }
    let there = (new.look.list)(features);
    let last = there.iter().filter_map(|name| number(name)).max().unwrap_or(0);
    format!("{:0NUMBER_DIGITS$}-{name}", last + 1)
}
