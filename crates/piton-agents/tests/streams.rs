//! What the streams of agent programs mean: sessions, context, tokens and how an attempt went.
//!
//! The lines are written here after what the programs print, cut to what matters.

use piton_agents::stream::Clock;
use piton_agents::{Exit, Reader, Said, Tokens, Verdict, find};
use piton_core::Timestamp;
use proptest::prelude::*;

/// 2026-11-17 08:00:00 UTC.
const CLOCK: Clock = Clock { now: Timestamp(1_794_902_400_000), offset_secs: 0 };

fn read(program: &str, lines: &[&str]) -> (Box<dyn Reader>, Vec<Said>) {
    let mut reader = find(program).expect("it is in the table").reader();
    let said = lines.iter().flat_map(|line| reader.line(line)).collect();
    (reader, said)
}

fn exit(code: i32) -> Exit {
    Exit { code: Some(code), is_asked: false }
}

/// We asked it to stop, and it ended with 0.
const ASKED: Exit = Exit { code: Some(0), is_asked: true };

fn judged(program: &str, lines: &[&str], code: i32) -> Verdict {
    read(program, lines).0.verdict(exit(code), &[], CLOCK)
}

const CLAUDE_INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m-1","mcp_servers":[{"name":"ok","status":"connected"}]}"#;
const CLAUDE_WRITES: &str = r#"{"type":"assistant","message":{"id":"msg_1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make\nall"}}],"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":50000,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"s-1"}"#;
const CLAUDE_RESULT: &str = r#"{"session_id":"s-1","total_cost_usd":9.5,"modelUsage":{"m-1":{"inputTokens":9000,"outputTokens":70,"cacheReadInputTokens":90000,"cacheCreationInputTokens":0,"costUSD":9.5,"contextWindow":200000}},"permission_denials":[],"terminal_reason":"completed","is_error":false,"subtype":"success","result":"done","type":"result","model_usage_since_last_result":{"m-1":{"inputTokens":120,"outputTokens":42,"cacheReadInputTokens":50000,"costUSD":0.25}}}"#;

/// Lost: a hand-off comes too late or too early, and money is counted twice over resumes.
#[test]
fn claude_counts_requests_of_its_own_once() {
    let again = CLAUDE_WRITES.replace("tool_use\",\"id\":\"t1", "tool_use\",\"id\":\"t2");
    let subagent = r#"{"type":"assistant","message":{"id":"msg_2","content":[],"usage":{"input_tokens":7,"cache_read_input_tokens":180000}},"parent_tool_use_id":"t1"}"#;
    let (reader, said) = read("claude", &[CLAUDE_INIT, CLAUDE_WRITES, &again, subagent]);
    assert_eq!(said[..2], [Said::Session("s-1".to_owned()), Said::Model("m-1".to_owned())]);
    assert!(said.contains(&Said::Doing("Bash make".to_owned())));
    let totals = reader.totals();
    assert_eq!((totals.context, totals.requests), (Some(50_120), 2));
    assert_eq!(totals.tokens, Tokens { input: 127, cached: 230_000, output: 1 });
    assert_eq!(reader.in_flight(), ["Bash make", "Bash make"]);
    assert_eq!(
        reader.verdict(Exit::default(), &[], CLOCK),
        Verdict::Interrupted("it ended without a result".to_owned())
    );
}

#[test]
fn claude_finishes_with_what_this_process_used() {
    let ended = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}"#;
    let lines = [CLAUDE_INIT, CLAUDE_WRITES, ended, CLAUDE_RESULT];
    let (reader, said) = read("claude", &lines);
    assert_eq!(said.last(), Some(&Said::Finished));
    assert!(reader.in_flight().is_empty());
    let totals = reader.totals();
    assert_eq!(totals.cost_micros, Some(250_000));
    assert_eq!((totals.window, totals.context), (Some(200_000), Some(50_120)));
    assert_eq!(totals.tokens, Tokens { input: 120, cached: 50_000, output: 42 });
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Succeeded);
}

