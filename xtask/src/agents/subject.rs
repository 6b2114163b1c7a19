//! The programs that are checked: their packages, and a home for each case in which no vendor is
//! contacted and no account is needed.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::api::Answer;

/// A program that is checked.
pub(super) struct Subject {
    /// Its name in plans, and that of its executable.
    pub(super) id: &'static str,
    /// Its package.
    pub(super) package: &'static str,
    /// The version that the adapter was written for.
    pub(super) version: &'static str,
    /// A package that it would otherwise fetch when it starts.
    pub(super) beside: Option<&'static str>,
    /// A model that the program knows.
    pub(super) model: &'static str,
    /// Writes its configuration below a home, and gives its variables.
    home: fn(&Path, &Around) -> io::Result<Env>,
    /// The call of a tool that writes a file.
    pub(super) write: fn(&Path, &str) -> Answer,
    /// The call of a tool that runs a command.
    pub(super) shell: fn(&str) -> Answer,
    /// The call of a tool of an MCP server.
    pub(super) mcp: fn(&str, &str, Value) -> Answer,
}

/// Variables of processes.
pub(super) type Env = Vec<(&'static str, String)>;

/// What a home has to know.
pub(super) struct Around {
    /// Where the program lies.
    pub(super) bin: PathBuf,
    /// Where its package beside it lies.
    pub(super) beside: Option<PathBuf>,
    /// Where the API listens.
    pub(super) url: String,
}

/// All of them.
pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        id: "claude",
        package: "@anthropic-ai/claude-code",
        version: "2.1.325",
        beside: None,
        model: "claude-sonnet-4-5",
        home: claude_home,
        write: |file, text| Answer::call("Write", json!({"file_path": file, "content": text})),
        shell: |command| Answer::call("Bash", json!({"command": command, "description": "Run it"})),
        mcp: |server, tool, input| Answer::call(&format!("mcp__{server}__{tool}"), input),
    },
    Subject {
        id: "codex",
        package: "@openai/codex",
        version: "0.166.0",
        beside: None,
        model: "gpt-5.1-codex",
        home: codex_home,
        write: |file, text| {
            let cmd = format!("printf %s '{text}' > '{}'", file.display());
            Answer::call("exec_command", json!({"cmd": cmd}))
        },
        shell: |command| {
            Answer::call("exec_command", json!({"cmd": command, "yield_time_ms": 60_000}))
        },
        mcp: |server, tool, input| Answer::call(&format!("mcp__{server}__{tool}"), input),
    },
    Subject {
        id: "gemini",
        package: "@google/gemini-cli",
        version: "0.61.0",
        beside: None,
        model: "gemini-2.5-pro",
        home: gemini_home,
        write: |file, text| Answer::call("write_file", json!({"file_path": file, "content": text})),
        shell: |command| {
            let input = json!({"command": command, "description": "Run it"});
            Answer::call("run_shell_command", input)
        },
        mcp: |server, tool, input| Answer::call(&format!("mcp_{server}_{tool}"), input),
    },
    Subject {
        id: "opencode",
        package: "opencode-ai",
        version: "1.18.33",
        beside: Some("@opencode-ai/plugin"),
        model: "scripted/model",
        home: opencode_home,
        write: |file, text| Answer::call("write", json!({"filePath": file, "content": text})),
        shell: |command| Answer::call("bash", json!({"command": command, "description": "Run it"})),
        mcp: |server, tool, input| Answer::call(&format!("{server}_{tool}"), input),
    },
];

/// A key that nobody checks.
const KEY: &str = "scripted";

impl Subject {
    /// Makes a home, and gives the whole environment of a process that is to use it.
    pub(super) fn settle(&self, home: &Path, around: &Around) -> io::Result<Env> {
        fs::create_dir_all(home.join("tmp"))?;
        let below = |name: &str| home.join(name).display().to_string();
        let bin = around.bin.display();
        let mut env = vec![
            ("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")),
            ("HOME", home.display().to_string()),
            ("TMPDIR", below("tmp")),
            ("XDG_CONFIG_HOME", below(".config")),
            ("XDG_CACHE_HOME", below(".cache")),
            ("XDG_DATA_HOME", below(".local/share")),
            ("XDG_STATE_HOME", below(".local/state")),
            ("TERM", "dumb".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
        ];
        env.extend((self.home)(home, around)?);
        Ok(env)
    }
}

fn configure(file: &Path, text: &str) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(file, text)
}

fn configure_json(file: &Path, value: &Value) -> io::Result<()> {
    configure(file, &value.to_string())
}

#[expect(clippy::unnecessary_wraps, reason = "the others write files")]
fn claude_home(home: &Path, around: &Around) -> io::Result<Env> {
    let off = "1".to_owned();
    Ok(vec![
        ("CLAUDE_CONFIG_DIR", home.join(".claude").display().to_string()),
        ("ANTHROPIC_BASE_URL", around.url.clone()),
        ("ANTHROPIC_API_KEY", KEY.to_owned()),
        ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", off.clone()),
        ("DISABLE_TELEMETRY", off.clone()),
        ("DISABLE_AUTOUPDATER", off.clone()),
        ("DISABLE_ERROR_REPORTING", off),
    ])
}

fn codex_home(home: &Path, around: &Around) -> io::Result<Env> {
    let (folder, url) = (home.join(".codex"), &around.url);
    let text = format!(
        "model_provider = \"scripted\"\n\
         check_for_update_on_startup = false\n\
         [model_providers.scripted]\n\
         name = \"scripted\"\n\
         base_url = \"{url}/v1\"\n\
         wire_api = \"responses\"\n\
         env_key = \"SCRIPTED_KEY\"\n\
         request_max_retries = 1\n\
         stream_max_retries = 1\n"
    );
    configure(&folder.join("config.toml"), &text)?;
    Ok(vec![("CODEX_HOME", folder.display().to_string()), ("SCRIPTED_KEY", KEY.to_owned())])
}

fn gemini_home(home: &Path, around: &Around) -> io::Result<Env> {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "maxAttempts": 2},
    });
    configure_json(&home.join(".gemini/settings.json"), &settings)?;
    Ok(vec![("GOOGLE_GEMINI_BASE_URL", around.url.clone()), ("GEMINI_API_KEY", KEY.to_owned())])
}

fn opencode_home(home: &Path, around: &Around) -> io::Result<Env> {
    let model = json!({"name": "model", "limit": {"context": 200_000, "output": 8000}});
    let options = json!({"baseURL": format!("{}/v1", around.url), "apiKey": KEY});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "scripted",
        "options": options, "models": {"model": model}});
    let settings = json!({"provider": {"scripted": provider}, "autoupdate": false,
        "share": "disabled"});
    let folder = home.join(".config/opencode");
    configure_json(&folder.join("opencode.json"), &settings)?;
    // It installs this package once it has a plugin, and hangs without a network; all three must be
    // there, or it begins anew.
    if let Some(beside) = &around.beside {
        symlink(beside.join("node_modules"), folder.join("node_modules"))?;
        for name in ["package.json", "package-lock.json"] {
            fs::copy(beside.join(name), folder.join(name))?;
        }
    }
    let off = "true".to_owned();
    Ok(vec![
        ("OPENCODE_DISABLE_MODELS_FETCH", off.clone()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", off.clone()),
        ("OPENCODE_DISABLE_AUTOUPDATE", off),
    ])
}
