//! Hooks of agent programs: the real program, called as each agent calls it.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::common::{Output, PITON};
use super::scene::{LATEST, Scene};

/// A record of Claude Code whose last request used so many tokens.
pub fn record(scene: &Scene, tokens: u64) -> String {
    record_of(scene, "opus", tokens)
}

fn record_of(scene: &Scene, model: &str, tokens: u64) -> String {
    let path = scene.project.outside().join("record.jsonl");
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": tokens - 10});
    let line = json!({"type": "assistant", "isSidechain": false, "message": {"model": model, "usage": usage}});
    let result = json!({"type": "user", "message": {"content": "x".repeat(100_000)}});
    fs::write(&path, format!("{line}\n{result}\n")).expect("the record is written");
    path.display().to_string()
}

/// Calls a hook with this on its standard input.
#[track_caller]
fn call(scene: &Scene, program: &str, input: &str, env: &[(&str, &str)]) -> Output {
    let mut command = scene.project.command(PITON);
    command.args(["hook", program]).envs(env.iter().copied()).stdin(Stdio::piped());
    let mut child = scene.project.start(&mut command);
    if let Some(mut stdin) = child.take_stdin() {
        stdin.write_all(input.as_bytes()).expect("it reads its input");
    }
    child.wait()
}

/// The same as an agent does it; what the hook answers.
#[track_caller]
pub fn hook(scene: &Scene, program: &str, event: &str, session: &str, more: Value) -> Value {
    let cwd = scene.project.root().display().to_string();
    let mut input = json!({"session_id": session, "hook_event_name": event, "cwd": cwd});
    let (Value::Object(all), Value::Object(more)) = (&mut input, more) else { panic!("objects") };
    all.extend(more);
    let output = call(scene, program, &input.to_string(), &[]).exits(0);
    if output.stdout.is_empty() { Value::Null } else { output.json() }
}

pub fn log(scene: &Scene) -> String {
    fs::read_to_string(scene.project.state_dir().join("hooks.log")).unwrap_or_default()
}