/// Lost: an attempt that was refused, denied, cut or stopped counts as done because its exit code is 0.
#[test]
fn claude_is_judged_by_all_signs_together() {
    let result = |fields: &str| {
        format!(r#"{{"session_id":"s-1","type":"result","permission_denials":[],{fields}}}"#)
    };
    let api = |status: u16, said: &str| {
        result(&format!(
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":{status},"result":"{said}""#
        ))
    };
    let said = |text: &str| text.to_owned();
    for (line, code, verdict) in [
        (
            result(
                r#""subtype":"success","is_error":false,"terminal_reason":"hook_stopped","result":"""#,
            ),
            0,
            Verdict::Failed(said("a hook of its own stopped it: success")),
        ),
        (
            result(
                r#""subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools""#,
            ),
            0,
            Verdict::Interrupted(said("error_during_execution")),
        ),
        (
            result(
                r#""subtype":"success","is_error":true,"terminal_reason":"prompt_too_long","result":"Prompt is too long""#,
            ),
            1,
            Verdict::Full(said("Prompt is too long")),
        ),
        (
            result(
                r#""subtype":"error_max_budget_usd","is_error":true,"terminal_reason":"budget_exhausted","errors":["Reached maximum budget ($0.02)"]"#,
            ),
            1,
            Verdict::Spent(said("Reached maximum budget ($0.02)")),
        ),
        (api(401, "Invalid API key"), 1, Verdict::Refused(said("Invalid API key"))),
        (api(529, "API Error: 529 Overloaded."), 1, {
            Verdict::Unavailable(said("API Error: 529 Overloaded."))
        }),
        (api(429, "API Error: Request rejected (429)"), 1, {
            Verdict::Limited { until: None, said: said("API Error: Request rejected (429)") }
        }),
        (
            result(
                r#""subtype":"success","is_error":false,"terminal_reason":"completed","result":"ok","permission_denials":[{"tool_name":"Bash"}]"#,
            )
            .replacen(r#""permission_denials":[],"#, "", 1),
            0,
            Verdict::Denied(said("it was not allowed to use Bash")),
        ),
    ] {
        assert_eq!(judged("claude", &[CLAUDE_INIT, &line], code), verdict, "{line}");
    }
    let dead = CLAUDE_INIT.replace("connected", "failed");
    let denied = Verdict::Denied(said("MCP server ok did not start"));
    assert_eq!(judged("claude", &[&dead, CLAUDE_RESULT], 0), denied);
    let (reader, _) = read("claude", &[]);
    let errors = [said("Error: Session ID s-1 is already in use.")];
    assert_eq!(reader.verdict(exit(1), &errors, CLOCK), Verdict::Failed(errors[0].clone()));
    let errors = [said("--dangerously-skip-permissions cannot be used with root/sudo privileges")];
    assert_eq!(reader.verdict(exit(1), &errors, CLOCK), Verdict::Refused(errors[0].clone()));
}

#[test]
fn claude_says_when_a_limit_ends() {
    let event = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794910000,"rateLimitType":"five_hour"},"session_id":"s-1"}"#;
    let warning = event.replace("rejected", "allowed_warning");
    let result = r#"{"session_id":"s-1","is_error":true,"subtype":"success","terminal_reason":"api_error","api_error_status":429,"api_error":"usage_limit_reached","result":"You've hit your 5-hour limit · resets 10:06am (UTC)","type":"result"}"#;
    let (reader, said) = read("claude", &[CLAUDE_INIT, &warning, event, result]);
    let until = Some(Timestamp(1_794_910_000_000));
    assert!(said.contains(&Said::Limit { is_reached: false, until }));
    assert!(said.contains(&Said::Limit { is_reached: true, until }));
    let words = "You've hit your 5-hour limit · resets 10:06am (UTC)".to_owned();
    let limited = Verdict::Limited { until, said: words.clone() };
    assert_eq!(reader.verdict(exit(1), &[], CLOCK), limited);
    // Without the event the words tell.
    let until = Some(Timestamp(1_794_909_960_000));
    let limited = Verdict::Limited { until, said: words };
    assert_eq!(judged("claude", &[CLAUDE_INIT, result], 1), limited);
}

