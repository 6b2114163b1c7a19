//! The task board: four columns of tasks, and sprints.

use piton_formats::Diagnostic;
use piton_formats::diagnostic::code;
use piton_formats::sink::Sink;
use piton_formats::yaml::{Document, Problem};
use serde_json::Value;

/// The word for a task that was split.
pub const DECOMPOSED: &str = "decomposed";

/// A column of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Not begun.
    Backlog,
    /// At work.
    InProgress,
    /// Waiting for something.
    Blocked,
    /// Finished.
    Done,
}

impl Column {
    /// All of them, in the order of the board.
    pub const ALL: [Self; 4] = [Self::Backlog, Self::InProgress, Self::Blocked, Self::Done];

    /// The key in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Backlog => "backlog",
            Self::InProgress => "inProgress",
            Self::Blocked => "blocked",
            Self::Done => "done",
        }
    }

    /// The column that a word means, in any spelling.
    pub fn named(word: &str) -> Option<Self> {
        let plain = |text: &str| text.replace(['_', '-', ' '], "").to_lowercase();
        Self::ALL.into_iter().find(|column| plain(column.as_str()) == plain(word))
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its type.
    pub kind: String,
    /// More about it.
    pub description: String,
    /// What must hold when it is done.
    pub criteria: Vec<String>,
    /// How long it takes, in minutes.
    pub minutes: Option<u64>,
    /// Tasks that come before it.
    pub dependencies: Vec<String>,
    /// Its status, if the file has one.
    pub status: String,
    /// Where it is.
    pub column: Column,
    /// Its number in the column.
    pub index: usize,
}

/// A sprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sprint {
    /// Its id.
    pub id: String,
    /// The ids of its tasks.
    pub tasks: Vec<String>,
    /// Whether the file calls it active.
    pub is_active: bool,
}

/// A board as it is read; it is edited in its document.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    /// The file.
    pub document: Document,
    /// All tasks, column by column.
    pub tasks: Vec<Task>,
    /// The sprints.
    pub sprints: Vec<Sprint>,
}

impl Board {
    /// Reads a board, and says what is odd about it.
    pub fn read(file: &str, text: &str) -> Result<(Self, Vec<Diagnostic>), Problem> {
        let document = Document::new(file, text)?;
        let mut sink = Sink::new(file, text);
        let mut tasks: Vec<Task> = Vec::new();
        for column in Column::ALL {
            let name = column.as_str();
            match document.get(&[name]) {
                None | Some(Value::Null) => {}
                Some(Value::Array(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        let at = || sink_span(&sink, &document, name, index);
                        let task = task(item, column, index);
                        let Some(task) = task else {
                            let span = at();
                            let hint = "give it an `id`, such as T001";
                            sink.warn(code::BAD_RECORD, &span, "a task without an id", hint);
                            continue;
                        };
                        if tasks.iter().any(|known| known.id == task.id) {
                            let (span, words) = (at(), format!("task {} occurs twice", task.id));
                            sink.error(code::DUPLICATE_ID, &span, words, "rename or remove one");
                        }
                        tasks.push(task);
                    }
                }
                Some(_) => {
                    let span = sink.line_span(document.line(&[name]));
                    let words = format!("`{name}` is not a list of tasks");
                    sink.error(code::WRONG_TYPE, &span, words, "write each task as `- id: T001`");
                }
            }
        }
        let sprints = document.get(&["sprintSchedule"]);
        let sprints = sprints.as_ref().and_then(Value::as_array).into_iter().flatten();
        let sprints = sprints.map(sprint).collect();
        Ok((Self { document, tasks, sprints }, sink.finish()))
    }

    /// A task by its id.
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// The ids of a column.
    pub fn ids(&self, column: Column) -> Vec<String> {
        let own = self.tasks.iter().filter(|task| task.column == column);
        own.map(|task| task.id.clone()).collect()
    }

    /// The task in progress; of several the first.
    pub fn current(&self) -> Option<&Task> {
        self.tasks.iter().find(|task| task.column == Column::InProgress && !task.is_split())
    }

    /// The tasks in progress that are a session's: the one that it started comes first, and those that
    /// other sessions started are left out.
    pub fn in_progress(&self, own: Option<&str>, others: &[String]) -> Vec<&Task> {
        let is_own = |task: &Task| own == Some(task.id.as_str());
        let is_kept = |task: &&Task| {
            let is_open = task.column == Column::InProgress && !task.is_split();
            is_open && (is_own(task) || !others.contains(&task.id))
        };
        let mut tasks: Vec<&Task> = self.tasks.iter().filter(is_kept).collect();
        tasks.sort_by_key(|task| !is_own(task));
        tasks
    }

