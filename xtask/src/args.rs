//! The command line of a developer command: flags, options with a value, and words.
//!
//! Three small commands need no parser crate; what they need is that a misspelt option is refused
//! instead of ignored.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Failure, Result};

/// What was said after the command.
#[derive(Debug, Default)]
pub(crate) struct Args {
    flags: BTreeSet<String>,
    values: BTreeMap<String, String>,
    words: Vec<String>,
}

impl Args {
    /// Reads the arguments of a command that knows these flags, these options and so many words.
    pub(crate) fn read(
        given: &[String],
        flags: &[&str],
        options: &[&str],
        words_max: usize,
    ) -> Result<Self> {
        let mut args = Self::default();
        let mut given = given.iter().cloned();
        while let Some(word) = given.next() {
            if !word.starts_with('-') {
                args.words.push(word);
                continue;
            }
            let (name, inline) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            if flags.contains(&name.as_str()) && inline.is_none() {
                args.flags.insert(name);
            } else if options.contains(&name.as_str()) {
                let value = inline.or_else(|| given.next());
                let value =
                    value.ok_or_else(|| Failure::Usage(format!("`{name}` needs a value")))?;
                args.values.insert(name, value);
            } else {
                return Err(Failure::Usage(format!("there is no option `{name}` here")));
            }
        }
        if let Some(word) = args.words.get(words_max) {
            return Err(Failure::Usage(format!("`{word}` is one word too many")));
        }
        Ok(args)
    }

    /// Whether a flag was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    /// The text of an option.
    pub(crate) fn text(&self, option: &str) -> Option<&str> {
        self.values.get(option).map(String::as_str)
    }

    /// The number of an option.
    pub(crate) fn number(&self, option: &str) -> Result<Option<u64>> {
        let Some(text) = self.values.get(option) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| *number > 0);
        let wrong = || Failure::Usage(format!("`{option}` needs a number above 0, not `{text}`"));
        number.map(Some).ok_or_else(wrong)
    }

    /// The first word.
    pub(crate) fn word(&self) -> Option<&str> {
        self.words.first().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Args> {
        let given: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Args::read(&given, &["--sample"], &["--rounds"], 1)
    }

    #[test]
    fn both_ways_to_give_a_value_are_read() {
        for words in
            [&["name", "--rounds", "5", "--sample"][..], &["--rounds=5", "--sample", "name"]]
        {
            let args = read(words).expect("these are known");
            assert!(args.has("--sample"));
            assert_eq!(args.word(), Some("name"));
            assert_eq!(args.number("--rounds").ok().flatten(), Some(5));
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for words in [&["--smaple"][..], &["--rounds"], &["one", "two"], &["--sample=1"]] {
            assert!(matches!(read(words), Err(Failure::Usage(_))), "{words:?}");
        }
        let zero = read(&["--rounds", "0"]).expect("a value is there");
        assert!(zero.number("--rounds").is_err());
    }
}
