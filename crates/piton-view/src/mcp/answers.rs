//! What tools answer where no command has such an answer.

use piton_core::event::Reason;
use serde::Serialize;

use crate::answers::{Change, Sent};
use crate::place::At;
use crate::runs::Listed;
use crate::session::Saved;
use crate::shape::shapes;
use crate::show::Point;
use crate::text::sanitize;

/// How far an approval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The gate is not reached yet.
    NotAsked,
    /// A person is asked.
    Waiting,
    /// A person said yes.
    Approved,
    /// A person said no.
    Rejected,
}

shapes! {
    /// A gate or a question, and what a person said.
    Approval {
        run_id: String,
        /// What it is called.
        approval: String,
        question: String, standing: Standing, by: Option<String>, message: Option<String>,
        asked_at: Option<At>, decided_at: Option<At>,
    }

    /// Gates and questions of a run.
    Approvals { run_id: String, approvals: Vec<Approval> }

    /// A checkpoint of a run or of a session.
    Checkpointed {
        saved: bool, run_id: Option<String>, session: Option<String>, checkpoint: Option<String>,
        /// Why nothing was recorded.
        why: Option<String>,
    }

    /// How full a conversation is, and what came of it.
    Tokens {
        used: u64, window: u64, percent: u64,
        /// Whether the agent stops after its current operation.
        halt: bool,
        checkpoint: Option<String>, reason: Option<Reason>, run_id: Option<String>,
        /// What the person is told.
        talk: String,
    }

    /// Runs, the newest first.
    Runs { runs: Vec<Listed>, all: usize }

    /// Checkpoints of a run, the newest first: those that somebody asked for, and all snapshots.
    Points { run_id: String, checkpoints: Vec<Remark>, snapshots: Vec<Point>, all: usize }

    /// A checkpoint that somebody asked for.
    Remark { name: String, message: String, at: At }

    /// A replan that was asked for.
    Wanted { run_id: String, phase: String, answer: String, outcome: crate::answers::Outcome }

    /// What differs between two points.
    Differences {
        run_id: String, from: String, to: String, changes: Vec<Change>,
        /// How many paths differ.
        all: usize,
        /// What git shows of it.
        text: String,
        /// Whether some of it is left out.
        cut: bool,
    }
}

impl Approval {
    /// What an agent reads.
    pub fn words(&self) -> String {
        let (name, question) = (sanitize(&self.approval), sanitize(&self.question));
        let by = sanitize(self.by.as_deref().unwrap_or_default());
        let said = sanitize(self.message.as_deref().unwrap_or_default());
        let said = if said.is_empty() { said } else { format!(": {said}") };
        match self.standing {
            Standing::NotAsked => format!("{name} \"{question}\": not reached yet"),
            Standing::Waiting => format!(
                "{name} \"{question}\": waiting for the person. Tell them: `piton waiting` in their own \
                 terminal shows it. Do not act on it before `approval` says approved."
            ),
            Standing::Approved => format!("{name} \"{question}\": approved by {by}{said}"),
            Standing::Rejected => format!("{name} \"{question}\": rejected by {by}{said}"),
        }
    }
}

impl From<Saved> for Checkpointed {
    fn from(saved: Saved) -> Self {
        let why = saved.why.map(|_| saved.words());
        let Saved { saved, run_id, session, checkpoint, .. } = saved;
        Self { saved, run_id, session, checkpoint, why }
    }
}

impl Wanted {
    /// A request with its answer.
    pub fn new(run_id: String, phase: String, sent: Sent) -> Self {
        Self { run_id, phase, answer: sent.answer, outcome: sent.outcome }
    }
}
