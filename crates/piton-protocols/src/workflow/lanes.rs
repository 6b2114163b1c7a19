//! The tasks of a phase as lanes: tasks marked `[P]` that name different files run side by side, the
//! others one after the other.

use std::collections::BTreeMap;

use piton_core::LanePath;
use piton_core::plan::Lane;

use super::tasks::{Phase, Task, TaskList};

/// The phase of tasks below no heading.
const UNNAMED: &str = "tasks";
/// Longest id that is made from a heading.
const ID_CHARS_MAX: usize = 40;

/// The phases of a list with their ids in a plan, each once.
pub(super) fn phases(list: &TaskList) -> Vec<(String, &Phase)> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let named = |phase: &Phase| match &phase.id {
        Some(id) => id.to_string(),
        None => slug(&phase.title),
    };
    let mut all = Vec::with_capacity(list.phases.len());
    for phase in &list.phases {
        let id = named(phase);
        let count = seen.entry(id.to_ascii_uppercase()).or_default();
        *count += 1;
        all.push((if *count == 1 { id } else { format!("{id}-{count}") }, phase));
    }
    all
}

/// A heading as an id.
fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    let slug: String = slug.chars().take(ID_CHARS_MAX).collect();
    if slug.is_empty() { UNNAMED.to_owned() } else { slug.trim_end_matches('-').to_owned() }
}

/// What a task asks for: its text with its story and the files that it names.
pub(super) fn words(task: &Task) -> String {
    let story = task.story.iter().map(|story| format!("[{story}] "));
    let mut text: String = story.collect();
    text.push_str(&task.text);
    let named = task.paths.iter().filter(|path| !task.text.contains(path.as_str()));
    let named: Vec<&str> = named.map(String::as_str).collect();
    if !named.is_empty() {
        text.push_str("\nFiles: ");
        text.push_str(&named.join(", "));
    }
    text
}

/// Tasks that run side by side, or one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Group<'t> {
    /// One after the other, in one lane.
    Row(Vec<&'t Task>),
    /// Side by side, a lane each.
    Beside(Vec<&'t Task>),
}

/// The tasks of a phase in groups, in their order.
pub(super) fn groups(tasks: &[Task]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for task in tasks {
        let names_files = task.parallel && !task.paths.is_empty();
        match groups.last_mut() {
            Some(Group::Beside(others)) if names_files && is_apart(task, others) => {
                others.push(task);
            }
            Some(Group::Row(row)) if !names_files => row.push(task),
            _ if names_files => groups.push(Group::Beside(vec![task])),
            _ => groups.push(Group::Row(vec![task])),
        }
    }
    groups
}

/// Tells whether a task names none of the files of others, nor a folder around or below them.
fn is_apart(task: &Task, others: &[&Task]) -> bool {
    let meets = |one: &str, other: &str| {
        let (one, other) = (one.trim_end_matches('/'), other.trim_end_matches('/'));
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        within(one, other) || within(other, one)
    };
    let mut theirs = others.iter().flat_map(|other| &other.paths);
    !theirs.any(|path| task.paths.iter().any(|own| meets(own, path)))
}

/// The lanes of groups: each lane of a group needs those of the group before it.
pub(super) fn lanes<'t>(
    phase: &str,
    groups: &[Group<'t>],
    make: impl Fn(&str, &[&'t Task]) -> Lane,
) -> Vec<Lane> {
    let mut all: Vec<Lane> = Vec::new();
    let mut before: Vec<LanePath> = Vec::new();
    for group in groups {
        let rows: Vec<&[&Task]> = match group {
            Group::Row(tasks) => vec![tasks.as_slice()],
            Group::Beside(tasks) => tasks.chunks(1).collect(),
        };
        let made = rows.iter().filter_map(|row| {
            let lane = make(&row.first()?.id, row);
            Some(Lane { needs: before.clone(), ..lane })
        });
        let made: Vec<Lane> = made.collect();
        let path = |lane: &Lane| LanePath { phase: phase.to_owned(), lane: lane.id.clone() };
        before = made.iter().map(path).collect();
        all.extend(made);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::tasks;
    use super::*;

    fn grouped(text: &str) -> String {
        let (list, problems) = tasks::inspect("tasks.md", text);
        assert!(problems.is_empty(), "{problems:?}");
        let ids =
            |tasks: &[&Task]| tasks.iter().map(|t| t.id.as_str()).collect::<Vec<_>>().join(" ");
        let groups = groups(&list.phases[0].tasks);
        let shown = groups.iter().map(|group| match group {
            Group::Row(tasks) => ids(tasks),
            Group::Beside(tasks) => format!("({})", ids(tasks)),
        });
        shown.collect::<Vec<_>>().join(" > ")
    }

    /// Lost: two agents write one file at the same time.
    #[test]
    fn only_tasks_with_other_files_run_side_by_side() {
        let text = "## Phase 1: A\n- [ ] T001 one\n- [ ] T002 two in src/a.rs\n\
                    - [ ] T003 [P] x in src/b.rs\n- [ ] T004 [P] y in src/c.rs\n\
                    - [ ] T005 [P] z in src/c.rs\n- [ ] T006 [P] all of src/\n- [ ] T007 [P] no file\n";
        assert_eq!(grouped(text), "T001 T002 > (T003 T004) > (T005) > (T006) > T007");
    }

    #[test]
    fn phases_without_a_number_are_called_by_their_heading() {
        let text =
            "## Set up!\n- [ ] T001 a\n## Set up\n- [ ] T002 b\n## Phase 2: C\n- [ ] T003 c\n";
        let (list, _) = tasks::inspect("tasks.md", text);
        let ids: Vec<String> = phases(&list).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["set-up", "set-up-2", "2"]);
    }
}
