//! Distinguishes a word of a newer program from damage.
//!
//! Where an enum has no variant of a name, `serde_json` says so in a sentence, like all else that it
//! refuses. What it refused is therefore read once more with an error that keeps the name.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// The first word in a body that names no variant of its enum, if that is what is wrong with it.
pub(super) fn unknown<T: DeserializeOwned>(body: &[u8]) -> Option<String> {
    T::deserialize(Body(serde_json::from_slice(body).ok()?)).err()?.0
}

/// What is wrong: a word that is not known, or anything else.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
struct Wrong(Option<String>);

impl Error for Wrong {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self(None)
    }

    fn unknown_variant(word: &str, _: &'static [&'static str]) -> Self {
        Self(Some(word.to_owned()))
    }
}

struct Body(Value);

impl<'de> Deserializer<'de> for Body {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                SeqDeserializer::new(items.into_iter().map(Body)).deserialize_any(visitor)
            }
            Value::Object(map) => visitor
                .visit_map(MapDeserializer::new(map.into_iter().map(|(key, v)| (key, Body(v))))),
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (None, Some(value)) => visitor.visit_i64(value),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.0 {
            Value::String(word) => visitor.visit_enum(word.into_deserializer()),
            Value::Object(map) => {
                let entries = map.into_iter().map(|(key, v)| (key, Body(v)));
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(entries)))
            }
            _ => Err(Wrong(None)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Wrong> for Body {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
