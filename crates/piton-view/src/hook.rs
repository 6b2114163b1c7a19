//! What a hook answers to an agent program, in the form that programs share, and what it tells the agent.

use serde::Serialize;

/// An answer; what is not in it leaves the agent as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// False where the agent stops.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub goes_on: Option<bool>,
    /// Why it stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What a person is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<String>,
    /// What depends on the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<Specific>,
}

/// The part of an answer that names its event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Specific {
    /// The event.
    pub hook_event_name: String,
    /// What the agent reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// `deny` where an operation must not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision: Option<&'static str>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_decision_reason: Option<String>,
}

impl Answer {
    /// Gives the agent something to read.
    pub fn context(event: &str, text: String) -> Self {
        let (hook_event_name, additional_context) = (event.to_owned(), Some(text));
        let specific = Specific { hook_event_name, additional_context, ..Specific::default() };
        Self { hook_specific_output: Some(specific), ..Self::default() }
    }

    /// Stops the agent.
    pub fn stop(reason: String) -> Self {
        Self { goes_on: Some(false), stop_reason: Some(reason), ..Self::default() }
    }

    /// Refuses an operation.
    pub fn deny(event: &str, reason: String) -> Self {
        let specific = Specific {
            hook_event_name: event.to_owned(),
            permission_decision: Some("deny"),
            permission_decision_reason: Some(reason),
            ..Specific::default()
        };
        Self { hook_specific_output: Some(specific), ..Self::default() }
    }

    /// Also tells a person.
    #[must_use]
    pub fn say(mut self, words: String) -> Self {
        self.system_message = Some(words);
        self
    }
}

/// What an agent is told at the first threshold.
pub fn warned(percent: u64, checkpoint: &str) -> String {
    format!(
        "The context is {percent} % full. Piton recorded the checkpoint {checkpoint}. Work in minimal \
         mode: read only what the current task needs, and finish that task first."
    )
}

/// What an agent is told where its program cannot be stopped by a hook.
pub fn stop_now(talk: &str) -> String {
    format!("Stop now: begin nothing more, and end your turn with this text.\n\n{talk}")
}
