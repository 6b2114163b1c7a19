//! One table in a TOML file that belongs to somebody else: looked up by its value, and taken out with its
//! lines. A file that cannot be parsed is refused, before an edit and after it.

use serde_json::{Map, Value};
use toml_span::value::ValueInner;

use crate::diagnostic::Diagnostic;
use crate::sink::{Sink, parse};

/// The document as JSON has it; the first problem if it is not TOML.
pub fn value(file: &str, text: &str) -> Result<Value, Box<Diagnostic>> {
    let mut sink = Sink::new(file, text);
    match parse(&mut sink) {
        Some(value) => Ok(json(&value)),
        // The sink has exactly one problem.
        None => Err(Box::new(sink.finish().swap_remove(0))),
    }
}

/// Tells whether a document has something at a path.
pub fn has(document: &Value, path: &[&str]) -> bool {
    path.iter().try_fold(document, |value, name| value.get(name)).is_some()
}

/// The text without the table at a path and those within it, with all that was added to them; `None` if
/// their lines cannot be told from the rest. Remarks below them stay.
pub fn without(file: &str, text: &str, path: &[&str]) -> Option<String> {
    let mut left = String::with_capacity(text.len());
    let mut section = String::new();
    let mut is_ours = false;
    for line in text.split_inclusive('\n') {
        if let Some(head) = head(line) {
            end_section(&mut left, &section, is_ours);
            section.clear();
            is_ours = head.len() >= path.len() && head.iter().zip(path).all(|(a, b)| a == b);
            if is_ours && (left.ends_with("\n\n") || left.ends_with("\r\n\r\n")) {
                // The blank line that was put before it.
                let gap = if left.ends_with("\r\n") { 2 } else { 1 };
                left.truncate(left.len() - gap);
            }
        }
        section.push_str(line);
    }
    end_section(&mut left, &section, is_ours);
    let (before, after) = (value(file, text).ok()?, value(file, &left).ok()?);
    (taken(before, path) == taken(after.clone(), path) && !has(&after, path)).then_some(left)
}

/// Keeps a section, or of ours what follows its last value.
fn end_section(left: &mut String, section: &str, is_ours: bool) {
    if !is_ours {
        left.push_str(section);
        return;
    }
    let is_remark = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let tail: usize = section.split_inclusive('\n').rev().take_while(is_remark).map(str::len).sum();
    left.push_str(&section[section.len() - tail..]);
}

/// The names in the head of a table, if a line is one.
fn head(line: &str) -> Option<Vec<String>> {
    if !line.trim_start().starts_with('[') {
        return None;
    }
    let parsed = toml_span::parse(line).ok()?;
    let mut value = json(&parsed);
    let mut names = Vec::new();
    loop {
        if let Value::Array(mut items) = value {
            value = items.pop()?;
        }
        let Value::Object(members) = value else { return None };
        let Some((name, inner)) = members.into_iter().next() else { break };
        names.push(name);
        value = inner;
    }
    (!names.is_empty()).then_some(names)
}

/// A document without what is at a path, and without a parent that has nothing else.
fn taken(mut document: Value, path: &[&str]) -> Value {
    let Some((name, parents)) = path.split_last() else { return document };
    let parent = parents.iter().try_fold(&mut document, |value, name| value.get_mut(*name));
    let parent = parent.and_then(Value::as_object_mut);
    let is_empty = parent.is_some_and(|parent| {
        parent.remove(*name);
        parent.is_empty()
    });
    if is_empty && !parents.is_empty() { taken(document, parents) } else { document }
}

fn json(value: &toml_span::Value<'_>) -> Value {
    match value.as_ref() {
        ValueInner::String(text) => Value::from(text.as_ref()),
        ValueInner::Integer(number) => Value::from(*number),
        ValueInner::Float(number) => Value::from(*number),
        ValueInner::Boolean(flag) => Value::from(*flag),
        ValueInner::Array(items) => items.iter().map(json).collect(),
        ValueInner::Table(table) => {
            let member =
                |(key, value): (&toml_span::value::Key<'_>, _)| (key.name.to_string(), json(value));
            Value::Object(table.iter().map(member).collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: [&str; 2] = ["mcp_servers", "piton"];

    #[test]
    fn a_table_is_found_however_its_head_is_written() {
        for text in [
            "[mcp_servers.piton]  # mine\ncommand = \"x\"\n",
            "[mcp_servers.\"piton\"]\n",
            "[mcp_servers]\npiton = { command = \"x\" }\n",
            "mcp_servers.piton.command = \"x\"\n",
        ] {
            assert!(has(&value("c", text).expect("TOML"), &PATH), "{text}");
        }
        assert!(!has(&value("c", "[mcp_servers.other]\n").expect("TOML"), &PATH));
        assert_eq!(value("c", "a = 1\nmodel = \n").expect_err("broken").line, 2);
    }

    #[test]
    fn a_table_goes_with_all_that_was_added_to_it_and_nothing_else() {
        let other = "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"other\"\n";
        for ours in [
            "\n[mcp_servers.piton]\ncommand = \"piton\"\nargs = [\"mcp\"]\n",
            "\n[mcp_servers.piton]\ncommand = \"/opt/piton\"\nmode = \"approve\"\n",
            "\n[ mcp_servers . \"piton\" ] # ours\nargs = [\n  \"mcp\",\n]\n[mcp_servers.piton.env]\nA = \"1\"\n",
        ] {
            assert_eq!(without("c", &format!("{other}{ours}"), &PATH).as_deref(), Some(other));
            let more = format!("{other}{ours}\n# theirs\n[tui]\na = 1\n");
            let left = format!("{other}\n# theirs\n[tui]\na = 1\n");
            assert_eq!(without("c", &more, &PATH), Some(left));
        }
        assert_eq!(without("c", "[mcp_servers.piton]\na = 1\n", &PATH).as_deref(), Some(""));
        let inline = "[mcp_servers]\npiton = { command = \"x\" }\n";
        assert_eq!(without("c", inline, &PATH), None);
        let odd = "[mcp_servers.piton]\nargs = '''\n[tui]\n'''\n";
        assert_eq!(without("c", odd, &PATH), None);
    }
}
