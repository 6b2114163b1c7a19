//! Edits of the files of agent programs: what is added, and how it is found and taken out again.

use std::path::PathBuf;

use piton_formats::json::{Object, Tree};

/// What is in every hook of ours.
const MARK: &str = "piton hook ";

/// An edit of one file.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    /// The file.
    pub(super) path: PathBuf,
    /// What is done to it.
    pub(super) what: What,
}

/// What is done to a file.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A file of our own.
    Own(String),
    /// Members of a JSON object.
    Json(Vec<Member>),
    /// The same in a file that may have comments.
    Commented(Vec<Member>),
    /// A table at the end of a TOML file, which begins with its head.
    Toml(&'static str),
}

/// A part of a JSON object.
#[derive(Clone, Debug)]
pub(super) enum Member {
    /// A hook, in the list of those of its event.
    Hook(&'static str, Tree),
    /// A value that is set unless there is one.
    Value(&'static [&'static str], Tree),
}

impl What {
    /// The file with the edit; the same text if it has it already.
    pub(super) fn add(&self, file: &str, old: Option<&str>) -> Result<String, String> {
        let old_or = |empty: &str| old.unwrap_or(empty).to_owned();
        match self {
            Self::Own(text) => match old {
                Some(old) if old != text && !is_ours(old) => {
                    Err("it is somebody else's".to_owned())
                }
                _ => Ok(text.clone()),
            },
            Self::Json(members) | Self::Commented(members) => {
                let text = old.filter(|text| !text.trim().is_empty()).unwrap_or("{}\n");
                let mut object = self.object(file, text)?;
                let added = members.iter().all(|member| member.add(&mut object));
                let odd = || "it has something other than an object where hooks belong".to_owned();
                if added { Ok(object.into_text()) } else { Err(odd()) }
            }
            Self::Toml(table) => {
                let old = old_or("");
                let head = table.lines().next().unwrap_or_default();
                let name = head.trim_matches(['[', ']']);
                let parent = name.split('.').next().unwrap_or_default();
                let is_inline = |line: &str| {
                    line.trim_start().strip_prefix(parent).is_some_and(|rest| {
                        rest.trim_start().starts_with('=') || rest.starts_with('.')
                    })
                };
                if old.lines().any(|line| line.trim() == head) {
                    return Ok(old);
                }
                if old.lines().any(is_inline) {
                    return Err(format!(
                        "it has `{parent}` without a table; add `{name}` yourself"
                    ));
                }
                let gap = match old.as_str() {
                    "" => "",
                    text if text.ends_with('\n') => "\n",
                    _ => "\n\n",
                };
                Ok(format!("{old}{gap}{table}"))
            }
        }
    }

    fn object(&self, file: &str, text: &str) -> Result<Object, String> {
        let read = match self {
            Self::Commented(_) => Object::with_comments(file, text),
            _ => Object::new(file, text),
        };
        read.map_err(|problem| problem.message)
    }

    /// The file without the edit, although somebody changed the rest of it; `None` for no file.
    pub(super) fn take_out(&self, file: &str, text: &str) -> Result<Option<String>, String> {
        match self {
            // What somebody wrote into a file of ours is theirs.
            Self::Own(own) => Ok((own != text).then(|| text.to_owned())),
            Self::Json(members) | Self::Commented(members) => {
                let mut object = self.object(file, text)?;
                for member in members {
                    member.take_out(&mut object);
                }
                Ok(Some(object.into_text()))
            }
            Self::Toml(table) => {
                let with_gap = format!("\n{table}");
                let at = if text.contains(&with_gap) { with_gap.as_str() } else { table };
                Ok(Some(text.replacen(at, "", 1)))
            }
        }
    }
}

impl Member {
    fn add(&self, object: &mut Object) -> bool {
        match self {
            Self::Hook(event, hook) => {
                let path = ["hooks", event];
                let old = object.get(&path);
                let is_there = old.is_some_and(|list| list.to_string().contains(MARK));
                is_there || object.push(&path, hook.clone())
            }
            Self::Value(path, value) => {
                object.get(path).is_some_and(|old| !old.is_null())
                    || object.set(path, value.clone())
            }
        }
    }

    fn take_out(&self, object: &mut Object) {
        match self {
            Self::Hook(event, _) => {
                let path = ["hooks", event];
                let Some(list) = object.get(&path) else { return };
                let Some(list) = list.as_array() else { return };
                let is_theirs = |hook: &&_| !ToString::to_string(hook).contains(MARK);
                let left: Vec<Tree> =
                    list.iter().filter(is_theirs).cloned().map(Tree::from).collect();
                if left.is_empty() {
                    object.remove(&path);
                } else if left.len() < list.len() {
                    object.set(&path, Tree::List(left));
                }
                remove_empty(object, &["hooks"]);
            }
            Self::Value(path, value) => {
                if object.get(path) == Some(value.to_value()) {
                    object.remove(path);
                    remove_empty(object, &path[..path.len() - 1]);
                }
            }
        }
    }
}

/// Removes an object that has no members any more.
fn remove_empty(object: &mut Object, path: &[&str]) {
    let value = object.get(path);
    let is_empty =
        value.is_some_and(|value| value.as_object().is_some_and(|all| all.keys().next().is_none()));
    if !path.is_empty() && is_empty {
        object.remove(path);
    }
}

/// Whether a file was written by an earlier version of Piton.
fn is_ours(text: &str) -> bool {
    text.contains("piton")
}

/// A hook in the form that programs share; the time limit is in the program's own unit.
pub(super) fn hook(program: &str, timeout: u64, name: Option<&str>) -> Tree {
    let command = format!("{MARK}{program}");
    let mut members: Vec<(&str, Tree)> =
        name.map(|name| ("name", name.into())).into_iter().collect();
    members.push(("type", "command".into()));
    members.push(("command", command.as_str().into()));
    members.push(("timeout", timeout.into()));
    Tree::object([("hooks", Tree::List(vec![Tree::object(members)]))])
}

/// A file of our own with an object in it.
pub(super) fn own_json(members: &[Member]) -> What {
    let made = What::Json(members.to_vec()).add("", None);
    What::Own(made.unwrap_or_default())
}
