//! A few answers that stay true, kept for as long as this process lives.
//!
//! Only for what cannot change, or is looked up by what would change with it.

use std::borrow::Borrow;
use std::sync::{Mutex, PoisonError};

/// How much of each kind is remembered: more than the lanes that most runs have at once.
const REMEMBERED_MAX: usize = 64;

/// Answers by what was asked; the oldest go first.
pub(crate) struct Memo<K, V>(Mutex<Vec<(K, V)>>);

impl<K, V: Clone> Memo<K, V> {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The last answer to a question.
    pub(crate) fn get<Q: PartialEq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .rev()
            .find(|(known, _)| Borrow::<Q>::borrow(known) == key)
            .map(|(_, value)| value.clone())
    }

    /// Notes an answer.
    pub(crate) fn add(&self, key: K, value: V) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == REMEMBERED_MAX {
            all.remove(0);
        }
        all.push((key, value));
    }
}
