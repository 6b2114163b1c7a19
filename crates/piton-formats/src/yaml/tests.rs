//! Reading and editing, on documents as people write them, and properties of all edits.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;

const BOARD: &str = "\
# The board
backlog:
  - id: \"T001\"
    title: 'Set up'   # first of all
    dependencies: []
    # remark on T001

  - id: T002
    title: Plain words
    ac: \"One|Two\"

inProgress: []   # one at a time

done:
  - id: T000
    title: \"Begin\"

# Control
flushThreshold: 10
updatedBy: \"@agent\"
---

# Not YAML: anything goes
";

fn board() -> Document {
    Document::new("backlog.yaml", BOARD).expect("a board")
}

/// The lines that are in one text and not in the other.
fn changed_lines(old: &str, new: &str) -> (Vec<String>, Vec<String>) {
    let count = |text: &str, line: &str| text.lines().filter(|l| *l == line).count();
    let only = |one: &str, other: &str| {
        let mut lines: Vec<String> = Vec::new();
        for line in one.lines() {
            let here = lines.iter().filter(|l| *l == line).count();
            if count(one, line) > count(other, line) + here {
                lines.push(line.to_owned());
            }
        }
        lines
    };
    (only(old, new), only(new, old))
}

#[test]
fn the_first_document_is_read() {
    let board = board();
    assert_eq!(board.get(&["backlog", "1", "title"]), Some(json!("Plain words")));
    assert_eq!(board.get(&["backlog", "0", "id"]), Some(json!("T001")));
    assert_eq!(board.get(&["flushThreshold"]), Some(json!(10)));
    assert_eq!(board.get(&["inProgress"]), Some(json!([])));
    assert_eq!(board.get(&["blocked"]), None);
    assert_eq!(board.line(&["backlog", "1", "title"]), 9);
    assert!(board.rest().contains("anything goes"));
    let front = "---\r\na: 1\r\nempty:\r\n---\r\n\r\n# Body: not YAML\r\n";
    let front = Document::new("x.md", front).expect("front matter");
    assert_eq!(front.value(), json!({ "a": 1, "empty": null }));
    assert_eq!(front.rest(), "\r\n# Body: not YAML\r\n");
    for empty in ["", "---\n---\n", "# only a remark\n", "\u{feff}"] {
        assert_eq!(Document::new("x", empty).expect("empty").value(), json!({}), "{empty:?}");
    }
}

#[test]
fn a_scalar_keeps_its_quotes_and_its_comment() {
    for (path, value, line) in [
        (
            ["backlog", "0", "title"].as_slice(),
            "It's done",
            "    title: 'It''s done'   # first of all",
        ),
        (&["backlog", "1", "title"], "Other words", "    title: Other words"),
        (&["backlog", "1", "title"], "a: b", "    title: \"a: b\""),
        (&["updatedBy"], "@piton", "updatedBy: \"@piton\""),
        (&["backlog", "1", "id"], "no", "  - id: \"no\""),
    ] {
        let mut board = board();
        board.set(path, value).expect("set");
        let (_, new) = changed_lines(BOARD, board.text());
        assert_eq!(new, [line], "{path:?}");
        assert_eq!(board.get(path), Some(json!(value)));
    }
    let mut board = board();
    board.set(&["flushThreshold"], 12_u64).expect("set");
    assert!(board.text().contains("flushThreshold: 12\n"));
}

#[test]
fn a_new_key_follows_the_last_one_of_its_mapping() {
    let mut board = board();
    board.set(&["backlog", "1", "status"], "decomposed").expect("set");
    assert!(board.text().contains("    ac: \"One|Two\"\n    status: \"decomposed\"\n\ninProgress"));
    board.set(&["lastSync"], "now").expect("set");
    assert!(board.text().contains("updatedBy: \"@agent\"\nlastSync: \"now\"\n---\n"));
    let mut empty = Document::new("x.md", "---\n---\nbody\n").expect("empty");
    empty.set(&["log"], "x").expect("set");
    assert_eq!(empty.text(), "---\nlog: \"x\"\n---\nbody\n");
}

#[test]
fn an_element_moves_as_it_is_written() {
    let mut board = board();
    board.move_element(&["backlog", "0"], &["inProgress"]).expect("moved");
    let wanted = "inProgress:   # one at a time\n  - id: \"T001\"\n    title: 'Set up'   # first of \
                  all\n    dependencies: []\n    # remark on T001\n\ndone:";
    assert!(board.text().contains(wanted), "{}", board.text());
    assert!(board.text().contains("backlog:\n  - id: T002\n"), "{}", board.text());
    board.move_element(&["backlog", "0"], &["inProgress"]).expect("moved");
    assert!(board.text().contains("backlog: []\n"), "{}", board.text());
    assert_eq!(board.get(&["inProgress", "1", "id"]), Some(json!("T002")));
    board.move_element(&["inProgress", "0"], &["blocked"]).expect("a new column");
    assert_eq!(board.get(&["blocked", "0", "id"]), Some(json!("T001")));
}

