//! Agents with the real program: sessions, limits, budgets and hand-offs, with a scripted program that
//! speaks like Claude Code, real git and real kills.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]

mod common;

#[path = "agents/limits.rs"]
mod limits;
#[path = "agents/seen.rs"]
mod seen;
#[path = "agents/stopping.rs"]
mod stopping;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use common::{Output, Project};
use piton_core::Event;

/// A program that speaks like Claude Code. What its Nth process does is in the file `turn-N` beside it.
const CLAUDE: &str = r#"#!/bin/sh
here=$(dirname "$0")
prev=
for word in "$@"; do
  case "$prev" in --session-id|--resume) id=$word ;; esac
  prev=$word
done
n=$(($(cat "$here/count" 2>/dev/null || echo 0) + 1))
echo "$n" > "$here/count"
echo "$*" > "$here/words-$n"
cat > "$here/prompt-$n"
printf '{"type":"system","subtype":"init","session_id":"%s","model":"m"}\n' "$id"
# request NUMBER CONTEXT COMMAND: the model answers with a call of the shell.
request() {
  printf '{"type":"assistant","session_id":"%s","parent_tool_use_id":null,"message":{"id":"%s","usage":{"input_tokens":%s,"output_tokens":10},"content":[{"type":"tool_use","id":"t%s","name":"Bash","input":{"command":"%s"}}]}}\n' "$id" "$n-$1" "$2" "$1" "$3"
}
# answered NUMBER: the shell is done.
answered() {
  printf '{"type":"user","session_id":"%s","message":{"content":[{"type":"tool_result","tool_use_id":"t%s"}]}}\n' "$id" "$1"
}
# ends IS_ERROR REASON TEXT [MORE]: the final event.
ends() {
  printf '{"type":"result","subtype":"success","session_id":"%s","is_error":%s,"terminal_reason":"%s","result":"%s"%s}\n' "$id" "$1" "$2" "$3" "$4"
}
until_stopped() {
  until [ -e "$PITON_STOP_FILE" ]; do sleep 0.05; done
}
. "$here/turn-$n"
"#;

/// A turn that does the work.
const WORKS: &str =
    "request 1 100 make; echo done > done.txt; answered 1; ends false completed ok\n";

/// A project with a plan of one prompt, and the scripted program.
fn project(step: &str, agent: &str, turns: &[&str]) -> Project {
    let project = Project::new();
    let folder = project.outside().join("agent");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("claude");
    fs::write(&program, CLAUDE).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for (number, turn) in (1..).zip(turns) {
        fs::write(folder.join(format!("turn-{number}")), turn).unwrap();
    }
    let program = program.display();
    project.write(
        "plan.toml",
        &format!(
            "[agents.claude]\nprogram = \"claude\"\ncommand = [\"{program}\"]\n{agent}\n[[phase]]\nid = \"P\"\n\
             agent = \"claude\"\nprompt = \"Write the file.\"\nbackoff = \"0s\"\n\
             artifacts = [\"done.txt\"]\n{step}\n"
        ),
    );
    project.commit();
    project
}

/// What the scripted program was given or left.
fn of_agent(project: &Project, name: &str) -> String {
    fs::read_to_string(project.outside().join("agent").join(name)).unwrap_or_default()
}

fn resume(project: &Project) -> Output {
    project.piton(&["resume", "--yes"])
}

fn tokens(project: &Project) -> u64 {
    project.status_json(&project.run_id())["used"]["tokens"].as_u64().unwrap()
}

