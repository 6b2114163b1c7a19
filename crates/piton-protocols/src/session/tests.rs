//! Every trigger, creation step, resume step and clean-up rule of the protocol, at given times.

use piton_core::Timestamp;
use piton_core::agent::{Thresholds, Window};
use piton_core::event::Reason;
use piton_formats::yaml::Document;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::bank::{self, Bank, File};
use super::board::{Board, Column};
use super::brief::{Parts, TOKENS_MAX, brief};
use super::change::{Change, Pending, moved};
use super::checkpoint::Checkpoint;
use super::cleanup::{self, Act};
use super::config::Config;
use super::create::{Moment, create};
use super::resume::{Verdict, validate};
use super::settings::Settings;
use super::tokens::Usage;
use super::{decompose, words};
use crate::time;

const BOARD: &str = "\
# The board
backlog:
  - id: \"T006\"
    title: \"Add rate limiting\"   # soon
    type: \"development\"
    pri: \"M\"
    deps: [\"T004\"]

  - id: \"T007\"
    title: \"Implement caching\"
    type: \"development\"
    pri: \"L\"
    dependencies: [\"T006\"]

inProgress:
  - id: \"T005\"
    title: \"JWT refresh token logic\"
    type: \"development\"
    pri: \"H\"
    est: \"2h\"
    acceptanceCriteria: \"Refresh endpoint|Rotation|Tests\"

blocked: []   # none

done:
  - id: T004
    title: Sign in

sprintSchedule:
  - id: \"sprint-2\"
    tasks: [\"T004\", \"T005\"]
";

fn board(text: &str) -> Board {
    Board::read("backlog.yaml", text).expect("a board").0
}

fn at(text: &str) -> Timestamp {
    time::read(text).expect("a time")
}

fn usage(used: u64) -> Usage {
    Usage { used, window: 200_000, thresholds: Thresholds::default() }
}

fn moment(board: &Board, reason: Reason, deltas: Vec<Value>) -> Moment<'_> {
    Moment {
        board,
        task: None,
        others: &[],
        stack_id: "fastapi".to_owned(),
        objective: "Complete authentication system".to_owned(),
        deltas,
        phase: None,
        reason,
        usage: Some(usage(182_000)),
        at: at("2025-10-30T15:30:00Z"),
        is_warned: false,
        owner: ("session-1".to_owned(), "s1".to_owned()),
    }
}

#[test]
fn thresholds_are_75_and_90_percent_and_nothing_begins_at_97() {
    for (used, trigger, is_full) in [
        (0, None, false),
        (149_999, None, false),
        (150_000, Some(Reason::TokenWarning), false),
        (179_999, Some(Reason::TokenWarning), false),
        (180_000, Some(Reason::TokenCritical), false),
        (194_999, Some(Reason::TokenCritical), false),
        (195_000, Some(Reason::TokenCritical), true),
    ] {
        assert_eq!((usage(used).trigger(), usage(used).is_full()), (trigger, is_full), "{used}");
    }
}

#[test]
fn the_front_matter_switches_each_trigger() {
    let usual = Config::default();
    assert!(usual.has(Reason::TokenWarning) && !usual.has(Reason::TaskCompletion));
    let text = "---\nenabled: true\ncheckpointTriggers:\n  tokenWarning: false\n  taskCompletion: \
                true\nautoResume: false\nrecoveryMode: \"full\"\n---\n# Rules\n";
    let (config, problems) = Config::read("x.md", text).expect("front matter");
    assert!(!config.has(Reason::TokenWarning) && config.has(Reason::TaskCompletion));
    assert!(config.has(Reason::Manual) && !config.auto_resume);
    assert_eq!((problems.len(), problems[0].line), (1, 7), "an unknown recoveryMode is reported");
    let text = "---\nwindow: 100000\nthresholds:\n  warning: 60\n  halt: 95.5\n---\n";
    let (config, problems) = Config::read("x.md", text).expect("front matter");
    assert!(problems.is_empty(), "{problems:?}");
    let thresholds = Thresholds { warning: 600, critical: 900, halt: 955 };
    assert_eq!((config.window.tokens, config.window.thresholds()), (Some(100_000), thresholds));
    let text = "---\nwindow: many\nthresholds:\n  warning: 95\n---\n";
    let (config, problems) = Config::read("x.md", text).expect("front matter");
    let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!((config.window, lines), (Window::default(), vec![2, 4]));
    let (off, _) = Config::read("x.md", "---\nenabled: false\n---\n").expect("front matter");
    assert!(Reason::ALL.iter().all(|reason| !off.has(*reason)));
}

#[test]
fn a_checkpoint_has_what_the_bank_says() {
    let board = board(BOARD);
    let deltas =
        vec![json!({ "file": "progress", "operation": "update", "field": "a", "value": 1 })];
    let made = create(moment(&board, Reason::TokenCritical, deltas.clone()));
    assert_eq!(made.completed, ["T004"]);
    assert_eq!(made.in_progress, ["T005"]);
    assert_eq!(made.backlog, [("T006".to_owned(), "Add rate limiting".to_owned())]);
    assert_eq!((made.phase.as_str(), made.sprint.as_str()), ("development", "sprint-2"));
    assert_eq!((made.tokens, made.mode.as_str()), ((182_000, 91), "recovery"));
    assert_eq!(made.next_steps[0], "Finish T005: JWT refresh token logic");
    assert!(made.next_steps.contains(&"Meet: Rotation".to_owned()));
    assert!(
        made.instructions.starts_with("Session interrupted at T005. To resume:\n\n1. Start new")
    );
    assert_eq!(made.deltas, deltas);
    let (read, problems) = Checkpoint::read("latest.json", &made.write()).expect("a checkpoint");
    assert_eq!(read, made);
    assert!(problems.is_empty());
    let warned = create(moment(&board, Reason::TokenWarning, Vec::new()));
    assert_eq!(warned.mode, "minimal");
    assert!(!warned.instructions.contains("interrupted"));
}

#[test]
fn the_example_of_the_protocol_reads_as_it_says() {
    let text = r#"{
  "version": "1.0", "timestamp": "2025-10-30T15:30:00Z", "reason": "token_critical",
  "tokenUsage": { "total": 182000, "percentage": 91, "mode": "recovery" },
  "state": {
    "completedTasks": ["T001", "T002", "T003", "T004"], "inProgress": "T005",
    "backlogSnapshot": [{"id": "T006", "title": "Add rate limiting"}],
    "currentPhase": "development"
  },
  "context": { "STACK_ID": "fastapi", "currentSprint": "sprint-2", "activeObjective": "Auth" },
  "nextSteps": ["Finish T005: JWT refresh token logic", "Move T005 to done"],
  "deltaChanges": [
    {"file": "taskBoard", "operation": "move", "taskId": "T005", "from": "backlog", "to": "inProgress"},
    {"file": "progress", "operation": "update", "field": "metrics.currentSprint.completed", "value": 4}
  ],
  "resumeInstructions": "Load recovery context."
}"#;
    let (found, problems) = Checkpoint::read("latest.json", text).expect("a checkpoint");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        (found.completed.len(), found.in_progress.as_slice()),
        (4, &["T005".to_owned()][..])
    );
    assert_eq!(found.to_json()["deltas"], 2);
    let changes: Vec<Change> =
        found.deltas.iter().map(|delta| Change::read(delta).expect("a change")).collect();
    assert_eq!(changes[0].to, Some(Column::InProgress));
    let progress = Document::new(
        "progress.md",
        "---\nmetrics:\n  currentSprint:\n    completed: 3 # all\n---\n",
    );
    let progress = changes[1].apply(&progress.expect("front matter"), false).expect("applied");
    assert!(progress.text().contains("    completed: 4 # all\n"));
}

