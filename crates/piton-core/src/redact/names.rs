//! Decides by its name whether a variable is a secret.
//!
//! Names are read word by word, so that `GITHUB_PAT` is a secret and `DATA_PATH` is not. Values are
//! not considered: a secret can be any text.

/// Secret wherever they stand in a word: `SSHPASSWORD`, `MYTOKENS`. No ordinary word holds them, but
/// for [`HARMLESS`].
const PARTS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "ACCESSKEY",
    "PRIVATEKEY",
    "AUTHORIZATION",
    "COOKIE",
];
/// Beginnings of words that hold one of the parts and speak of something else.
const HARMLESS: &[&str] = &["TOKENIZ", "TOKENIS", "SECRETAR", "COOKIECUTTER"];
/// Secret at the end of a word: `OAUTH`, `SENTRYDSN`. No ordinary word ends like this.
const ENDS: &[&str] = &["AUTH", "DSN"];
/// Secret as a word behind another: `DEPLOY_KEY`, `MYSQL_PWD`; alone they are everyday names.
const BEHIND: &[&str] = &["KEY", "KEYS", "PWD"];
/// Secret as the last word: `DB_PASS`, `GITHUB_PAT`.
const LAST: &[&str] = &["PASS", "PAT", "SSHPASS"];
/// A name that ends like this says where something is, not what it is.
const PLACES: &[&str] = &["PATH", "FILE", "DIR", "SOCK"];

/// Which variables are secret besides those whose names look like it, and which are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Secret, whatever their names look like.
    pub more: Vec<String>,
    /// Not secret, whatever their names look like.
    pub except: Vec<String>,
}

impl Names {
    /// Whether the value of a variable is a secret.
    pub fn is_secret(&self, name: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|listed| listed == name);
        listed(&self.more) || (is_secret_name(name) && !listed(&self.except))
    }
}

/// Whether a name looks like that of a secret.
fn is_secret_name(name: &str) -> bool {
    // As written in one case, and as its humps show: `APIkey` and `apiKey`.
    !name.to_uppercase().starts_with("PITON_")
        && (are_secret(&words(name, false)) || are_secret(&words(name, true)))
}

fn are_secret(words: &[String]) -> bool {
    let Some(last) = words.last() else { return false };
    if PLACES.contains(&last.as_str()) {
        return false;
    }
    let word_is = |word: &String| {
        PARTS.iter().any(|part| word.contains(part))
            && !HARMLESS.iter().any(|start| word.starts_with(start))
            || ENDS.iter().any(|end| word.ends_with(end))
    };
    // A public key is made to be shown.
    let is_key = |pair: &[String]| BEHIND.contains(&pair[1].as_str()) && pair[0] != "PUBLIC";
    LAST.contains(&last.as_str()) || words.iter().any(word_is) || words.windows(2).any(is_key)
}

/// The words of a name in capitals, without what is between them; with `humps` a capital after a
/// small letter, or before one, begins a word too.
fn words(name: &str, humps: bool) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut chars = name.chars().peekable();
    let mut before = None::<char>;
    while let Some(c) = chars.next() {
        let is_hump = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || before.is_some_and(char::is_uppercase)
                    && chars.peek().is_some_and(|next| next.is_lowercase()));
        if !c.is_alphabetic() || (humps && is_hump) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphabetic(), words.last_mut()) {
            word.extend(c.to_uppercase());
        }
        before = Some(c);
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a token would stand in the ledger.
    #[test]
    fn what_looks_secret_is() {
        for name in [
            "GITHUB_PAT",
            "BASIC_AUTH",
            "npm_config__auth",
            "NPM_CONFIG_//host/:_authToken",
            "OAUTH2",
            "APIKEY",
            "APIkey",
            "apiKey",
            "AWS_SECRET_ACCESS_KEY",
            "SSHPASSWORD",
            "DB_PASS",
            "DB_PASSWORD2",
            "dbPassword",
            "MYSQL_PWD",
            "SENTRY_DSN",
            "deploy-key",
            "MYTOKEN",
            "SESSION_COOKIE",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    /// Lost: every log line with a search path in it would be blank, and plans would be refused.
    #[test]
    fn what_only_resembles_it_is_not() {
        for name in [
            "DATA_PATH",
            "dataPath",
            "SSH_KEY_FILE",
            "GIT_AUTHOR_NAME",
            "XAUTHORITY",
            "SSH_AUTH_SOCK",
            "PATTERN",
            "COMPATIBLE",
            "KEYBOARD",
            "KEY",
            "MONKEY",
            "PASSENGER",
            "BYPASS",
            "PWD",
            "TOKENIZERS_PARALLELISM",
            "SECRETARY",
            "SIGNING_PUBLIC_KEY",
            "PITON_TOKEN",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_person_has_the_last_word() {
        let names = Names { more: vec!["LICENCE".into()], except: vec!["CACHE_KEY".into()] };
        assert!(names.is_secret("LICENCE") && names.is_secret("API_KEY"));
        assert!(!names.is_secret("CACHE_KEY") && !names.is_secret("licence"));
    }
}
