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
type Finished = (String, Millis, Option<Sha>, u64, Option<String>);

impl StepState {
    /// The state of a step that nothing happened to yet.
    fn untouched(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    /// The state of a step that finished with its first attempt.
    fn finished((id, duration_ms, definition, done_event, before): Finished) -> Self {
        let (progress, exit_code) = (Progress::Done, Some(0));
        let (attempts, successes) = (1, 1);
        let told =
            Self { progress, attempts, successes, exit_code, duration_ms, ..Self::default() };
        Self { id, definition, done_event, before, ..told }
    }

    /// What is told of it, if that is all there is to it.
    fn as_finished(&self) -> Option<Finished> {
        if self.progress != Progress::Done {
            return None;
        }
        let Self { id, duration_ms, definition, done_event, before, .. } = self.clone();
        let told = (id, duration_ms, definition, done_event, before);
        (*self == Self::finished(told.clone())).then_some(told)
    }

    fn is_untouched(&self) -> bool {
        self.progress == Progress::Pending && *self == Self::untouched(self.id.clone())
    }
}

impl Serialize for StepState {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.as_finished() {
            Some(told) => told.serialize(to),
            None if self.is_untouched() => to.serialize_str(&self.id),
            None => Self::serialize(self, to),
        }
    }
}

impl<'de> Deserialize<'de> for StepState {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Forms)
    }
}

/// From so many steps on a list is long.
const LONG: usize = 64;
/// Steps for which a long list is given space at once: where it grows by doubling, all of them are
/// copied again and again.
const MORE: usize = 1000;

/// Reads the steps of a lane.
pub fn read_all<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<StepState>, D::Error> {
    struct List;
    impl<'de> Visitor<'de> for List {
        type Value = Vec<StepState>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the states of steps")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut steps = Vec::new();
            while let Some(step) = list.next_element()? {
                if steps.len() == steps.capacity() && steps.len() >= LONG {
                    steps.reserve_exact(MORE);
                }
                steps.push(step);
            }
            Ok(steps)
        }
    }
    from.deserialize_seq(List)
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

    fn stored(step: &StepState) -> String {
        let text = serde_json::to_string(step).expect("it is written");
        let read: StepState = serde_json::from_str(&text).expect("it is read");
        assert_eq!(&read, step, "{text}");
        text
    }

    /// Lost: whoever looks at a long run waits until fields that say nothing are read.
    #[test]
    fn most_steps_are_short_and_nothing_is_lost() {
        assert_eq!(stored(&StepState::untouched("s \"1\"".to_owned())), r#""s \"1\"""#);
        let told = ("s".to_owned(), Millis(7), Some(Sha("ab".to_owned())), 9, None);
        let done = StepState::finished(told);
        assert_eq!(stored(&done), r#"["s",7,"ab",9,null]"#);
        let begun = StepState { before: Some("c0".to_owned()), ..done.clone() };
        assert_eq!(stored(&begun), r#"["s",7,"ab",9,"c0"]"#);
        for step in [StepState::untouched("s".to_owned()), done] {
            let more = [
                StepState { progress: Progress::Failed, ..step.clone() },
                StepState { attempts: 2, ..step.clone() },
                StepState { interrupted: true, ..step.clone() },
                StepState { rerun: Some("why".to_owned()), ..step.clone() },
                StepState { scope_from: Some("tree".to_owned()), ..step.clone() },
                StepState { exit_code: Some(1), ..step.clone() },
            ];
            assert!(more.iter().all(|more| stored(more).starts_with('{')));
        }
    }
}
