//! What the programs send, in the form in which they were seen to send it.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use super::*;

/// Lost: a moment is taken for another, and an agent is stopped or not saved.
#[test]
fn each_event_has_its_moment() {
    for (caller, event, moment) in [
        (Caller::Claude, "SessionStart", Moment::Start),
        (Caller::Claude, "PostToolBatch", Moment::Between),
        (Caller::Claude, "PostToolUse", Moment::Other),
        (Caller::Claude, "PreCompact", Moment::Compact),
        (Caller::Claude, "Stop", Moment::Stop),
        (Caller::Claude, "SessionEnd", Moment::End),
        (Caller::Codex, "PreToolUse", Moment::Before),
        (Caller::Codex, "PostToolUse", Moment::Between),
        (Caller::Codex, "Interrupt", Moment::Stop),
        (Caller::Gemini, "AfterModel", Moment::Other),
        (Caller::Gemini, "AfterTool", Moment::Between),
        (Caller::Gemini, "AfterAgent", Moment::Stop),
        (Caller::Gemini, "PreCompress", Moment::Other),
        (Caller::Opencode, "PostToolUse", Moment::Between),
        (Caller::Opencode, "SomethingNew", Moment::Other),
    ] {
        let text = format!(r#"{{"session_id":"s","hook_event_name":"{event}","new_key":[1]}}"#);
        let call = Call::read(text.as_bytes()).unwrap();
        assert_eq!(call.moment(caller), moment, "{caller:?} {event}");
    }
    assert!(Call::read(b"{}").is_err() && Call::read(b"").is_err() && Call::read(b"[").is_err());
}

#[test]
fn tokens_are_where_a_program_says_them() {
    let line = r#"{"session_id":"s","cwd":"/r","context_window":{"context_window_size":200000,
        "current_usage":{"input_tokens":100,"cache_read_input_tokens":50000}}}"#;
    let line = Call::read(line.as_bytes()).unwrap();
    assert_eq!((line.tokens(), line.fits()), (Some(50_100), Some(200_000)));
    // Before its first request the status line has no usage.
    let none = br#"{"session_id":"s","context_window":{"context_window_size":200000,"current_usage":null}}"#;
    assert_eq!(Call::read(none).unwrap().tokens(), None);
}

/// Lost: a subagent's small context hides that of the agent itself, or half a line stops the reading.
#[test]
fn the_last_request_of_the_agent_itself_counts() {
    let line = |side: bool, read: u64| {
        format!(
            r#"{{"parentUuid":"x","isSidechain":{side},"type":"assistant","message":{{"model":"opus","usage":{{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":{read},"output_tokens":7}}}}}}"#
        )
    };
    let result = r#"{"type":"user","message":{"content":"a text with \"usage\" in it"}}"#;
    let cut = r#"{"type":"assistant","message":{"usage":{"inp"#;
    let tail =
        format!("ut_tokens\":1}}}}\n{}\n{}\n{result}\n{cut}", line(false, 180_000), line(true, 20));
    let (used, model) = (180_015, Some("opus".to_owned()));
    let found = Found { used, model, ..Found::default() };
    assert_eq!(in_transcript(Caller::Claude, &tail), Some(found));
    assert_eq!(in_transcript(Caller::Claude, result), None);
}

#[test]
fn gemini_records_what_it_sent() {
    let tail = "sages\":1}\n{\"type\":\"gemini\",\"content\":\"x\",\"tokens\":{\"input\":751000,\"cached\":9}}\n\
                {\"$set\":{\"lastUpdated\":\"t\"}}\n{\"type\":\"user\",\"content\":\"\\\"tokens\\\"\"}\n";
    let found = Found { used: 751_000, ..Found::default() };
    assert_eq!(in_transcript(Caller::Gemini, tail), Some(found));
}

/// Lost: an agent is stopped an operation late, or each operation waits for a file.
#[test]
fn a_record_that_is_behind_is_waited_for_where_a_threshold_is_near() {
    type Seen = Option<(u64, bool)>;
    let looks_at = |warning: u32, used: u64, all: &[Seen]| {
        let (mut looked, mut waited) = (0, 0);
        let look = || {
            looked += 1;
            let (used, is_current) = all[(looked - 1).min(all.len() - 1)]?;
            Some(Found { used, is_current, ..Found::default() })
        };
        let before = Before { window: 200_000, warning, used };
        let found = in_time(before, look, || waited += 1);
        (found.map(|found| (found.used, found.is_current)), waited)
    };
    let looks = |all: &[Seen]| looks_at(750, 0, all);
    let (behind, current) = (Some((140_000, false)), Some((182_000, true)));
    let far = Some((100_000, false));
    assert_eq!(looks(&[behind, behind, current]), (current, 2));
    assert_eq!(looks(&[far, current]), (far, 0));
    assert_eq!(looks_at(600, 0, &[far, current]), (current, 1));
    assert_eq!(looks_at(750, 100_000, &[far, current]), (current, 1));
    assert_eq!(looks(&[current]), (current, 0));
    assert_eq!(looks(&[behind]), (behind, 40));
    assert_eq!(looks(&[None]), (None, 0));
    let call = br#"{"session_id":"s","tool_calls":[{"tool_use_id":"a"},{"tool_use_id":"b"}]}"#;
    assert_eq!(Call::read(call).unwrap().operation(), Some("b"));
}

#[test]
fn codex_says_how_many_fit() {
    let count = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9},"last_token_usage":{"input_tokens":10020},"model_context_window":258400}}}"#;
    let record = r#"{"type":"token_usage_record","payload":{"usage":{"input_tokens":240000},"turn_token_usage":{"input_tokens":1}}}"#;
    let tail = format!("{count}\n{record}\n");
    let found = Found { used: 240_000, window: Some(258_400), ..Found::default() };
    assert_eq!(in_transcript(Caller::Codex, &tail), Some(found));
}
