//! What there is before a run begins: an earlier run of the same plan, or files of another tool.

use piton_core::Event;
use piton_core::hash::Sha;
use piton_core::refusal::Refusal;

/// What an earlier run of the same file means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// It resumes without a question.
    Resume,
    /// A person decides whether it resumes or a new run replaces it.
    Ask,
    /// It has a record, which tells whether a person decides.
    Offer(Offer),
    /// It is a run of something else, which this describes.
    Other(String),
    /// It is over, and a new run starts, for this reason.
    Fresh(String),
}

/// A record of an earlier run: it resumes, or a person chooses what happens to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// What is printed about it.
    pub said: Vec<String>,
    /// Why a person is asked; without a reason it resumes.
    pub reason: Option<String>,
    /// The record, by its path from the project's root.
    pub record: String,
}

/// What the files beside a plan say about a run that the ledger does not know.
#[derive(Clone, Debug, Default)]
pub enum Existing {
    /// Nothing: a new run starts.
    #[default]
    Nothing,
    /// Another tool was in the middle of it: the new run begins where that came to.
    Midway(Midway),
    /// A run that is over: a new one starts, and its files get other names.
    Over {
        /// The record of the old run under its new name, if the new run should know it.
        previous: Option<String>,
        /// What is printed about that.
        said: String,
    },
    /// Nobody can tell what it means: a person decides.
    Unclear(Box<Unclear>),
}

/// Files that nobody can tell the meaning of.
#[derive(Clone, Debug)]
pub struct Unclear {
    /// What is unclear, and what to do where nobody can be asked.
    pub refusal: Refusal,
    /// How the run continues if a person says that it does; `None` if nobody knows where.
    pub resume: Option<Midway>,
    /// The file, where it is not the one that a new run writes.
    pub record: Option<String>,
}

/// How far another tool came with a run.
#[derive(Clone, Debug, Default)]
pub struct Midway {
    /// What is recorded of it, after the creation of the run.
    pub events: Vec<Event>,
    /// The hash of the spec that it recorded.
    pub spec: Option<Sha>,
    /// What is printed about it.
    pub said: Vec<String>,
    /// Its record, if a person may choose what happens to it.
    pub offer: Option<Offer>,
    /// The record under the name and in the form that the run writes, if it has others.
    pub upgrade: Option<Upgrade>,
}

/// A record of an older form, whose successor has another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// The file as it is, by its path from the project's root.
    pub from: String,
    /// The name that it is kept under.
    pub backup: String,
    /// The file that takes its place.
    pub to: String,
    /// The text of that.
    pub text: String,
}
