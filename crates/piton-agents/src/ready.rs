//! Whether an agent program can work while nobody is there: what is looked at, and what is missing.
//!
//! Names and rules alone: the caller looks at files and variables and asks the program for its version.

use piton_core::agent::{Agent, Permissions};

pub use crate::own::Own;

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
    /// The files with its own settings.
    pub settings: &'static [Spot],
}

/// Where a file with settings of a program lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// In the program's folder.
    Folder(&'static str),
    /// In the user's folder for settings, `XDG_CONFIG_HOME`.
    Config(&'static str),
    /// In the project.
    Project(&'static str),
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
            settings: &[
                Spot::Folder("settings.json"),
                Spot::Project(".claude/settings.json"),
                Spot::Project(".claude/settings.local.json"),
            ],
        },
        "codex" => Needs {
            tested: "0.166.0",
            variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
            folder: ("CODEX_HOME", ".codex"),
            login: "auth.json",
            log_in: "run `codex login`, or set OPENAI_API_KEY",
            settings: &[
                Spot::Folder("config.toml"),
                Spot::Folder("hooks.json"),
                Spot::Project(".codex/config.toml"),
                Spot::Project(".codex/hooks.json"),
            ],
        },
        "gemini" => Needs {
            tested: "0.61.0",
            variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            folder: ("GEMINI_CLI_HOME", ""),
            login: ".gemini/oauth_creds.json",
            log_in: "run `gemini` once and log in, or set GEMINI_API_KEY",
            settings: &[
                Spot::Folder(".gemini/settings.json"),
                Spot::Project(".gemini/settings.json"),
            ],
        },
        "opencode" => Needs {
            tested: "1.18.33",
            variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"],
            folder: ("XDG_DATA_HOME", ".local/share"),
            login: "opencode/auth.json",
            log_in: "run `opencode auth login`, or set the key of its provider",
            settings: &[Spot::Config("opencode/opencode.json"), Spot::Project("opencode.json")],
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
    /// Whether it would run as root, outside of a sandbox that says so.
    pub is_root: bool,
    /// What its own settings say.
    pub own: Own,
}

/// What keeps a program from working unattended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// It is not found.
    NotFound,
    /// It does not say its version, so it may not start.
    NoAnswer,
    /// No login was found. There are ways to log in that cannot be seen from outside.
    NoLogin,
    /// It may change nothing without asking.
    NoPermission,
    /// It refuses to be allowed everything as root.
    Root,
    /// It would ask before it uses the tools of these MCP servers.
    McpServers(Vec<String>),
    /// It passes over the hooks in these files, which nobody has trusted.
    UntrustedHooks(Vec<String>),
    /// This argument or setting switches off the hooks that stop it between operations.
    HooksOff(String),
}

impl Gap {
    /// Its name for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NoAnswer => "no_answer",
            Self::NoLogin => "no_login",
            Self::NoPermission => "no_permission",
            Self::Root => "root",
            Self::McpServers(_) => "mcp_servers",
            Self::UntrustedHooks(_) => "untrusted_hooks",
            Self::HooksOff(_) => "hooks_off",
        }
    }

    /// Whether the agent cannot work at all; the others may concern what it never needs.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::NotFound | Self::NoAnswer | Self::NoPermission | Self::Root)
    }

    /// What is missing, and what to do.
    pub fn advice(&self, agent: &Agent) -> String {
        let (name, program) = (&agent.name, &agent.program);
        match self {
            Self::NotFound => {
                format!("{program} is not installed, or not in PATH; `command` can name its path")
            }
            Self::NoAnswer => format!("`{program} --version` did not answer; check what it prints"),
            Self::NoLogin => {
                let how = needs(program).map_or("log in", |needs| needs.log_in);
                format!("no login was found: {how}")
            }
            Self::NoPermission => format!(
                "its own settings allow no changes: set `permissions = \"edits\"` in [agents.{name}]"
            ),
            Self::Root => {
                "it refuses `permissions = \"all\"` as root: run as another user".to_owned()
            }
            Self::McpServers(servers) => {
                let servers = servers.join(", ");
                let remedy = match program.as_str() {
                    "codex" => "set `default_tools_approval_mode = \"approve\"` for them",
                    _ => "set `\"trust\": true` for them, or `permissions = \"all\"`",
                };
                format!("nobody can approve tools of the MCP servers {servers}: {remedy}")
            }
            Self::UntrustedHooks(files) => format!(
                "hooks in {} are not trusted and are passed over: start `{program}` here once",
                files.join(", ")
            ),
            Self::HooksOff(what) => format!(
                "{what} switches off hooks: it is ended where it should stop between operations"
            ),
        }
    }
}

/// Arguments of Claude Code that switch off all hooks.
const HOOKS_OFF: [&str; 2] = ["--bare", "--safe-mode"];

