//! Keeps secrets out of what Piton writes: ledger, failure context, views, terminal.
//!
//! Known are the values of variables whose names look secret, and the shapes of well-known tokens.
//! A secret that is neither (typed into a command by hand, say) cannot be seen; the docs say so.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::Regex;

/// Shortest value that is redacted: shorter ones would blank out ordinary words.
pub const VALUE_BYTES_MIN: usize = 8;
/// What stands where a secret stood.
pub const REPLACEMENT: &str = "[redacted]";

/// Parts of a variable's name that make its value a secret.
const NAME_PARTS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "AUTH",
    "COOKIE",
    "_PAT",
    "_KEY",
    "_PWD",
    "DSN",
];
/// Names that contain one of the parts and are no secret.
const NAME_EXCEPTIONS: &[&str] =
    &["SSH_AUTH_SOCK", "XAUTHORITY", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];

/// Replaces secrets in text.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    values: Vec<String>,
}

/// Tells whether the value of a variable with this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let upper = name.to_uppercase();
    !upper.starts_with("PITON_")
        && !NAME_EXCEPTIONS.contains(&upper.as_str())
        && NAME_PARTS.iter().any(|part| upper.contains(part))
}

impl Redactor {
    /// Takes the secrets out of an environment; `extra` are names a user declared secret.
    pub fn new<'a>(
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
        extra: &[String],
    ) -> Self {
        Self::default().and(environment, extra)
    }

    /// The same, knowing the secrets of a further environment too.
    #[must_use]
    pub fn and<'a>(
        mut self,
        environment: impl IntoIterator<Item = (&'a str, &'a str)>,
        extra: &[String],
    ) -> Self {
        for (name, value) in environment {
            if is_secret_name(name) || extra.iter().any(|e| e == name) {
                // Output is looked at line by line, so each line of a secret is one.
                let parts = [value].into_iter().chain(value.lines());
                let long = parts.filter(|part| part.len() >= VALUE_BYTES_MIN);
                self.values.extend(long.map(str::to_owned));
            }
        }
        // Longest first, so that a secret which contains another goes as a whole.
        self.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.values.dedup();
        self
    }

    /// The same, knowing what a text that could not be read as a document assigns to names that look
    /// secret: `NAME = "value"`, `NAME=value`, `"NAME": "value"`. Numbers are none.
    #[must_use]
    pub fn and_assigned_in(self, text: &str, extra: &[String]) -> Self {
        let Some(assigned) = assigned() else { return self };
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(c) = assigned.captures_at(text, at) {
            let Some(name) = c.get(1) else { break };
            let value = c.get(2).or(c.get(3)).or(c.get(4)).map_or("", |value| value.as_str());
            if !value.bytes().all(|b| b.is_ascii_digit() || b".,_".contains(&b)) {
                found.push((name.as_str(), value));
            }
            // On behind the name: what is given to it may give something itself.
            at = name.end();
        }
        self.and(found, extra)
    }

    /// The text with stars over its secrets: as long as it was, so that places in it stay true.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let stars = |secret: &str| "*".repeat(secret.len());
        let mut text = Cow::Borrowed(text);
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), &stars(value)));
            }
        }
        if let Some(shapes) = shapes()
            && shapes.is_match(&text)
        {
            let masked = shapes.replace_all(&text, |c: &regex::Captures<'_>| stars(&c[0]));
            text = Cow::Owned(masked.into_owned());
        }
        text
    }

    /// Whether it knows no value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the text without its secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), REPLACEMENT));
            }
        }
        if let Some(shapes) = shapes()
            && shapes.is_match(&text)
        {
            text = Cow::Owned(shapes.replace_all(&text, REPLACEMENT).into_owned());
        }
        text
    }
}

/// What looks like a value given to a name: quoted, or up to the next blank.
fn assigned() -> Option<&'static Regex> {
    static ASSIGNED: OnceLock<Option<Regex>> = OnceLock::new();
    let made = ASSIGNED.get_or_init(|| {
        let name = r#"([A-Za-z_][A-Za-z0-9_-]*)["']?[ \t]*[=:][ \t]*"#;
        Regex::new(&format!(r#"{name}(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"',;}}\]]+))"#)).ok()
    });
    made.as_ref()
}

/// Shapes of tokens that are secret wherever they stand.
fn shapes() -> Option<&'static Regex> {
    static SHAPES: OnceLock<Option<Regex>> = OnceLock::new();
    SHAPES
        .get_or_init(|| {
            let shapes = [
                r"\bgh[pousr]_[A-Za-z0-9]{20,}",
                r"\bgithub_pat_[A-Za-z0-9_]{20,}",
                r"\bglpat-[A-Za-z0-9_-]{16,}",
                r"\bsk-[A-Za-z0-9_-]{20,}",
                r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
                r"\bAIza[A-Za-z0-9_-]{30,}",
                r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
                r"\bnpm_[A-Za-z0-9]{30,}",
                r"\bpypi-[A-Za-z0-9_-]{30,}",
                r"\bhf_[A-Za-z0-9]{30,}",
                r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
                r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
            ];
            Regex::new(&shapes.join("|")).ok()
        })
        .as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_variables_go_wherever_they_stand() {
        let redactor = Redactor::new(
            [("DEPLOY_TOKEN", "hunter2hunter2"), ("PATH", "/usr/bin:/bin"), ("X_TOKEN", "short")],
            &[],
        );
        assert_eq!(redactor.redact("a hunter2hunter2 b"), "a [redacted] b");
        assert_eq!(redactor.redact("/usr/bin:/bin short"), "/usr/bin:/bin short");
    }

    #[test]
    fn token_shapes_go_without_any_variable() {
        let redactor = Redactor::default();
        let token = format!("ghp_{}", "a1".repeat(18));
        assert_eq!(redactor.redact(&format!("push {token}!")), "push [redacted]!");
        assert_eq!(redactor.redact("sk-short"), "sk-short");
    }

    #[test]
    fn each_line_of_a_secret_is_secret() {
        let redactor = Redactor::default().and([("MY_SECRET", "first line\nx\nlast line")], &[]);
        assert_eq!(redactor.redact("a last line, x"), "a [redacted], x");
    }

    #[test]
    fn a_user_may_name_more() {
        let redactor = Redactor::new([("LICENCE", "abcdefgh")], &["LICENCE".to_owned()]);
        assert_eq!(redactor.redact("abcdefgh"), REPLACEMENT);
    }

    #[test]
    fn what_a_broken_document_gives_to_a_secret_name_is_known_and_places_stay() {
        let text = "tokens = 1000000000\nenv = { DB_PASSWORD = \"häslich-lang\", A = \"plain-text\" }\nrun = \"MY_TOKEN=abcdefghij make\"\n";
        let redactor = Redactor::default().and_assigned_in(text, &[]);
        let masked = redactor.mask(text);
        assert_eq!(masked.len(), text.len());
        for secret in ["häslich-lang", "abcdefghij"] {
            assert!(!masked.contains(secret), "{masked}");
        }
        assert!(masked.contains("plain-text") && masked.contains("1000000000"), "{masked}");
    }
}
