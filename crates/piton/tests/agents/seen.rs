//! What people see of agents, what is kept of their prompts, and what a killed one leaves behind.

use super::common;
use super::{WORKS, of_agent, project, tokens};

/// Lost: nobody knows what an agent does, how full its window is and what it costs; or what it writes
/// moves the cursor of whoever looks.
#[test]
fn status_shows_what_an_agent_does_without_its_escapes() {
    let turn = "request 1 50000 'make \\u001b[31mred\\u001b]0;owned\\u0007'; : > begun\n\
                until [ -e go ]; do sleep 0.05; done; echo done > done.txt; answered 1\n\
                ends false completed ok\n";
    let project = project("", "window = 200000", &[turn]);
    let driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    common::wait_until("the agent is heard", || tokens(&project) == 50_010);
    let status = project.piton(&["status"]).exits(0);
    let status = status.says("50k tokens, window 25 %, cost unknown (counts $0.25025): Bash make");
    assert!(!status.stdout.contains(['\u{1b}', '\u{7}']), "{}", status.stdout);
    project.write("go", "");
    let ran = driver.wait().exits(0);
    assert!(!ran.stderr.contains(['\u{1b}', '\u{7}']), "{}", ran.stderr);
    for words in [&["show", "P/main/work"][..], &["log", "--step", "P/main/work"]] {
        let shown = project.piton(words).exits(0).stdout;
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{words:?}: {shown}");
    }
    project.wait_quiet();
}

/// Lost: a key that a prompt was given lies in a file of Piton for ever.
#[test]
fn the_prompt_as_sent_is_kept_without_secrets() {
    let step = "env = { API_TOKEN = \"s3cr3t-value-91\" }";
    let project = project(step, "", &[WORKS]);
    let plan = project.read("plan.toml");
    project.write("plan.toml", &plan.replace("Write the file.", "Use s3cr3t-value-91 for it."));
    project.piton(&["run", "plan.toml"]).exits(0);
    assert!(of_agent(&project, "prompt-1").contains("s3cr3t-value-91"), "the agent needs it");
    let shown = project.piton(&["show", "P/main/work", "--prompt"]).exits(0);
    shown.says("Use ").silent_about("s3cr3t-value-91");
    let found = project.sh("grep -rl s3cr3t-value-91 .git/piton || true").stdout;
    let prompts = found.lines().filter(|file| file.contains("prompt")).collect::<Vec<_>>();
    assert_eq!(prompts, [""; 0], "{found}");
    project.wait_quiet();
}

/// Lost: an agent whose MCP server never started counts as done because its program exits with 0.
#[test]
fn a_dead_mcp_server_is_a_failure() {
    let dead = "printf '{\"type\":\"system\",\"subtype\":\"init\",\"mcp_servers\":[{\"name\":\"db\",\"status\":\"failed\"}]}\\n'\n\
                echo done > done.txt; ends false completed ok\n";
    let project = project("", "", &[dead]);
    project.piton(&["run", "plan.toml"]).exits(1).says("MCP server db did not start");
}

/// Lost: the program below a wrapper that was killed holds the session, and every resume is refused.
#[test]
fn what_a_killed_wrapper_left_is_ended_before_the_session_continues() {
    // The one below is in a session of its own, as native programs of wrappers are not always found.
    let holds = "request 1 100 make\n\
                 setsid flock \"$here/thread\" sh -c ': > begun; sleep 600' &\n\
                 until [ -e begun ]; do sleep 0.05; done; sleep 1; kill -KILL $$\n";
    let writes =
        "flock -n \"$here/thread\" true || { echo 'thread has an active writer' >&2; exit 1; }\n";
    let project = project("", "", &[holds, &format!("{writes}{WORKS}")]);
    let said = project.piton(&["run", "plan.toml"]).exits(0);
    said.says("continues session").silent_about("active writer");
    assert_eq!(of_agent(&project, "count").trim(), "2");
    assert_eq!(tokens(&project), 220);
    project.wait_quiet();
}

/// Lost: settings of an agent do not reach its program.
#[test]
fn what_the_settings_say_reaches_the_program() {
    let settings = "model = \"opus\"\npermissions = \"edits\"\ntools = [\"Bash\", \"Edit\"]\n\
                    args = [\"--max-turns\", \"9\"]\nenv = { HUE = \"teal\" }\nmcp = \"servers.json\"";
    let turn = format!("echo \"$HUE\" > \"$here/hue\"; {WORKS}");
    let project = project("", settings, &[&turn]);
    project.write("servers.json", r#"{"mcpServers":{"db":{"command":"serve"}}}"#);
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    let words = of_agent(&project, "words-1");
    for wanted in [
        "--model opus",
        "--permission-mode acceptEdits",
        "--allowedTools Bash,Edit,mcp__db",
        "--max-turns 9",
        "servers.json",
    ] {
        assert!(words.contains(wanted), "{words}");
    }
    assert_eq!(of_agent(&project, "hue").trim(), "teal");
    // An agent does not work without servers that its settings name.
    project.write("servers.json", "{");
    project.commit();
    project.piton(&["run", "plan.toml", "--fresh"]).exits(1).says("servers.json: ");
    project.wait_quiet();
}
