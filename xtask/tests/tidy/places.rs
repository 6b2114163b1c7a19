//! What has one place: git, the environment, the ledger, JSON.
//!
//! What is done in one place can be changed there, and nowhere else is forgotten.

use std::path::Path;

use super::code::{shipped, sources};
use super::{none_of, text};

/// A thing that one place does: the words that do it, and the files or folders that may use them.
struct Place<'a> {
    words: &'a [&'a str],
    only_in: &'a [&'a str],
    instead: &'a str,
}

impl Place<'_> {
    fn check(&self) {
        let mut found = Vec::new();
        for (folder, file) in sources() {
            let is_here = self.only_in.iter().any(|place| file.starts_with(place));
            let is_shipped = folder.starts_with("crates") && !folder.ends_with("piton-testkit");
            if is_here || !is_shipped {
                continue;
            }
            for (number, line) in (1..).zip(shipped(&text(&file))) {
                if let Some(word) = self.words.iter().find(|word| has(&line, word)) {
                    found.push(format!("{}:{number}: {word}", file.display()));
                }
            }
        }
        none_of(self.instead, &found);
        let gone = self.only_in.iter().filter(|place| !super::root().join(place).exists());
        none_of("take it out of this test", &gone.map(|&p| p.to_owned()).collect::<Vec<_>>());
    }
}

/// Whether a line has a word that is not the end of a longer one.
fn has(line: &str, word: &str) -> bool {
    let begins = |at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    line.match_indices(word).any(|(at, _)| begins(at))
}

/// Lost: prompts, hooks, locale and foreign repositories are switched off in some calls only.
#[test]
fn git_is_run_in_one_crate() {
    Place {
        words: &["Command::new(\"git\")", "Git::", "piton_workspace::git("],
        only_in: &["crates/piton-workspace/src"],
        instead: "make it a function of piton-workspace that says what it answers",
    }
    .check();
}

/// Lost: what the program does depends on variables that no page and no test knows of.
#[test]
fn the_environment_is_read_in_one_place() {
    Place {
        words: &["env::", "std::env", "temp_dir()", "current_exe()"],
        only_in: &["crates/piton/src/environment.rs"],
        instead: "take it from `Environment`, or pass the value in",
    }
    .check();
}

/// Lost: a second kind of ledger needs a change in every command.
#[test]
fn the_ledger_is_opened_by_address() {
    Place {
        words: &["Sqlite", "rusqlite"],
        only_in: &["crates/piton-ledger/src"],
        instead: "open it with `piton_ledger::open`",
    }
    .check();
}

/// Where values become JSON: what is stored or sent by our own processes, and what people are shown.
const WRITES_JSON: [&str; 17] = [
    // The forms that commands print and protocols keep in files.
    "crates/piton-view/src",
    "crates/piton-formats/src",
    "crates/piton-protocols/src",
    // Settings in the form of agent programs.
    "crates/piton-agents/src/setup.rs",
    // What a step is given to read.
    "crates/piton-engine/src/order.rs",
    // The ledger: plan, state, requests and replies.
    "crates/piton-core/src/request/reply.rs",
    "crates/piton-engine/src/store.rs",
    "crates/piton-engine/src/store/asking.rs",
    // The keeper: its journal, its start, its messages and the cgroup of its run.
    "crates/piton-process/src/cgroup.rs",
    "crates/piton-process/src/frame.rs",
    "crates/piton-process/src/journal.rs",
    "crates/piton-process/src/start.rs",
    // The holder of a run's lock.
    "crates/piton-world/src/run_lock.rs",
    // Fingerprints are of JSON; secrets are also hidden as JSON writes them.
    "crates/piton-core/src/hash.rs",
    "crates/piton-core/src/redact.rs",
    "crates/piton-ledger/src",
    // Settings in the form of agent programs.
    "crates/piton-agents/src/mcp.rs",
];

/// The table of error codes, which is printed as it is.
const CODES: &str = "crates/piton-core/src/error_codes.rs";

/// Lost: each part shapes its answers by hand again, and the same thing in many ways.
#[test]
fn json_is_written_where_it_is_stored_or_shown() {
    Place {
        words: &["json!", "serde_json::to_"],
        only_in: &WRITES_JSON,
        instead: "make it a value of piton-view, or of the codec in piton-formats",
    }
    .check();
}

/// Lost: the keys that programs read follow the names of a library's fields.
#[test]
fn what_is_only_written_is_a_value_of_the_view() {
    let mut found = Vec::new();
    for (_, file) in sources() {
        let is_stored = WRITES_JSON.iter().any(|place| file.starts_with(place));
        if is_stored || !file.starts_with("crates") || file == Path::new(CODES) {
            continue;
        }
        let code = shipped(&text(&file)).join("\n");
        let lists = code.split("derive(").skip(1).filter_map(|rest| rest.split(')').next());
        let written = |list: &&str| has(list, "Serialize") && !has(list, "Deserialize");
        found.extend(lists.filter(written).map(|_| file.display().to_string()));
    }
    none_of("make it a value of piton-view", &found);
}

#[test]
fn a_word_is_not_the_end_of_another() {
    assert!(has("let x = Git::at(dir)", "Git::"));
    assert!(!has("LikeGit::at(dir)", "Git::"));
    assert!(has("std::env::var(\"A\")", "env::"));
}
