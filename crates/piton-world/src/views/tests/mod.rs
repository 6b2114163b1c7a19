//! What would be lost if these failed: records of others, people's notes, and the promise that a
//! deleted view comes back as it was.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]

mod run;

use piton_formats::settings::{self, Settings};
use piton_protocols::files::Run as OfRun;
use piton_protocols::lanes::{checkpoints, run_log};
use piton_protocols::{TABLE, find};

use super::*;
use run::{RUN, Run, stretches};

const FOREIGN: &str = "{\"run_id\": \"other\", \"phase\": \"P9\", \"lane\": \"X\", \
    \"stage\": \"after_scaffold\", \"status\": \"odd\", \"timestamp\": \"2025-01-01\", \"n\": 1.50}";

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Runs through a whole run and writes the views after each stretch.
fn grown(plan_path: &str) -> (Run, Writer) {
    let mut run = Run::new(plan_path);
    let mut views = run.views();
    let mut logged = 0;
    for stretch in stretches() {
        stretch(&mut run);
        let new: Vec<(u64, Timestamp, &Event)> =
            run.events[logged..].iter().map(|(seq, at, event)| (*seq, *at, event)).collect();
        views.happened(&new, &run.state);
        logged = run.events.len();
        views.write(&run.plan, &run.state).unwrap();
    }
    (run, views)
}