#[test]
fn a_checkpoint_is_resumed_if_it_is_young_and_fits() {
    let board = board(BOARD);
    let made = create(moment(&board, Reason::TokenCritical, Vec::new()));
    let check = |checkpoint: &Checkpoint, stack: &str, board: &Board, now: &str| {
        validate(checkpoint, stack, board, at(now))
    };
    let now = "2025-10-31T15:29:59Z";
    assert_eq!(check(&made, "fastapi", &board, now), Verdict::Resume(Vec::new()));
    assert_eq!(check(&Checkpoint::empty(), "fastapi", &board, now), Verdict::Nothing);
    let late = check(&made, "fastapi", &board, "2025-10-31T15:30:00Z");
    assert!(matches!(late, Verdict::TooOld(_)), "{late:?}");
    for stack in ["", "nextjs"] {
        assert!(matches!(check(&made, stack, &board, now), Verdict::Fails(_)), "{stack}");
    }
    let without = super::tests::board(&BOARD.replace("T005", "T050"));
    let Verdict::Fails(why) = check(&made, "fastapi", &without, now) else { panic!("no T005") };
    assert!(why[0].contains("T005"), "{why:?}");
    let without = super::tests::board(&BOARD.replace("id: T004", "id: T040"));
    assert!(matches!(check(&made, "fastapi", &without, now), Verdict::Resume(w) if w.len() == 1));
    let broken = Checkpoint { timestamp: "soon".to_owned(), ..made };
    assert!(matches!(check(&broken, "fastapi", &board, now), Verdict::Fails(_)));
}

