//! What a state file means for a run that is about to start: the first step of the protocol.
//!
//! Looks at the status alone. Whether the checkpoint can be trusted (spec hash, artifacts,
//! Constitution Check) is the second step, and not decided here.

use super::state::{Said, State, Status, Substance};

/// What to do, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Continue the run that the file describes.
    Resume(Unfinished),
    /// Start a new run.
    Fresh(Ended),
    /// Ask a person: the file does not say clearly what the run is.
    AskHuman(Unclear),
    /// The file describes no run.
    NotARun(NoRun),
}

/// Why a run continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// Its session ended while it was in progress.
    InProgress,
    /// A person must decide first; then it continues.
    WaitingForHuman,
    /// It was stopped.
    Aborted,
}

/// Why a new run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There is no state file.
    NoStateFile,
    /// The run is complete.
    Complete,
    /// It failed; its notes tell why.
    Failed,
    /// A person ended it.
    Cancelled,
}

/// Why a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// The file has no status.
    NoStatus,
    /// It has this one, which is unknown.
    UnknownStatus(String),
}

/// Why a file describes no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRun {
    /// It is a template that nobody has filled in.
    Template,
    /// It has nothing of a state file.
    Nothing,
}

impl Decision {
    /// Its word in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Resume(_) => "resume",
            Self::Fresh(_) => "fresh",
            Self::AskHuman(_) => "ask_human",
            Self::NotARun(_) => "not_a_run",
        }
    }
}

/// Decides from a state file; `None` if there is none.
pub fn decide(state: Option<&State>) -> Decision {
    let Some(state) = state else { return Decision::Fresh(Ended::NoStateFile) };
    match (state.substance, &state.status) {
        (Substance::Nothing, _) => Decision::NotARun(NoRun::Nothing),
        (Substance::Template, _) | (_, Said::Unfilled(_)) => Decision::NotARun(NoRun::Template),
        (Substance::Run, Said::Nothing) => Decision::AskHuman(Unclear::NoStatus),
        (Substance::Run, Said::Unknown(raw)) => {
            Decision::AskHuman(Unclear::UnknownStatus(raw.clone()))
        }
        (Substance::Run, Said::Known(status, _)) => match status {
            Status::InProgress => Decision::Resume(Unfinished::InProgress),
            Status::WaitingForHuman => Decision::Resume(Unfinished::WaitingForHuman),
            Status::Aborted => Decision::Resume(Unfinished::Aborted),
            Status::Complete => Decision::Fresh(Ended::Complete),
            Status::Failed => Decision::Fresh(Ended::Failed),
            Status::Cancelled => Decision::Fresh(Ended::Cancelled),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::read;
    use super::*;

    fn decided(text: &str) -> Decision {
        decide(Some(&read("s.md", text).0))
    }

    #[test]
    fn the_status_decides() {
        for (status, wanted) in [
            ("IN_PROGRESS", Decision::Resume(Unfinished::InProgress)),
            ("**WAITING_FOR_HUMAN** — spec", Decision::Resume(Unfinished::WaitingForHuman)),
            ("ABORTED", Decision::Resume(Unfinished::Aborted)),
            ("COMPLETE", Decision::Fresh(Ended::Complete)),
            ("FAILED", Decision::Fresh(Ended::Failed)),
            ("CANCELLED", Decision::Fresh(Ended::Cancelled)),
            ("", Decision::AskHuman(Unclear::NoStatus)),
            ("PAUSED", Decision::AskHuman(Unclear::UnknownStatus("PAUSED".to_owned()))),
            ("IN_PROGRESS | COMPLETE", Decision::NotARun(NoRun::Template)),
        ] {
            let text = format!("# Pipeline State\n\n- current_stage: tdd\n- status: {status}\n");
            assert_eq!(decided(&text), wanted, "{status}");
        }
    }

    #[test]
    fn without_a_run_in_it_a_file_is_not_resumed() {
        assert_eq!(decide(None), Decision::Fresh(Ended::NoStateFile));
        for text in ["", "\n", "prose\n", "# Pipeline State\n"] {
            assert_eq!(decided(text), Decision::NotARun(NoRun::Nothing), "{text:?}");
        }
        let placeholder = "- current_stage: <stage>\n- status: IN_PROGRESS\n";
        assert_eq!(decided(placeholder), Decision::NotARun(NoRun::Template));
    }

    /// Lost: after a bad merge of the file, one of two statuses would be taken for the truth.
    #[test]
    fn two_statuses_that_differ_are_for_a_person() {
        let text = "- current_stage: tdd\n- status: COMPLETE\n- status: IN_PROGRESS\n";
        assert_eq!(decided(text).as_str(), "ask_human");
        let same = "- current_stage: tdd\n- status: COMPLETE\n- status: **COMPLETE**\n";
        assert_eq!(decided(same).as_str(), "fresh");
    }
}