#[test]
fn a_move_there_and_back_changes_nothing() {
    let mut board = board();
    board.move_element(&["done", "0"], &["inProgress"]).expect("moved");
    board.move_element(&["inProgress", "0"], &["done"]).expect("moved");
    assert_eq!(board.text(), BOARD);
}

#[test]
fn elements_are_added_and_removed() {
    let mut board = board();
    let task = Tree::object([("id", "T002-1".into()), ("deps", Tree::List(Vec::new()))]);
    board.push(&["backlog"], task.clone()).expect("pushed");
    assert!(board.text().contains("Two\"\n  - id: \"T002-1\"\n    deps: []\n\ninProgress"));
    board.push(&["inProgress"], task).expect("pushed");
    assert!(board.text().contains("inProgress:   # one at a time\n  - id: \"T002-1\"\n"));
    board.push(&["log"], Tree::object([("why", "x".into())])).expect("pushed");
    assert!(board.text().contains("log:\n  - why: \"x\"\n---"), "{}", board.text());
    board.remove(&["log", "0"]).expect("removed");
    assert!(board.text().contains("log: []\n---"), "{}", board.text());
    board.remove(&["backlog", "0", "title"]).expect("removed");
    assert_eq!(board.get(&["backlog", "0", "title"]), None);
}

#[test]
fn what_cannot_be_edited_is_refused_with_its_line() {
    let text =
        "a: 1\nlist: [x, y]\nlong: |\n  text\n  more\nmap: {x: 1}\nref: &r {y: 1}\nsame: *r\n";
    let document = Document::new("x.yaml", text).expect("a document");
    let refused = |edit: &dyn Fn(&mut Document) -> Result<(), Problem>, line: usize| {
        let mut copy = document.clone();
        let problem = edit(&mut copy).expect_err("refused");
        assert_eq!((problem.line, problem.code), (line, code::UNEDITABLE), "{}", problem.message);
        assert_eq!(copy.text(), text);
    };
    refused(&|d| d.remove(&["list", "0"]), 2);
    refused(&|d| d.push(&["list"], Tree::object([("x", 1_u64.into())])), 2);
    refused(&|d| d.set(&["long"], "short"), 3);
    refused(&|d| d.set(&["map", "y"], 2_u64), 6);
    refused(&|d| d.set(&["same"], 2_u64), 8);
    refused(&|d| d.push(&["a"], "x"), 1);
    let mut pushed = document.clone();
    pushed.push(&["list"], "z").expect("a scalar fits");
    assert!(pushed.text().contains("list: [x, y, \"z\"]\n"));
}

#[test]
fn what_is_not_a_mapping_of_yaml_is_refused_with_its_line() {
    for (text, line) in [("a: [1\nb: 2\n", 2), ("- a\n", 1), ("a: 1\n b: 2\n", 2), ("words", 1)] {
        let problem = Document::new("x.yaml", text).expect_err(text);
        assert_eq!(problem.code, code::BAD_YAML, "{text:?}");
        assert!(problem.line >= line.min(2) - 1, "{text:?}: {}", problem.line);
    }
    let deep = "[".repeat(500);
    assert!(Document::new("x", &format!("a: {deep}")).is_err());
}

/// A board of tasks with odd titles, comments, blank lines and either kind of line end.
fn boards() -> impl Strategy<Value = String> {
    let title = prop_oneof![
        "[a-z ]{1,12}".prop_map(|t| format!("'{t}'")),
        "[a-zäß#:|]{0,12}".prop_map(|t| serde_json::to_string(&t).expect("text")),
        "[a-z]{1,8}",
    ];
    let task = (title, any::<bool>(), any::<bool>());
    let column = prop::collection::vec(task, 0..4);
    (prop::collection::vec(column, 4), any::<bool>(), any::<bool>()).prop_map(
        |(columns, is_crlf, is_front)| {
            let mut text = String::from(if is_front { "---\n" } else { "# head\n" });
            let mut number = 0;
            for (name, tasks) in ["backlog", "inProgress", "blocked", "done"].iter().zip(columns) {
                text.push_str(name);
                text.push_str(if tasks.is_empty() { ": []\n" } else { ":\n" });
                for (title, has_remark, has_gap) in tasks {
                    number += 1;
                    let _ = writeln!(text, "  - id: \"T{number:03}\"\n    title: {title}");
                    text.push_str(if has_remark { "    # a remark\n" } else { "" });
                    text.push_str(if has_gap { "\n" } else { "" });
                }
            }
            text.push_str("updatedAt: \"x\"\n---\n# body\n");
            if is_crlf { text.replace('\n', "\r\n") } else { text }
        },
    )
}

