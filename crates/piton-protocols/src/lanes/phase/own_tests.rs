//! Whether the tests of a task are its own: whether they must pass before the next task.
//!
//! The commands of a row often test more than the task does: the whole suite fails as long as later
//! tasks of the lane are still to come. Such commands prove the lane, on what is merged, and not the
//! task.

use super::groups::overlap;
use super::model::{Task, TaskKind};

/// Whether the commands of a task must pass when it is done.
pub(super) fn is_gate(tasks: &[&Task], at: usize) -> bool {
    let (task, later) = (tasks[at], &tasks[at + 1..]);
    let works = |t: &&&Task| matches!(t.kind, TaskKind::Test | TaskKind::Impl | TaskKind::Unknown);
    if later.iter().find(works).is_none() {
        return true;
    }
    // The code that it tests is still to come.
    let early = task.kind == TaskKind::Test && later.iter().any(|t| t.kind == TaskKind::Impl);
    !early && owns_tests(task) && task.test_commands.iter().all(|test| names(test, &tasks[..=at]))
}

/// Whether the test files that a task names are among those it may change.
fn owns_tests(task: &Task) -> bool {
    let mut paths = task.tests_owned.iter().filter(|name| is_path(name));
    task.kind == TaskKind::Test
        || paths.all(|test| task.files.iter().any(|file| overlap(file, test)))
}

/// Whether a command names a file of these tasks.
fn names(command: &str, tasks: &[&Task]) -> bool {
    let files = tasks.iter().flat_map(|task| task.files.iter().chain(&task.tests_owned));
    let mut files = files.filter(|name| is_path(name));
    let words: Vec<&str> =
        command.split(|c: char| c.is_whitespace() || "'\"()=;".contains(c)).collect();
    files.any(|file| {
        words.iter().any(|word| {
            let path = word.split("::").next().unwrap_or_default().trim_start_matches("./");
            is_path(path) && overlap(file, path) && !is_wider(path, file)
        })
    })
}

/// Whether a path of a command is a folder around a file: then it tests more than that file.
fn is_wider(path: &str, file: &str) -> bool {
    let folder = path.trim_end_matches('/');
    file.trim_start_matches("./").strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a name has the form of a path.
fn is_path(name: &str) -> bool {
    !name.contains(char::is_whitespace) && name.contains(['/', '.']) && name.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_a_file_by_its_path() {
        let mut task = Task { files: vec!["tests/a.py".to_owned()], ..Task::default() };
        for command in ["pytest tests/a.py -q", "pytest ./tests/a.py::one", "sh -c 'x tests/a.py'"]
        {
            assert!(names(command, &[&task]), "{command}");
        }
        for command in ["make test", "pytest", "pytest tests/", "pytest tests/b.py"] {
            assert!(!names(command, &[&task]), "{command}");
        }
        task.files = vec!["tests/**".to_owned()];
        assert!(names("pytest tests/a.py", &[&task]));
    }
}
