//! A JSON value whose objects keep the order in which their members were given.

use serde_json::Value;

/// A value to write.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A string, number, boolean or null.
    Scalar(Value),
    /// A list.
    List(Vec<Tree>),
    /// An object; the order of its members is kept.
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// An object with these members.
    pub fn object<'n>(members: impl IntoIterator<Item = (&'n str, Self)>) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The same value for comparison, without the order of members.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(members) => {
                let members = members.iter().map(|(name, value)| (name.clone(), value.to_value()));
                Value::Object(members.collect())
            }
        }
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members.into_iter().map(|(name, value)| (name, Self::from(value))).collect(),
            ),
            scalar => Self::Scalar(scalar),
        }
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Self {
        Self::Scalar(Value::from(text))
    }
}

impl From<u64> for Tree {
    fn from(number: u64) -> Self {
        Self::Scalar(Value::from(number))
    }
}

impl From<bool> for Tree {
    fn from(flag: bool) -> Self {
        Self::Scalar(Value::from(flag))
    }
}

impl<T: Into<Tree>> From<Option<T>> for Tree {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Scalar(Value::Null), Into::into)
    }
}
