//! Edits of the files of agent programs: what is added, and how it is found and taken out again.

use std::fmt;
use std::path::PathBuf;

use piton_formats::json::{Object, Tree};
use piton_formats::{Diagnostic, toml_table};

use super::record::Record;

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
    /// A table at the end of a TOML file: its names, and its lines with their head.
    Toml(&'static [&'static str], &'static str),
}

/// A part of a JSON object.
#[derive(Clone, Debug)]
pub(super) enum Member {
    /// A hook, in the list of those of its event.
    Hook(&'static str, Tree),
    /// A value that is set unless there is one.
    Value(&'static [&'static str], Tree),
}

/// Why a file cannot be edited.
#[derive(Debug)]
pub(super) enum Odd {
    /// A file with the name of ours is somebody else's.
    NotOurs,
    /// Something else stands where hooks belong.
    NoPlace,
    /// A TOML file has the first without a table, where the second belongs.
    NoTable(String, String),
    /// The lines of a table cannot be told from others.
    Mixed(String),
    /// It cannot be read.
    NotValid(Box<Diagnostic>),
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => f.write_str("it is somebody else's"),
            Self::NoPlace => {
                f.write_str("it has something other than an object where hooks belong")
            }
            Self::NoTable(parent, name) => {
                write!(f, "it has `{parent}` without a table; add `{name}` yourself")
            }
            Self::Mixed(name) => {
                write!(f, "`{name}` is written together with other things; remove it yourself")
            }
            Self::NotValid(problem) => write!(f, "line {}: {}", problem.line, problem.message),
        }
    }
}

impl What {
    /// The file with the edit; the same text if it has it already. The record says what we left there.
    pub(super) fn add(
        &self,
        file: &str,
        old: Option<&str>,
        record: Option<&Record>,
    ) -> Result<String, Odd> {
        match self {
            Self::Own(text) => match old {
                Some(old) if old != text => match record {
                    Some(record) if record.after == old => Ok(text.clone()),
                    // Ours once: what somebody made of it stays.
                    Some(_) => Ok(old.to_owned()),
                    None => Err(Odd::NotOurs),
                },
                _ => Ok(text.clone()),
            },
            Self::Json(members) | Self::Commented(members) => {
                let text = old.filter(|text| !text.trim().is_empty()).unwrap_or("{}\n");
                let mut object = self.object(file, text)?;
                let added = members.iter().all(|member| member.add(&mut object));
                if added { Ok(object.into_text()) } else { Err(Odd::NoPlace) }
            }
            Self::Toml(path, table) => with_table(file, old.unwrap_or_default(), path, table),
        }
    }

    fn object(&self, file: &str, text: &str) -> Result<Object, Odd> {
        let read = match self {
            Self::Commented(_) => Object::with_comments(file, text),
            _ => Object::new(file, text),
        };
        read.map_err(Odd::NotValid)
    }

    /// The file without the edit, although somebody changed the rest of it; `None` for no file. What was
    /// there before the edit stays.
    pub(super) fn take_out(
        &self,
        file: &str,
        text: &str,
        before: Option<&str>,
    ) -> Result<Option<String>, Odd> {
        match self {
            // What somebody wrote into a file of ours is theirs.
            Self::Own(own) => Ok((own != text).then(|| text.to_owned())),
            Self::Json(members) | Self::Commented(members) => {
                let mut object = self.object(file, text)?;
                let before = before.filter(|text| !text.trim().is_empty());
                let before = before.map(|text| self.object(file, text)).transpose()?;
                for member in members.iter().filter(|member| !member.was_there(before.as_ref())) {
                    member.take_out(&mut object);
                }
                Ok(Some(object.into_text()))
            }
            Self::Toml(path, _) => {
                let found = toml_table::value(file, text).map_err(Odd::NotValid)?;
                if !toml_table::has(&found, path) {
                    return Ok(Some(text.to_owned()));
                }
                let left = toml_table::without(file, text, path);
                left.map(Some).ok_or_else(|| Odd::Mixed(path.join(".")))
            }
        }
    }
}

/// A TOML file with a table at its end, unless it has one by that name in any form.
fn with_table(file: &str, old: &str, path: &[&str], table: &str) -> Result<String, Odd> {
    let found = toml_table::value(file, old).map_err(Odd::NotValid)?;
    if toml_table::has(&found, path) {
        return Ok(old.to_owned());
    }
    let gap = match old {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let new = format!("{old}{gap}{table}");
    // A parent that is written on one line takes no table.
    let is_whole = toml_table::value(file, &new).is_ok_and(|value| toml_table::has(&value, path));
    let no_table = || Odd::NoTable(path[0].to_owned(), path.join("."));
    if is_whole { Ok(new) } else { Err(no_table()) }
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

    /// Whether it was there before us, in some form, so that nothing was added.
    fn was_there(&self, before: Option<&Object>) -> bool {
        before.is_some_and(|before| match self {
            Self::Hook(event, _) => {
                before.get(&["hooks", event]).is_some_and(|list| list.to_string().contains(MARK))
            }
            Self::Value(path, _) => before.get(path).is_some_and(|old| !old.is_null()),
        })
    }

    fn take_out(&self, object: &mut Object) {
        match self {
            Self::Hook(event, own) => {
                let path = ["hooks", event];
                let Some(list) = object.get(&path) else { return };
                let Some(list) = list.as_array() else { return };
                let own = own.to_value();
                let is_theirs = |hook: &&_| **hook != own;
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
    let made = What::Json(members.to_vec()).add("", None, None);
    What::Own(made.unwrap_or_default())
}