/// Lost: `agent = "claude"` in a plan starts something else, or what it used is not counted.
#[test]
fn a_known_program_is_started_followed_and_counted() {
    let project = project("", "model = \"opus\"", &[WORKS]);
    project.piton(&["run", "plan.toml"]).exits(0);
    let words = of_agent(&project, "words-1");
    for word in ["-p --output-format stream-json", "--model opus", "--session-id ", "--settings "] {
        assert!(words.contains(word), "{words}");
    }
    assert_eq!(of_agent(&project, "prompt-1"), "Write the file.");
    assert_eq!(tokens(&project), 110);
    let agent = project.step("P/main/work")["agent"].clone();
    assert!(words.contains(agent["session"].as_str().unwrap()), "{agent}");
    assert_eq!(agent["is_cost_known"], false);
    project.piton(&["show", "P/main/work", "--prompt"]).exits(0).says("Write the file.");
    project.wait_quiet();
}

/// Lost: a night's work of an agent that was killed is done again from nothing, and paid twice.
#[test]
fn everything_killed_in_mid_turn_goes_on_in_the_same_session() {
    let sleeps = "request 1 100 'make all'; : > begun; sleep 600\n";
    let project = project("", "", &[sleeps, WORKS]);
    let _driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    common::wait_until("the agent is heard", || tokens(&project) == 110);
    project.kill_all();
    let session = project.step("P/main/work")["agent"]["session"].as_str().unwrap().to_owned();
    resume(&project).exits(0).says(&format!("continues session {session}"));
    assert!(of_agent(&project, "words-2").contains(&format!("--resume {session}")));
    let prompt = of_agent(&project, "prompt-2");
    assert!(prompt.contains("- Bash make all"), "{prompt}");
    assert_eq!(tokens(&project), 220);
    project.wait_quiet();
}

/// Lost: a driver that falls takes its agent along, or the next one pays for the same work.
#[test]
fn the_result_of_an_agent_that_outlived_its_driver_is_taken() {
    let waits = "request 1 100 make; : > begun; until [ -e go ]; do sleep 0.05; done\n\
                 echo done > done.txt; answered 1; ends false completed ok\n";
    let project = project("", "", &[waits]);
    let mut driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    driver.kill();
    project.write("go", "");
    resume(&project).exits(0);
    assert_eq!(of_agent(&project, "count").trim(), "1");
    assert_eq!(tokens(&project), 110);
    project.wait_quiet();
}

/// Lost: what an agent used while nobody listened is never counted, and budgets do not hold.
#[test]
fn what_was_said_before_everything_was_killed_counts() {
    let waits = "request 1 100 make; : > begun; until [ -e go ]; do sleep 0.05; done\n\
                 answered 1; request 2 300 make; : > said; sleep 600\n";
    let project = project("", "", &[waits, WORKS]);
    let mut driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    driver.kill();
    project.write("go", "");
    project.wait_for("said");
    project.kill_all();
    resume(&project).exits(0);
    assert_eq!(tokens(&project), 110 + 310 + 110);
    project.wait_quiet();
}

/// Lost: an account at its limit fails the night instead of waiting.
#[test]
fn a_limit_parks_the_lane_until_it_ends() {
    let limited = "printf '{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":%s}}\\n' \
                   $(($(date +%s) + 2))\n\
                   ends true api_error 'You have hit your limit' ',\"api_error\":\"usage_limit_reached\"'; exit 1\n";
    let project = project("", "", &[limited, WORKS]);
    let said = project.piton(&["run", "plan.toml"]).exits(0);
    let said = said.says("rate limit: claude: You have hit your limit").says("continues at ");
    said.silent_about("continues session");
    project.wait_quiet();
}

/// Lost: a step fails because its program has lost the session.
#[test]
fn a_session_that_is_gone_is_begun_anew_with_a_brief() {
    let sleeps = "request 1 100 make; : > begun; sleep 600\n";
    let gone = "echo 'No conversation found' >&2; exit 1\n";
    let project = project("", "", &[sleeps, gone, WORKS]);
    let _driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    common::wait_until("the agent is heard", || tokens(&project) == 110);
    project.kill_all();
    resume(&project).exits(0).says("its session could not be continued");
    assert!(of_agent(&project, "prompt-3").contains("worked on this step before you"));
    project.wait_quiet();
}

