//! The scripted agent: what each word of a prompt does. Tests of the whole program rely on it.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Gives the agent a prompt in a folder, with variables.
fn agent(dir: &Path, prompt: &str, vars: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_piton-scripted-agent"));
    command.current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["PITON_ATTEMPT", "PITON_OUTPUT"] {
        command.env_remove(name);
    }
    command.envs(vars.iter().copied());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn it_writes_and_says_what_the_prompt_tells_and_passes_prose_over() {
    let dir = tempfile::tempdir().unwrap();
    let prompt = "Please do this:\n  write out/a.txt two words\nsay hello there\nwrite empty.txt\n";
    let done = agent(dir.path(), prompt, &[]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "hello there\n");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!((read("out/a.txt").as_str(), read("empty.txt").as_str()), ("two words\n", "\n"));
}

#[test]
fn it_fails_until_the_attempt_and_exits_as_told() {
    let dir = tempfile::tempdir().unwrap();
    let prompt = "fail-until 3\nsay done\nexit 7\nsay never\n";
    for (attempt, code, said) in [("1", 1, ""), ("2", 1, ""), ("3", 7, "done\n")] {
        let done = agent(dir.path(), prompt, &[("PITON_ATTEMPT", attempt)]);
        assert_eq!(done.status.code(), Some(code), "attempt {attempt}");
        assert_eq!(String::from_utf8_lossy(&done.stdout), said);
    }
}

#[test]
fn facts_are_lines_of_json_in_the_file_of_the_step() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("facts");
    let prompt = "tokens 120\nnote said \"so\"\nsleep 1\n";
    let done = agent(dir.path(), prompt, &[("PITON_OUTPUT", file.to_str().unwrap())]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = [serde_json::json!({"tokens": 120}), serde_json::json!({"note": "said \"so\""})];
    assert_eq!(lines, expected);
    assert_eq!(agent(dir.path(), prompt, &[]).status.code(), Some(0), "without a file, no facts");
}

#[test]
fn a_prompt_that_cannot_be_carried_out_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let done = agent(dir.path(), "tokens many\n", &[]);
    assert_eq!(done.status.code(), Some(99));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("`tokens many`") && said.contains("correct the prompt"), "{said}");
}
