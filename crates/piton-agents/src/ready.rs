//! Whether an agent program can work while nobody is there: what is looked at, and what is missing.
//!
//! Names and rules alone: the caller looks at files and variables and asks the program for its version.

/// Where a program keeps what it needs to work without a person, and what it was tested with.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The version that Piton was tested with.
    pub tested: &'static str,
    /// Variables of which one is enough to log in.
    pub variables: &'static [&'static str],
    /// The variable that names the program's folder, and the folder below the user's home where it is
    /// not set.
    pub folder: (&'static str, &'static str),
    /// The file in that folder that it writes at a login.
    pub login: &'static str,
    /// How a person logs in.
    pub log_in: &'static str,
    /// What remains to be decided before it works unattended.
    pub before: &'static str,
}

/// What a program needs; nothing for one that the user names.
pub fn needs(id: &str) -> Option<Needs> {
    Some(match id {
        "claude" => Needs {
            tested: "2.1.325",
            variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
            folder: ("CLAUDE_CONFIG_DIR", ".claude"),
            login: ".credentials.json",
            log_in: "run `claude` once and log in, or set ANTHROPIC_API_KEY",
            before: "tools that its permissions do not allow are denied, and the step fails",
        },
        "codex" => Needs {
            tested: "0.166.0",
            variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
            folder: ("CODEX_HOME", ".codex"),
            login: "auth.json",
            log_in: "run `codex login`, or set OPENAI_API_KEY",
            before: "calls of MCP servers fail unless config.toml approves them",
        },
        "gemini" => Needs {
            tested: "0.61.0",
            variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            folder: ("GEMINI_CLI_HOME", ""),
            login: ".gemini/oauth_creds.json",
            log_in: "run `gemini` once and log in, or set GEMINI_API_KEY",
            before: "tools of MCP servers are offered only with `permissions = \"all\"`",
        },
        "opencode" => Needs {
            tested: "1.18.33",
            variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
            folder: ("XDG_DATA_HOME", ".local/share"),
            login: "opencode/auth.json",
            log_in: "run `opencode auth login`, or set the key of its provider",
            before: "its own settings must allow what it may do (`permission`)",
        },
        _ => return None,
    })
}

/// What was seen of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Its name in plans and settings.
    pub id: &'static str,
    /// Where it is; `None` if it is not found.
    pub path: Option<String>,
    /// What it says of its version; `None` if it does not answer.
    pub version: Option<String>,
    /// Whether a login was found.
    pub has_login: bool,
}

/// What keeps a program from working unattended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// It is not found.
    NotFound,
    /// It does not say its version, so it may not start.
    NoAnswer,
    /// No login was found. There are ways to log in that cannot be seen from outside.
    NoLogin,
}

impl Gap {
    /// Its name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NoAnswer => "no_answer",
            Self::NoLogin => "no_login",
        }
    }
}

/// What is missing, the worst first; what cannot be known behind that is not guessed.
pub fn gaps(seen: &Seen) -> Vec<Gap> {
    if seen.path.is_none() {
        return vec![Gap::NotFound];
    }
    let no_answer = seen.version.is_none().then_some(Gap::NoAnswer);
    let no_login = (!seen.has_login).then_some(Gap::NoLogin);
    no_answer.into_iter().chain(no_login).collect()
}

/// The version in what a program prints: its first word of digits and dots.
pub fn version(printed: &str) -> Option<String> {
    let words = printed.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
    let is_version = |word: &&str| {
        let word = word.strip_prefix('v').unwrap_or(word);
        word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit())
    };
    words.into_iter().find(is_version).map(|word| word.trim_start_matches('v').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TABLE;

    /// Lost: a night's work waits for a login that nobody was told about.
    #[test]
    fn what_is_missing_is_named_for_each_program() {
        let named = TABLE.iter().filter(|program| !program.binary().is_empty());
        for program in named {
            assert!(needs(program.id()).is_some(), "{}", program.id());
        }
        let seen = Seen { id: "claude", ..Seen::default() };
        assert_eq!(gaps(&seen), [Gap::NotFound]);
        let found = Seen { path: Some("/bin/claude".to_owned()), ..seen };
        assert_eq!(gaps(&found), [Gap::NoAnswer, Gap::NoLogin]);
        let ready = Seen { version: Some("2".to_owned()), has_login: true, ..found };
        assert_eq!(gaps(&ready), []);
    }

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (printed, wanted) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("v1.18.33", Some("1.18.33")),
            ("command not found", None),
        ] {
            assert_eq!(version(printed).as_deref(), wanted, "{printed}");
        }
    }
}
