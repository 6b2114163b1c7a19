//! Whole stories, told event by event, and what their reports say.

use piton_core::event::{
    ChangesWanted, Event, Next, Outcome, Review, RunArchived, StepReset, Trigger, Verdict,
};
use piton_core::{GateRef, Millis, StepPath};

use super::fixture::{HOUR, MINUTE, Story, phase};
use super::{Cause, Ended, Kind, Replanned, Saved};

/// The failure asks for another plan.
const REPLAN: Next = Next::Replan { trigger: Trigger::TestFailures };

/// Eight phases with one step each.
fn eight() -> Vec<piton_core::event::ShapePhase> {
    (1..=8).map(|n| phase(&n.to_string(), &[("main", &["work"])])).collect()
}

/// The example of the checkpoint pattern: phases 1 to 4 take four hours; phase 5 fails and is planned
/// again, which takes half an hour; phases 5 to 8 take two hours.
fn plan_077(failed: u64) -> Story {
    let mut story = Story::new("Plan 077", eight());
    story.attach();
    for n in 1..=4 {
        story.work(&format!("{n}/main/work"), HOUR);
    }
    story.fail("5/main/work", failed, REPLAN);
    story.replan("5", 30 * MINUTE);
    for n in 5..=8 {
        story.work(&format!("{n}/main/work"), 30 * MINUTE);
    }
    story.leave(Verdict::Complete);
    story
}

/// Lost: nobody could see that checkpoints are worth their price.
#[test]
fn a_run_like_plan_077_shows_35_percent() {
    plan_077(0).report(|report| {
        let Saved { continued, took_ms, over_ms, saved_ms, percent, .. } = report.saved;
        assert_eq!((continued, percent), (1, 35));
        assert_eq!(took_ms, Millis(6 * HOUR + 30 * MINUTE));
        assert_eq!(over_ms, Millis(10 * HOUR));
        assert_eq!(saved_ms.unsigned_abs(), 3 * HOUR + 30 * MINUTE);
        assert_eq!(report.replans[0].outcome, Replanned::Replanned);
        assert_eq!(report.stops[0].kept_ms, Millis(4 * HOUR));
        let said = report.markdown();
        for words in
            ["Resuming saved 3h 30m (35 %)", "6h 30m", "10h 00m", "| Saved by resuming | 35 % |"]
        {
            assert!(said.contains(words), "no `{words}` in\n{said}");
        }
        assert!(report.html().contains("35 %"));
    });
    // The failed attempt is in both: it takes some minutes, and changes nothing.
    plan_077(5 * MINUTE).report(|report| assert_eq!(report.saved.percent, 35));
}

/// Lost: a kill would look like a planned pause, or count twice.
#[test]
fn a_kill_that_is_resumed_saves_what_was_finished() {
    let mut story = Story::new("Killed", eight());
    story.attach();
    story.work("1/main/work", 2 * HOUR);
    story.start("2/main/work");
    story.pass(HOUR);
    let fell = story.now;
    story.pass(9 * HOUR);
    story.attach_after(Some(fell));
    story.end("2/main/work", Outcome::Interrupted { why: "lost".into() }, 0);
    story.work("2/main/work", 2 * HOUR);
    story.leave(Verdict::Interrupted);
    story.report(|report| {
        let cut = &report.phases[1].lanes[0].steps[0].attempts[0];
        assert_eq!((cut.outcome, cut.duration_ms), (Ended::Interrupted, Millis(HOUR)));
        let causes: Vec<_> =
            report.stops.iter().map(|s| (s.cause, s.continued_at.is_some())).collect();
        assert_eq!(causes, [(Cause::Killed, true), (Cause::Interrupted, false)]);
        assert_eq!(report.saved.took_ms, Millis(5 * HOUR));
        assert_eq!(report.saved.over_ms, Millis(7 * HOUR));
        assert_eq!(report.saved.kept_ms, Millis(4 * HOUR));
        assert_eq!(report.saved.tokens, 2 * HOUR / 100);
        assert_eq!(report.times.busy_ms, Millis(5 * HOUR));
    });
}

/// Lost: work that was done again would count as saved.
#[test]
fn what_is_done_again_was_not_saved() {
    let mut story = Story::new("Again", eight());
    story.attach();
    story.work("1/main/work", HOUR);
    story.work("2/main/work", HOUR);
    story.leave(Verdict::Interrupted);
    story.pass(HOUR);
    story.attach();
    let step = StepPath::new("2", "main", "work");
    story.tell(&Event::StepReset(StepReset { step, reason: "input changed".into() }));
    story.work("2/main/work", HOUR);
    story.report(|report| {
        assert_eq!(report.saved.over_ms, Millis(4 * HOUR));
        assert_eq!(report.stops[0].kept_ms, Millis(HOUR));
    });
}

