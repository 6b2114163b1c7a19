//! Tasks: columns, cells, and the lane each belongs to.

use super::*;

const HEAD: &str = "| Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
     |---|---|---|---|---|---|\n";

#[test]
fn every_field_of_a_task_is_read() {
    let phase = good(USUAL);
    let task = &phase.lanes[0].tasks[1];
    assert_eq!((task.id.as_str(), task.kind), ("P4-SL-STORE-02", TaskKind::Impl));
    assert_eq!(names(&task.depends_on), ["P4-SL-STORE-01"]);
    assert_eq!(task.depends_on[0].kind, DependencyKind::Task);
    assert_eq!(task.files, ["src/store.rs", "src/lib.rs"]);
    // A bar within a cell is escaped.
    assert_eq!(task.test_commands, ["cargo test store | tee out"]);
    assert_eq!(task.acceptance, "it passes");
    assert!(task.missing.is_empty());
    assert_eq!(&USUAL.lines().nth(task.line - 1).unwrap_or_default()[..16], "| P4-SL-STORE-02");
    assert_eq!(phase.lanes[0].tasks[0].tests_owned, ["tests/store.rs"]);
}

#[test]
fn columns_have_many_names_and_further_ones_are_kept() {
    let phase = good(USUAL);
    let task = &phase.lanes[1].tasks[0];
    assert_eq!(task.files, ["src/api.rs"]);
    assert_eq!(task.test_commands, ["cargo test api"]);
    assert_eq!(task.extra, [("Risk".to_owned(), "low".to_owned())]);
    assert_eq!(phase.lanes[1].tasks[1].extra[0].1, "");
}

#[test]
fn what_tasks_wait_for_their_lane_waits_for() {
    let text = USUAL.replace("  - Blocks: SL-API\n", "");
    let phase = good(&text);
    let api = &phase.lanes[1];
    let waited: Vec<_> = api.depends_on.iter().map(|d| (d.raw.as_str(), d.origin)).collect();
    assert_eq!(waited, [("IF-1-P4-STORE", Origin::Stated), ("SL-STORE", Origin::Task)]);
    assert_eq!(api.stated_dependencies().count(), 1);
}

#[test]
fn a_task_belongs_to_a_lane_by_heading_by_column_or_by_its_id() {
    let index = with_index("- SL-1 -- One\n- SL-10 -- Ten\n");
    let text = format!(
        "{index}\n## Tasks\n\n{HEAD}| SL-10.1 | impl | - | - | - | - |\n| P1-SL-1-02 | test | - | - | - | - |\n\n\
         ### SL-1 -- One\n#### Work\n{HEAD}| T7 | impl | - | - | - | - |\n\n## All\n\n\
         | Lane | Task | Type | Deps | Files | Tests Owned | Commands |\n|---|---|---|---|---|---|---|\n\
         | SL-10 | T8 | verify | T7 | - | - | - |\n"
    );
    let phase = good(&text);
    let ids = |at: usize| phase.lanes[at].tasks.iter().map(|t| t.id.as_str()).collect::<Vec<_>>();
    assert_eq!(ids(0), ["P1-SL-1-02", "T7"]);
    assert_eq!(ids(1), ["SL-10.1", "T8"]);
    assert_eq!(names(&phase.lanes[1].depends_on), ["SL-1"]);
}

#[test]
fn the_heading_of_a_lane_may_have_any_mark_or_none() {
    for heading in [
        "## SL-1: First",
        "## SL-1 - First",
        "## SL-1 -- First",
        "## SL-1 — First",
        "## SL-1 First",
        "### SL-1 First",
        "### **SL-1** First",
        "#### SL-1",
        "### Lane SL-1 First",
        "### D.1 SL-1 First",
    ] {
        let text = format!(
            "{}\n{heading}\n\n{HEAD}| T7 | impl | - | - | - | - |\n",
            with_index("- SL-0 -- Zero\n- SL-1 -- One\n")
        );
        let phase = good(&text);
        let tasks: Vec<&str> = phase.lanes[1].tasks.iter().map(|t| t.id.as_str()).collect();
        assert_eq!(tasks, ["T7"], "{heading}");
    }
}

#[test]
fn tables_of_other_things_are_no_tasks() {
    let text = format!(
        "{}\n### SL-1 -- One\n| ID | Path | Type |\n|---|---|---|\n| a | b | c |\n",
        with_index("- SL-1 -- One\n")
    );
    assert!(good(&text).lanes[0].tasks.is_empty());
}

#[test]
fn a_missing_field_asks_for_a_plan_update() {
    let text = format!(
        "{}\n### SL-1 -- One\n| Task ID | Type | Depends On | Test Command(s) |\n|---|---|---|---|\n| T1 | | - | - |\n",
        with_index("- SL-1 -- One\n")
    );
    let (phase, problems) = inspect("p.md", &text);
    let task = &phase.lanes[0].tasks[0];
    assert_eq!(task.missing, [Field::Kind, Field::Files, Field::TestsOwned]);
    assert_eq!(problems.len(), 1);
    assert_eq!((problems[0].code, problems[0].line), (code::MISSING_FIELD, task.line));
    assert!(problems[0].message.contains("Type, Files in Scope, Tests Owned Files"));
    assert!(problems[0].hint.as_ref().is_some_and(|hint| hint.contains("plan update")));
    assert!(read("p.md", &text).is_err());
}

#[test]
fn a_type_that_is_not_known_is_reported_and_kept() {
    let text = format!(
        "{}\n### SL-1 -- One\n{HEAD}| T1 | chore | - | - | - | - |\n",
        with_index("- SL-1 -- One\n")
    );
    let (phase, problems) = inspect("p.md", &text);
    assert_eq!(phase.lanes[0].tasks[0].kind, TaskKind::Unknown);
    assert_eq!((problems[0].code, problems[0].severity), (code::BAD_VALUE, Severity::Warning));
}

#[test]
fn a_task_of_no_lane_and_one_that_stands_twice_are_refused() {
    let text = format!(
        "{}\n## Tasks\n{HEAD}| T1 | impl | - | - | - | - |\n\n### SL-1 -- One\n{HEAD}\
         | T2 | impl | - | - | - | - |\n| T2 | impl | - | - | - | - |\n",
        with_index("- SL-1 -- One\n")
    );
    let (phase, problems) = inspect("p.md", &text);
    assert_eq!(phase.lanes[0].tasks.len(), 1);
    let codes: Vec<&str> = problems.iter().map(|p| p.code).collect();
    assert_eq!(codes, [code::STRAY_TASK, code::DUPLICATE_ID]);
}

/// Lost: names of files would be run as commands.
#[test]
fn tests_beside_a_column_of_commands_are_files() {
    let text = with_index("- SL-1 -- One")
        + "\n### SL-1 -- One\n\n| # | Type | Depends On | Files touched | Tests | Verify |\n|---|---|---|---|---|---|\n\
           | 1 | Impl. | - | `a.rs` | `tests/a.rs` | `make a` |\n";
    let task = good(&text).lanes.remove(0).tasks.remove(0);
    assert_eq!((task.id.as_str(), task.kind), ("1", TaskKind::Impl));
    assert_eq!(
        (task.files, task.tests_owned),
        (vec!["a.rs".to_owned()], vec!["tests/a.rs".to_owned()])
    );
    assert_eq!(task.test_commands, ["make a"]);
}
