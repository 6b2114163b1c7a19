//! What the ledger stores: every tag, field and word of it stays readable for ever, and what a newer
//! program wrote is said to be that.

mod samples;

use std::collections::{BTreeMap, BTreeSet};

use piton_core::event::RunArchived;
use piton_core::request::Request;
use piton_core::summary::run_status;
use piton_core::{Event, Timestamp, replay};
use piton_formats::codec::{Error, TAGS, decode, decode_plan, decode_request, encode};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use samples::runs::{RUN_STATUSES, runs};
use samples::{plan, requests};

/// The tags on disk, for ever: a change here breaks every ledger there is.
const FROZEN: &str = "agent.context_filled 1, agent.handed_off 1, agent.limited 1, agent.said 1, approval.asked 1, \
    budget.exhausted 1, budget.warned 1, checkpoint.recorded 1, command.refused 1, \
    driver.attached 1, driver.left 1, \
    gate.asked 1, gate.changes_wanted 1, gate.decided 1, gate.reopened 1, lane.begun 1, lane.blocked 1, \
    lane.committed 1, lane.forked 1, lane.imported 1, lane.joined 1, lane.kept 1, \
    lane.merged 1, lane.ready 1, \
    lane.rebased 1, lane.removed 1, lane.reopened 1, merge.intended 1, merge.missed 1, \
    outputs.accepted 1, plan.accepted 1, pull_request.opened 1, replan.begun 1, replan.ended 1, \
    replan.imported 1, replan.refused 1, replan.wanted 1, rewind.done 1, rewind.intended 1, run.aborted 1, \
    run.archived 1, run.created 1, session.artifact 1, session.changed 1, session.ended 1, \
    session.not_resumed 1, session.opened 1, session.phase 1, session.saved 1, session.synced 1, spec.accepted 1, step.finished 1, step.imported 1, step.proven 1, step.reset 1, \
    step.retried 1, step.skipped 1, step.started 1, ticks.seen 1, time.skipped 1";

const TRIGGERS: &[&str] =
    &["complexity_exceeded", "too_many_tasks", "test_failures", "scope_drift", "requested"];
const CLASSES: &[&str] = &[
    "network",
    "rate_limit",
    "agent",
    "test",
    "command",
    "timeout",
    "artifact",
    "input",
    "budget",
    "conflict",
    "pull_request",
    "scope",
    "replan",
];
const ON_LIMIT: &[&str] = &["park", "fallback", "stop"];
const PERMISSIONS: &[&str] = &["own", "edits", "all"];
const ROLES: &[&str] = &["work", "setup", "tests", "pull_request", "tasks", "mend", "validation"];
const ISOLATIONS: &[&str] = &["in-place", "worktree"];
const MERGED_BY: &[&str] = &["queue", "pr", "nothing", "none"];
const STAGES: &[&str] =
    &["before_lane_start", "after_lane_start", "after_lane_tests", "pre_pr", "retry_attempt"];
const CAUSES: &[&str] = &["flush", "resume", "task_started", "task_finished", "decomposed"];
const REASONS: &[&str] =
    &["token_warning", "token_critical", "session_end", "task_completion", "manual"];
const STEP: &str = "/phases/*/lanes/*/steps/*";
const WORK: &str = "/phases/*/lanes/*/steps/*/work";
const RULES: &str = "/phases/*/lanes/*/rules";

