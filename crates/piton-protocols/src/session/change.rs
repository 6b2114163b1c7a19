//! Changes of the memory bank: as `progress-delta.json` collects them, and what they do to its files.
//!
//! A move, an update or a deletion whose effect is there already does nothing. Something that is added
//! twice is there twice, unless nobody knows whether it was written before a crash: then it counts as
//! made if it is there.

use piton_formats::Diagnostic;
use piton_formats::diagnostic::code;
use piton_formats::json::{Object, Tree};
use piton_formats::sink::Sink;
use piton_formats::yaml::{Document, Problem};
use serde_json::{Value, json};

use super::board::{Board, Column, DECOMPOSED, Task};

/// Changes that are collected before they are written.
pub const FLUSH_THRESHOLD: u64 = 10;

/// A change as it is written.
pub type Raw = Value;

/// The operations of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Something is added.
    Add,
    /// A value is set.
    Update,
    /// Something is removed.
    Delete,
    /// A task changes its column.
    Move,
    /// A task is split.
    Decompose,
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The file, as the change names it.
    pub file: String,
    /// What happens to it.
    pub operation: Operation,
    /// Where in the file.
    pub field: String,
    /// The task that it is about.
    pub task: Option<String>,
    /// The column that a task goes to.
    pub to: Option<Column>,
    /// The new value.
    pub value: Value,
    /// Whether it may have been made already, and nobody knows.
    pub is_unsure: bool,
}

impl Change {
    /// The same, although it may have been made already.
    #[must_use]
    pub fn unsure(self, is_unsure: bool) -> Self {
        Self { is_unsure, ..self }
    }

