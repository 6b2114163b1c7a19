//! The forms of a lane index, of swim lanes, and of what they depend on.

use super::*;

#[test]
fn every_separator_and_mark_begins_a_lane() {
    for index in [
        "- SL-DB -- Data",
        "- SL-DB — Data",
        "- SL-DB - Data",
        "* **SL-DB** – Data",
        "- `SL-DB`: Data",
        "SL-DB — Data",
        "### SL-DB -- Data",
    ] {
        let phase = good(&with_index(index));
        let lanes: Vec<_> = phase.lanes.iter().map(|l| (l.id.as_str(), l.name.as_str())).collect();
        assert_eq!(lanes, [("SL-DB", "Data")], "{index}");
    }
}

#[test]
fn an_index_within_a_fence_without_bullets_is_read() {
    let index = "~~~text\nSL-1 — One\n  Depends on: (none)\n  Blocks: (none)\n  Parallel-safe: yes\n\n\
                 SL-2 — Two\n  Depends on: SL-1\n~~~";
    let phase = good(&with_index(index));
    assert_eq!(phase.lanes.len(), 2);
    assert!(phase.lanes[0].ready);
    assert_eq!(phase.lanes[1].blocked_by, ["SL-1"]);
}

#[test]
fn one_line_with_semicolons_is_a_whole_lane() {
    let index = "- SL-0 - Freeze; Depends on: (none); Blocks: SL-1, SL-2; Parallel-safe: no\n\
                 - SL-1 - Trace; Depends on: SL-0; SL-2; Parallel-safe: mixed (a; b); Retries: 3\n\
                 - SL-2 - Docs; really; Depends on: OTHERPHASE\n\nLane DAG:\n\n```text\nOTHERPHASE\n  -> SL-0 -> SL-1\n```\n";
    let phase = good(&with_index(index));
    let [zero, one, two] = phase.lanes.as_slice() else { panic!("{:?}", phase.lanes) };
    assert_eq!(zero.blocks, ["SL-1", "SL-2"]);
    assert_eq!(names(&one.depends_on), ["SL-0", "SL-2"]);
    assert_eq!(one.parallel_safe, ParallelSafe::Mixed("a; b".to_owned()));
    assert_eq!(one.retries, Some(3));
    assert_eq!(two.name, "Docs; really");
    assert_eq!(two.depends_on[0].kind, DependencyKind::Phase);
    assert_eq!(two.blocked_by, ["OTHERPHASE", "SL-0"]);
}

/// Lost: a picture of the lanes below their list would list them twice, or add the phase before.
#[test]
fn a_fence_that_draws_the_lanes_lists_none() {
    for drawing in [
        "SL-1\n ├─> SL-2\n └─> SL-3\n",
        "P27\n ├─> SL-1 ─> SL-2 ─┐\n └─> SL-3 ─────────┘\n",
        "SEMP24TAIL\n  -> SL-1 -> SL-2 -> SL-3\n",
    ] {
        let list =
            "- SL-1 - One; Depends on: (none)\n- SL-2 - Two; Depends on: SL-1\n- SL-3 - Three\n";
        let phase = good(&with_index(&format!("{list}\nLane DAG:\n\n```text\n{drawing}```\n")));
        let ids: Vec<&str> = phase.lanes.iter().map(|lane| lane.id.as_str()).collect();
        assert_eq!(ids, ["SL-1", "SL-2", "SL-3"], "{drawing}");
    }
}

/// Lost: what follows an attribute would become part of the lane's name.
#[test]
fn what_follows_an_attribute_is_no_name() {
    let index = "- SL-1 -- One\n  - Parallel-safe: mixed: tests; not the rest\n  - Note: a; b\n\
                 - SL-2 -- Two; Parallel-safe: no; one lock\n";
    let phase = good(&with_index(index));
    let [one, two] = phase.lanes.as_slice() else { panic!("{:?}", phase.lanes) };
    assert_eq!((one.name.as_str(), two.name.as_str()), ("One", "Two"));
    assert_eq!(one.parallel_safe, ParallelSafe::Mixed("tests; not the rest".to_owned()));
    assert_eq!(two.parallel_safe, ParallelSafe::No);
}

#[test]
fn attributes_may_be_bold_and_lists_may_stand_below_their_key() {
    let index = "- **SL-1** — One\n  - **Depends on:**\n    - IF-0-P1-A\n    - `SL-2`\n  - **Parallel-safe**: Yes\n\
                 - **SL-2** — Two\n  - _note_: x\n  - Depends on: None\n";
    let text = format!("{}## Interface Freeze Gates\n- [x] IF-0-P1-A: a\n", with_index(index));
    let phase = good(&text);
    assert_eq!(names(&phase.lanes[0].depends_on), ["IF-0-P1-A", "SL-2"]);
    assert_eq!(phase.lanes[0].parallel_safe, ParallelSafe::Yes);
    assert_eq!(phase.lanes[0].blocked_by, ["SL-2"]);
    assert!(phase.lanes[1].ready);
}