const CODEX_START: &str = r#"{"type":"thread.started","thread_id":"th-1"}"#;
const CODEX_TURN: &str = r#"{"type":"turn.started"}"#;
const CODEX_RUNS: &str = r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"make test","status":"in_progress"}}"#;

#[test]
fn codex_is_done_only_when_its_turn_is_complete() {
    let ran = CODEX_RUNS.replace("started", "completed");
    let warning =
        r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"a warning"}}"#;
    let complete = r#"{"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":900,"output_tokens":30}}"#;
    let (reader, said) = read("codex", &[CODEX_START, warning, CODEX_TURN, CODEX_RUNS]);
    let wanted = [Said::Session("th-1".to_owned()), Said::Doing("Bash make test".to_owned())];
    assert_eq!(said, wanted);
    assert_eq!(reader.in_flight(), ["Bash make test"]);
    let asked = Exit { code: Some(1), is_asked: true };
    assert_eq!(reader.verdict(asked, &[], CLOCK), Verdict::Stopped);
    let cut = "it ended before its turn was complete".to_owned();
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Interrupted(cut));
    let (reader, _) = read("codex", &[CODEX_START, CODEX_TURN, CODEX_RUNS, &ran, complete]);
    assert!(reader.in_flight().is_empty());
    assert_eq!(reader.totals().tokens, Tokens { input: 100, cached: 900, output: 30 });
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Succeeded);
}

/// Lost: a thread that is resumed counts its earlier turns again, and a limit ends at the wrong hour.
#[test]
fn codex_counts_and_limits_come_from_its_record() {
    let used = r#"{"type":"token_usage_record","payload":{"response_id":"r1","usage":{"input_tokens":10020,"cached_input_tokens":10000,"output_tokens":3}}}"#;
    let count = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":10020},"model_context_window":258400},"rate_limits":{"primary":{"used_percent":100.0,"resets_at":1794910000},"secondary":{"used_percent":40.0,"resets_at":1795300000}}}}"#;
    let failed = r#"{"type":"turn.failed","error":{"message":"You’ve hit your usage limit. … try again at 10:06 AM."}}"#;
    let (mut reader, _) = read("codex", &[CODEX_START, CODEX_TURN]);
    assert_eq!(reader.record(used), [Said::Context(10_020)]);
    reader.record(count);
    reader.line(failed);
    let totals = reader.totals();
    assert_eq!(totals.tokens, Tokens { input: 20, cached: 10_000, output: 3 });
    assert_eq!((totals.window, totals.context), (Some(258_400), Some(10_020)));
    let verdict = reader.verdict(exit(1), &[], CLOCK);
    let until = Some(Timestamp(1_794_910_000_000));
    assert!(matches!(verdict, Verdict::Limited { until: found, .. } if found == until));
}