    /// Reads a change; the error says what is missing.
    pub fn read(value: &Value) -> Result<Self, &'static str> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let operation = match text("operation") {
            Some("add") => Operation::Add,
            Some("update") => Operation::Update,
            Some("delete") => Operation::Delete,
            Some("move") => Operation::Move,
            Some("decompose") => Operation::Decompose,
            _ => return Err("a change has an unknown operation"),
        };
        let file = text("file").filter(|file| !file.is_empty()).ok_or("a change names no file")?;
        let new = value.get("value").or_else(|| value.get("newValue")).cloned().unwrap_or_default();
        let to = text("to").or_else(|| new.as_str()).and_then(Column::named);
        let change = Self {
            file: file.to_owned(),
            operation,
            field: text("field").unwrap_or_default().to_owned(),
            task: text("taskId").map(str::to_owned),
            to,
            value: new,
            is_unsure: false,
        };
        match operation {
            Operation::Move if change.task.is_none() || to.is_none() => {
                Err("a move names no task or no column")
            }
            Operation::Decompose if change.task.is_none() => Err("a decomposition names no task"),
            Operation::Add | Operation::Update | Operation::Delete
                if change.field.is_empty() && change.task.is_none() =>
            {
                Err("a change names no field")
            }
            _ => Ok(change),
        }
    }

    /// Makes the change in a document of the bank; nothing if its effect is there already.
    pub fn apply(&self, document: &Document, is_board: bool) -> Result<Document, Problem> {
        match (self.operation, is_board) {
            (Operation::Move, true) => self.move_task(document),
            (Operation::Decompose, true) => self.split_task(document),
            (Operation::Add, true) => self.add_task(document),
            (Operation::Delete, true) if self.task.is_some() && self.is_whole_task() => {
                let mut document = document.clone();
                // One that is gone already is as it should be.
                if let Some([column, index]) = self.place(&document)? {
                    document.remove(&[&column, &index])?;
                }
                Ok(document)
            }
            (Operation::Update, true) if self.task.is_some() => self.update_task(document),
            (Operation::Update, _) => {
                let mut document = document.clone();
                set_deep(&mut document, &steps(&self.field), self.value.clone())?;
                Ok(document)
            }
            (Operation::Add, false) => self.add_value(document.clone()),
            (Operation::Delete, _) => {
                let mut document = document.clone();
                let path = steps(&self.field);
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                if document.get(&path).is_some() {
                    document.remove(&path)?;
                }
                Ok(document)
            }
            (Operation::Move | Operation::Decompose, false) => Ok(document.clone()),
        }
    }

    /// Where its task is on the board.
    fn place(&self, document: &Document) -> Result<Option<[String; 2]>, Problem> {
        let board = board_of(document)?;
        let id = self.task.as_deref().unwrap_or_default();
        let task = board.task(id);
        Ok(task.map(|task| [task.column.as_str().to_owned(), task.index.to_string()]))
    }

    fn move_task(&self, document: &Document) -> Result<Document, Problem> {
        let board = board_of(document)?;
        let id = self.task.as_deref().unwrap_or_default();
        let (Some(task), Some(to)) = (board.task(id), self.to) else {
            return missing(&board.document, id);
        };
        let (column, index) = (task.column, task.index.to_string());
        let has_status = !task.status.is_empty() && Column::named(&task.status).is_some();
        let mut document = board.document.clone();
        if column == to {
            return Ok(document);
        }
        if has_status {
            document.set(&[column.as_str(), &index, "status"], to.as_str())?;
        }
        document.move_element(&[column.as_str(), &index], &[to.as_str()])?;
        kept(&board, document, Some((task, to)), &[])
    }

    fn split_task(&self, document: &Document) -> Result<Document, Problem> {
        let board = board_of(document)?;
        let id = self.task.as_deref().unwrap_or_default();
        let Some(task) = board.task(id) else { return missing(&board.document, id) };
        let (column, index) = (task.column, task.index.to_string());
        let known: Vec<String> = board.tasks.iter().map(|task| task.id.clone()).collect();
        let mut document = board.document.clone();
        if task.status != DECOMPOSED {
            document.set(&[column.as_str(), &index, "status"], DECOMPOSED)?;
        }
        let moved = (column == Column::InProgress).then_some((task, Column::Backlog));
        if let Some((_, to)) = moved {
            document.move_element(&[column.as_str(), &index], &[to.as_str()])?;
        }
        let mut added = Vec::new();
        for (number, part) in self.value.as_array().into_iter().flatten().enumerate() {
            let id = part.get("id").and_then(Value::as_str).unwrap_or_default();
            if known.iter().any(|known| known == id) {
                continue;
            }
            let column = if number == 0 { Column::InProgress } else { Column::Backlog };
            push(&mut document, column, task_tree(part))?;
            added.push((id.to_owned(), column));
        }
        kept(&board, document, moved, &added)
    }

    fn add_task(&self, document: &Document) -> Result<Document, Problem> {
        let board = board_of(document)?;
        let field = steps(&self.field);
        let column = field.first().and_then(|name| Column::named(name));
        let id = self.value.get("id").and_then(Value::as_str).or(self.task.as_deref());
        let is_known = id.is_some_and(|id| board.task(id).is_some());
        let mut document = board.document.clone();
        match column {
            _ if is_known && self.value.is_object() => Ok(document),
            Some(column) if self.value.is_object() => {
                push(&mut document, column, task_tree(&self.value))?;
                let id = self.value.get("id").and_then(Value::as_str);
                let added: Vec<_> = id.map(|id| (id.to_owned(), column)).into_iter().collect();
                kept(&board, document, None, &added)
            }
            _ => self.add_value(document),
        }
    }

    /// Adds to a list; one that is missing begins with the value.
    fn add_value(&self, mut document: Document) -> Result<Document, Problem> {
        let path = steps(&self.field);
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match document.get(&names) {
            Some(Value::Array(items)) if self.is_unsure && items.contains(&self.value) => {}
            Some(Value::Array(_)) => document.push(&names, self.value.clone())?,
            Some(old) if !old.is_null() => {
                let words =
                    format!("`{}` is not a list that something can be added to", self.field);
                let hint = "make it a list, or correct the change in `progress-delta.json`";
                return Err(problem(
                    &document,
                    document.line(&names),
                    code::WRONG_TYPE,
                    words,
                    hint,
                ));
            }
            _ => set_deep(&mut document, &path, Value::Array(vec![self.value.clone()]))?,
        }
        Ok(document)
    }

    /// Sets a value of the task, wherever it is by now.
    fn update_task(&self, document: &Document) -> Result<Document, Problem> {
        let field = steps(&self.field);
        let names: Vec<&str> = field.iter().map(String::as_str).collect();
        let own = match names.as_slice() {
            [column, index, rest @ ..]
                if Column::named(column).is_some() && index.parse::<usize>().is_ok() =>
            {
                rest
            }
            rest => rest,
        };
        let id = self.task.as_deref().unwrap_or_default();
        let Some(place) = self.place(document)? else { return missing(document, id) };
        let mut document = document.clone();
        let path: Vec<String> =
            place.into_iter().chain(own.iter().map(|name| (*name).to_owned())).collect();
        if !own.is_empty() {
            set_deep(&mut document, &path, self.value.clone())?;
        }
        Ok(document)
    }

    /// Tells whether its field names a task, and not a part of one.
    fn is_whole_task(&self) -> bool {
        steps(&self.field).len() <= 2
    }
}

fn missing(document: &Document, id: &str) -> Result<Document, Problem> {
    let hint = "add the task, or remove the change from `progress-delta.json`";
    Err(problem(document, 1, code::UNKNOWN_ID, format!("the board has no task {id}"), hint))
}

#[expect(clippy::unnecessary_box_returns, reason = "it is always part of an error")]
fn problem(
    document: &Document,
    line: usize,
    code: &'static str,
    words: String,
    hint: &str,
) -> Problem {
    let mut sink = Sink::new(document.file(), document.text());
    let span = sink.line_span(line);
    sink.error(code, &span, words, hint);
    // The sink has exactly one problem.
    Box::new(sink.finish().swap_remove(0))
}