/// Lost: an hour of three lanes would count as three.
#[test]
fn lanes_side_by_side_share_the_clock() {
    let lanes: [(&str, &[&str]); 3] = [("A", &["work"]), ("B", &["work"]), ("C", &["work"])];
    let mut story =
        Story::new("Lanes", vec![phase("P", &lanes), phase("Q", &[("main", &["work"])])]);
    story.attach();
    for lane in ["A", "B", "C"] {
        story.start(&format!("P/{lane}/work"));
    }
    story.pass(HOUR);
    for lane in ["A", "B", "C"] {
        story.end(&format!("P/{lane}/work"), Outcome::Succeeded, HOUR);
    }
    story.leave(Verdict::Interrupted);
    story.attach();
    story.work("Q/main/work", HOUR);
    story.report(|report| {
        assert_eq!(report.times.busy_ms, Millis(2 * HOUR));
        assert_eq!(report.times.attempts_ms, Millis(4 * HOUR));
        assert_eq!((report.saved.over_ms, report.saved.percent), (Millis(3 * HOUR), 33));
    });
}

/// Lost: what stops a run again before it did anything would count as another stop.
#[test]
fn a_stop_counts_once_until_work_goes_on() {
    let mut story = Story::new("Stuck", eight());
    story.attach();
    story.work("1/main/work", HOUR);
    story.leave(Verdict::Blocked);
    for _ in 0..3 {
        story.pass(HOUR);
        story.attach();
        story.leave(Verdict::Blocked);
    }
    story.pass(HOUR);
    story.attach();
    story.work("2/main/work", HOUR);
    story.report(|report| {
        assert_eq!(report.stops.len(), 1);
        assert_eq!(report.saved.over_ms, Millis(3 * HOUR));
        // A person was waited for all the time.
        assert_eq!(report.times.waiting_ms, Millis(4 * HOUR));
    });
}

/// Lost: a reviewer who wants changes would be waited for until the work is done again.
#[test]
fn a_wish_for_changes_ends_the_wait() {
    let mut phases = eight();
    phases[1].gate = Some("Review".into());
    phases[1].needs = vec!["1".into()];
    let mut story = Story::new("Review", phases);
    story.attach();
    story.work("1/main/work", HOUR);
    story.ask("2", "Review");
    story.pass(HOUR);
    story.tell(&Event::ChangesWanted(Box::new(ChangesWanted {
        gate: GateRef("2".into()),
        review: Review::parse("ann", "Shorter.", "src/a.rs:12: name the unit"),
        steps: vec![StepPath::new("1", "main", "work")],
        seen: None,
    })));
    story.work("1/main/work", HOUR);
    story.ask("2", "Review");
    story.pass(HOUR);
    story.report(|report| {
        assert_eq!(report.times.waiting_ms, Millis(2 * HOUR));
        let wish = &report.decisions[0];
        assert_eq!((wish.kind, wish.waited_ms), (Kind::ChangesWanted, Some(Millis(HOUR))));
        assert_eq!(wish.message, "Shorter. src/a.rs:12: name the unit");
    });
}

/// Lost: a person's night would count as the run's own slowness, or twice with two gates.
#[test]
fn time_of_people_is_told_apart() {
    let mut phases = eight();
    phases[1].gate = Some("Spec approval".into());
    phases[2].gate = Some("Sign-off".into());
    let mut story = Story::new("People", phases);
    story.attach();
    story.work("1/main/work", HOUR);
    story.ask("2", "Spec approval");
    story.pass(HOUR);
    story.ask("3", "Sign-off");
    story.leave(Verdict::Waiting);
    story.pass(HOUR);
    story.approve("2", "ann", "go");
    story.attach();
    story.fail("2/main/work", HOUR, Next::Fail);
    story.leave(Verdict::Failed);
    story.pass(3 * HOUR);
    story.report(|report| {
        let waits: Vec<_> =
            report.waits.iter().map(|w| (w.waited_ms.0 / HOUR, w.until.is_some())).collect();
        assert_eq!(waits, [(2, true), (5, false), (3, false)]);
        assert_eq!(report.times.waiting_ms, Millis(6 * HOUR));
        assert_eq!(report.decisions[0].waited_ms, Some(Millis(2 * HOUR)));
        assert_eq!(
            (&*report.decisions[0].by, &*report.decisions[0].of),
            ("ann", "Spec approval (2)")
        );
        // Waiting at a gate is not a stop that checkpoints save from.
        assert_eq!(report.stops.len(), 1);
        assert!(report.markdown().contains("still waiting"));
    });
}

/// Lost: the report of a run that was set aside would grow for ever.
#[test]
fn nothing_goes_on_after_the_end() {
    let mut story = Story::new("Old", eight());
    story.attach();
    story.fail("1/main/work", HOUR, Next::Fail);
    story.leave(Verdict::Failed);
    story.pass(HOUR);
    story.tell(&Event::RunArchived(RunArchived { by: "ann".into() }));
    story.pass(1_000 * HOUR);
    story.report(|report| {
        assert_eq!(report.times.elapsed_ms, Millis(2 * HOUR));
        assert_eq!(report.times.waiting_ms, Millis(HOUR));
    });
}