#[test]
fn codex_failures_are_told_apart_by_their_words() {
    let failed = |said: &str| format!(r#"{{"type":"turn.failed","error":{{"message":"{said}"}}}}"#);
    let judge = |said: &str| judged("codex", &[CODEX_START, CODEX_TURN, &failed(said)], 1);
    let high = "We’re currently experiencing high demand, which may cause temporary errors.";
    assert_eq!(judge(high), Verdict::Unavailable(high.to_owned()));
    let full = "Codex ran out of room in the model's context window.";
    assert_eq!(judge(full), Verdict::Full(full.to_owned()));
    let limit = "exceeded retry limit, last status: 429 Too Many Requests";
    assert_eq!(judge(limit), Verdict::Limited { until: None, said: limit.to_owned() });
}

#[test]
fn gemini_is_done_only_with_a_result() {
    let init = r#"{"type":"init","session_id":"g-1","model":"gemini-x"}"#;
    let tool = r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"make"}}"#;
    let ok = r#"{"type":"tool_result","tool_id":"t1","status":"success"}"#;
    let stopped = r#"{"type":"tool_result","tool_id":"t1","status":"error","error":{"type":"stop_execution","message":"halt"}}"#;
    let success = r#"{"type":"result","status":"success","stats":{"input":2000,"cached":1000,"output_tokens":79}}"#;
    let quota = r#"{"type":"result","status":"error","error":{"message":"[API Error: You have exhausted your daily quota on this model.]"}}"#;
    let (reader, said) = read("gemini", &[init, tool]);
    assert!(said.contains(&Said::Doing("run_shell_command make".to_owned())));
    let cut = Verdict::Interrupted("it ended without a result".to_owned());
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), cut, "a signal ends it with 0");
    assert_eq!(reader.in_flight(), ["run_shell_command make"]);
    let (reader, _) = read("gemini", &[init, tool, ok, success]);
    assert_eq!(reader.totals().tokens, Tokens { input: 2000, cached: 1000, output: 79 });
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Succeeded);
    let (reader, _) = read("gemini", &[init, tool, stopped, success]);
    assert_eq!(reader.verdict(ASKED, &[], CLOCK), Verdict::Stopped);
    let own = "a hook of its own stopped it: halt".to_owned();
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Failed(own));
    assert!(matches!(judged("gemini", &[init, quota], 173), Verdict::Limited { .. }));
    let api = |code: u16, said: &str| {
        format!(
            r#"{{"type":"result","status":"error","error":{{"message":"[API Error: {{\"error\":{{\"code\":{code},\"message\":\"{said}\"}}}}]"}}}}"#
        )
    };
    let judge = |code: u16, said: &str| judged("gemini", &[init, &api(code, said)], 1);
    assert!(matches!(judge(500, "Overloaded"), Verdict::Unavailable(_)));
    assert!(matches!(judge(401, "no"), Verdict::Refused(_)));
    let full = "The input token count (1200000) exceeds the maximum number of tokens allowed";
    assert!(matches!(judge(400, full), Verdict::Full(_)));
}

/// Lost: the context of a Gemini session is unknown until its end, and a killed attempt cost nothing.
#[test]
fn gemini_counts_come_from_its_record() {
    let answered = r#"{"id":"m-1","type":"gemini","content":"one","tokens":{"input":5000,"output":20,"cached":4000,"thoughts":7,"tool":0,"total":5027}}"#;
    let (mut reader, _) = read("gemini", &[]);
    reader.record(r#"{"sessionId":"g-1","kind":"main"}"#);
    reader.record(r#"{"$set":{"messages":[{"id":"m-0","type":"gemini","tokens":{"input":9}}]}}"#);
    assert_eq!(reader.record(answered), [Said::Context(5000)]);
    assert_eq!(reader.record(answered), [], "it comes again with its tools");
    let totals = reader.totals();
    assert_eq!((totals.context, totals.requests), (Some(5000), 1));
    assert_eq!(totals.tokens, Tokens { input: 1000, cached: 4000, output: 27 });
    reader.line(r#"{"type":"result","status":"success","stats":{"input":1000,"cached":4000,"output_tokens":20}}"#);
    assert_eq!(reader.totals().tokens.total(), 5020, "the program's own sum");
}

#[test]
fn opencode_is_done_when_its_last_step_is() {
    let start = r#"{"type":"step_start","sessionID":"ses_1","part":{"type":"step-start"}}"#;
    let tool = r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"bash","state":{"status":"completed","title":"make"}}}"#;
    let calls = r#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"input":12,"output":50,"reasoning":1,"cache":{"write":8,"read":150000}},"cost":0.5}}"#;
    let stop = calls.replace("tool-calls", "stop");
    let error = |name: &str, status: u16| {
        format!(
            r#"{{"type":"error","sessionID":"ses_1","error":{{"name":"{name}","data":{{"message":"m","statusCode":{status}}}}}}}"#
        )
    };
    let (reader, said) = read("opencode", &[start, tool, calls]);
    assert_eq!(said[0], Said::Session("ses_1".to_owned()));
    let cut = "it ended before its turn was complete".to_owned();
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Interrupted(cut));
    let (reader, _) = read("opencode", &[start, tool, calls, start, &stop]);
    let totals = reader.totals();
    assert_eq!(totals.tokens, Tokens { input: 40, cached: 300_000, output: 102 });
    assert_eq!((totals.context, totals.cost_micros), (Some(150_020), Some(1_000_000)));
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Succeeded);
    let judge = |line: &str| judged("opencode", &[start, line], 1);
    assert_eq!(judge(&error("APIError", 401)), Verdict::Refused("m".to_owned()));
    assert_eq!(judge(&error("APIError", 500)), Verdict::Unavailable("m".to_owned()));
    assert_eq!(judge(&error("ContextOverflowError", 0)), Verdict::Full("m".to_owned()));
    let (reader, _) = read("opencode", &[start, &error("MessageAbortedError", 0)]);
    let asked = Exit { code: Some(1), is_asked: true };
    assert_eq!(reader.verdict(asked, &[], CLOCK), Verdict::Stopped);
}