/// Lost: the lane waits although another agent could go on.
#[test]
fn another_agent_goes_on_at_a_limit() {
    let limited = "printf '{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":%s}}\\n' \
                   $(($(date +%s) + 9000))\n\
                   ends true api_error 'You have hit your limit' ',\"api_error\":\"usage_limit_reached\"'; exit 1\n";
    let agent = "on_limit = \"fallback\"\nfallback = [\"other\"]\n[agents.other]\n\
                 command = \"cat > given; echo done > done.txt\"";
    let project = project("", agent, &[limited]);
    project.piton(&["run", "plan.toml"]).exits(0);
    let given = project.read("given");
    assert!(given.contains("Write the file."), "{given}");
    assert!(!given.contains("hit your limit"), "the limit of another account: {given}");
    project.wait_quiet();
}

/// Lost: an agent that was not allowed to work counts as done because its program exits with 0.
#[test]
fn a_denial_is_a_failure() {
    let denied = "echo x > done.txt; ends false completed ok \
                  ',\"permission_denials\":[{\"tool_name\":\"Bash\"}]'\n";
    let project = project("", "", &[denied]);
    project.piton(&["run", "plan.toml"]).exits(1).says("it was not allowed to use Bash");
}

/// Lost: retries are spent on a key that nobody accepts.
#[test]
fn a_refused_account_stops_at_once() {
    let refused = "ends true api_error 'Invalid API key' ',\"api_error_status\":401'; exit 1\n";
    let project = project("retries = 3", "", &[refused]);
    project.piton(&["run", "plan.toml"]).exits(1).says("claude: Invalid API key");
    assert_eq!(of_agent(&project, "count").trim(), "1");
}

/// Lost: a second attempt repeats the mistake of the first, which it is not told.
#[test]
fn a_second_attempt_is_told_why_the_first_failed() {
    let wrong = WORKS.replace("echo done", "echo wrong");
    let test =
        "retries = 1\ntest = \"grep -q done done.txt || { echo 'TOPAZ is missing'; exit 1; }\"";
    let project = project(test, "", &[&wrong, WORKS]);
    project.piton(&["run", "plan.toml"]).exits(0).says("TOPAZ is missing");
    let prompt = of_agent(&project, "prompt-2");
    assert!(prompt.starts_with("Write the file."), "{prompt}");
    assert!(prompt.contains("TOPAZ is missing"), "{prompt}");
    assert!(!prompt.contains("assistant"), "the stream is not for agents: {prompt}");
    assert!(of_agent(&project, "words-2").contains("--session-id"));
}

/// Lost: an agent spends what it may not, is cut off in the midst of an edit, or cannot go on later.
#[test]
fn a_used_up_budget_stops_between_operations_and_goes_on_when_raised() {
    let spends =
        "request 1 900 make; until_stopped; : > ended; answered 1; ends false hook_stopped ''\n";
    let budgets = "[budgets]\nstep_tokens = 900";
    let project = project("", budgets, &[spends, WORKS]);
    let stopped = project.piton(&["run", "plan.toml"]).exits(6);
    stopped.says("budget step_tokens of P/main/work").says("budget step_tokens");
    assert!(project.has("ended"), "the operation under way ends");
    let plan = project.read("plan.toml").replace("= 900", "= 90000");
    project.write("plan.toml", &plan);
    resume(&project).exits(0).says("continues session");
    assert_eq!(tokens(&project), 910 + 110);
    project.wait_quiet();
}

/// Lost: an agent whose window is full stops for good, or a fresh one begins from nothing.
#[test]
fn a_full_window_is_handed_to_a_fresh_agent_with_a_brief() {
    let fills = "request 1 91000 make; echo half > half.txt; until_stopped; answered 1; \
                 ends false hook_stopped ''\n";
    let test = "test = \"test -e half.txt\"";
    let project = project(test, "window = 100000", &[fills, WORKS]);
    let said = project.piton(&["run", "plan.toml"]).exits(0);
    said.says("window is 91 % full").says("handed off to a fresh agent").says("with a brief");
    let prompt = of_agent(&project, "prompt-2");
    assert!(prompt.starts_with("Write the file."), "{prompt}");
    assert!(prompt.contains("worked on this step before you"), "{prompt}");
    assert!(of_agent(&project, "words-2").contains("--session-id"));
    assert_eq!(project.read("half.txt").trim(), "half");
    project.wait_quiet();
}

