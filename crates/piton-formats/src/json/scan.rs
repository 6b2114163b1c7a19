//! Where the members of an object and the elements of a list are, in a text that is known to be JSON.

use std::fmt;
use std::ops::Range;

use serde::Deserialize as _;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One member of an object.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its name.
    pub name: String,
    /// The first byte of its name, the quote.
    pub key: usize,
    /// The bytes of its value.
    pub value: Range<usize>,
}

/// The members of the object in a range; none if it is not an object.
pub(super) fn members(text: &str, object: Range<usize>) -> Vec<Member> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(member) = map.next_entry()? {
                found.push(member);
            }
            Ok(found)
        }
    }
    let raw = &text[object.clone()];
    let found = serde_json::Deserializer::from_str(raw).deserialize_map(Members);
    let mut end = object.start + 1;
    let member = |(name, value): (String, &RawValue)| {
        let value = range(text, value.get());
        // Between a value and the next name there are only a comma and blank space.
        let key = end + text[end..].find('"').unwrap_or_default();
        end = value.end;
        Member { name, key, value }
    };
    found.unwrap_or_default().into_iter().map(member).collect()
}

/// The elements of the list in a range; none if it is not a list.
pub(super) fn elements(text: &str, array: Range<usize>) -> Vec<Range<usize>> {
    let found = serde_json::from_str::<Vec<&RawValue>>(&text[array]).unwrap_or_default();
    found.into_iter().map(|raw| range(text, raw.get())).collect()
}

/// The bytes of the value that begins at a byte.
pub(super) fn value_at(text: &str, start: usize) -> Range<usize> {
    let mut values = serde_json::Deserializer::from_str(&text[start..]);
    let raw = <&RawValue>::deserialize(&mut values);
    raw.map_or(start..text.len(), |raw| range(text, raw.get()))
}

/// Where a piece of the text is.
fn range(text: &str, piece: &str) -> Range<usize> {
    let start = piece.as_ptr().addr() - text.as_ptr().addr();
    start..start + piece.len()
}