#[test]
fn any_program_may_report_on_itself() {
    let lines = [
        "building",
        r#"piton: {"session":"x","doing":"building","context":500,"window":1000}"#,
        r#"piton: {"tokens":{"input":5,"output":7},"cost_usd":0.01,"later":"field"}"#,
        r#"piton: {"tokens":{"input":6,"output":7}}"#,
        "piton: not JSON",
    ];
    let (reader, said) = read("command", &lines);
    assert_eq!(said.len(), 3, "{said:?}");
    let totals = reader.totals();
    assert_eq!(totals.tokens.total(), 13);
    assert_eq!((totals.cost_micros, totals.window), (Some(10_000), Some(1000)));
    assert_eq!(reader.verdict(exit(0), &[], CLOCK), Verdict::Succeeded);
    let (mut reader, _) = read("command", &[]);
    reader.line(r#"piton: {"limit_until":1794910000}"#);
    let until = Some(Timestamp(1_794_910_000_000));
    assert_eq!(
        reader.verdict(exit(1), &[], CLOCK),
        Verdict::Limited { until, said: String::new() }
    );
}

/// Lost: a step counts as done whose agent was not allowed to do its work.
#[test]
fn what_a_program_was_not_allowed_is_a_denial() {
    let denied = |what: &str| Verdict::Denied(format!("it was not allowed to use {what}"));
    let item = |item: &str| format!(r#"{{"type":"item.completed","item":{item}}}"#);
    let done = r#"{"type":"turn.completed","usage":{"input_tokens":1}}"#;
    let codex = |line: &str| judged("codex", &[CODEX_START, CODEX_TURN, &item(line), done], 0);
    let call = r#"{"id":"i","type":"mcp_tool_call","server":"db","tool":"drop","error":{"message":"MCP tool call requires approval, but approval policy is never"},"status":"failed"}"#;
    assert_eq!(codex(call), denied("db drop"));
    let declined = r#"{"id":"i","type":"command_execution","command":"rm x","status":"declined"}"#;
    assert_eq!(codex(declined), denied("Bash rm x"));
    let failed = r#"{"id":"i","type":"command_execution","command":"false","exit_code":1,"status":"failed"}"#;
    assert_eq!(codex(failed), Verdict::Succeeded, "an operation may fail");
    let missed = r#"{"id":"i","type":"mcp_tool_call","server":"db","tool":"x","error":null,"status":"failed"}"#;
    assert_eq!(codex(missed), Verdict::Succeeded);

    let tool = |error: &str| {
        format!(
            r#"{{"type":"tool_use","sessionID":"s","part":{{"tool":"bash","state":{{"status":"error","error":"{error}"}}}}}}"#
        )
    };
    let stop = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#;
    let opencode = |error: &str| judged("opencode", &[&tool(error), stop], 0);
    let rejected = "The user rejected permission to use this specific tool call.";
    assert_eq!(opencode(rejected), denied("bash"));
    let calls = stop.replace("\"stop\"", "\"tool-calls\"");
    assert_eq!(judged("opencode", &[&tool(rejected), &calls], 0), denied("bash"));
    assert_eq!(opencode("File not found: permission.txt"), Verdict::Succeeded);

    let init = r#"{"type":"init","session_id":"g-1","model":"gemini-x"}"#;
    let uses = r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"make"}}"#;
    let success = r#"{"type":"result","status":"success","stats":{"input":1}}"#;
    let result = |kind: &str, said: &str| {
        format!(
            r#"{{"type":"tool_result","tool_id":"t1","status":"error","error":{{"type":"{kind}","message":"{said}"}}}}"#
        )
    };
    let gemini =
        |kind: &str, said: &str| judged("gemini", &[init, uses, &result(kind, said), success], 0);
    let refused = denied("run_shell_command make");
    assert_eq!(gemini("policy_violation", "Tool execution denied by policy."), refused);
    assert_eq!(gemini("shell_execute_error", "exit code 1"), Verdict::Succeeded);
}

