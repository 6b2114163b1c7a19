//! Tests of the differences between plans.

use super::*;
use crate::{Input, Settings, read_plan};

fn plan(text: &str) -> Plan {
    let settings = Settings::default();
    let read = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let input = Input { file: "plan.toml", text, settings: &settings, git: true, read: &read };
    match read_plan(&input) {
        Ok((plan, _)) => plan,
        Err(problems) => panic!("{problems:#?}"),
    }
}

const OLD: &str = r#"
[[phase]]
id = "P1"
gate = "Go"
[[phase.lane]]
id = "a"
steps = [{ id = "one", run = "make one" }, { id = "two", run = "make two" }]
[[phase]]
id = "P2"
run = "make p2"
"#;

#[test]
fn the_same_plan_has_no_difference() {
    assert!(diff(&plan(OLD), &plan(OLD)).is_empty());
}

#[test]
fn a_changed_command_differs_from_a_changed_limit() {
    let new = OLD
        .replace("run = \"make one\"", "run = \"make uno\", env = { A = \"1\" }")
        .replace("run = \"make two\"", "run = \"make two\", retries = 2, idle_timeout = \"5m\"");
    let found = diff(&plan(OLD), &plan(&new));
    let field =
        |name, old: &str, new: &str| FieldChange { name, old: old.to_owned(), new: new.to_owned() };
    assert_eq!(
        found.steps,
        [
            StepChange {
                path: StepPath::new("P1", "a", "one"),
                kind: ChangeKind::Changed {
                    definition_changed: true,
                    fields: vec![field("run", "make one", "make uno"), field("env", "", "A=\"1\"")],
                },
            },
            StepChange {
                path: StepPath::new("P1", "a", "two"),
                kind: ChangeKind::Changed {
                    definition_changed: false,
                    fields: vec![
                        field("retries", "0", "2"),
                        field("idle_timeout", "none", "5m 00s")
                    ],
                },
            },
        ]
    );
    assert_eq!(found.other, Vec::<String>::new());
}

/// Lost: a changed word of a prompt would print the prompt twice.
#[test]
fn of_long_texts_the_lines_that_differ_are_shown() {
    for (old, new, shown) in [
        ("make", "make all", "run: make -> make all"),
        ("a\nb\nc\n", "a\n  B\nc\n", "run, line 2: b -> B"),
        ("a\nc", "a\nb\nc", "run, line 2: nothing -> b"),
        ("a\na", "a\na\na", "run, line 3: nothing -> a"),
        ("a\n[redacted]", "a\n[redacted]", "run changed"),
        ("x", "1\n2\n3\n4\n5", "run, line 1: x -> 1 / 2 / 3 / …"),
    ] {
        let field = FieldChange { name: "run", old: old.to_owned(), new: new.to_owned() };
        assert_eq!(field.to_string(), shown);
    }
}

#[test]
fn added_and_removed_steps_and_everything_else() {
    let new = OLD
        .replace("\"two\", run = \"make two\"", "\"three\", run = \"make two\"")
        .replace("gate = \"Go\"", "gate = \"Stop\"")
        .replace("id = \"P2\"", "id = \"P2\"\nneeds = []");
    let new = format!(
        "title = \"New\"\nspec = \"s.md\"\non_failure = \"continue\"\nbudgets = {{ attempts = 3, run_time = \"20s\", money = \"0.10\" }}\n{new}"
    );
    let found = diff(&plan(OLD), &plan(&new));
    assert_eq!(
        found.steps,
        [
            StepChange { path: StepPath::new("P1", "a", "three"), kind: ChangeKind::Added },
            StepChange { path: StepPath::new("P1", "a", "two"), kind: ChangeKind::Removed },
        ]
    );
    assert_eq!(
        found.other,
        [
            "title: `plan` is now `New`",
            "spec: none is now `s.md`",
            "on_failure: stop is now continue",
            "budget attempts: 20 is now 3",
            "budget money: $1000.00 is now $0.10",
            "budget run_time: 72h 00m is now 20.0s",
            "phase P1 gate: `Go` is now `Stop`",
            "phase P2 needs: [P1] is now []",
        ]
    );
}

#[test]
fn another_order_is_a_difference() {
    let new = OLD.replace(
        "{ id = \"one\", run = \"make one\" }, { id = \"two\", run = \"make two\" }",
        "{ id = \"two\", run = \"make two\" }, { id = \"one\", run = \"make one\" }",
    );
    let found = diff(&plan(OLD), &plan(&new));
    assert_eq!(found.other, ["order of steps in lane P1/a: now two, one"]);
}

#[test]
fn another_way_of_working_is_a_difference() {
    let new = OLD.replace(
            "id = \"a\"\n",
            "id = \"a\"\nisolation = \"worktree\"\nmerge = \"none\"\ncopy = [\".env\"]\non_retry = \"reset\"\ncommit_message = \"m\"\nalone = true\nprovides = [\"IF-1\"]\nsetup = \"make deps\"\n",
        );
    let found = diff(&plan(OLD), &plan(&new));
    let setup = StepPath::new("P1", "a", "setup");
    assert_eq!(found.steps, [StepChange { path: setup, kind: ChangeKind::Added }]);
    assert_eq!(
        found.other,
        [
            "lane P1/a isolation: in-place is now worktree",
            "lane P1/a merge: queue is now none",
            "lane P1/a copy: [] is now [.env]",
            "lane P1/a on_retry: keep is now reset",
            "lane P1/a commit_message: none is now m",
            "lane P1/a alone: false is now true",
            "lane P1/a provides: [] is now [IF-1]",
        ]
    );
}

#[test]
fn a_shell_line_and_the_same_words_as_a_list_differ() {
    let new = OLD.replace("run = \"make p2\"", "run = [\"make\", \"p2\"]");
    let found = diff(&plan(OLD), &plan(&new));
    assert!(
        matches!(&found.steps[0].kind, ChangeKind::Changed { definition_changed: true, fields } if fields.len() == 1)
    );
}
