//! Which tasks of a lane get worktrees of their own, and which of those run at once.
//!
//! Tasks come in the order in which the lane does them. Only neighbours of one kind form a group:
//! tests come before the code they test, and verification comes last. Dependencies of a task come
//! before it, so neighbours without a direct dependency have no indirect one either.

use piton_core::lane::TaskWorktrees;

use super::model::Task;

/// Characters that end the fixed part of a path.
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// Neighbouring tasks of a lane.
#[derive(Debug)]
pub(super) struct Group<'t> {
    /// The tasks, in order.
    pub tasks: Vec<&'t Task>,
    /// Whether each has a worktree of its own.
    pub apart: bool,
}

/// Groups the tasks of a lane that can run at once.
pub(super) fn groups<'t>(tasks: &[&'t Task], when: TaskWorktrees) -> Vec<Group<'t>> {
    let mut found: Vec<Group<'t>> = Vec::new();
    for task in tasks.iter().copied() {
        match found.last_mut() {
            Some(last) if last.tasks.iter().all(|other| at_once(other, task, when)) => {
                last.tasks.push(task);
            }
            _ => found.push(Group { tasks: vec![task], apart: false }),
        }
    }
    for group in &mut found {
        group.apart = when == TaskWorktrees::On || group.tasks.len() > 1;
    }
    found
}

/// Whether a task may run beside one that comes before it.
fn at_once(earlier: &Task, later: &Task, when: TaskWorktrees) -> bool {
    let depends = later.depends_on.iter().any(|d| d.raw == earlier.id);
    // A task that names no files may change any.
    let known =
        when == TaskWorktrees::On || (owned(earlier).count() > 0 && owned(later).count() > 0);
    let shared = || owned(earlier).any(|a| owned(later).any(|b| overlap(a, b)));
    when != TaskWorktrees::Off && earlier.kind == later.kind && !depends && known && !shared()
}

/// The files of a task.
fn owned(task: &Task) -> impl Iterator<Item = &str> {
    task.files.iter().chain(&task.tests_owned).map(String::as_str)
}

/// Whether two names may mean the same file: equal, one within the other, or patterns with a common
/// beginning.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    let known = |name: &str| -> (String, bool) {
        let name = name.trim_start_matches("./");
        match name.find(WILD) {
            Some(end) => (name[..end].to_owned(), true),
            None => (name.trim_end_matches('/').to_owned(), false),
        }
    };
    let ((a, a_wild), (b, b_wild)) = (known(a), known(b));
    let within = |inner: &str, outer: &str, wild: bool| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| wild || rest.is_empty() || rest.starts_with('/'))
    };
    // The beginning of a pattern may be the beginning of the other name.
    within(&a, &b, b_wild) || within(&b, &a, a_wild)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_overlap_where_they_may_stand_for_one_file() {
        for (a, b) in [
            ("src/a.rs", "./src/a.rs"),
            ("src", "src/a.rs"),
            ("src/", "src/deep/a.rs"),
            ("src/*.rs", "src/a.rs"),
            ("src/**", "src/deep/b.rs"),
            ("*.md", "docs/a.md"),
            ("src/a*", "src/ab/c.rs"),
            ("src/{a,b}.rs", "src/b.rs"),
        ] {
            assert!(overlap(a, b) && overlap(b, a), "{a} {b}");
        }
        for (a, b) in [("src/a.rs", "src/b.rs"), ("src", "srcs/a.rs"), ("src/*.rs", "docs/*.rs")] {
            assert!(!overlap(a, b) && !overlap(b, a), "{a} {b}");
        }
    }
}