/// Every place of a stored body where a word of an enum stands, and the words that may stand there
/// without more; of enums with data the samples have them all. Words are frozen like tags.
const WORDS: &[(&str, &str, &str, &[&str])] = &[
    ("agent.context_filled", "", "/level", &["fine", "warning", "critical", "halt"]),
    ("step.started", "", "/agent/how", &["fresh", "briefed", "continued"]),
    ("plan", "/agents/a", "/command key", &[]),
    ("plan", "/agents/a", "/on_limit", ON_LIMIT),
    ("plan", "/agents/a", "/permissions", PERMISSIONS),
    ("plan", "/agents/b", "/command key", &[]),
    ("plan", "/agents/b", "/on_limit", ON_LIMIT),
    ("plan", "/agents/b", "/permissions", PERMISSIONS),
    ("plan", "/agents/c", "/command key", &[]),
    ("plan", "/agents/c", "/on_limit", ON_LIMIT),
    ("plan", "/agents/c", "/permissions", PERMISSIONS),
    (
        "driver.left",
        "",
        "/verdict",
        &[
            "complete",
            "selection_done",
            "failed",
            "waiting",
            "blocked",
            "budget",
            "interrupted",
            "aborted",
            "rolled_back",
        ],
    ),
    ("lane.begun", "", "/isolation", ISOLATIONS),
    ("lane.blocked", "/refusal", "/remedies/*/* key", &[]),
    ("lane.blocked", "", "/stage", STAGES),
    ("lane.kept", "/refusal", "/remedies/*/* key", &[]),
    ("lane.imported", "", "/failures/*/class", CLASSES),
    ("lane.imported", "", "/merged/by", MERGED_BY),
    ("lane.imported", "", "/records/*/stage", STAGES),
    (
        "lane.imported",
        "",
        "/records/*/status",
        &["ready", "in_progress", "failed", "blocked", "complete", "rolled_back", "retrying"],
    ),
    ("lane.merged", "", "/by", MERGED_BY),
    ("lane.reopened", "", "/class", CLASSES),
    ("plan", "", "/on_change", &["rerun", "ask"]),
    ("plan", "", "/on_failure", &["stop", "continue"]),
    ("plan", "", "/task_worktrees", &["off", "auto", "on"]),
    ("plan", RULES, "/isolation", ISOLATIONS),
    ("plan", RULES, "/merge", &["queue", "pr", "none"]),
    ("plan", RULES, "/on_retry", &["keep", "reset"]),
    ("plan", RULES, "/tests/* key", &[]),
    ("plan", STEP, "/role", ROLES),
    ("plan", STEP, "/test key", &[]),
    ("plan", WORK, " key", &[]),
    ("plan", WORK, "/prompt/command key", &[]),
    ("plan", WORK, "/run key", &[]),
    ("plan", WORK, "/tests/* key", &[]),
    ("plan.accepted", "", "/shape/phases/*/lanes/*/isolation", ISOLATIONS),
    ("plan.accepted", "", "/shape/phases/*/lanes/*/steps/*/role", ROLES),
    ("plan", "/replan/by", "/test key", &[]),
    ("plan", "/replan/by", "/work key", &[]),
    ("plan", "/replan/by/work", "/run key", &[]),
    ("replan.begun", "", "/trigger", TRIGGERS),
    ("replan.ended", "", "/outcome/changes/*/what", &["added", "removed", "changed"]),
    ("replan.ended", "", "/outcome/kind", &[]),
    ("replan.ended", "", "/outcome/shape/phases/*/lanes/*/isolation", ISOLATIONS),
    ("replan.ended", "", "/outcome/shape/phases/*/lanes/*/steps/*/role", ROLES),
    ("replan.refused", "", "/trigger", TRIGGERS),
    ("replan.refused", "", "/why/kind", &[]),
    ("request", "", "/acts/*/act", &[]),
    ("request", "", "/acts/*/cause", CAUSES),
    ("request", "", "/acts/*/saved/reason", REASONS),
    ("request", "", "/ask", &[]),
    ("rewind.intended", "", "/kind", &["rollback", "restore", "undo"]),
    ("rewind.intended", "", "/stage", STAGES),
    ("run.created", "", "/shape/phases/*/lanes/*/isolation", ISOLATIONS),
    ("run.created", "", "/shape/phases/*/lanes/*/steps/*/role", ROLES),
    ("session.changed", "", "/cause", CAUSES),
    ("session.saved", "", "/reason", REASONS),
    ("step.finished", "", "/outcome/class", CLASSES),
    ("step.finished", "", "/outcome/kind", &[]),
    ("step.finished", "", "/outcome/next/do", &[]),
];

/// The events of all runs.
fn events() -> Vec<Event> {
    runs().into_iter().flat_map(|run| run.events).collect()
}

/// Everything that is stored: what it is, and its body.
fn bodies() -> Vec<(&'static str, Value)> {
    let body = |value: &[u8]| serde_json::from_slice(value).expect("it is JSON");
    let events = events().into_iter().map(|event| {
        let stored = encode(&event);
        (stored.tag, body(&stored.body))
    });
    let requests = requests().into_iter().map(|request| ("request", json!(request)));
    events.chain(requests).chain([("plan", json!(plan()))]).collect()
}

/// Reads a body and writes it again.
fn again(what: &str, body: &Value) -> Result<Value, Error> {
    let bytes = body.to_string().into_bytes();
    Ok(match what {
        "plan" => json!(decode_plan(&bytes)?),
        "request" => json!(decode_request(Request::TAG, Request::VERSION, &bytes)?),
        tag => serde_json::from_slice(&encode(&decode(tag, 1, &bytes)?).body).unwrap_or_default(),
    })
}

