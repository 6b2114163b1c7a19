//! Phase documents in every form that is taken, and the problems of those that are not.
//!
//! Each test says in its name which form would be lost.

mod apart;
mod bullets;
mod lanes;
mod planned;
mod problems;
mod tasks;

use super::*;

/// A document of the usual form: two lanes, one gate open and one closed, five tasks.
const USUAL: &str = "\
# P4: Billing

## Interface Freeze Gates

### Core

- [x] IF-0-P4-MODEL: the data model is frozen
- [ ] IF-1-P4-STORE: the store answers

## Lane Index & Dependencies

```
- SL-STORE -- Storage of invoices
  - Depends on: IF-0-P4-MODEL
  - Blocks: SL-API
  - Parallel-safe: yes

- SL-API -- Public interface
  - Depends on: IF-1-P4-STORE
  - Blocks: (Phase 5)
  - Parallel-safe: no (shares the router)
  - Retries: 2
```

## D. Swim Lanes

### SL-STORE -- Storage of invoices

**Interfaces Provided**:

- `IF-1-P4-STORE`: the store, as IF-0-P4-MODEL wants it

**Tasks**:

| Task ID | Task Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) | Acceptance Criteria |
|---|---|---|---|---|---|---|
| P4-SL-STORE-01 | test | - | - | `tests/store.rs` | `cargo test store` | fails first |
| P4-SL-STORE-02 | impl | P4-SL-STORE-01 | `src/store.rs`, `src/lib.rs` | - | `cargo test store \\| tee out` | it passes |
| P4-SL-STORE-03 | verify | P4-SL-STORE-02 | - | - | `cargo test` | all pass |

### SL-API -- Public interface

| Task ID | Type | Depends on | Files in scope | Tests owned | Test command | Risk |
|---|---|---|---|---|---|---|
| P4-SL-API-01 | impl | IF-1-P4-STORE | src/api.rs | - | cargo test api | low |
| P4-SL-API-02 | verify | P4-SL-API-01, P4-SL-STORE-03 | - | - | - | - |

## H. Test Execution Plan

```bash
# everything
cargo test --workspace
```

- **Lint**: `cargo clippy`
";

