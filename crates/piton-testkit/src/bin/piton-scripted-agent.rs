//! An agent program that does what its prompt says, for tests of the program.
//!
//! It reads the prompt from stdin and carries out every line that begins with a word it knows:
//! `write PATH TEXT`, `say TEXT`, `sleep MS`, `tokens N`, `note TEXT`, `fail-until ATTEMPT`,
//! `exit N`. Other lines are prose and passed over. Facts go to the file named by `PITON_OUTPUT`.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Longest sleep a prompt may ask for: a test that needs more is wrong.
const SLEEP_MS_MAX: u64 = 600_000;
/// Exit code of a prompt that cannot be carried out.
const BAD_PROMPT: u8 = 99;

fn main() -> ExitCode {
    let mut prompt = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut prompt) {
        return bad(&format!("the prompt cannot be read: {error}"));
    }
    for line in prompt.lines() {
        match carry_out(line.trim()) {
            Ok(None) => {}
            Ok(Some(code)) => return ExitCode::from(code),
            Err(why) => return bad(&format!("`{line}`: {why}")),
        }
    }
    ExitCode::SUCCESS
}

fn bad(why: &str) -> ExitCode {
    // A closed stderr changes nothing about the exit code.
    let _ = writeln!(std::io::stderr(), "scripted agent: {why}; correct the prompt");
    ExitCode::from(BAD_PROMPT)
}

/// Carries out one line; an exit code ends the work.
fn carry_out(line: &str) -> io::Result<Option<u8>> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "write" => {
            let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
            write(Path::new(path), text)?;
        }
        "say" => {
            let mut out = std::io::stdout();
            writeln!(out, "{rest}").and_then(|()| out.flush())?;
        }
        "sleep" => {
            let ms: u64 = number(rest)?;
            std::thread::sleep(Duration::from_millis(ms.min(SLEEP_MS_MAX)));
        }
        "tokens" => fact(&format!("{{\"tokens\": {}}}", number::<u64>(rest)?))?,
        "note" => fact(&format!("{{\"note\": {}}}", serde_json::Value::from(rest)))?,
        "fail-until" => {
            let attempt: u32 =
                std::env::var("PITON_ATTEMPT").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
            if attempt < number(rest)? {
                return Ok(Some(1));
            }
        }
        "exit" => return Ok(Some(number(rest)?)),
        _ => {}
    }
    Ok(None)
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.trim().parse().map_err(|_| io::Error::other(format!("`{text}` is not a number")))
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, format!("{text}\n"))
}

/// Adds a fact to the step's output file, where there is one.
fn fact(line: &str) -> io::Result<()> {
    let Some(path) = std::env::var_os("PITON_OUTPUT") else {
        return Ok(());
    };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut f| writeln!(f, "{line}"))
}
