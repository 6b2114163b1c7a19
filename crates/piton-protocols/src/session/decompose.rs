//! How a task that cannot be finished in this conversation is split.

use serde_json::{Value, json};

use super::board::Task;

/// A task that takes at most so long is finished instead, in minutes.
const MINUTES_MIN: u64 = 30;
/// Most parts of a task.
pub const PARTS_MAX: usize = 8;
/// How often a part may be split again.
const DEPTH_MAX: usize = 2;

/// The change that splits a task; `None` if the rules say that it stays whole. `parts` are the titles
/// that the agent reports; without them each criterion is a part. What is too many for parts of its own
/// belongs to the last one: nothing that is left to do is forgotten.
pub fn split(task: &Task, parts: &[String], at: &str) -> Option<Value> {
    let is_long = task.minutes.is_some_and(|minutes| minutes > MINUTES_MIN);
    if !is_long || depth(&task.id) >= DEPTH_MAX {
        return None;
    }
    let titles = if parts.is_empty() { task.criteria.as_slice() } else { parts };
    if titles.is_empty() {
        return None;
    }
    let mut titles = titles.to_vec();
    if titles.len() > PARTS_MAX {
        let rest = titles.split_off(PARTS_MAX - 1).join("; ");
        titles.push(rest);
    }
    let kind = if task.kind.is_empty() { "development" } else { &task.kind };
    let part = |(index, title): (usize, &String)| {
        let number = index + 1;
        let before = if index == 0 { Vec::new() } else { vec![format!("{}-{index}", task.id)] };
        json!({
            "id": format!("{}-{number}", task.id),
            "title": title,
            "type": kind,
            "dependencies": before,
        })
    };
    let parts: Vec<Value> = titles.iter().enumerate().map(part).collect();
    Some(json!({
        "timestamp": at,
        "file": "taskBoard",
        "operation": "decompose",
        "taskId": task.id,
        "newValue": parts,
    }))
}

/// The first part of a split task.
pub fn first_part(task: &str) -> String {
    format!("{task}-1")
}

/// How often the task was split off another one.
fn depth(id: &str) -> usize {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    id.split('-').skip(1).filter(is_number).count()
}