/// The places of all values in a body.
fn places(body: &Value) -> Vec<String> {
    let within = |name: &str, part| -> Vec<String> {
        places(part).into_iter().map(|place| format!("/{name}{place}")).collect()
    };
    let inner: Vec<String> = match body {
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(i, part)| within(&i.to_string(), part)).collect()
        }
        Value::Object(map) => map.iter().flat_map(|(key, part)| within(key, part)).collect(),
        _ => Vec::new(),
    };
    [vec![String::new()], inner].concat()
}

/// A body with another value at a place.
fn with(body: &Value, place: &str, value: Value) -> Value {
    let mut body = body.clone();
    *body.pointer_mut(place).expect("the place is there") = value;
    body
}

/// A place without the numbers of lists.
fn pattern(place: &str) -> String {
    let part = |part: &str| if part.parse::<u32>().is_ok() { "*".to_owned() } else { part.into() };
    place.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn tags_and_versions_are_frozen_and_the_samples_have_them_all() {
    let mut tags: Vec<String> = TAGS.iter().map(|(tag, v)| format!("{tag} {v}")).collect();
    tags.sort();
    assert_eq!(tags.join(", "), FROZEN);
    // Before the shape, whose lanes differ in what they have.
    let filled = |event: &Event| {
        let text = format!("{event:?}");
        let fields = text.split("shape:").next().unwrap_or_default();
        !["None", "[]", "\"\"", "false", ": 0"].iter().any(|hole| fields.contains(hole))
    };
    let all: BTreeSet<&str> =
        events().iter().filter(|event| filled(event)).map(|event| encode(event).tag).collect();
    assert_eq!(all, TAGS.iter().map(|(tag, _)| *tag).collect());
}

/// Lost: the ledgers that are made from the samples would prove little.
#[test]
fn the_samples_are_a_run_in_each_status() {
    let mut found = BTreeSet::new();
    for run in runs() {
        let state = replay(run.events.iter().map(|event| (Timestamp(9), event))).expect(run.id);
        let status = run_status(&state, run.is_driven());
        assert_eq!(status.as_str(), run.status(), "{}", run.id);
        found.insert(status.as_str());
    }
    assert_eq!(found, RUN_STATUSES.iter().map(|status| status.as_str()).collect());
}

#[test]
fn what_is_stored_is_read_as_it_was() {
    for event in events() {
        let stored = encode(&event);
        let read = decode(stored.tag, stored.version, &stored.body);
        assert_eq!(read.expect(stored.tag), event);
    }
    for request in requests() {
        let body = json!(request).to_string();
        let read = decode_request(Request::TAG, Request::VERSION, body.as_bytes());
        assert_eq!(read.expect("a request"), request);
    }
    for run in runs() {
        let body = json!(run.plan).to_string();
        assert_eq!(decode_plan(body.as_bytes()).expect(run.id), run.plan);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// Whatever a body says that is taken is kept.
    #[test]
    fn every_value_survives_its_bytes(texts in vec(".{1,40}", 16), number in 1..u32::MAX, flag: bool) {
        for (what, body) in bodies() {
            for (place, text) in places(&body).into_iter().zip(texts.iter().cycle()) {
                let value = match &body.pointer(&place) {
                    Some(Value::String(_)) => json!(text),
                    Some(Value::Number(_)) => json!(number),
                    Some(Value::Bool(_)) => json!(flag),
                    _ => continue,
                };
                let changed = with(&body, &place, value.clone());
                if let Ok(read) = again(what, &changed) {
                    let found = read.pointer(&place).unwrap_or(&json!(false)).clone();
                    prop_assert_eq!(found, value, "{} {}", what, place);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(tag in 0..TAGS.len(), body in vec(any::<u8>(), 0..64)) {
        let _ = decode(TAGS[tag].0, 1, &body);
        let _ = decode_plan(&body);
        let _ = decode_request(Request::TAG, Request::VERSION, &body);
    }
}

/// Lost: a program would take what a newer one wrote for damage, or act on a word it misread.
#[test]
fn a_word_of_the_future_is_that_of_a_newer_program() {
    let future = "from-the-future";
    let is_newer = |what: &str, body: &Value| match again(what, body) {
        Err(error @ Error::Newer(_)) => {
            let said = error.to_string();
            assert!(said.contains(future) && said.contains("written by a newer Piton"), "{said}");
            true
        }
        _ => false,
    };
    let mut found = BTreeMap::new();
    for (what, body) in bodies() {
        for place in places(&body) {
            match body.pointer(&place) {
                Some(Value::String(_)) => {
                    let newer = is_newer(what, &with(&body, &place, json!(future)));
                    // Any other text is prose, or names a lane or step.
                    let texts = [future, "the/future", "from/the/future"];
                    let mut texts = texts.iter().map(|text| with(&body, &place, json!(text)));
                    assert!(newer || texts.any(|b| again(what, &b).is_ok()), "{what} {place}");
                    if newer {
                        found.insert((what, pattern(&place)), (body.clone(), place));
                    }
                }
                Some(Value::Object(map)) if map.len() == 1 => {
                    let value = map.values().next().cloned();
                    if is_newer(what, &with(&body, &place, json!({ future: value }))) {
                        found.insert((what, pattern(&place) + " key"), (body.clone(), place));
                    }
                }
                _ => {}
            }
        }
    }
    let known =
        |&(what, at, place, _): &(&'static str, &str, &str, _)| (what, format!("{at}{place}"));
    let expected: BTreeSet<_> = WORDS.iter().map(known).collect();
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), expected);
    for row in WORDS {
        let (body, place) = &found[&known(row)];
        for word in row.3 {
            let read = again(row.0, &with(body, place, json!(word))).expect(word);
            let shown = read.pointer(place).and_then(Value::as_str);
            // A default may be left out.
            assert!(shown.is_none_or(|shown| shown == *word), "{row:?}: {word} became {shown:?}");
        }
    }
}

#[test]
fn what_a_newer_program_wrote_is_named_not_guessed() {
    let newer = |read: Result<Event, Error>, said: &str| {
        let error = read.expect_err("it is newer");
        assert!(matches!(error, Error::Newer(_)) && error.to_string().contains(said), "{error}");
    };
    newer(decode("run.sung", 1, b"{}"), "`run.sung`");
    newer(decode("run.archived", 2, b"{\"by\":\"ada\"}"), "has version 2");
    assert!(matches!(decode("run.archived", 1, b"{"), Err(Error::Damaged { .. })));
    assert!(matches!(decode("run.archived", 1, b"{}"), Err(Error::Damaged { .. })));
    assert!(matches!(decode_request("song", 1, b"{}"), Err(Error::Newer(_))));
    assert!(matches!(decode_request(Request::TAG, 2, b"{}"), Err(Error::Newer(_))));
    assert!(matches!(decode_plan(b"{}"), Err(Error::Damaged { .. })));
}

#[test]
fn unknown_fields_are_passed_over() {
    let read = decode("run.archived", 1, b"{\"by\":\"ada\",\"mood\":\"fine\"}");
    assert_eq!(read.ok(), Some(Event::RunArchived(RunArchived { by: "ada".into() })));
}

/// Bodies as the first version wrote them: they must be readable for ever.
#[test]
fn bodies_of_the_first_version_stay_as_they_are() {
    let sha = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
    let started = format!(r#"{{"step":"P/L/S","attempt":1,"definition":"{sha}"}}"#);
    for (tag, body) in [
        ("driver.attached", r#"{"epoch":7,"pid":1,"host":"text"}"#),
        ("driver.left", r#"{"verdict":"failed"}"#),
        ("step.started", &started),
        (
            "step.finished",
            r#"{"step":"P/L/S","attempt":1,"outcome":{"kind":"failed","class":"agent","error":"text","next":{"do":"fail"}},"duration_ms":7,"logs":{"stdout":[0,7],"stderr":[0,0]},"facts":{"tokens":7,"money_micros":3}}"#,
        ),
        ("step.reset", r#"{"step":"P/L/S","reason":"text"}"#),
        ("gate.asked", r#"{"gate":"P/L","name":"text"}"#),
        ("time.skipped", r#"{"ms":7}"#),
        ("run.aborted", r#"{"by":"ada","message":"text"}"#),
        ("lane.forked", r#"{"lane":"P/A","step":"P/A/tasks-1","commit":"c0"}"#),
        ("lane.joined", r#"{"lane":"P/A","step":"P/A/tasks-1"}"#),
    ] {
        let read = decode(tag, 1, body.as_bytes()).expect(tag);
        assert_eq!(String::from_utf8_lossy(&encode(&read).body), body);
    }
}