    /// The next tasks in the order of the board whose dependencies are done.
    pub fn next(&self, count: usize) -> Vec<&Task> {
        let is_done = |id: &String| self.task(id).is_some_and(|task| task.column == Column::Done);
        let is_ready = |task: &&Task| {
            task.column == Column::Backlog
                && !task.is_split()
                && task.dependencies.iter().all(is_done)
        };
        self.tasks.iter().filter(is_ready).take(count).collect()
    }

    /// The sprint that holds the task in progress, else one that the file calls active.
    pub fn active_sprint(&self) -> Option<&str> {
        self.sprint_of(self.current())
    }

    /// The sprint that holds a task, else one that the file calls active.
    pub fn sprint_of(&self, task: Option<&Task>) -> Option<&str> {
        let current = task.map(|task| task.id.as_str());
        let named = || self.sprints.iter().filter(|sprint| !sprint.id.is_empty());
        // A part of a task is in the sprint of the whole.
        let is_part = |id: &String| {
            let rest = current.and_then(|current| current.strip_prefix(id.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let holds = |sprint: &&Sprint| sprint.tasks.iter().any(is_part);
        let found = named().find(holds).or_else(|| named().find(|sprint| sprint.is_active));
        found.map(|sprint| sprint.id.as_str())
    }
}

impl Task {
    /// Tells whether it was split into subtasks.
    pub fn is_split(&self) -> bool {
        self.status == DECOMPOSED
    }

    /// Its id and its title.
    pub fn name(&self) -> String {
        if self.title.is_empty() { self.id.clone() } else { format!("{}: {}", self.id, self.title) }
    }
}

fn sink_span(
    sink: &Sink<'_>,
    document: &Document,
    column: &str,
    index: usize,
) -> std::ops::Range<usize> {
    sink.line_span(document.line(&[column, &index.to_string()]))
}

fn task(item: &Value, column: Column, index: usize) -> Option<Task> {
    // A column may list ids only.
    if let Some(id) = item.as_str().filter(|id| !id.is_empty()) {
        return Some(Task { id: id.to_owned(), ..blank(column, index) });
    }
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| item.get(name));
        match found {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        }
    };
    let list = |names: &[&str], separator: char| -> Vec<String> {
        let found = names.iter().find_map(|name| item.get(name));
        match found {
            Some(Value::String(text)) => text
                .split(separator)
                .map(|part| part.trim().to_owned())
                .filter(|part| !part.is_empty())
                .collect(),
            Some(Value::Array(items)) => {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    };
    let id = text(&["id"]);
    (!id.is_empty()).then(|| Task {
        id,
        title: text(&["title"]),
        kind: text(&["type"]),
        description: text(&["description"]),
        criteria: list(&["acceptanceCriteria", "ac"], '|'),
        minutes: minutes(&text(&["est", "estimate"])),
        dependencies: list(&["dependencies", "deps"], ','),
        status: text(&["status"]),
        column,
        index,
    })
}

fn blank(column: Column, index: usize) -> Task {
    let (id, title, kind, description, status) = Default::default();
    let (criteria, minutes, dependencies) = Default::default();
    Task { id, title, kind, description, criteria, minutes, dependencies, status, column, index }
}

fn sprint(item: &Value) -> Sprint {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let tasks = item.get("tasks").and_then(Value::as_array).into_iter().flatten();
    Sprint {
        id: text("id").to_owned(),
        tasks: tasks.filter_map(Value::as_str).map(str::to_owned).collect(),
        is_active: text("status").eq_ignore_ascii_case("active"),
    }
}

/// An estimate such as `3h`, `2d`, `45m`, `1.5h` in minutes; a day has eight hours.
fn minutes(text: &str) -> Option<u64> {
    const HOURS_PER_DAY: f64 = 8.0;
    let text = text.trim().to_lowercase();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = (text[..split].parse::<f64>().ok()?, text[split..].trim());
    let minutes = match unit {
        "m" | "min" | "mins" | "minutes" => number,
        "h" | "hr" | "hrs" | "hour" | "hours" => number * 60.0,
        "d" | "day" | "days" => number * 60.0 * HOURS_PER_DAY,
        "w" | "week" | "weeks" => number * 60.0 * HOURS_PER_DAY * 5.0,
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "digits only")]
    Some(minutes.round() as u64)
}