/// Words of arguments with which a person allows something by themselves.
const GRANTS: [&str; 7] =
    ["permission", "allowed", "approv", "sandbox", "yolo", "full-auto", "settings"];

fn grants(args: &[String]) -> bool {
    args.iter().any(|word| GRANTS.iter().any(|grant| word.to_lowercase().contains(grant)))
}

/// What an agent lacks, the worst first; what cannot be known behind that is not guessed.
pub fn gaps(seen: &Seen, agent: &Agent) -> Vec<Gap> {
    if seen.path.is_none() {
        return vec![Gap::NotFound];
    }
    let mut gaps = Vec::new();
    let mut add = |is_so: bool, gap: Gap| gaps.extend(is_so.then_some(gap));
    let (program, permissions) = (agent.program.as_str(), agent.permissions);
    add(seen.version.is_none(), Gap::NoAnswer);
    let is_own = permissions == Permissions::Own;
    let is_allowed = seen.own.allows || !agent.tools.is_empty() || grants(&agent.args);
    add(is_own && !is_allowed, Gap::NoPermission);
    let is_all = permissions == Permissions::All;
    add(program == "claude" && is_all && seen.is_root, Gap::Root);
    add(!seen.has_login, Gap::NoLogin);
    let servers = seen.own.asking_servers.clone();
    let asks = !servers.is_empty() && (program == "codex" || !is_all && !is_own);
    add(asks, Gap::McpServers(servers));
    let untrusted = seen.own.untrusted_hooks.clone();
    add(!untrusted.is_empty(), Gap::UntrustedHooks(untrusted));
    let off = agent.args.iter().find(|word| HOOKS_OFF.contains(&word.as_str()));
    if let Some(word) = off.filter(|_| program == "claude") {
        add(true, Gap::HooksOff(format!("`{word}` in `args`")));
    } else if let Some(file) = &seen.own.hooks_off {
        add(true, Gap::HooksOff(format!("`disableAllHooks` in {file}")));
    }
    gaps
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

    /// Lost: a night's work waits for a login or a permission that nobody was told about.
    #[test]
    fn what_is_missing_is_named_for_each_program() {
        let named = TABLE.iter().filter(|program| !program.binary().is_empty());
        for program in named {
            assert!(needs(program.id()).is_some(), "{}", program.id());
        }
        let claude = Agent::new("claude", "claude");
        let seen = Seen { id: "claude", ..Seen::default() };
        assert_eq!(gaps(&seen, &claude), [Gap::NotFound]);
        let found = Seen { path: Some("/bin/claude".to_owned()), ..seen };
        assert_eq!(gaps(&found, &claude), [Gap::NoAnswer, Gap::NoLogin]);
        let ready = Seen { version: Some("2".to_owned()), has_login: true, ..found };
        assert_eq!(gaps(&ready, &claude), []);
        // What the settings of the agent add or take away.
        let own = Agent { permissions: Permissions::Own, ..claude.clone() };
        assert_eq!(gaps(&ready, &own), [Gap::NoPermission]);
        let allows = Own { allows: true, ..Own::default() };
        assert_eq!(gaps(&Seen { own: allows, ..ready.clone() }, &own), []);
        let all = Agent { permissions: Permissions::All, ..claude.clone() };
        assert_eq!(gaps(&Seen { is_root: true, ..ready.clone() }, &all), [Gap::Root]);
        let bare = Agent { args: vec!["--bare".to_owned()], ..claude };
        assert_eq!(gaps(&ready, &bare), [Gap::HooksOff("`--bare` in `args`".to_owned())]);
        let own = Own { hooks_off: Some("s.json".to_owned()), ..Own::default() };
        let off = gaps(&Seen { own, ..ready.clone() }, &Agent::new("claude", "claude"));
        assert_eq!(off, [Gap::HooksOff("`disableAllHooks` in s.json".to_owned())]);
        let asking_servers = vec!["db".to_owned()];
        let own = Own { asking_servers, untrusted_hooks: vec!["h".to_owned()], ..Own::default() };
        let asks = Gap::McpServers(vec!["db".to_owned()]);
        let untrusted = Gap::UntrustedHooks(vec!["h".to_owned()]);
        let seen = Seen { own, ..ready };
        for (program, permissions, wanted) in [
            ("codex", Permissions::All, vec![asks.clone(), untrusted.clone()]),
            ("gemini", Permissions::Edits, vec![asks, untrusted.clone()]),
            ("gemini", Permissions::All, vec![untrusted]),
        ] {
            let agent = Agent { permissions, ..Agent::new(program, program) };
            assert_eq!(gaps(&seen, &agent), wanted, "{program}");
            assert!(gaps(&seen, &agent).iter().all(|gap| !gap.advice(&agent).is_empty()));
        }
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
