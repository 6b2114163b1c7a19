//! A brief for programs: what it says, by section, with source and time of each fact.

use piton_agents::brief::{Chosen, Fact, Shown};
use piton_agents::tokens::NAME;

use crate::place::At;
use crate::shape::shapes;

shapes! {
    /// A brief.
    Brief<'a> {
        run_id: &'a str, tokens: usize, limit: usize, tokenizer: &'static str,
        sections: Vec<Section<'a>>, text: &'a str,
    }

    /// A section of it, with the facts that fit and the number of all there are.
    Section<'a> { section: &'static str, facts: Vec<Line<'a>>, all: usize }

    /// A fact.
    Line<'a> { text: &'a str, source: &'a str, at: Option<At> }
}

impl<'a> Brief<'a> {
    /// The brief of a run.
    pub fn new(run_id: &'a str, brief: &'a Chosen) -> Self {
        let (tokens, limit) = (brief.tokens, brief.limit);
        let sections = brief.sections.iter().map(section).collect();
        Self { run_id, tokens, limit, tokenizer: NAME, sections, text: &brief.text }
    }
}

fn section(shown: &Shown) -> Section<'_> {
    let facts = shown.facts.iter().map(line).collect();
    Section { section: shown.section.key(), facts, all: shown.all }
}

fn line(fact: &Fact) -> Line<'_> {
    Line { text: &fact.text, source: &fact.source, at: fact.at.map(At) }
}