/// Lost: agents that change nothing hand a step to each other for ever.
#[test]
fn a_handoff_without_progress_stops() {
    let fills = "request 1 91000 make; until_stopped; answered 1; ends false hook_stopped ''\n";
    let project = project("", "window = 100000", &[fills]);
    project.piton(&["run", "plan.toml"]).exits(1).says("changed no file");
    assert_eq!(of_agent(&project, "count").trim(), "1");
}

/// Lost: a program of the user's own cannot say what it uses.
#[test]
fn a_command_reports_on_itself() {
    let project = Project::new();
    let report = r#"piton: {"doing":"thinks","tokens":{"input":40,"output":2},"cost_usd":0.5}"#;
    project.write("agent.sh", &format!("cat > given\necho '{report}'\n"));
    project.write(
        "plan.toml",
        "[agents.own]\ncommand = \"sh agent.sh\"\n[[phase]]\nid = \"P\"\nagent = \"own\"\nprompt = \"Do it.\"\n",
    );
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(0);
    let used = project.status_json(&project.run_id())["used"].clone();
    assert_eq!((used["tokens"].as_u64(), used["money_micros"].as_u64()), (Some(42), Some(500_000)));
}

/// Lost: a night waits for an agent whose request nobody answers.
#[test]
fn an_agent_without_a_sign_of_life_is_ended_and_its_step_retried() {
    let hangs = "request 1 100 make; echo half > half.txt; exec sleep 600\n";
    let project = project("", "silence = \"1s\"", &[hangs, WORKS]);
    let said = project.piton(&["run", "plan.toml"]).exits(0).says("no sign of life for");
    said.says("agent-P.main.work-1-silent");
    assert_eq!(project.read("half.txt").trim(), "half");
    assert!(of_agent(&project, "words-2").contains("--resume "), "its session goes on");
    assert_eq!(tokens(&project), 220);
    project.wait_quiet();
}

/// Lost: an agent that compiles in silence is killed although it works.
#[test]
fn a_silent_agent_that_uses_the_processor_is_left() {
    let busy = "end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done\n";
    let project = project("retries = 0", "silence = \"1s\"", &[&format!("{busy}{WORKS}")]);
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(of_agent(&project, "count").trim(), "1");
    project.wait_quiet();
}

/// Lost: a session that is nearly full is filled further by what Piton adds to it.
#[test]
fn a_session_at_the_warning_is_told_little() {
    let filling = "request 1 160000 make; : > begun; sleep 600\n";
    let project = project("", "", &[filling, WORKS]);
    let _driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    common::wait_until("the window is known to fill", || {
        let events = project.events(&project.run_id());
        events.iter().any(|event| matches!(event, Event::ContextFilled(_)))
    });
    project.kill_all();
    resume(&project).exits(0).says("continues session");
    let prompt = of_agent(&project, "prompt-2");
    assert!(prompt.contains("Your context is filling up"), "{prompt}");
    project.wait_quiet();
}

/// Lost: each run of a day has the whole budget of the day for itself.
#[test]
fn the_budget_of_a_day_is_that_of_all_runs() {
    let project = project("", "", &[WORKS, WORKS]);
    project.piton(&["run", "plan.toml"]).exits(0);
    let plan = project.read("plan.toml");
    project.write("other.toml", &format!("{plan}\n[budgets]\nday_tokens = 100\n"));
    project.commit();
    project.piton(&["run", "other.toml"]).exits(6).says("day_tokens");
    assert_eq!(of_agent(&project, "count").trim(), "1", "nothing was started");
    project.wait_quiet();
}