/// Reads a document that must be without errors.
#[track_caller]
fn good(text: &str) -> Phase {
    match read("p.md", text) {
        Ok((phase, _)) => phase,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// A document with this lane index and nothing else.
fn with_index(index: &str) -> String {
    format!("# P1: T\n\n## Lane Index & Dependencies\n\n{index}\n")
}

fn names(dependencies: &[Dependency]) -> Vec<&str> {
    dependencies.iter().map(|d| d.raw.as_str()).collect()
}

#[test]
fn the_usual_document_is_read_whole() {
    let phase = good(USUAL);
    assert_eq!((phase.id.as_str(), phase.title.as_str(), phase.line), ("P4", "Billing", 1));
    let gates: Vec<_> = phase.gates.iter().map(|g| (g.id.as_str(), g.closed, g.line)).collect();
    assert_eq!(gates, [("IF-0-P4-MODEL", true, 7), ("IF-1-P4-STORE", false, 8)]);
    assert_eq!(phase.gates[0].text, "the data model is frozen");
    let [store, api] = phase.lanes.as_slice() else { panic!("{:?}", phase.lanes) };
    assert_eq!((store.name.as_str(), store.line), ("Storage of invoices", 13));
    assert!(store.ready && store.blocked_by.is_empty());
    assert_eq!(store.provides, ["IF-1-P4-STORE"]);
    assert_eq!(store.blocks, ["SL-API"]);
    assert_eq!(names(&api.depends_on), ["IF-1-P4-STORE", "SL-STORE"]);
    // The lane is waited for through the gate that it provides.
    assert_eq!(
        (api.ready, api.blocked_by.as_slice()),
        (false, ["IF-1-P4-STORE".to_owned()].as_slice())
    );
    assert_eq!((&api.parallel_safe, api.retries), (&ParallelSafe::No, Some(2)));
    assert_eq!(api.blocks, ["Phase 5"]);
    assert_eq!((store.tasks.len(), api.tasks.len()), (3, 2));
    let tests: Vec<&str> = phase.test_plan.iter().map(|t| t.command.as_str()).collect();
    assert_eq!(tests, ["cargo test --workspace", "cargo clippy"]);
    assert!(!phase.needs_confirmation);
}

#[test]
fn line_endings_byte_order_mark_front_matter_and_a_missing_newline_change_nothing() {
    let wanted = good(USUAL);
    let windows = format!("\u{feff}{}", USUAL.trim_end().replace('\n', "\r\n"));
    assert_eq!(good(&windows), wanted);
    let metadata = format!("---\ntitle: \"# P9: no\"\n---\n{USUAL}");
    let shifted = good(&metadata);
    assert_eq!((shifted.id, shifted.line), ("P4".to_owned(), 4));
    assert_eq!(shifted.lanes.len(), wanted.lanes.len());
}

#[test]
fn headings_within_fences_are_no_headings() {
    let text =
        format!("```\n# P9: no\n## Lane Index\n- SL-NO -- no\n```\n{USUAL}\n```\n# P8: no\n```\n");
    let phase = good(&text);
    assert_eq!((phase.id.as_str(), phase.lanes.len()), ("P4", 2));
}

#[test]
fn the_id_of_a_phase_is_the_first_heading_before_the_colon() {
    for (heading, id, title) in [
        ("# P1: A: b", "P1", "A: b"),
        ("# **P2**: A", "P2", "A"),
        ("# P3 — A", "P3", "A"),
        ("# WAVES", "WAVES", ""),
    ] {
        let phase = good(&format!("{heading}\n## Lane Index\n- SL-1 -- A\n"));
        assert_eq!((phase.id.as_str(), phase.title.as_str()), (id, title), "{heading}");
    }
}

#[test]
fn gates_may_be_bold_without_colon_of_other_repositories_and_phases() {
    let text = "# P1: T\n## Interface Freeze Gates\n\
        - [ ] **IF-0-P1-A** — with a dash\n* [x] `IF-XR-P1-B` no mark\n1. [X] IF-XP-P1-C: c\n\
        - [ ] IF-0-P1-D: first line\n      second line\n\
        ## Cross-Repo Gates\n- [x] IF-XR-1: other\n## Lane Index\n- SL-1 -- A\n";
    let phase = good(text);
    let gates: Vec<_> =
        phase.gates.iter().map(|g| (g.id.as_str(), g.closed, g.text.as_str())).collect();
    assert_eq!(
        gates,
        [
            ("IF-0-P1-A", false, "with a dash"),
            ("IF-XR-P1-B", true, "no mark"),
            ("IF-XP-P1-C", true, "c"),
            ("IF-0-P1-D", false, "first line second line"),
            ("IF-XR-1", true, "other"),
        ]
    );
}

/// Lost: a gate with a picture before its id would be no gate, and never block or be ticked.
#[test]
fn pictures_before_titles_and_gates_are_passed_over() {
    let text = "# P1: T\n## 🔒 Interface Freeze Gates\n- [ ] 🔑 IF-0-P1-A: it\n- [x] **🔑 IF-0-P1-B** b\n\
        ## 🏊 Lane Index & Dependencies\n- SL-1 -- A\n## ✅ Verification\n- `make`\n";
    let phase = good(text);
    let gates: Vec<_> =
        phase.gates.iter().map(|g| (g.id.as_str(), g.closed, g.text.as_str())).collect();
    assert_eq!(gates, [("IF-0-P1-A", false, "it"), ("IF-0-P1-B", true, "b")]);
    assert_eq!(phase.test_plan.len(), 1);
    let ticked = tick(text, "IF-0-P1-A");
    assert_eq!(ticked, Some(text.replace("[ ] 🔑", "[x] 🔑")));
}

#[test]
fn the_metadata_names_a_phase_whose_heading_has_no_id() {
    let of = |metadata: &str, heading: &str| {
        let phase = good(&format!("---\n{metadata}\n---\n{heading}\n## Lane Index\n- SL-1 -- A\n"));
        format!("{} | {}", phase.id, phase.title)
    };
    assert_eq!(of("phase: P5", "# Phase 5 — Billing"), "P5 | Billing");
    assert_eq!(of("phase: 5", "# Phase 5: Billing"), "Phase 5 | Billing");
    assert_eq!(of("phase: P5", "# BILL: Billing"), "BILL | Billing");
}

#[test]
fn a_tick_changes_one_byte() {
    let windows = USUAL.replace('\n', "\r\n");
    let ticked = tick(&windows, "IF-1-P4-STORE").unwrap_or_default();
    assert_eq!(ticked.len(), windows.len());
    let changed: Vec<usize> =
        (0..windows.len()).filter(|at| ticked.as_bytes()[*at] != windows.as_bytes()[*at]).collect();
    assert_eq!(changed.len(), 1);
    assert!(good(&ticked).gates.iter().all(|gate| gate.closed));
    // Already closed, unknown, or only the beginning of another's name: nothing to change.
    for gate in ["IF-0-P4-MODEL", "IF-9", "IF-1-P4"] {
        assert_eq!(tick(USUAL, gate), None, "{gate}");
    }
    let bold = "# P1: T\n## Interface Freeze Gates\n- [] **IF-1** — a\n- [ ] IF-1-B: b\n";
    assert_eq!(
        tick(bold, "IF-1").as_deref(),
        Some("# P1: T\n## Interface Freeze Gates\n- [x] **IF-1** — a\n- [ ] IF-1-B: b\n")
    );
}

#[test]
fn a_phase_document_is_known_by_its_headings() {
    assert!(is_phase(USUAL));
    assert!(is_phase("# P1: T\r\n## D. Swim Lanes\r\n"));
    assert!(!is_phase("# Plan\n## Phase 1: Setup\n```\n## Lane Index\n```\n"));
}

/// A document with one lane and these rows of tasks.
fn with_tasks(rows: &str) -> String {
    format!(
        "{}\n## Lanes\n### SL-1 -- One\n| Task ID | Type | Depends On | Files in Scope | Tests Owned Files | Test Command(s) |\n\
         |---|---|---|---|---|---|\n{rows}\n",
        with_index("- SL-1 -- One\n")
    )
}