proptest! {
    /// Lost: a board that nobody changed would differ in git, or a person's remark would be gone.
    #[test]
    fn a_document_that_nobody_changed_has_the_same_bytes(text in boards()) {
        let document = Document::new("b.yaml", &text).expect("a board");
        prop_assert_eq!(document.text(), &text);
    }

    #[test]
    fn one_change_touches_its_line_only(text in boards(), value in ".{0,20}") {
        let mut document = Document::new("b.yaml", &text).expect("a board");
        document.set(&["updatedAt"], value.as_str()).expect("set");
        let (old, new) = changed_lines(&text, document.text());
        prop_assert!(old.len() <= 1 && new.len() <= 1, "{:?} {:?}", old, new);
        prop_assert_eq!(document.get(&["updatedAt"]), Some(json!(value)));
    }

    #[test]
    fn a_move_changes_no_task_and_no_remark(
        text in boards(),
        from in prop::sample::select(vec!["backlog", "inProgress", "blocked", "done"]),
        to in prop::sample::select(vec!["backlog", "inProgress", "blocked", "done"]),
    ) {
        let mut document = Document::new("b.yaml", &text).expect("a board");
        let first = document.get(&[from, "0"]);
        prop_assume!(first.is_some() && from != to);
        let before = document.get(&[to]).and_then(|list| list.as_array().map(Vec::len)).unwrap_or(0);
        document.move_element(&[from, "0"], &[to]).expect("moved");
        prop_assert_eq!(document.get(&[to, &before.to_string()]), first);
        let kept = |text: &str| {
            let heads = ["backlog", "inProgress", "blocked", "done"];
            let is_kept = |l: &&str| !l.trim().is_empty() && !heads.iter().any(|h| l.starts_with(h));
            let mut lines: Vec<String> = text.lines().filter(is_kept).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        prop_assert_eq!(kept(document.text()), kept(&text));
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,60}") {
        if let Ok(mut document) = Document::new("x", &text) {
            let _ = document.set(&["a"], 1_u64);
            let _ = document.push(&["c"], 1_u64);
            let _ = document.remove(&["a"]);
        }
    }
}

/// Lost: a list whose dashes stand below its key, as many tools write it, could not be added to.
#[test]
fn lists_that_are_not_indented_take_elements() {
    let text = "backlog:\n- id: T1 # one\n  title: a\n- id: T2\ninProgress: []\ndone:\n- id: T0\n  title: x\n";
    let mut document = Document::new("board.yaml", text).expect("YAML");
    document.move_element(&["backlog", "0"], &["done"]).expect("moved");
    let moved = "backlog:\n- id: T2\ninProgress: []\ndone:\n- id: T0\n  title: x\n- id: T1 # one\n  title: a\n";
    assert_eq!(document.text(), moved);
    document.push(&["done"], Tree::object([("id", "T3".into())])).expect("added");
    assert!(document.text().ends_with("  title: a\n- id: \"T3\"\n"), "{}", document.text());
    let mut indented = Document::new(
        "board.yaml",
        "backlog:\n  - id: T1\n    title: a\ndone:\n- id: T0\nlast: 1\n",
    )
    .expect("YAML");
    indented.move_element(&["backlog", "0"], &["done"]).expect("moved");
    assert!(
        indented.text().ends_with("done:\n- id: T0\n- id: T1\n  title: a\nlast: 1\n"),
        "{}",
        indented.text()
    );
}

/// Lost: the last element of a file goes with the lines that a new key is added to.
#[test]
fn an_element_moves_to_a_key_that_is_missing() {
    for (text, from, wanted) in [
        (
            "backlog: []\ninProgress:\n  - id: T1\n    title: a\n",
            "inProgress",
            "backlog: []\ninProgress: []\ndone:\n  - id: T1\n    title: a\n",
        ),
        ("backlog:\n- T1 # mine\n", "backlog", "backlog: []\ndone:\n  - T1 # mine\n"),
        (
            "---\r\nbacklog:\r\n  - T1\r\n---\r\n# Text\r\n",
            "backlog",
            "---\r\nbacklog: []\r\ndone:\r\n  - T1\r\n---\r\n# Text\r\n",
        ),
        ("backlog:\n  - T1", "backlog", "backlog: []\ndone:\n  - T1\n"),
    ] {
        let mut document = Document::new("b", text).expect("YAML");
        document.move_element(&[from, "0"], &["done"]).expect("it is moved");
        assert_eq!(document.text(), wanted);
    }
}

/// Lost: the dash stays where it was, and the board is another one.
#[test]
fn an_element_that_begins_below_its_dash_moves_with_it() {
    for item in ["-\n    id: T1\n", "- # remark\n    id: T1\n", "-\n\n    # remark\n    id: T1\n"] {
        let text = format!("backlog:\n  {item}  -\n    id: T2\ndone: []\n");
        let mut document = Document::new("b", &text).expect("YAML");
        document.move_element(&["backlog", "0"], &["done"]).expect("it is moved");
        let wanted = format!("backlog:\n  -\n    id: T2\ndone:\n  {item}");
        assert_eq!(document.text(), wanted);
        document.push(&["backlog"], json!({"id": "T3"})).expect("it is added");
        assert_eq!(document.get(&["backlog"]), Some(json!([{"id": "T2"}, {"id": "T3"}])));
    }
    for item in ["- &a\n    id: T1\n", "- id: &a T1\n", "- !task\n    id: T1\n"] {
        let text = format!("backlog:\n  {item}done: []\n");
        let mut document = Document::new("b", &text).expect("YAML");
        let refused = document.move_element(&["backlog", "0"], &["done"]).expect_err(item);
        assert_eq!(refused.code, code::UNEDITABLE);
        assert_eq!(document.text(), text);
    }
}