#[test]
fn dependencies_name_gates_lanes_and_phases_and_none_means_none() {
    let index = "- SL-1 -- One\n  - Depends on: (none - foundation lane)\n\
                 - SL-2 -- Two\n  - Depends on: IF-0-P1-A (types), SL-1 and Phase 2\n\
                 - SL-3 -- Three\n  - Depends on: None (Phase 4 waits for it)\n";
    let text = format!("{}## Interface Freeze Gates\n- [ ] IF-0-P1-A: a\n", with_index(index));
    let phase = good(&text);
    let kinds: Vec<_> =
        phase.lanes[1].depends_on.iter().map(|d| (d.raw.as_str(), d.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("IF-0-P1-A", DependencyKind::Gate),
            ("SL-1", DependencyKind::Lane),
            ("Phase 2", DependencyKind::Phase),
        ]
    );
    assert_eq!(phase.lanes[1].blocked_by, ["IF-0-P1-A", "SL-1", "Phase 2"]);
    assert!(phase.lanes[0].ready && phase.lanes[2].ready);
}

#[test]
fn what_blocks_a_lane_is_a_dependency_of_it_and_what_is_no_lane_is_not() {
    let index = "- SL-1 -- One\n  - Blocks: SL-2, Phase 3, P1 acceptance\n- SL-2 -- Two\n";
    let phase = good(&with_index(index));
    assert_eq!(names(&phase.lanes[1].depends_on), ["SL-1"]);
    assert_eq!(phase.lanes[1].depends_on[0].origin, Origin::Blocks);
    assert_eq!(phase.lanes[1].blocked_by, ["SL-1"]);
    assert_eq!(phase.lanes.len(), 2);
}

#[test]
fn parallel_safe_is_yes_no_mixed_or_not_said() {
    for (value, wanted) in [
        ("yes", ParallelSafe::Yes),
        ("No (shared files with SL-2)", ParallelSafe::No),
        ("mixed (tests share a port)", ParallelSafe::Mixed("tests share a port".to_owned())),
        ("mixed", ParallelSafe::Mixed(String::new())),
        ("perhaps", ParallelSafe::Unknown),
    ] {
        let phase = good(&with_index(&format!("- SL-1 -- One\n  - Parallel-safe: {value}")));
        assert_eq!(phase.lanes[0].parallel_safe, wanted, "{value}");
    }
    assert_eq!(good(&with_index("- SL-1 -- One")).lanes[0].parallel_safe.word(), None);
}

#[test]
fn without_an_index_the_swim_lanes_are_the_lanes_after_a_confirmation() {
    let text = "# P1: T\n## Interface Freeze Gates\n- [ ] IF-0-P1-A: a\n## D. Swim Lanes\n\
        ### SL-1 -- One\n**Interfaces provided**: IF-0-P1-A.\n**Depends on**: none\n\
        ### Lane SL-2: Two\n**Interfaces consumed**:\n- `IF-0-P1-A`: from SL-1\n- **Retries**: 1\n\
        ## E. Notes\n### SL-9 -- not a lane\n";
    let (phase, problems) = inspect("p.md", text);
    assert!(phase.needs_confirmation);
    assert_eq!(problems.len(), 1);
    assert_eq!((problems[0].code, problems[0].severity), (code::NO_LANE_INDEX, Severity::Warning));
    let lanes: Vec<_> = phase.lanes.iter().map(|l| (l.id.as_str(), l.name.as_str())).collect();
    assert_eq!(lanes, [("SL-1", "One"), ("SL-2", "Two")]);
    assert_eq!(phase.lanes[1].blocked_by, ["IF-0-P1-A"]);
    assert_eq!(phase.lanes[1].retries, Some(1));
}