/// Lost: an agent works until its context is full, and the next one does not know where it was.
#[test]
fn claude_is_warned_stopped_and_the_next_session_goes_on() {
    let scene = Scene::new();
    assert_eq!(
        hook(&scene, "claude", "SessionStart", "a", json!({"source": "startup"})),
        Value::Null
    );
    scene.session("task start T001 --session a").exits(0);
    let at = |tokens| json!({"transcript_path": record(&scene, tokens)});
    assert_eq!(hook(&scene, "claude", "PostToolBatch", "a", at(100_000)), Value::Null);
    let warned = hook(&scene, "claude", "PostToolBatch", "a", at(151_000));
    let text = warned["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(text.contains("75 %") && warned["continue"].is_null(), "{warned}");
    assert_eq!(scene.latest()["reason"], "token_warning");
    assert_eq!(hook(&scene, "claude", "PostToolBatch", "a", at(152_000)), Value::Null);
    let stopped = hook(&scene, "claude", "PostToolBatch", "a", at(182_000));
    assert_eq!(stopped["continue"], false);
    let reason = stopped["stopReason"].as_str().unwrap_or_default();
    assert!(reason.contains("Session interrupted at T001-1"), "{reason}");
    let latest = scene.latest();
    assert_eq!(latest["reason"], "token_critical");
    // It stopped: its end changes nothing.
    hook(&scene, "claude", "Stop", "a", json!({}));
    hook(&scene, "claude", "SessionEnd", "a", json!({"reason": "other"}));
    assert_eq!(scene.latest(), latest);
    let brief = hook(&scene, "claude", "SessionStart", "b", json!({"source": "startup"}));
    let text = brief["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(text.contains("T001-1: Form"), "{brief}");
    assert_eq!(log(&scene), "");
}

/// Lost: a model with a larger or smaller window is stopped far too early, or never; and what the protocol
/// file says of thresholds counts for nothing.
#[test]
fn windows_and_thresholds_are_those_of_the_model() {
    let scene = Scene::new();
    scene.project.write(
        "piton.toml",
        "[windows.large]\ntokens = 1_000_000\ncritical = 80\n[windows.claude]\ntokens = 100_000\n",
    );
    scene.project.write("recovery-protocol.md", "---\nthresholds:\n  warning: 50\n---\n");
    hook(&scene, "claude", "SessionStart", "a", json!({"source": "startup"}));
    scene.session("task start T001 --session a").exits(0);
    let at = |model, tokens| json!({"transcript_path": record_of(&scene, model, tokens)});
    let between = |model, tokens| hook(&scene, "claude", "PostToolBatch", "a", at(model, tokens));
    assert_eq!(between("large", 499_000), Value::Null);
    let warned = between("large", 500_000);
    assert!(warned["hookSpecificOutput"]["additionalContext"].is_string(), "{warned}");
    assert_eq!(between("large", 799_000), Value::Null);
    // The same conversation with a model that has the window of the program.
    assert_eq!(between("small", 89_000), Value::Null);
    assert_eq!(between("small", 90_000)["continue"], false);
    assert_eq!(log(&scene), "");
    let told = scene.session("checkpoint --session z --tokens 60000/100000").exits(0);
    told.says("token_warning");
    scene.project.write("piton.toml", "[session]\nwarning = 95\n");
    scene.project.write("recovery-protocol.md", "---\nenabled: true\n---\n");
    scene.session("checkpoint --session z --tokens 1/2").exits(2).says("must rise");
}

/// Lost: what a summary leaves out is lost, and the thresholds are behind a conversation that is short.
#[test]
fn a_compaction_is_preceded_by_a_checkpoint_and_followed_by_the_brief() {
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    scene.session("task start T003 --session a").exits(0);
    let at = |tokens| json!({"transcript_path": record(&scene, tokens)});
    hook(&scene, "claude", "PostToolBatch", "a", at(151_000));
    fs::remove_file(scene.project.root().join(LATEST)).expect("it is there");
    assert_eq!(hook(&scene, "claude", "PreCompact", "a", at(160_000)), Value::Null);
    assert_eq!(scene.latest()["reason"], "token_warning");
    let brief = hook(&scene, "claude", "SessionStart", "a", json!({"source": "compact"}));
    let text = brief["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(text.contains("T003"), "{brief}");
    let again = hook(&scene, "claude", "PostToolBatch", "a", at(155_000));
    assert!(again["hookSpecificOutput"].is_object(), "the threshold is not ahead again: {again}");
    assert_eq!(log(&scene), "");
}

/// Lost: work in progress is not saved because the agent simply ended.
#[test]
fn the_end_of_a_turn_and_of_a_session_save_work_in_progress() {
    for (program, stop) in [("claude", "Stop"), ("codex", "Interrupt"), ("gemini", "AfterAgent")] {
        let scene = Scene::new();
        hook(&scene, program, "SessionStart", "a", json!({}));
        hook(&scene, program, stop, "a", json!({}));
        assert!(!scene.project.has(LATEST), "nothing was in progress");
        scene.session("task start T001 --session a").exits(0);
        hook(&scene, program, stop, "a", json!({"stop_hook_active": false}));
        assert_eq!(scene.latest()["reason"], "session_end", "{program}");
        fs::remove_file(scene.project.root().join(LATEST)).expect("it is there");
        hook(&scene, program, "SessionEnd", "a", json!({"reason": "exit"}));
        assert_eq!(scene.latest()["state"]["inProgress"], "T001", "{program}");
        assert_eq!(log(&scene), "", "{program}");
    }
}

/// Lost: programs that stop in other ways go on into a full context.
#[test]
fn codex_is_refused_operations_and_gemini_stops_after_the_tool() {
    let scene = Scene::new();
    hook(&scene, "codex", "SessionStart", "c", json!({}));
    scene.session("task start T001 --session c").exits(0);
    let path = scene.project.outside().join("rollout.jsonl");
    let info =
        json!({"last_token_usage": {"input_tokens": 240_000}, "model_context_window": 258_400});
    let line = json!({"payload": {"type": "token_count", "info": info}});
    fs::write(&path, format!("{line}\n")).expect("the record is written");
    assert_eq!(hook(&scene, "codex", "PreToolUse", "c", json!({})), Value::Null);
    let told = hook(&scene, "codex", "PostToolUse", "c", json!({"transcript_path": path}));
    let text = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(text.contains("Stop now") && text.contains("T001-1"), "{told}");
    let refused = hook(&scene, "codex", "PreToolUse", "c", json!({}));
    assert_eq!(refused["hookSpecificOutput"]["permissionDecision"], "deny");
    // A person asks for more: they know.
    hook(&scene, "codex", "UserPromptSubmit", "c", json!({}));
    assert_eq!(hook(&scene, "codex", "PreToolUse", "c", json!({})), Value::Null);

    hook(&scene, "gemini", "SessionStart", "g", json!({}));
    let record = scene.project.outside().join("gemini.jsonl");
    fs::write(&record, "{\"type\":\"gemini\",\"tokens\":{\"input\":1000000}}\n").expect("a record");
    let stopped = hook(&scene, "gemini", "AfterTool", "g", json!({"transcript_path": record}));
    assert_eq!(stopped["continue"], false, "{stopped}");
    assert_eq!(log(&scene), "");
}

/// Lost: a second agent takes over the task of one that is at work.
#[test]
fn a_second_agent_does_not_continue_what_the_first_is_working_on() {
    let scene = Scene::new();
    let first = std::process::id().to_string();
    let start = |session: &str, pid: &str| {
        let cwd = scene.project.root().display().to_string();
        let input = json!({"session_id": session, "hook_event_name": "SessionStart", "cwd": cwd});
        call(&scene, "claude", &input.to_string(), &[("CLAUDE_PID", pid)]).exits(0).stdout
    };
    start("a", &first);
    scene.session("task start T001 --session a").exits(0);
    let at = json!({"transcript_path": record(&scene, 151_000)});
    hook(&scene, "claude", "PostToolBatch", "a", at);
    assert_eq!(start("b", &first), "", "it was told to continue the task of another");
    // The first one was killed: its process is another's, or nobody's.
    let note = scene.project.state_dir().join("hooks");
    for entry in fs::read_dir(note).expect("there are notes").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a note");
        fs::write(entry.path(), text.replace(&first, "1999999999")).expect("a note");
    }
    assert!(start("c", &first).contains("T001"));
}

/// Lost: an agent that went on after its stop runs into the end of its context.
#[test]
fn an_agent_that_goes_on_is_stopped_again_before_nothing_fits() {
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    scene.session("task start T001 --session a").exits(0);
    let at = |tokens| json!({"transcript_path": record(&scene, tokens)});
    let is_stopped =
        |tokens| hook(&scene, "claude", "PostToolBatch", "a", at(tokens))["continue"] == false;
    assert!(is_stopped(182_000));
    hook(&scene, "claude", "UserPromptSubmit", "a", json!({}));
    assert!(!is_stopped(190_000), "a person asked for more");
    assert!(is_stopped(196_000));
    hook(&scene, "claude", "UserPromptSubmit", "a", json!({}));
    assert!(!is_stopped(197_000), "it was stopped once more");
    let said = scene.answer("checkpoint --session a --tokens 196000/200000");
    assert_eq!((&said["saved"], &said["halt"]), (&json!(false), &json!(true)), "{said}");
    assert_eq!(log(&scene), "");
}

/// Lost: each turn leaves another copy of the same, and those of warnings are cleaned up.
#[test]
fn turns_that_change_nothing_save_nothing_and_the_last_turn_is_enough() {
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    scene.session("task start T001 --session a").exits(0);
    hook(
        &scene,
        "claude",
        "PostToolBatch",
        "a",
        json!({"transcript_path": record(&scene, 151_000)}),
    );
    let names = || {
        let mut names = scene.files("checkpoints", "checkpoint-");
        names.sort();
        names
    };
    let warned = names();
    hook(&scene, "claude", "Stop", "a", json!({}));
    assert_eq!(names(), warned, "nothing had changed since the warning");
    for n in 0..8 {
        scene.project.write("work.txt", &format!("{n}\n"));
        hook(&scene, "claude", "Stop", "a", json!({}));
        hook(&scene, "claude", "Stop", "a", json!({}));
    }
    let turns = names();
    assert!(turns.len() == 2 && turns.contains(&warned[0]), "{turns:?}");
    let shown = scene.piton("show --json").exits(0).stdout;
    assert_eq!(shown.matches("at the end of a turn").count(), 8, "{shown}");
    assert_eq!(log(&scene), "");
}

/// Lost: a wrong line in somebody's settings stops the agent at each operation.
#[test]
fn no_command_line_of_a_hook_blocks_the_agent() {
    let scene = Scene::new();
    scene.session("task start T001 --session a").exits(0);
    for words in
        [&["hook", "foo"][..], &["hook"], &["hook", "claude", "extra"], &["hook", "--nonsense"]]
    {
        let output = scene.project.piton(words).exits(0);
        assert_eq!(output.stdout, "", "{words:?}");
        output.says("piton hook PROGRAM");
    }
    assert_eq!(log(&scene).lines().count(), 4, "{}", log(&scene));
    let cwd = scene.project.root().display().to_string();
    let nothing = json!({
        "session_id": "a", "hook_event_name": "Stop", "cwd": cwd, "stop_hook_active": null,
        "tool_calls": null, "transcript_path": null,
    });
    call(&scene, "claude", &nothing.to_string(), &[]).exits(0);
    assert_eq!(scene.latest()["state"]["inProgress"], "T001");
    let gone = json!({"session_id": "a", "hook_event_name": "Stop", "cwd": "/nowhere/at/all"});
    call(&scene, "claude", &gone.to_string(), &[]).exits(0);
    assert!(log(&scene).contains("/nowhere/at/all"), "{}", log(&scene));
}

/// Lost: a mishap of ours stops the work of an agent, or nobody hears of it.
#[test]
fn whatever_goes_wrong_the_agent_goes_on_and_doctor_says_it() {
    let scene = Scene::new();
    for input in ["", "{", "[]", "{\"session_id\":\"\"}"] {
        let output = call(&scene, "claude", input, &[]).exits(0);
        assert_eq!(output.stdout, "");
    }
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    scene.project.write("work/backlog.yaml", "backlog: [\n");
    assert_eq!(hook(&scene, "claude", "Stop", "a", json!({})), Value::Null);
    assert_eq!(log(&scene).lines().count(), 5, "{}", log(&scene));
    scene.project.piton(&["doctor"]).says("5 failures in hooks of agents");
}

/// Lost: hooks interfere with an agent that a driver takes care of, or fill projects that are not ours.
#[test]
fn hooks_do_nothing_inside_a_step_and_where_there_is_no_memory_bank() {
    let scene = Scene::new();
    scene.session("task start T001 --session a").exits(0);
    let cwd = scene.project.root().display().to_string();
    let input = json!({"session_id": "a", "hook_event_name": "SessionEnd", "cwd": cwd}).to_string();
    let output = call(&scene, "claude", &input, &[("PITON_RUN_ID", "r"), ("PITON_MARK", "m")]);
    assert_eq!(output.exits(0).stdout, "");
    assert!(!scene.project.has(LATEST) && !scene.project.state_dir().join("hooks").exists());

    let scene = Scene::of(super::common::Project::new());
    for event in ["SessionStart", "PostToolBatch", "PreCompact", "Stop", "SessionEnd"] {
        assert_eq!(hook(&scene, "claude", event, "a", json!({})), Value::Null);
    }
    assert!(!scene.project.state_dir().exists(), "something was left in a foreign project");
}

/// What `piton statusline` prints for a session.
#[track_caller]
fn status_line(scene: &Scene, session: &str, window: &Value) -> String {
    let cwd = scene.project.root().display().to_string();
    line_of(scene, &json!({"session_id": session, "cwd": cwd, "context_window": window}))
}

/// The same for all that a program says.
#[track_caller]
fn line_of(scene: &Scene, said: &Value) -> String {
    let mut command = scene.project.command(PITON);
    let mut child = scene.project.start(command.arg("statusline").stdin(Stdio::piped()));
    if let Some(mut stdin) = child.take_stdin() {
        stdin.write_all(said.to_string().as_bytes()).expect("it reads its input");
    }
    child.wait().exits(0).stdout
}

/// Lost: somebody in a session does not see that a run waits for them.
#[test]
fn the_status_line_shows_the_lane_and_the_gate_of_a_run() {
    let scene = Scene::of(super::common::Project::new());
    let project = &scene.project;
    project.write(
        "plan.toml",
        "[[phase]]\nid = \"P1\"\ngate = \"Spec approval\"\n[[phase.lane]]\nid = \"SL-AUTH\"\nrun = \"true\"\n\
         [[phase]]\nid = \"P2\"\n[[phase.lane]]\nid = \"SL-MAIL\"\nrun = \"true\"\n",
    );
    project.commit();
    project.piton(&["run", "plan.toml"]).exits(3);
    let window = json!({"context_window_size": 200_000, "current_usage": {"input_tokens": 50_000}});
    let line = status_line(&scene, "a", &window);
    assert!(line.starts_with("piton · P1/SL-AUTH"), "{line}");
    assert!(line.ends_with(" · waits for Spec approval · 25 %\n"), "{line}");
    // Before the first request nothing is known of the context.
    let line = status_line(&scene, "a", &json!({"context_window_size": 200_000}));
    assert!(line.ends_with(" · waits for Spec approval\n"), "{line}");
}

/// Lost: nobody sees how full the context is, and hooks do not know how large it is.
#[test]
fn the_status_line_shows_task_and_percentage_and_notes_the_size() {
    let scene = Scene::new();
    hook(&scene, "claude", "SessionStart", "a", json!({}));
    scene.session("task start T001 --session a").exits(0);
    let window =
        json!({"context_window_size": 1_000_000, "current_usage": {"input_tokens": 250_000}});
    assert_eq!(status_line(&scene, "a", &window), "piton · T001 · 25 %\n");
    // 182,000 tokens are few of a million.
    let at = json!({"transcript_path": record(&scene, 182_000)});
    assert_eq!(hook(&scene, "claude", "PostToolBatch", "a", at), Value::Null);
}

/// Lost: the line says nothing although Claude Code told it all, or undoes what the settings say.
#[test]
fn the_status_line_reads_what_claude_code_says_and_settings_stand() {
    let scene = Scene::new();
    scene.project.write("piton.toml", "[windows.claude]\ntokens = 100_000\n");
    hook(&scene, "claude", "SessionStart", "a", json!({"source": "startup"}));
    scene.session("task start T001 --session a").exits(0);
    let at = |tokens| json!({"transcript_path": record(&scene, tokens)});
    assert_eq!(hook(&scene, "claude", "PostToolBatch", "a", at(50_000)), Value::Null);
    let cwd = scene.project.root().display().to_string();
    let said = json!({
        "session_id": "a", "transcript_path": record(&scene, 50_000), "cwd": cwd,
        "prompt_id": "84879b9c", "model": {"id": "opus", "display_name": "Opus"},
        "workspace": {"current_dir": cwd, "project_dir": cwd, "added_dirs": []},
        "version": "2.1.325", "output_style": {"name": "default"},
        "cost": {"total_cost_usd": 0.015, "total_duration_ms": 15829, "total_lines_added": 0},
        "context_window": {
            "total_input_tokens": 50_100, "total_output_tokens": 10,
            "context_window_size": 200_000,
            "current_usage": {
                "input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 50_000,
            },
            "used_percentage": 25, "remaining_percentage": 75,
        },
        "exceeds_200k_tokens": false, "rate_limits": {"five_hour": {"used_percentage": 100}},
    });
    assert_eq!(line_of(&scene, &said), "piton · T001 · 50 %\n");
    // Of 200,000 that would be less than half.
    assert_eq!(hook(&scene, "claude", "PostToolBatch", "a", at(91_000))["continue"], false);
    assert_eq!(log(&scene), "");
}