/// Lost: an agent does its work without the server that it needs, and it counts as done.
#[test]
fn a_server_that_did_not_start_is_a_failure_although_the_turn_is_complete() {
    let init = r#"{"type":"init","session_id":"g-1","model":"gemini-x"}"#;
    let success = r#"{"type":"result","status":"success","stats":{"input":1}}"#;
    let stop = r#"{"type":"step_finish","sessionID":"s","part":{"reason":"stop"}}"#;
    let judge = |program: &str, lines: &[&str], aside: &str| {
        let (mut reader, _) = read(program, lines);
        reader.aside(aside);
        reader.verdict(exit(0), &[], CLOCK)
    };
    let gemini =
        judge("gemini", &[init, success], "MCP issues detected. Run /mcp list for status.");
    assert!(matches!(gemini, Verdict::Denied(_)), "{gemini:?}");
    let said = "MCP server notes did not start".to_owned();
    let opencode = judge("opencode", &[stop], "piton: no MCP server notes");
    assert_eq!(opencode, Verdict::Denied(said));
    for program in ["gemini", "opencode"] {
        let lines = if program == "gemini" { vec![init, success] } else { vec![stop] };
        assert_eq!(judge(program, &lines, "Ripgrep is not available."), Verdict::Succeeded);
    }
    // Codex fails by itself, before it asks anything.
    let required = find("codex").map(|codex| codex.requires(&["notes".to_owned()]));
    assert_eq!(required, Some(vec!["-c".into(), "mcp_servers.notes.required=true".into()]));
}

/// Lost: a night is spent on a model or a key that no attempt can use.
#[test]
fn an_error_of_opencode_without_a_message_says_its_name() {
    let error = r#"{"type":"error","sessionID":"s","error":{"name":"ProviderModelNotFoundError","data":{"providerID":"p","modelID":"m"}}}"#;
    let said = r#"ProviderModelNotFoundError {"providerID":"p","modelID":"m"}"#;
    assert_eq!(judged("opencode", &[error], 1), Verdict::Refused(said.to_owned()));
    let error = r#"{"type":"error","sessionID":"s","error":{"name":"UnknownError"}}"#;
    assert_eq!(judged("opencode", &[error], 1), Verdict::Failed("UnknownError".to_owned()));
}

proptest! {
    /// Lost: a line that is cut, or new in the next version of a program, ends the driver.
    #[test]
    fn no_line_is_too_strange(cut in 0usize..400, extra in ".{0,40}", which in 0usize..5) {
        let names = ["claude", "codex", "gemini", "opencode", "command"];
        for line in [CLAUDE_INIT, CLAUDE_WRITES, CLAUDE_RESULT, CODEX_RUNS] {
            let cut = line.char_indices().map(|(at, _)| at).take_while(|at| *at <= cut).last();
            let part = &line[..cut.unwrap_or_default()];
            let (reader, _) = read(names[which], &[part, &extra, &format!("{part}{extra}")]);
            let verdict = reader.verdict(Exit { code: None, is_asked: false }, &[], CLOCK);
            prop_assert!(!matches!(verdict, Verdict::Succeeded));
        }
    }
}