/// The board after a change, if each task is where it belongs: an edit that loses or doubles one is
/// refused, whatever the reason.
fn kept(
    before: &Board,
    after: Document,
    moved: Option<(&Task, Column)>,
    added: &[(String, Column)],
) -> Result<Document, Problem> {
    let is_moved =
        |task: &Task| moved.is_some_and(|(m, _)| (m.column, m.index) == (task.column, task.index));
    let place = |task: &Task| match moved {
        Some((_, to)) if is_moved(task) => (task.id.clone(), to),
        _ => (task.id.clone(), task.column),
    };
    let sorted = |mut all: Vec<(String, Column)>| {
        all.sort_by(|a, b| (&a.0, a.1.as_str()).cmp(&(&b.0, b.1.as_str())));
        all
    };
    let wanted = sorted(before.tasks.iter().map(place).chain(added.iter().cloned()).collect());
    let found = board_of(&after)?.tasks;
    let found = sorted(found.into_iter().map(|task| (task.id, task.column)).collect());
    if found == wanted {
        return Ok(after);
    }
    let line = moved.map_or(1, |(task, _)| {
        before.document.line(&[task.column.as_str(), &task.index.to_string()])
    });
    let words = "this board is written in a form that cannot be edited without losing a task";
    let hint = "write each task on lines of its own, or make the change by hand; the file was not \
                changed";
    Err(problem(&before.document, line, code::UNEDITABLE, words.to_owned(), hint))
}

fn board_of(document: &Document) -> Result<Board, Problem> {
    Board::read(document.file(), document.text()).map(|(board, _)| board)
}

/// Adds a task to a column, also where the empty list has a comment behind it.
fn push(document: &mut Document, column: Column, task: Tree) -> Result<(), Problem> {
    document.push(&[column.as_str()], task)
}

/// A task with its members in the order of the board.
fn task_tree(task: &Value) -> Tree {
    const ORDER: [&str; 9] = [
        "id",
        "title",
        "type",
        "pri",
        "description",
        "acceptanceCriteria",
        "est",
        "dependencies",
        "status",
    ];
    let Some(members) = task.as_object() else { return Tree::from(task.clone()) };
    let known = ORDER.iter().filter_map(|name| Some((*name, members.get(*name)?)));
    let other = members.iter().filter(|(name, _)| !ORDER.contains(&name.as_str()));
    let other = other.map(|(name, value)| (name.as_str(), value));
    Tree::object(known.chain(other).map(|(name, value)| (name, Tree::from(value.clone()))))
}

/// Sets a value; mappings on the way that are missing are added.
fn set_deep(document: &mut Document, path: &[String], value: Value) -> Result<(), Problem> {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_there = |count: &usize| {
        document.get(&names[..*count]).is_some_and(|value| value.is_object() || value.is_array())
    };
    let there = (0..names.len()).rev().find(is_there).unwrap_or(0);
    let Some((last, inner)) = names.get(there + 1..).map(<[&str]>::split_last).unwrap_or_default()
    else {
        return document.set(&names, value);
    };
    let nested =
        inner.iter().rev().fold(Tree::object([(*last, Tree::from(value))]), |tree, name| {
            Tree::object([(*name, tree)])
        });
    document.set(&names[..=there], nested)
}

/// The steps of a field such as `backlog[2].status`.
pub fn steps(field: &str) -> Vec<String> {
    let parts = field.split(['.', '[', ']']);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The change that moves a task.
pub fn moved(task: &str, from: Column, to: Column, at: &str) -> Value {
    json!({
        "timestamp": at,
        "file": "taskBoard",
        "operation": "move",
        "taskId": task,
        "from": from.as_str(),
        "to": to.as_str(),
    })
}

/// The changes in a file of them, and when they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pending {
    /// The changes.
    pub changes: Vec<Value>,
    /// How many there are when they are written at the latest.
    pub threshold: u64,
}

impl Pending {
    /// Reads `progress-delta.json`.
    pub fn read(file: &str, text: &str) -> Result<(Self, Vec<Diagnostic>), Box<Diagnostic>> {
        let object = Object::new(file, text)?;
        let mut sink = Sink::new(file, text);
        let changes = object.get(&["changes"]).unwrap_or_default();
        let changes = changes.as_array().cloned().unwrap_or_default();
        for why in changes.iter().filter_map(|change| Change::read(change).err()) {
            let span = object.span(&["changes"]).unwrap_or(0..0);
            sink.warn(code::BAD_RECORD, &span, why, "it is kept and not applied");
        }
        let threshold = object.get(&["usage", "flushThreshold"]);
        let threshold = threshold.or_else(|| object.get(&["flushThreshold"]));
        let threshold = threshold.and_then(|n| n.as_u64()).unwrap_or(FLUSH_THRESHOLD);
        Ok((Self { changes, threshold }, sink.finish()))
    }

    /// Tells whether there are so many that they are written.
    pub fn is_due(&self) -> bool {
        self.changes.len() as u64 >= self.threshold.max(1)
    }
}