#[test]
fn the_context_names_what_is_needed_and_fits() {
    let long = "words and more words ".repeat(2_000);
    let board = board(&BOARD.replace("\"2h\"", &format!("\"2h\"\n    description: \"{long}\"")));
    let checkpoint = create(moment(&board, Reason::TokenCritical, Vec::new()));
    let file = |path: &str| Some(File { path: path.to_owned(), text: long.clone() });
    let bank = Bank {
        strategy: file("context-strategy.md"),
        monitoring: file("token-monitoring.md"),
        ..Bank::default()
    };
    // Rather too many: a token has about four characters.
    let count = |text: &str| text.chars().count() as u64 / 3;
    let (board, checkpoint) = (&board, &checkpoint);
    let text =
        brief(Parts { bank: &bank, board, checkpoint, applied: 2, artifacts: &[], count: &count });
    assert!(count(&text) <= TOKENS_MAX, "{}", count(&text));
    let order = [
        "context-strategy.md (recovery mode)",
        "token-monitoring.md",
        "## projectConfig.md\n\nSTACK_ID: fastapi",
        "## activeContext.md",
        "## Current task\n\nT005",
        "## Next steps",
        "techContext.md: if needed",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}")))
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_long_task_is_split_by_its_criteria_or_as_the_agent_says() {
    let board = board(BOARD);
    let task = board.task("T005").expect("T005").clone();
    let split = decompose::split(&task, &[], "now").expect("two hours are long");
    assert_eq!(split["newValue"].as_array().map(Vec::len), Some(3));
    let many: Vec<String> = (0..20).map(|n| format!("part {n}")).collect();
    let split = decompose::split(&task, &many, "now").expect("parts");
    assert_eq!(split["newValue"].as_array().map(Vec::len), Some(8));
    let last = split["newValue"][7]["title"].as_str().unwrap_or_default();
    assert!(last.starts_with("part 7; part 8;") && last.ends_with("part 19"), "{last}");
    let change = Change::read(&split).expect("a change");
    let document = change.apply(&board.document, true).expect("split");
    let after = super::tests::board(document.text());
    assert_eq!(after.current().map(|task| task.id.as_str()), Some("T005-1"));
    assert!(after.task("T005").is_some_and(super::board::Task::is_split));
    assert_eq!(after.active_sprint(), Some("sprint-2"));
    let again = change.apply(&document, true).expect("again");
    assert_eq!(again.text(), document.text(), "a change that is there does nothing");
    let with = |id: &str, minutes, criteria: &[&str]| {
        let criteria = criteria.iter().map(|c| (*c).to_owned()).collect();
        super::board::Task { id: id.to_owned(), minutes, criteria, ..task.clone() }
    };
    for (task, is_split) in [
        (with("T1", Some(30), &["a"]), false),
        (with("T1", Some(31), &["a"]), true),
        (with("T1", None, &["a"]), false),
        (with("T1", Some(60), &[]), false),
        (with("T1-2", Some(60), &["a"]), true),
        (with("T1-2-1", Some(60), &["a"]), false),
    ] {
        assert_eq!(decompose::split(&task, &[], "now").is_some(), is_split, "{}", task.id);
    }
}

#[test]
fn each_operation_does_its_change_once_and_keeps_the_rest() {
    let task = json!({ "id": "T009", "title": "New", "type": "setup", "pri": "L" });
    let changes = [
        (moved("T006", Column::Backlog, Column::Blocked, "now"), "T006"),
        (
            json!({ "file": "taskBoard", "operation": "add", "field": "backlog", "newValue": task }),
            "T009",
        ),
        (
            json!({ "file": "taskBoard", "operation": "update", "field": "backlog[9].title", "taskId": "T007", "newValue": "Cache" }),
            "Cache",
        ),
        (
            json!({ "file": "taskBoard", "operation": "delete", "field": "backlog[1]", "taskId": "T007" }),
            "",
        ),
    ];
    for (change, shows) in changes {
        let change = Change::read(&change).expect("a change");
        let once = change.apply(&board(BOARD).document, true).expect("applied");
        assert!(once.text().contains(shows) && once.text() != BOARD, "{}", once.text());
        assert!(once.text().contains("# soon"), "{}", once.text());
        let twice = change.apply(&once, true);
        assert_eq!(twice.expect("again").text(), once.text());
    }
    let gone =
        Change::read(&moved("T999", Column::Backlog, Column::Done, "now")).expect("a change");
    assert!(gone.apply(&board(BOARD).document, true).is_err());
}

/// Lost: two entries of a log that say the same are one, or a value that cannot be added is reported as
/// added.
#[test]
fn what_is_added_is_added_each_time_or_refused() {
    let add = |value: &str, at: &str| {
        let change = json!({ "timestamp": at, "file": "progress", "operation": "add", "field": "log.items", "value": value });
        Change::read(&change).expect("a change")
    };
    let document = Document::new("progress.md", "---\nn: 1\n---\n").expect("front matter");
    let once = add("d1", "1").apply(&document, false).expect("added");
    let twice = add("d1", "2").apply(&once, false).expect("added");
    let all = add("d2", "3").apply(&twice, false).expect("added");
    assert_eq!(all.get(&["log", "items"]), Some(json!(["d1", "d1", "d2"])));
    let unsure = add("d2", "3").unsure(true).apply(&all, false).expect("it is there");
    assert_eq!(unsure.text(), all.text());
    let other = Document::new("progress.md", "log:\n  items: 4\n").expect("YAML");
    assert!(add("d1", "1").apply(&other, false).is_err());
}

#[test]
fn changes_are_written_at_the_threshold() {
    let changes = |count: usize| json!({ "changes": vec![moved("T1", Column::Backlog, Column::Done, ""); count], "usage": { "flushThreshold": 3 } });
    let read = |count| Pending::read("d.json", &changes(count).to_string()).expect("changes").0;
    assert!(!read(2).is_due() && read(3).is_due());
    let (usual, _) = Pending::read("d.json", "{\"changes\": []}").expect("changes");
    assert_eq!(usual.threshold, 10);
    let (odd, problems) = Pending::read("d.json", "{\"changes\": [{}]}").expect("changes");
    assert_eq!((odd.changes.len(), problems.len()), (1, 1));
}

#[test]
fn clean_up_keeps_five_backups_of_a_week_and_the_last_good_one() {
    let now = at("2025-10-30T12:00:00Z");
    let file = |name: &str| (name.to_owned(), now);
    let files: Vec<(String, Timestamp)> = [
        "latest.json",
        "checkpoint-20251030-110000.json",
        "checkpoint-20251029-110000.json",
        "checkpoint-20251028-110000.json",
        "checkpoint-20251027-110000-2.json",
        "checkpoint-20251027-110000.json",
        "checkpoint-20251026-110000.json",
        "checkpoint-2025-10-20T11-00-00Z.json",
        "emergency-20251030-110000.json",
        "emergency-20251029-110000.json",
        "notes.md",
    ]
    .map(file)
    .to_vec();
    let delete = |name: &str| Act::Delete(name.to_owned());
    let mut acts = cleanup::plan(&files, Some("20251030-110000"), now);
    acts.sort_by_key(|act| format!("{act:?}"));
    let wanted = [
        Act::Archive("emergency-20251029-110000.json".to_owned()),
        delete("checkpoint-2025-10-20T11-00-00Z.json"),
        delete("checkpoint-20251026-110000.json"),
    ];
    assert_eq!(acts, wanted);
    let old =
        vec![file("checkpoint-20240101-000000.json"), file("checkpoint-20230101-000000.json")];
    assert_eq!(cleanup::plan(&old, None, now), [delete("checkpoint-20230101-000000.json")]);
    assert_eq!(
        cleanup::plan(&old, Some("20230101-000000"), now),
        [delete("checkpoint-20240101-000000.json")]
    );
    let names: Vec<String> = files.into_iter().map(|(name, _)| name).collect();
    assert_eq!(cleanup::new_stamp(at("2025-10-27T11:00:00Z"), &names), "20251027-110000-3");
}

#[test]
fn the_bank_is_where_the_settings_say_or_its_files_are() {
    let settings = Settings::default();
    let list = |dir: &str| -> Vec<String> {
        let names: &[&str] = match dir {
            "" => &["src", "memory"],
            "memory" => &["projectConfig.md", "work"],
            _ => &[],
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    assert_eq!(bank::find("", &settings, &list), "memory");
    assert_eq!(bank::find("memory/work", &settings, &list), "memory");
    assert_eq!(bank::find("src", &settings, &|_| Vec::new()), "");
    assert_eq!(bank::root_of("memory/checkpoints/latest.json"), "memory");
    assert_eq!(bank::root_of("checkpoints/latest.json"), "");
}

#[test]
fn the_words_of_an_interruption_are_those_of_the_protocol() {
    let text = words::interrupted(Some("T004"));
    assert!(text.starts_with("Session interrupted at T004. To resume:\n\n1. Start new session\n"));
    assert!(text.contains("3. Or manually: \"Resume from last checkpoint\""));
}

/// A task on a board, in one of the forms that people write.
fn written(id: usize, form: usize) -> String {
    match form {
        0 => format!("  - T{id} # mine\n"),
        1 => format!("  -\n    id: T{id}\n    title: a\n"),
        2 => format!("  - # mine\n    id: T{id}\n\n"),
        3 => format!("  - {{id: T{id}}}\n"),
        _ => format!("  - id: \"T{id}\"   # mine\n    ac:\n      - a\n      - b\n    # more\n"),
    }
}

proptest! {
    /// Lost: a task that is moved on a board, whatever it looks like.
    #[test]
    fn no_move_loses_or_doubles_a_task(
        columns in prop::collection::vec((0_usize..5, 0_usize..6, prop::collection::vec(0_usize..5, 0..3)), 4),
        moves in prop::collection::vec((0_usize..8, 0_usize..4), 1..6),
        is_crlf in any::<bool>(), is_markdown in any::<bool>(), is_cut in any::<bool>(),
    ) {
        let mut order: Vec<usize> = (0..4).collect();
        order.sort_by_key(|n| (columns[*n].1, *n));
        let (mut text, mut count) = ("# The board\n".to_owned(), 0);
        for n in order {
            let (shape, _, forms) = &columns[n];
            let name = Column::ALL[n].as_str();
            let head = match (shape, forms.is_empty()) {
                (0, _) => continue,
                (1, true) => format!("{name}: []   # none\n"),
                (2, false) => format!("{name}: # some\n"),
                _ => format!("{name}:\n"),
            };
            text.push_str(&head);
            for form in forms {
                count += 1;
                text.push_str(&written(count, *form));
            }
        }
        if is_cut {
            text.truncate(text.trim_end().len());
        }
        if is_markdown {
            text = format!("---\n{}\n---\n# Text\n", text.trim_end());
        }
        if is_crlf {
            text = text.replace('\n', "\r\n");
        }
        let mut now = board(&text);
        prop_assert_eq!(now.tasks.len(), count);
        let remarks = text.matches('#').count();
        for (task, to) in moves {
            let Some(task) = now.tasks.get(task).cloned() else { continue };
            let change = Change::read(&moved(&task.id, task.column, Column::ALL[to], "now")).expect("a change");
            let document = change.apply(&now.document, true).map_err(|p| TestCaseError::fail(format!("{p:?}\n{}", now.document.text())))?;
            now = board(document.text());
            prop_assert_eq!(now.task(&task.id).map(|t| t.column), Some(Column::ALL[to]));
            let mut ids: Vec<&str> = now.tasks.iter().map(|t| t.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!((ids.len(), now.tasks.len()), (count, count), "{}", now.document.text());
            prop_assert_eq!(now.document.text().matches('#').count(), remarks, "{}", now.document.text());
        }
    }

    /// Lost: a change that is applied after a crash, because nobody knew, would be made twice.
    #[test]
    fn changes_applied_again_change_nothing(order in prop::collection::vec(0_usize..4, 1..6)) {
        let all = [
            moved("T006", Column::Backlog, Column::InProgress, "1"),
            moved("T005", Column::InProgress, Column::Done, "2"),
            moved("T007", Column::Backlog, Column::Blocked, "3"),
            json!({ "file": "taskBoard", "operation": "update", "field": "title", "taskId": "T006", "value": "Other" }),
        ];
        let mut document = board(BOARD).document;
        for index in order {
            let change = Change::read(&all[index]).expect("a change");
            document = change.apply(&document, true).expect("applied");
            let again = change.apply(&document, true).expect("again");
            prop_assert_eq!(again.text(), document.text());
        }
        prop_assert_eq!(board(document.text()).tasks.len(), 4);
        prop_assert!(document.text().contains("# soon"));
    }
}