#[test]
fn a_deleted_view_comes_back_byte_for_byte() {
    let (run, mut views) = grown("plan.toml");
    let files = [run.checkpoints(), run.report(), run.log()];
    let before: Vec<String> = files.iter().map(|file| text(file)).collect();
    for file in &files {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(views.write(&run.plan, &run.state).unwrap(), [""; 0]);
    run.brought_up();
    for (file, before) in files.iter().zip(before) {
        assert_eq!(text(file), before, "{}", file.display());
    }
}

#[test]
fn records_of_others_and_added_fields_stay() {
    let mut run = Run::new("plan.toml");
    let mut views = run.views();
    std::fs::create_dir_all(run.checkpoints().parent().unwrap()).unwrap();
    std::fs::write(run.checkpoints(), format!("[{FOREIGN}]")).unwrap();
    for stretch in stretches() {
        stretch(&mut run);
        views.write(&run.plan, &run.state).unwrap();
    }
    let before = text(&run.checkpoints());
    assert!(before.contains(FOREIGN), "{before}");
    // A field that a person added to a record of ours outlives its next change.
    let noted = before.replacen("\"stage\"", "\"reviewer\": \"Ann\", \"stage\"", 1);
    std::fs::write(run.checkpoints(), noted).unwrap();
    views.write(&run.plan, &run.state).unwrap();
    assert!(text(&run.checkpoints()).contains("\"reviewer\": \"Ann\""));
    // Two runs share the file.
    let mut other = run.state.clone();
    other.run_id = Some(piton_core::RunId("other-run".to_owned()));
    run.views().write(&run.plan, &other).unwrap();
    let records = checkpoints::read("c.json", &text(&run.checkpoints())).unwrap();
    assert_eq!(records.len(), 1 + 11 + 11);
}

#[test]
fn a_damaged_file_is_kept_aside_and_written_again() {
    for damage in [&b"[{\"run_id\": \"x\""[..], b"{\"not\": \"a list\"}", b"\xff\xfe[]"] {
        let (run, mut views) = grown("plan.toml");
        let whole = text(&run.checkpoints());
        std::fs::write(run.checkpoints(), damage).unwrap();
        let warnings = views.write(&run.plan, &run.state).unwrap();
        assert_eq!(text(&run.checkpoints()), whole);
        let stamp = time::stamp(run.state.last_at);
        let aside = run.checkpoints().with_file_name(format!("checkpoints.json.corrupt-{stamp}"));
        assert_eq!(std::fs::read(&aside).unwrap(), damage);
        assert!(
            warnings[0].contains("records of other tools are only in the old file"),
            "{warnings:?}"
        );
        assert!(warnings[0].contains("corrupt-"), "{warnings:?}");
    }
    let (run, mut views) = grown("plan.toml");
    let whole = text(&run.checkpoints());
    std::fs::write(run.checkpoints(), "").unwrap();
    assert_eq!(views.write(&run.plan, &run.state).unwrap(), [""; 0]);
    assert_eq!(text(&run.checkpoints()), whole);
}

#[test]
fn the_log_tells_what_happened_in_the_words_of_the_contract() {
    let (run, _) = grown("plan.toml");
    let (found, problems) = run_log::read("x.jsonl", &text(&run.log()));
    assert!(problems.is_empty(), "{problems:?}");
    let said: Vec<String> = found
        .iter()
        .map(|e| format!("{} {} {} {}", e.lane, e.task, e.event, e.status.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            "- - phase_start ok",
            "SL-2 - lane_start ok",
            "SL-1 - lane_start ok",
            "SL-1 - worktree_ready ok",
            "SL-1 work task_start ok",
            "SL-1 work test_done failed",
            "SL-1 work retry ok",
            "SL-2 work task_start ok",
            "SL-2 work task_done ok",
            "SL-1 work task_start ok",
            "SL-1 work task_done ok",
            "SL-1 - test_done ok",
            "SL-1 - commit ok",
            "SL-1 - lane_ready_to_merge ok",
            "SL-1 - rebase ok",
            "SL-1 - merge_start ok",
            "SL-1 - merge_done ok",
            "SL-1 - worktree_removed ok",
            "- - lane_start ok",
            "- work test_start ok",
            "- work cross_lane_validation failed",
        ]
    );
    let failed = &found[5];
    assert_eq!((failed.cmd.as_deref(), failed.exit_code), (Some("make test"), Some(1)));
    assert!(found.iter().all(|l| l.run_id == RUN && l.phase == "P1"));
}

#[test]
fn a_log_is_made_whole_wherever_it_was_cut_and_foreign_lines_stay() {
    let (run, _) = grown("plan.toml");
    let whole = text(&run.log());
    let rebuild = |text: &str| {
        std::fs::write(run.log(), text).unwrap();
        run.brought_up();
        std::fs::read_to_string(run.log()).unwrap()
    };
    for cut in (0..=whole.len()).step_by(61) {
        assert_eq!(rebuild(&whole[..cut]), whole, "{cut}");
    }
    let theirs = "{\"event\":\"of an agent\"}\n";
    let at = whole.find('\n').unwrap() + 1;
    let mixed = format!("{}{theirs}{}", &whole[..at], &whole[at..]);
    assert_eq!(rebuild(&mixed), mixed);
    let second = whole[at..].find('\n').unwrap() + 1 + at;
    assert_eq!(rebuild(&format!("{}{theirs}{}", &whole[..at], &whole[second..])), mixed);
    // What was torn is completed by the next line that is logged, too.
    let (last, torn) = (run.events.last().unwrap(), whole.len() - 20);
    std::fs::write(run.log(), &whole[..torn]).unwrap();
    let mut views = run.views();
    views.happened(&[(last.0, last.1, &last.2)], &run.state);
    views.write_log().unwrap();
    assert_eq!(text(&run.log()), whole);
}

#[test]
fn gates_of_finished_lanes_are_ticked_and_nothing_else_changes() {
    const DOCUMENT: &str = "# P1: Foundation\r\n\r\n## Interface Freeze Gates\r\n\
        - [ ] IF-0-P1-A: the first\r\n- [ ] **IF-0-P1-B**: the second\r\n- [ ] IF-0-P1-C: later\r\n";
    let mut run = Run::new("docs/phase.md");
    let mut views = run.views();
    std::fs::create_dir_all(run.file("docs")).unwrap();
    std::fs::write(run.file("docs/phase.md"), DOCUMENT).unwrap();
    let mut ticks = Vec::new();
    for stretch in stretches() {
        stretch(&mut run);
        views.write(&run.plan, &run.state).unwrap();
        ticks.push(text(&run.file("docs/phase.md")).matches("[x]").count());
    }
    assert_eq!(ticks, [0, 0, 0, 1, 1, 2, 2, 2]);
    let ticked = DOCUMENT.replace("[ ] IF-0-P1-A", "[x] IF-0-P1-A").replace("[ ] **IF", "[x] **IF");
    assert_eq!(text(&run.file("docs/phase.md")), ticked);
    // What a person takes away stays away while this driver lives.
    std::fs::write(run.file("docs/phase.md"), DOCUMENT).unwrap();
    views.write(&run.plan, &run.state).unwrap();
    assert_eq!(text(&run.file("docs/phase.md")), DOCUMENT);
}

const REPORT: &str = "\
# Run report: P1-20251227-103000

- phase: P1 (Foundation)
- status: running
- base branch: `main`
- started: 2025-12-27T10:30:01.000Z

## Lanes

| lane | name | stage | status | head | tests | attempts |
|---|---|---|---|---|---|---|
| SL-1 |  | pre_pr | complete | `bbbbbbbbbbbb` | `make test` passed | 2 |
| SL-2 |  | after_lane_tests | complete |  | `make test` passed | 1 |
| validation |  | after_lane_tests | failed |  | `make test` failed (1) | 1 |

## Merges

| lane | from | to | at |
|---|---|---|---|
| P1/SL-1 | `aaaaaaaaaaaa` | `bbbbbbbbbbbb` | 2025-12-27T10:30:15.000Z |

## Gates

- [x] IF-0-P1-A
- [x] IF-0-P1-B

## Validation

| command | result |
|---|---|
| `make test` | failed (1) |

## Failures

### P1/validation/work

```text
Attempt 1: exit code 1
  failed: make test (exit 1)
  no luck
```

### FIX-P1-001

```text
blocked by FIX-P1-001: make test, exit code 1
```

## Next

```sh
cd ROOT && piton run plan.toml --resume --run-id P1-20251227-103000
cd ROOT && piton run plan.toml --rollback --run-id P1-20251227-103000
```

<!-- Text below this line is kept. -->
";

#[test]
fn the_report_tells_where_the_run_stands_and_notes_below_it_stay() {
    let (mut run, mut views) = grown("plan.toml");
    let file = run.report();
    let told = text(&file);
    assert_eq!(told.replace(&run.root().display().to_string(), "ROOT"), REPORT);
    std::fs::write(&file, format!("{told}\nAnn: looked at it.\n")).unwrap();
    run.state.title = "Renamed".to_owned();
    views.write(&run.plan, &run.state).unwrap();
    let told = text(&file);
    assert!(told.contains("(Renamed)") && told.ends_with("\nAnn: looked at it.\n"), "{told}");
}

#[test]
fn files_are_kept_only_of_runs_that_want_them() {
    let run = Run::new("plan.toml");
    let kept = |views, protocol: &str| {
        let lanes = settings::Lanes { views, ..settings::Lanes::default() };
        let settings = &Settings { lanes, ..Settings::default() };
        let run = OfRun { root: run.root(), settings, state: &run.state };
        find(TABLE, protocol).unwrap().files(&run).is_some()
    };
    assert!(kept(settings::Views::Auto, "lanes") && kept(settings::Views::On, "lanes"));
    assert!(!kept(settings::Views::Off, "lanes") && !kept(settings::Views::On, "plain"));
}

#[test]
fn own_paths_are_as_narrow_as_they_can_be() {
    let own = |plan_path: &str, checkpoints: &str| {
        let run = Run::new(plan_path);
        let checkpoints = checkpoints.to_owned();
        let lanes = settings::Lanes { checkpoints, ..settings::Lanes::default() };
        let settings = &Settings { lanes, ..Settings::default() };
        TABLE[0].own_paths(&OfRun { root: run.root(), settings, state: &run.state })
    };
    let usual = settings::Lanes::default().checkpoints;
    let folders = [".claude/ai-dev-kit/run-logs", ".claude/run-logs", ".claude/run-reports"];
    assert_eq!(own("plan.toml", &usual), folders);
    assert_eq!(own("docs/phase.markdown", &usual)[3], "docs/phase.markdown");
    assert_eq!(own("plan.toml", "docs/c.json")[0], "docs/c.json");
}
