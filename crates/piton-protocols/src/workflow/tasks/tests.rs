//! Task lists as spec-kit and its users write them.

use proptest::prelude::*;

use super::*;
use piton_formats::diagnostic::Severity;

const LIST: &str = "---\ndescription: \"x\"\n---\n# Tasks: Shop\n- **[P]**: can run in parallel\n\n\
    ## Phase 1: Setup (Shared)\n\n- [X] T001 Create `src/lib.rs` per plan\n- [ ] T002 [P] [Setup] Add\n  \
    linting in pyproject.toml and\n  `ci/lint.yml`\n\n  - **File**: `tools/x.sh`\n\n**Checkpoint**: ready\n\n\
    ## Phase 2: User Story 1 - Browse (Priority: P1) 🎯 MVP\n### Tests\n\n- [x] **T003** [P] [US1] [kind:test] Test in tests/a_test.py\n\
    - [ ] T004a [US-2] Do it (depends on T003)\n  - [ ] a detail\n\n## Notes\n- text\n\n```\n- [ ] T900 no\n```\n";

fn list(text: &str) -> TaskList {
    inspect("tasks.md", text).0
}

#[test]
fn tasks_are_read_with_labels_text_and_paths() {
    let (found, problems) = inspect("tasks.md", LIST);
    assert_eq!(problems, []);
    assert_eq!(found.title, "Tasks: Shop");
    let phases: Vec<_> = found
        .phases
        .iter()
        .map(|p| (p.id.clone().map(|id| id.to_string()), p.tasks.len()))
        .collect();
    assert_eq!(phases, [(Some("1".to_owned()), 2), (Some("2".to_owned()), 2)]);
    assert_eq!((found.done(), found.open(), found.parallel()), (2, 2, 2));
    let next = found.next();
    assert_eq!(next.map(|task| task.id.as_str()), Some("T002"));
    let task = &found.phases[0].tasks[1];
    assert_eq!(task.text, "Add linting in pyproject.toml and `ci/lint.yml`");
    assert_eq!(task.paths, ["ci/lint.yml", "tools/x.sh"]);
    assert_eq!((task.labels.join(" ").as_str(), task.line, &task.story), ("Setup", 10, &None));
    let task = &found.phases[1].tasks[0];
    assert_eq!((task.id.as_str(), task.story.as_deref(), task.done), ("T003", Some("US1"), true));
    assert_eq!(
        (task.text.as_str(), task.paths.join(" ").as_str()),
        ("Test in tests/a_test.py", "tests/a_test.py")
    );
    let task = &found.phases[1].tasks[1];
    assert_eq!((task.id.as_str(), task.story.as_deref()), ("T004a", Some("US-2")));
}

#[test]
fn lists_are_known_by_their_boxes() {
    assert!(is_task_list(LIST));
    assert!(is_task_list("- [ ] T1: x\n"));
    for text in [
        "",
        "- [ ] Task\n",
        "## Phase 1: x\n- [ ] T001 x\n- [ ] a\n- [ ] b\n",
        "T001 x\n",
        "- [ ] T001xy\n",
        "- [ ] Tests\n",
    ] {
        assert!(!is_task_list(text), "{text}");
    }
}

#[test]
fn tasks_below_other_headings_count_too() {
    let found = list("- [ ] T001 a\n## Fase 1 — b\n- [x] T002 b\n## Prose\n");
    assert_eq!(found.phases.len(), 2);
    assert_eq!((found.done(), found.open()), (1, 1));
}

#[test]
fn boxes_that_are_no_tasks_and_doubles_are_reported() {
    let text = "## Phase 1: x\n- [ ] T001 a\n- [ ] no id\n- [~] T001 b\n";
    let places: Vec<_> =
        inspect("t.md", text).1.iter().map(|p| (p.line, p.severity, p.code)).collect();
    let warning = Severity::Warning;
    assert_eq!(
        places,
        [(3, warning, "bad-id"), (4, warning, "duplicate-id"), (4, warning, "bad-value")]
    );
    assert!(read("t.md", "# x\n").is_err_and(|p| p[0].message.contains("no tasks")));
}

#[test]
fn a_tick_changes_one_byte() {
    let text = LIST.replace('\n', "\r\n");
    let ticked = tick(&text, "T002").unwrap_or_default();
    assert_eq!(ticked, text.replace("[ ] T002", "[x] T002"));
    assert_eq!(untick(&ticked, "T002").as_deref(), Some(text.as_str()));
    assert_eq!(untick(&text, "T001").unwrap_or_default(), text.replace("[X] T001", "[ ] T001"));
    for id in ["T001", "T900", "T00", "T004"] {
        assert_eq!(tick(&text, id), None, "{id}");
    }
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "(  )?- \\[[ xX~]?\\] (\\*\\*)?T0[0-3][a]?(\\*\\*)?:? ?(\\[P\\] )?(\\[US1\\] )?[a-c/.`ä ]{0,12}",
        "#{1,4} Phase [1-3]: x",
        "## [a-c]{1,3}",
        Just("```".to_owned()),
        "[ \\[\\]T0-`*(/a.:-]{0,14}",
    ]
}

proptest! {
    /// Lost: ticking a task changes another line.
    #[test]
    fn ticks_change_only_their_lines(lines in prop::collection::vec(line(), 0..30), crlf in any::<bool>()) {
        let text = lines.join(if crlf { "\r\n" } else { "\n" });
        let (found, _) = inspect("x", &text);
        for task in found.tasks() {
            let ticked = tick(&text, &task.id);
            let same = found.tasks().filter(|other| other.id == task.id);
            let open: Vec<usize> = same.filter(|other| !other.done).map(|other| other.line).collect();
            prop_assert_eq!(ticked.is_some(), !open.is_empty());
            let Some(ticked) = ticked else { continue };
            let (old, new): (Vec<&str>, Vec<&str>) = (text.split('\n').collect(), ticked.split('\n').collect());
            let changed: Vec<usize> = (0..old.len()).filter(|at| old[*at] != new[*at]).map(|at| at + 1).collect();
            prop_assert_eq!(changed, open);
            prop_assert!(list(&ticked).tasks().filter(|other| other.id == task.id).all(|other| other.done));
        }
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,80}") {
        let _ = (inspect("x", &text), is_task_list(&text), tick(&text, "T1"), paths(&text));
    }
}
