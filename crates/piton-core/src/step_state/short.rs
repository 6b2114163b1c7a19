//! How the state of a step is stored: the many that wait or finished at once in short, any other
//! field by field. Whoever looks at a run reads all of them first.
//!
//! A step that nothing happened to yet is its name, `"s1"`. One that finished with its first attempt
//! is a list of what differs between such: `["s1", duration, definition, event, before]`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{Progress, StepState};
use crate::hash::Sha;
use crate::time::Millis;

/// What is told of a step that finished with its first attempt.
type Finished<T, D, B> = (T, Millis, D, u64, B);

impl StepState {
    /// The state of a step that nothing happened to yet.
    fn untouched(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    /// The state of a step that finished with its first attempt.
    fn finished(told: Finished<String, Option<Sha>, Option<String>>) -> Self {
        let (id, duration_ms, definition, done_event, before) = told;
        Self {
            id,
            progress: Progress::Done,
            attempts: 1,
            successes: 1,
            exit_code: Some(0),
            duration_ms,
            definition,
            done_event,
            before,
            ..Self::default()
        }
    }

    /// Whether it is told by its name alone, or by the list: every field that neither holds has the
    /// value it is given when it is read.
    fn form(&self) -> Form {
        let Self {
            id: _,
            progress,
            attempts,
            failures: 0,
            retried: 0,
            interruptions: 0,
            successes,
            network_waits: 0,
            rate_limit_waits: 0,
            network_waited_ms: Millis(0),
            rate_limit_waited_ms: Millis(0),
            exit_code,
            duration_ms,
            definition,
            secrets,
            inputs,
            artifacts,
            logs,
            failure_context,
            interrupted: false,
            tests_only: false,
            rerun: None,
            done_event,
            before,
            before_head: None,
            before_tree: None,
        } = self
        else {
            return Form::Whole;
        };
        let lists = inputs.is_empty() && artifacts.is_empty() && failure_context.is_empty();
        if !lists || !logs.is_empty() || !secrets.is_empty() {
            return Form::Whole;
        }
        match (progress, attempts, successes, exit_code) {
            (Progress::Done, 1, 1, Some(0)) => Form::Finished,
            (Progress::Pending, 0, 0, None)
                if (*duration_ms, definition, *done_event, before)
                    == (Millis(0), &None, 0, &None) =>
            {
                Form::Untouched
            }
            _ => Form::Whole,
        }
    }
}

/// How a step is told.
enum Form {
    Untouched,
    Finished,
    Whole,
}

impl Serialize for StepState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.form() {
            Form::Untouched => to.serialize_str(&self.id),
            Form::Finished => {
                let told: Finished<_, _, _> =
                    (&self.id, self.duration_ms, &self.definition, self.done_event, &self.before);
                told.serialize(to)
            }
            Form::Whole => Self::serialize(self, to),
        }
    }
}

impl<'de> Deserialize<'de> for StepState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Forms)
    }
}

struct Forms;

impl<'de> Visitor<'de> for Forms {
    type Value = StepState;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the state of a step")
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<StepState, E> {
        Ok(StepState::untouched(id.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<StepState, A::Error> {
        let short = || A::Error::custom("a finished step has five parts");
        Ok(StepState::finished((
            list.next_element()?.ok_or_else(short)?,
            list.next_element()?.ok_or_else(short)?,
            list.next_element()?.ok_or_else(short)?,
            list.next_element()?.ok_or_else(short)?,
            list.next_element()?.ok_or_else(short)?,
        )))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StepState, A::Error> {
        StepState::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Class, FileHash};
    use crate::step_state::FailedAttempt;

    fn stored(step: &StepState) -> String {
        let text = serde_json::to_string(step).expect("it is written");
        let read: StepState = serde_json::from_str(&text).expect("it is read");
        assert_eq!(&read, step, "{text}");
        text
    }

    #[test]
    fn most_steps_are_short() {
        assert_eq!(stored(&StepState::untouched("s \"1\"".to_owned())), r#""s \"1\"""#);
        let sha = Some(Sha("ab".to_owned()));
        let mut done = StepState::finished(("s".to_owned(), Millis(7), sha, 9, None));
        assert_eq!(stored(&done), r#"["s",7,"ab",9,null]"#);
        done.before = Some("c0".to_owned());
        assert_eq!(stored(&done), r#"["s",7,"ab",9,"c0"]"#);
        done.definition = None;
        assert_eq!(stored(&done), r#"["s",7,null,9,"c0"]"#);
    }

    fn file() -> FileHash {
        FileHash { path: "p".to_owned(), sha256: Sha("ef".to_owned()) }
    }

    /// Each change that the short forms can't hold is kept all the same.
    #[test]
    fn nothing_is_lost() {
        let changes: &[fn(&mut StepState)] = &[
            |s| s.progress = Progress::Failed,
            |s| s.progress = Progress::Skipped { satisfy: true },
            |s| s.attempts += 1,
            |s| s.failures = 1,
            |s| s.interruptions = 1,
            |s| s.interrupted = true,
            |s| s.successes += 1,
            |s| s.network_waits = 1,
            |s| s.rate_limit_waits = 1,
            |s| s.network_waited_ms = Millis(1),
            |s| s.rate_limit_waited_ms = Millis(1),
            |s| s.exit_code = Some(1),
            |s| s.duration_ms = Millis(3),
            |s| s.definition = Some(Sha("cd".to_owned())),
            |s| s.logs.stdout = (1, 2),
            |s| s.inputs.push(file()),
            |s| s.artifacts.push(file()),
            |s| {
                s.failure_context.push(FailedAttempt {
                    attempt: 1,
                    class: Class::Network,
                    error: "e".to_owned(),
                    lines: Vec::new(),
                });
            },
            |s| s.rerun = Some("why".to_owned()),
            |s| s.done_event = 77,
            |s| s.before = Some("b".to_owned()),
            |s| s.before_head = Some("h".to_owned()),
            |s| s.before_tree = Some("t".to_owned()),
        ];
        let finished = StepState::finished(("s".to_owned(), Millis(7), None, 9, None));
        for step in [StepState::untouched("s".to_owned()), finished] {
            for change in changes {
                let mut changed = step.clone();
                change(&mut changed);
                assert_ne!(changed, step);
                stored(&changed);
            }
        }
    }
}
