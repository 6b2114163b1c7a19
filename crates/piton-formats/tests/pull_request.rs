//! The script that opens a pull request, run by a real shell with scripted `git` and `gh`.
//!
//! What would be lost without it: two pull requests for one branch after a crash, or one that is
//! taken for opened and is not.

#![expect(clippy::unwrap_used, reason = "a script that can't be written is a failed test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use piton_core::plan::{Command as PlanCommand, Work};
use piton_formats::template::{self, Vars};
use piton_formats::{Input, Settings, read_plan, read_settings};

/// Notes each call, and knows the pull requests that were opened.
const GH: &str = r#"#!/bin/sh
echo "gh $*" >> calls
case "$2" in
list) if [ -e broken ]; then exit 4; fi; if [ -e url ]; then cat url; fi ;;
create) echo 'creating' >&2; if [ ! -e mute ]; then echo https://example.test/pr/7 | tee url; fi ;;
esac
"#;

/// Notes each push, and has pushed nothing before.
const GIT: &str = r#"#!/bin/sh
if [ "$1" = -C ]; then shift 2; fi
case "$1" in
push) echo "git $*" >> calls; test ! -e refuse ;;
rev-parse) exit 1 ;;
esac
"#;

fn script(settings: &Settings) -> String {
    let text = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nmerge = \"pr\"\nrun = \"make\"\n";
    let read = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let input = Input { file: "plan.toml", text, settings, git: true, read: &read };
    let (plan, _) = read_plan(&input).unwrap();
    let steps = &plan.phases[0].lanes[0].steps;
    let Work::Run(PlanCommand::Shell(line)) = &steps.last().unwrap().work else {
        panic!("a shell line")
    };
    template::render(line, &Vars::default()).unwrap()
}

fn programs(dir: &Path) {
    for (name, text) in [("gh", GH), ("git", GIT)] {
        fs::write(dir.join(name), text).unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn run(dir: &Path, script: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", dir.display());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).current_dir(dir).env("PATH", path);
    command.env("PITON_BRANCH", "lane/P/a b").env("PITON_BASE_BRANCH", "main");
    command.env("PITON_HEAD", "c0ffee").output().unwrap()
}

/// What was called since the last time.
fn calls(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("calls")).unwrap_or_default();
    let _ = fs::remove_file(dir.join("calls"));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn one_pull_request_however_often_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    programs(dir);
    let script = script(&Settings::default());
    for round in 0..3 {
        let said = run(dir, &script);
        assert!(said.status.success(), "{said:?}");
        assert_eq!(String::from_utf8_lossy(&said.stdout), "https://example.test/pr/7\n");
        let calls = calls(dir);
        assert_eq!(calls[0], "git push -q origin c0ffee:refs/heads/lane/P/a b");
        assert!(calls[1].starts_with("gh pr list --head lane/P/a b --state all"), "{calls:?}");
        assert!(calls[1].contains(r#".headRefOid == "c0ffee""#), "{calls:?}");
        let created: Vec<&String> = calls.iter().filter(|c| c.contains("pr create")).collect();
        assert_eq!(created.len(), usize::from(round == 0), "{calls:?}");
    }
}

#[test]
fn what_fails_is_a_failure_and_opens_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    programs(dir);
    let script = script(&Settings::default());
    for (obstacle, code, last) in [("refuse", 1, "git push"), ("broken", 4, "gh pr list")] {
        fs::write(dir.join(obstacle), "").unwrap();
        assert_eq!(run(dir, &script).status.code(), Some(code), "{obstacle}");
        assert!(calls(dir).last().unwrap().starts_with(last), "{obstacle}");
        fs::remove_file(dir.join(obstacle)).unwrap();
    }
    fs::write(dir.join("mute"), "").unwrap();
    let said = run(dir, &script);
    assert_eq!(said.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&said.stderr).contains("[pull_request]"), "{said:?}");
}

#[test]
fn other_programs_are_called_as_they_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    programs(dir);
    let text = "[pull_request]\nremote = \"up\"\nfind = \"true # nothing\"\ncreate = [\"printf\", \"%s|%s\", \"{{ it's }}\", \"$HOME\"]\n";
    let said = run(dir, &script(&read_settings("piton.toml", text).unwrap()));
    assert!(said.status.success(), "{said:?}");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "{{ it's }}|$HOME\n");
    assert_eq!(calls(dir), ["git push -q up c0ffee:refs/heads/lane/P/a b"]);
}
