//! Events on disk: every tag listed literally, every event there and back.

use piton_core::Event;
use piton_core::event::{
    BudgetExhausted, CheckpointRecorded, Class, DriverAttached, DriverLeft, Facts, FileHash,
    GateAsked, GateDecided, GateReopened, LogRanges, Next, Outcome, PlanAccepted, RunAborted,
    RunArchived, RunCreated, Shape, SpecAccepted, StepFinished, StepReset, StepRetried,
    StepSkipped, StepStarted, TimeSkipped, Verdict,
};
use piton_core::hash::Sha;
use piton_core::{GateRef, Millis, RunId, StepPath, Timestamp};
use piton_formats::codec::{Error, decode, encode};
use piton_testkit::plans;
use proptest::prelude::*;

/// The tags on disk, for ever: a change here breaks every ledger there is.
const TAGS: [&str; 18] = [
    "run.created",
    "driver.attached",
    "driver.left",
    "step.started",
    "step.finished",
    "step.reset",
    "step.retried",
    "step.skipped",
    "gate.asked",
    "gate.decided",
    "plan.accepted",
    "spec.accepted",
    "checkpoint.recorded",
    "budget.exhausted",
    "time.skipped",
    "run.aborted",
    "run.archived",
    "gate.reopened",
];

/// Everything an event may be made of.
#[derive(Clone, Debug)]
struct Parts {
    text: String,
    more: Option<String>,
    flag: bool,
    number: u64,
    small: u32,
    signed: i64,
    dice: u8,
}

fn parts() -> impl Strategy<Value = Parts> {
    (
        ".{0,40}",
        proptest::option::of(".{0,10}"),
        any::<bool>(),
        any::<u64>(),
        any::<u32>(),
        any::<i64>(),
        any::<u8>(),
    )
        .prop_map(|(text, more, flag, number, small, signed, dice)| Parts {
            text,
            more,
            flag,
            number,
            small,
            signed,
            dice,
        })
}

fn outcome(p: &Parts) -> Outcome {
    let class = [
        Class::Network,
        Class::RateLimit,
        Class::Agent,
        Class::Test,
        Class::Command,
        Class::Timeout,
        Class::Artifact,
        Class::Input,
        Class::Budget,
    ];
    let at = Timestamp(p.signed);
    let next = [Next::Fail, Next::Retry { at }, Next::Wait { until: at }];
    match p.dice % 3 {
        0 => Outcome::Succeeded,
        1 => Outcome::Interrupted { why: p.text.clone() },
        _ => Outcome::Failed {
            class: class[usize::from(p.dice) % class.len()],
            error: p.text.clone(),
            lines: p.more.clone().into_iter().collect(),
            next: next[usize::from(p.dice / 16) % next.len()],
        },
    }
}