#[test]
fn swim_lanes_need_no_mark_and_their_subsections_are_no_lanes() {
    let text = "# P1: T\n## D. Swim Lanes\n### SL-1 First\n#### SL-1 Tasks\n- **Retries**: 2\n\
        ### SL-2 — Second\n#### SL-2 notes\n- **Depends on**: SL-1\n### IF-0-P1-A first\n";
    let (phase, problems) = inspect("p.md", text);
    let lanes: Vec<_> = phase.lanes.iter().map(|l| (l.id.as_str(), l.name.as_str())).collect();
    assert_eq!(lanes, [("SL-1", "First"), ("SL-2", "Second")]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(phase.lanes[0].retries, Some(2));
    assert_eq!(phase.lanes[1].blocked_by, ["SL-1"]);
}

#[test]
fn what_a_lane_provides_is_read_wherever_its_heading_stands() {
    let text = format!(
        "{}## E. Tasks\n### SL-1 — API\n**Provides**: IF-0-P1-A\n**Retries**: 2\n\n#### Notes\nProvides: IF-0-P1-B\n\
         ### Others\nProvides: IF-0-P1-C\n## F. More\nProvides: IF-0-P1-D\n\
         ## Interface Freeze Gates\n- [ ] IF-0-P1-A: a\n- [ ] IF-0-P1-B: b\n- [ ] IF-0-P1-C: c\n- [ ] IF-0-P1-D: d\n",
        with_index("- SL-1 -- One\n")
    );
    let phase = good(&text);
    assert_eq!(phase.lanes[0].provides, ["IF-0-P1-A", "IF-0-P1-B"]);
    assert_eq!((phase.lanes[0].retries, phase.lanes[0].name.as_str()), (Some(2), "One"));
}

#[test]
fn gates_that_a_lane_provides_stand_in_one_line_or_in_a_list() {
    let text = format!(
        "{}## Lanes\n### SL-1 — One\n- **Interfaces provided**: IF-0-P1-A, IF-0-P1-B.\n- **Interfaces consumed**: IF-0-P1-C\n\
         ### SL-2 — Two\n**Interfaces provided**:\n\n- types (IF-0-P1-D)\n- `fn x()`\n\n- IF-0-P1-E is another's\n\
         ## Interface Freeze Gates\n- [ ] IF-0-P1-A: a\n- [ ] IF-0-P1-B: b\n- [ ] IF-0-P1-D: d\n",
        with_index("- SL-1 -- One\n- SL-2 -- Two\n")
    );
    let phase = good(&text);
    assert_eq!(phase.lanes[0].provides, ["IF-0-P1-A", "IF-0-P1-B"]);
    assert_eq!(phase.lanes[1].provides, ["IF-0-P1-D"]);
    // With an index, only the index says what is waited for.
    assert!(phase.lanes[0].ready);
}

/// Lost: lanes would start before what they depend on.
#[test]
fn attributes_in_brackets_behind_a_name_are_not_a_part_of_it() {
    let phase = good(&with_index(
        "- **SL-0 — Types** (Parallel-safe: yes)\n- **SL-1 — Impl** (Depends on: SL-0; Parallel-safe: no)\n\
         - SL-2 — More (depends on SL-0, SL-1)\n- SL-3 — Docs (the last)",
    ));
    let read: Vec<_> =
        phase.lanes.iter().map(|l| (l.name.as_str(), names(&l.depends_on).join(" "))).collect();
    let wanted = [("Types", ""), ("Impl", "SL-0"), ("More", "SL-0 SL-1"), ("Docs (the last)", "")];
    assert_eq!(read, wanted.map(|(name, needs)| (name, needs.to_owned())));
    assert_eq!(phase.lanes[1].parallel_safe, ParallelSafe::No);
    let text =
        with_index("- SL-0 — Types\n- SL-1 — Impl, depends on SL-0\n- SL-2 — Render code blocks");
    let (_, problems) = inspect("p.md", &text);
    let found: Vec<_> = problems.iter().map(|p| (p.line, p.message.as_str())).collect();
    let words = "the name of the lane `SL-1` says what it depends on, which is not read";
    assert_eq!(found, [(6, words)]);
}

/// Lost: a lane whose index entry is bare would start before what its section says it needs.
#[test]
fn what_an_index_does_not_say_the_section_of_a_lane_says() {
    let text = with_index("- SL-0 -- A\n- SL-1 -- B\n- SL-2 -- C\n  - Depends on: (none)")
        + "\n## Lanes\n### SL-1 -- B\n- **Depends on**: SL-0\n### SL-2 -- C\n- **Depends on**: SL-0\n";
    let phase = good(&text);
    let needs: Vec<_> = phase.lanes.iter().map(|l| names(&l.depends_on)).collect();
    assert_eq!(needs, [vec![], vec!["SL-0"], vec![]]);
}

/// Lost: one name that is not known would take the others along, and a lane would start too early.
#[test]
fn an_unknown_name_among_what_a_lane_needs_is_told_and_the_others_count() {
    let text = with_index("- SL-0 -- A\n- SL-1 -- B")
        + "\n## Lanes\n### SL-1 -- B\n- **Depends on**: SL-0, post-merge\n";
    let (phase, problems) = inspect("p.md", &text);
    let needs: Vec<_> = phase.lanes.iter().map(|l| names(&l.depends_on)).collect();
    assert_eq!(needs, [vec![], vec!["SL-0", "post-merge"]]);
    let words = "the lane `SL-1` depends on `post-merge`, which is not a lane, gate or phase";
    assert_eq!(problems.iter().map(|p| p.message.as_str()).collect::<Vec<_>>(), [words]);
}

/// Lost: a person would add an index that is there.
#[test]
fn an_index_whose_lanes_have_no_ids_is_named_by_its_line() {
    let (_, problems) = inspect("p.md", &with_index("- Lane A: Backend\n- Lane B: Frontend"));
    let found: Vec<_> = problems.iter().map(|p| (p.line, p.message.as_str())).collect();
    assert_eq!(found, [(5, "the lane index lists no lane with an id")]);
}
