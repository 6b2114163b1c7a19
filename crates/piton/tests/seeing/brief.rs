//! Briefs of real runs: what an agent reads that takes over after everything was killed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::common::Project;

/// A lane whose second step fails in its test, is tried again, and is killed in the middle of that.
const PLAN: &str = r#"
title = "Payments"

[agents.writer]
command = "cat > /dev/null; sh work.sh"

[[phase]]
id = "P1"
[[phase.lane]]
id = "pay"
agent = "writer"
steps = [
  { id = "model", run = "echo m > model.rs", artifacts = ["model.rs"] },
  { id = "refund", prompt = "Refunds are written to the journal first.\nKey: {{ env.API_TOKEN }}", env = { API_TOKEN = "s3cr3t-of-the-plan" }, test = "sh check.sh", retries = 3, backoff = "1ms" },
]

[[phase]]
id = "P2"
run = "true"
"#;

/// Lost: an agent that goes on after a crash does not know what was done, what failed and what is next.
#[test]
fn a_brief_after_a_crash_says_where_the_work_stands() {
    let project = Project::with_plan(&PLAN.replace("{{ env.API_TOKEN }}", "s3cr3t-of-the-plan"));
    project.write("work.sh", "if [ $PITON_ATTEMPT = 2 ]; then touch begun; exec sleep 1000; fi\n");
    project.write(
        "check.sh",
        "printf '\\033[31mtest refund::is_journaled ... FAILED\\033[0m s3cr3t-of-the-plan\\n'; exit 1\n",
    );
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    drop(driver);
    project.kill_all();
    let output = project.piton(&["brief", "r"]).exits(0);
    for said in [
        "Payments [plan.toml",
        "P1/pay/refund: running, 2 attempts so far",
        "Refunds are written to the journal first.",
        "`sh check.sh` must succeed",
        "test refund::is_journaled ... FAILED",
        "P1/pay/model is complete, made model.rs [event",
        "model.rs [",
        "P2/main/work: true",
        "piton show r/P1/pay/refund",
    ] {
        assert!(output.stdout.contains(said), "{said} is missing in\n{}", output.stdout);
    }
    assert!(!output.stdout.contains('\u{1b}'), "{}", output.stdout);
    assert!(!output.stdout.contains("s3cr3t"), "{}", output.stdout);
    let short = project.piton(&["brief", "--tokens", "200", "--json"]).exits(0).json();
    assert!(short["tokens"].as_u64().unwrap() <= 200, "{short}");
    assert_eq!((&short["limit"], &short["tokenizer"]), (&200.into(), &"o200k_base".into()));
    assert_eq!(short["sections"][0]["section"], "objective");
    project.piton(&["brief", "--tokens", "99"]).exits(2).says("between 100 and");
    // It changed nothing: the run goes on as if nobody had looked.
    project.write("check.sh", "true");
    project.write("work.sh", "true");
    project.piton(&["resume", "r"]).exits(0);
}

/// Lost: a night begins with an agent program that is not there, or was never logged in.
#[test]
fn doctor_names_agent_programs_and_what_they_lack() {
    let project = Project::new();
    let bin = project.outside().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (name, text) in [("claude", "echo '9.9.9 (Claude Code)'"), ("codex", "exit 1")] {
        fs::write(bin.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let look = |key: Option<&str>| {
        let mut command = project.command(super::common::PITON);
        command.args(["doctor", "--json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command.envs(key.map(|key| ("ANTHROPIC_API_KEY", key)));
        project.finish(&mut command).exits(0).json()
    };
    let found = look(None);
    let agent = |answer: &serde_json::Value, id: &str| {
        let agents = answer["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["id"] == id).unwrap().clone()
    };
    let claude = agent(&found, "claude");
    assert_eq!(claude["version"], "9.9.9");
    assert_eq!(claude["missing"], serde_json::json!(["no_login"]));
    assert_eq!(agent(&found, "codex")["missing"], serde_json::json!(["no_answer", "no_login"]));
    assert_eq!(agent(&look(Some("k")), "claude")["missing"], serde_json::json!([]));
    // What the settings say of an agent counts, and agents that only they name.
    let settings = "[agents.claude]\npermissions = \"own\"\n[agents.night]\nprogram = \"claude\"\n\
                    args = [\"--bare\"]\nenv = { ANTHROPIC_API_KEY = \"k\" }\n[agents.gemini]\n";
    project.write("piton.toml", settings);
    project.write(".codex/hooks.json", r#"{"hooks":{"Stop":[]}}"#);
    let found = look(None);
    let missing = |id: &str| agent(&found, id)["missing"].clone();
    assert_eq!(missing("claude"), serde_json::json!(["no_permission", "no_login"]));
    assert_eq!(missing("night"), serde_json::json!(["hooks_off"]));
    assert_eq!(missing("codex"), serde_json::json!(["no_answer", "no_login", "untrusted_hooks"]));
    let said = project.piton(&["doctor"]).exits(0);
    said.says("warning: agent gemini: gemini is not found").says("command` can name its path");
    project.write(".claude/settings.json", r#"{"permissions":{"allow":["Edit","Bash"]}}"#);
    assert_eq!(agent(&look(None), "claude")["missing"], serde_json::json!(["no_login"]));
}