/// One event of every kind.
fn events(p: &Parts) -> Vec<Event> {
    let step = || StepPath::new("P", "L", "S");
    let gate = || GateRef("P/L".to_owned());
    let (text, by) = (|| p.text.clone(), || "ada".to_owned());
    let sha = || Sha::of(p.text.as_bytes());
    let file = || FileHash { path: p.text.clone(), sha256: sha() };
    let files = || if p.flag { vec![file()] } else { vec![] };
    let shape = || Shape::from(&plans::example().0);
    let verdicts = [
        Verdict::Complete,
        Verdict::SelectionDone,
        Verdict::Failed,
        Verdict::Waiting,
        Verdict::Blocked,
        Verdict::Budget,
        Verdict::Interrupted,
        Verdict::Aborted,
    ];
    let verdict = verdicts[usize::from(p.dice) % verdicts.len()];
    let logs = LogRanges {
        stdout: (0, p.number),
        stderr_dropped: p.flag.then_some((1, p.number)),
        ..LogRanges::default()
    };
    let facts = Facts {
        tokens: p.number,
        money_micros: p.number / 2,
        notes: p.more.clone().into_iter().collect(),
    };
    vec![
        Event::RunCreated(Box::new(RunCreated {
            run_id: RunId(text()),
            plan_path: text(),
            plan_hash: sha(),
            title: text(),
            spec: p.flag.then(file),
            root: text(),
            linked: p.flag,
            mark: text(),
            head: p.more.clone(),
            shape: shape(),
        })),
        Event::DriverAttached(DriverAttached {
            epoch: p.number,
            pid: p.small,
            host: text(),
            head: p.more.clone(),
            takeover: p.flag,
            base: p.more.clone(),
            retries: p.flag.then_some(p.small),
            seed_dirty: p.flag,
            keep_going: p.flag,
            driven_until: p.flag.then_some(Timestamp(7)),
        }),
        Event::DriverLeft(DriverLeft {
            verdict,
            head: p.more.clone(),
            signal: p.flag.then_some(2),
            driven_until: p.flag.then_some(Timestamp(9)),
        }),
        Event::StepStarted(StepStarted {
            step: step(),
            attempt: p.small,
            definition: sha(),
            inputs: files(),
            before: None,
            tests_only: false,
            secrets: Vec::new(),
        }),
        Event::StepFinished(Box::new(StepFinished {
            step: step(),
            attempt: p.small,
            outcome: outcome(p),
            exit_code: p.flag.then_some(3),
            signal: None,
            duration_ms: Millis(p.number),
            logs,
            artifacts: files(),
            inputs: p.flag.then(files),
            facts,
            after: None,
            tests: Vec::new(),
            stirred: false,
            command: None,
            retries_max: None,
        })),
        Event::StepReset(StepReset { step: step(), reason: text() }),
        Event::StepRetried(StepRetried { step: step(), by: by() }),
        Event::StepSkipped(StepSkipped { step: step(), satisfy: p.flag, by: by() }),
        Event::GateAsked(GateAsked { gate: gate(), name: text() }),
        Event::GateDecided(GateDecided {
            gate: gate(),
            approved: p.flag,
            by: by(),
            at: None,
            message: text(),
            plan_hash: sha(),
            artifacts: files(),
        }),
        Event::PlanAccepted(Box::new(PlanAccepted {
            from: sha(),
            to: sha(),
            title: text(),
            shape: shape(),
            by: by(),
        })),
        Event::SpecAccepted(SpecAccepted { from: p.flag.then(file), to: Some(file()), by: by() }),
        Event::CheckpointRecorded(CheckpointRecorded {
            name: text(),
            message: text(),
            by: by(),
            head: p.more.clone(),
            snapshots: Vec::new(),
        }),
        Event::BudgetExhausted(BudgetExhausted { budget: text(), used: p.number, limit: p.number }),
        Event::TimeSkipped(TimeSkipped { ms: Millis(p.number) }),
        Event::RunAborted(RunAborted { by: by(), message: text(), cancel: p.flag }),
        Event::RunArchived(RunArchived { by: by() }),
        Event::GateReopened(GateReopened {
            gate: gate(),
            by: by(),
            why: text(),
            act: p.flag.then_some(p.number),
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_event_survives_its_bytes(parts in parts()) {
        for (event, tag) in events(&parts).into_iter().zip(TAGS) {
            let stored = encode(&event);
            prop_assert_eq!(stored.tag, tag);
            prop_assert_eq!(stored.version, 1);
            let read = decode(stored.tag, stored.version, &stored.body);
            prop_assert_eq!(read.ok(), Some(event));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(tag in 0..TAGS.len(), body in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = decode(TAGS[tag], 1, &body);
    }
}

fn sample() -> Parts {
    Parts { text: "text".into(), more: None, flag: false, number: 7, small: 1, signed: 5, dice: 2 }
}

#[test]
fn what_a_newer_program_wrote_is_named_not_guessed() {
    assert!(matches!(decode("run.sung", 1, b"{}"), Err(Error::Newer { .. })));
    assert!(matches!(decode("run.archived", 2, b"{\"by\":\"ada\"}"), Err(Error::Newer { .. })));
    assert!(matches!(decode("run.archived", 1, b"{"), Err(Error::Damaged { .. })));
}

#[test]
fn unknown_fields_are_passed_over_and_unknown_words_kept_apart() {
    let read = decode("run.archived", 1, b"{\"by\":\"ada\",\"mood\":\"fine\"}");
    assert_eq!(read.ok(), Some(Event::RunArchived(RunArchived { by: "ada".into() })));
    let left = decode("driver.left", 1, b"{\"verdict\":\"transcended\"}").ok();
    assert!(matches!(left, Some(Event::DriverLeft(e)) if e.verdict == Verdict::Unknown));
    let body = b"{\"step\":\"P/L/S\",\"attempt\":1,\"outcome\":{\"kind\":\"sung\",\"tune\":1}}";
    let finished = decode("step.finished", 1, body).ok();
    assert!(matches!(finished, Some(Event::StepFinished(e)) if e.outcome == Outcome::Unknown));
}

/// Bodies as the first version wrote them: they must be readable for ever.
#[test]
fn bodies_of_the_first_version_stay_as_they_are() {
    let text = |event: &Event| String::from_utf8_lossy(&encode(event).body).into_owned();
    let all = events(&sample());
    let sha = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1";
    assert_eq!(text(&all[1]), "{\"epoch\":7,\"pid\":1,\"host\":\"text\"}");
    assert_eq!(text(&all[2]), "{\"verdict\":\"failed\"}");
    assert_eq!(
        text(&all[3]),
        format!("{{\"step\":\"P/L/S\",\"attempt\":1,\"definition\":\"{sha}\"}}")
    );
    assert_eq!(
        text(&all[4]),
        "{\"step\":\"P/L/S\",\"attempt\":1,\"outcome\":{\"kind\":\"failed\",\"class\":\"agent\",\
         \"error\":\"text\",\"next\":{\"do\":\"fail\"}},\"duration_ms\":7,\
         \"logs\":{\"stdout\":[0,7],\"stderr\":[0,0]},\"facts\":{\"tokens\":7,\"money_micros\":3}}"
    );
    assert_eq!(text(&all[5]), "{\"step\":\"P/L/S\",\"reason\":\"text\"}");
    assert_eq!(text(&all[8]), "{\"gate\":\"P/L\",\"name\":\"text\"}");
    assert_eq!(text(&all[14]), "{\"ms\":7}");
    assert_eq!(text(&all[15]), "{\"by\":\"ada\",\"message\":\"text\"}");
}

/// Lost: a run of a phase document with gates could not be read again.
#[test]
fn ticks_go_there_and_back_under_their_frozen_tag() {
    let event = Event::TicksSeen(Box::new(piton_core::event::TicksSeen {
        gates: vec!["IF-0-P1-A".to_owned()],
        count: true,
        by: "found ticked in the document".to_owned(),
        document: Some(piton_core::hash::Sha::of(b"# P1")),
    }));
    let stored = encode(&event);
    assert_eq!((stored.tag, stored.version), ("ticks.seen", 1));
    assert!(decode(stored.tag, stored.version, &stored.body).is_ok_and(|back| back == event));
}

/// Lost: a run that was taken over could not be read again.
#[test]
fn an_import_goes_there_and_back_under_its_frozen_tag() {
    let event = Event::LaneImported(Box::new(piton_core::event::LaneImported {
        lane: piton_core::LanePath { phase: "P".to_owned(), lane: "A".to_owned() },
        records: Vec::new(),
        snapshot: None,
        merged: None,
        stays: true,
        base_branch: "main".to_owned(),
        outstanding: Some(piton_core::event::Outstanding {
            commit: "c0ffee".to_owned(),
            pull_request: "of branch lane/P/A".to_owned(),
        }),
        failures: Vec::new(),
        retried: Some(1),
        retries: Some(2),
        note: "nothing is known".to_owned(),
    }));
    let stored = encode(&event);
    assert_eq!((stored.tag, stored.version), ("lane.imported", 1));
    assert!(decode(stored.tag, stored.version, &stored.body).is_ok_and(|back| back == event));
}

/// Lost: a run whose tasks have worktrees of their own could not be read again.
#[test]
fn tasks_of_a_lane_go_there_and_back_under_their_frozen_tags() {
    use piton_core::event::{LaneForked, LaneJoined};
    let step = piton_core::StepPath::new("P", "A", "tasks-1");
    let (lane, commit) = (step.lane(), "c0".to_owned());
    let forked = LaneForked { lane: lane.clone(), step: step.clone(), commit, snapshot: None };
    let joined = LaneJoined { lane, step, definition: None, snapshot: None };
    for (event, tag, body) in [
        (
            Event::LaneForked(Box::new(forked)),
            "lane.forked",
            r#"{"lane":"P/A","step":"P/A/tasks-1","commit":"c0"}"#,
        ),
        (
            Event::LaneJoined(Box::new(joined)),
            "lane.joined",
            r#"{"lane":"P/A","step":"P/A/tasks-1"}"#,
        ),
    ] {
        let stored = encode(&event);
        assert_eq!((stored.tag, stored.version), (tag, 1));
        assert_eq!(String::from_utf8_lossy(&stored.body), body);
        assert!(decode(stored.tag, stored.version, &stored.body).is_ok_and(|back| back == event));
    }
}