/// Lost: work of steps that a new plan dropped would vanish, with what it cost.
#[test]
fn steps_that_left_the_plan_stay_in_the_report() {
    let mut story = Story::new("Dropped", eight());
    story.attach();
    story.work("1/main/work", HOUR);
    story.shape_without("1");
    story.replan("2", HOUR);
    story.report(|report| {
        let last = report.phases.last().map(|phase| (&*phase.id, phase.status));
        assert_eq!(last, Some(("1", None)));
        assert_eq!(report.times.busy_ms, Millis(2 * HOUR));
        assert!(report.markdown().contains("| 1 | main | dropped |"));
    });
}

/// Lost: a run of thousands of attempts would have a report that nobody can open or read.
#[test]
fn a_long_run_stays_readable() {
    let lanes: Vec<String> = (0..300).map(|n| format!("L{n}")).collect();
    let steps: &[&str] = &["one", "two"];
    let shapes: Vec<(&str, &[&str])> = lanes.iter().map(|lane| (lane.as_str(), steps)).collect();
    let mut story = Story::new("Long", vec![phase("P", &shapes)]);
    story.attach();
    for lane in &lanes {
        for _ in 0..5 {
            story.fail(&format!("P/{lane}/one"), 10, Next::Retry { at: story.now });
        }
        story.work(&format!("P/{lane}/one"), MINUTE);
    }
    story.report(|report| {
        let (markdown, html) = (report.markdown(), report.html());
        assert!(markdown.contains("and 100 more lanes"), "{markdown}");
        assert!(markdown.contains("1460 earlier failures left out"), "{markdown}");
        assert!(markdown.contains("1600 earlier attempts left out"), "{markdown}");
        assert!(markdown.len() < 100_000, "{}", markdown.len());
        assert!(html.len() < 300_000, "{}", html.len());
        assert_eq!(html.matches("<g class=\"lane\"").count(), 200);
    });
}

/// The run of the snapshots: two lanes, a retry, a gate, a kill overnight and a replan.
fn small() -> Story {
    let build: [(&str, &[&str]); 2] = [("api", &["compile", "test"]), ("web <&>", &["work"])];
    let mut release = phase("release", &[("main", &["work"])]);
    release.gate = Some("Release | approval".into());
    let mut story = Story::new("Nightly <script>", vec![phase("build", &build), release]);
    story.attach();
    story.start("build/web <&>/work");
    story.work("build/api/compile", 20 * MINUTE);
    story.fail("build/api/test", 4 * MINUTE, Next::Retry { at: story.now });
    story.end("build/web <&>/work", Outcome::Succeeded, 23 * MINUTE);
    story.start("build/api/test");
    story.pass(3 * MINUTE);
    let fell = story.now;
    story.pass(9 * HOUR);
    story.attach_after(Some(fell));
    story.end("build/api/test", Outcome::Interrupted { why: "lost with its keeper".into() }, 0);
    story.work("build/api/test", 10 * MINUTE);
    story.ask("release", "Release | approval");
    story.leave(Verdict::Waiting);
    story.pass(40 * MINUTE);
    story.approve("release", "ann", "ship *it*");
    story.attach();
    story.fail("release/main/work", 2 * MINUTE, REPLAN);
    story.replan("release", 6 * MINUTE);
    story.work("release/main/work", 5 * MINUTE);
    story.leave(Verdict::Complete);
    story
}

/// Lost: what people read could change without anybody having read it.
#[test]
fn the_pages_were_read() {
    small().report(|report| {
        insta::assert_snapshot!("small-md", report.markdown());
        let html = report.html();
        let (head, rest) = html.split_once("<style>").unwrap_or((&html, ""));
        let (_, body) = rest.split_once("</style>").unwrap_or_default();
        insta::assert_snapshot!("small-html", format!("{head}<style>…</style>{body}"));
        assert!(!html.contains("<script") && !html.contains("<b>"));
    });
}

/// Lost: a program that reads a report would meet other keys.
#[test]
fn json_has_all_there_is() {
    small().report(|report| {
        let json: serde_json::Value =
            serde_json::from_slice(&crate::json::bytes(report, false)).unwrap_or_default();
        assert_eq!(json["saved"]["continued"], 2);
        assert_eq!(
            json["phases"][0]["lanes"][0]["steps"][1]["attempts"][1]["outcome"],
            "interrupted"
        );
        assert_eq!(json["failures"][0]["lines"][2], "1 passed; 1 failed");
        assert_eq!(json["waits"][0]["for"], "gate");
        assert_eq!(json["decisions"][0]["kind"], "approved");
        assert_eq!(json["replans"][0]["trigger"], "test_failures");
        assert_eq!(json["artifacts"][0]["path"], "out/build-api-compile.md");
        assert_eq!(json["stops"][0]["cause"], "killed");
    });
}
