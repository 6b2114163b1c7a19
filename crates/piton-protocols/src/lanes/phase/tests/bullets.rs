//! Tasks as items of lists: which are tasks, what belongs to them, and which prove their lane.

use super::*;

/// The tasks of the one lane of a document, as `TYPE: TEXT => COMMANDS`, and its warnings.
fn tasks_of(section: &str) -> (Vec<String>, Vec<String>) {
    let index = with_index("- SL-1 -- One");
    let text = format!("{index}\n## Lanes\n\n### SL-1 -- One\n\n{section}");
    let (phase, problems) = inspect("p.md", &text);
    let shown = |task: &Task| {
        let proof = if task.is_evidence { "evidence" } else { "work" };
        let (text, commands) = (task.text.replace('\n', "; "), task.test_commands.join("; "));
        format!("{} {proof}: {text} => {commands}", task.kind_word)
    };
    let tasks = phase.lanes[0].tasks.iter().map(shown).collect();
    (tasks, problems.into_iter().map(|p| p.message).collect())
}

#[track_caller]
fn check(section: &str, wanted: &[&str]) {
    let (tasks, problems) = tasks_of(section);
    assert_eq!(tasks, wanted, "{problems:?}");
    assert_eq!(problems, Vec::<String>::new());
}

/// Lost: the command of a nested item would never run, and its lane be merged untested.
#[test]
fn an_item_without_a_type_is_the_heading_of_the_typed_items_below_it() {
    check(
        "- **Tasks**:\n  - SL-1.1 Types\n    - test: x fails\n    - impl: add x\n      - in one file\n\
         \x20   - a note\n    - verify: `exit 9`\n  - SL-1.2 More\n    - impl: add y\n",
        &[
            "test work: SL-1.1 Types; x fails => ",
            "impl work: SL-1.1 Types; add x; - in one file; - a note => ",
            "verify evidence: `exit 9` => exit 9",
            "impl work: SL-1.2 More; add y => ",
        ],
    );
    check(
        "**Tasks**:\n\n- Task 1.1: Types\n  - Type: impl\n  - Test command: `make a`\n- Task 1.2\n  - **Type**: verify\n  - **Test Command(s)**: `make b`\n",
        &[
            "impl work: Task 1.1: Types; - Type: impl; - Test command: `make a` => make a",
            "verify evidence: Task 1.2; - **Type**: verify; - **Test Command(s)**: `make b` => make b",
        ],
    );
    check(
        "**Tasks**:\n- P1-01 | test | a.rs | `make a`\n- P1-02 | impl | b.rs | - | `make b`\n",
        &["test work: a.rs | `make a` => make a", "impl work: b.rs | - | `make b` => make b"],
    );
    check(
        "**Tasks**:\n- **Task 1**: Types\n  Type: impl\n  Test command: `make a`\n- SL-1.2 Tests\n  - test: b\n  - impl: c\n",
        &[
            "impl work: **Task 1**: Types; Type: impl; Test command: `make a` => make a",
            "test work: b => ",
            "impl work: c => ",
        ],
    );
    check(
        "- impl: add x\n  - verify: `make x`\n- verify: these:\n  - `make a`\n  - `make b` exits 0\n",
        &[
            "impl work: add x => ",
            "verify evidence: `make x` => make x",
            "verify evidence: these:; - `make a`; - `make b` exits 0 => make a; make b",
        ],
    );
}

/// Lost: what a lane is measured by would be done as a task.
#[test]
fn items_of_other_lists_are_no_tasks() {
    for acceptance in [
        "\n**Acceptance criteria**\n\n- test: all pass\n",
        "\n**Acceptance**:\n- test: all pass\n",
        "- **Acceptance**:\n  - test: all pass\n",
        "\n#### Acceptance criteria\n\n- test: all pass\n",
    ] {
        check(&format!("- **Tasks**:\n  - impl: a\n{acceptance}"), &["impl work: a => "]);
        check(&format!("- impl: a\n{acceptance}"), &["impl work: a => "]);
        let before = format!("{acceptance}\n**Tasks**:\n\n- impl: a\n\nSome words.\n\n- test: b\n");
        check(&before, &["impl work: a => ", "test work: b => "]);
    }
    check(
        "- **Owned files**: `a.rs`\n- test: a\n- **Scope**: b\n- impl: c\n",
        &["test work: a => ", "impl work: c => "],
    );
    let (tasks, problems) = tasks_of("- test: a\n\n**Tasks**:\n\n- impl: b\n");
    assert_eq!(tasks, ["impl work: b => "]);
    assert_eq!(problems, ["this item of type `test` is not below `Tasks:`"]);
}

/// Lost: commands that prove a lane would be dropped without a word.
#[test]
fn a_lane_is_verified_by_its_own_section_and_beside_its_table() {
    check(
        "- impl: a\n\n#### ✅ Verification\n\n```bash\nmake a\nmake b\n```\n- Look at it\n\n#### More\n\n- docs: c\n",
        &["impl work: a => ", "verify evidence:  => make a; make b", "docs work: c => "],
    );
    check(
        "- impl: a\n\n**Verification**:\n\n- `make a`\n- `make b`\n",
        &[
            "impl work: a => ",
            "verify evidence: `make a` => make a",
            "verify evidence: `make b` => make b",
        ],
    );
    let table = "| Task ID | Type | Depends On | Files | Tests Owned | Test Command(s) |\n\
                 |---|---|---|---|---|---|\n| T1 | impl | - | a.rs | - | - |\n";
    check(
        &format!("{table}\n- verify: `make a`\n\n#### Verification\n\n- `make b`\n"),
        &["impl work:  => ", "verify evidence: `make a` => make a", "verify evidence:  => make b"],
    );
    let (tasks, problems) = tasks_of(&format!("{table}\n- verify: it looks well\n- test: b\n"));
    assert_eq!(tasks, ["impl work:  => "]);
    let wanted = ["verify", "test"]
        .map(|word| format!("the lane has a table of tasks, so this `{word}` is not one"));
    assert_eq!(problems, wanted);
}

/// Lost: another wording of one task would have the others done again, because their ids change.
#[test]
fn another_wording_of_one_task_renames_no_task() {
    let ids = |section: &str| -> Vec<String> {
        let index = with_index("- SL-1 -- One");
        let phase = good(&format!("{index}\n## Lanes\n\n### SL-1 -- One\n\n{section}"));
        phase.lanes[0].tasks.iter().map(|task| task.id.clone()).collect()
    };
    let text = "**Tasks**:\n\n- test: a\n- impl: b\n- impl: c\n- docs: d\n- verify: `make`\n";
    let wanted = ["SL-1.test.1", "SL-1.impl.1", "SL-1.impl.2", "SL-1.docs.1", "SL-1.verify.1"];
    assert_eq!(ids(text), wanted);
    for (from, to) in [
        ("test: a", "test: Prove it,\n  over two lines"),
        ("impl: b", "impl: c"),
        ("impl: b", "impl: Write `b.rs`:\n  - all of it"),
        ("docs: d", "**docs** — Say how"),
    ] {
        assert_eq!(ids(&text.replace(from, to)), wanted, "{to}");
    }
    // One more of a type counts on behind the others, and not for other types.
    let more = ids(&text.replace("- docs: d\n", "- docs: d\n- test: e\n- impl: f\n"));
    assert_eq!(more[..4], wanted[..4]);
    assert_eq!(more[4..], ["SL-1.test.2", "SL-1.impl.3", "SL-1.verify.1"]);
}
