//! The documentation says what the code does: tables, plans, settings, keys, commands, transcripts.
//!
//! What is made from the code is compared with it, what is shown is parsed or run. Without this the
//! pages would drift away from the program, and people would find out by following them. Prose is
//! not checked.

#![expect(clippy::unwrap_used, reason = "a page that can't be read is a failed test")]

#[path = "docs/pages.rs"]
mod pages;
#[path = "docs/rust_example.rs"]
mod rust_example;
#[path = "docs/scratch.rs"]
mod scratch;

use std::process::Command;

use piton_core::{budget, error_codes};
use piton_engine::resume::{self, Severity};
use piton_formats::keys::{self, Key, Kind, Section};
use piton_formats::{Input, Settings, read_plan};
use piton_protocols::pipeline::settings::{PIPELINE, STAGE};
use piton_protocols::session::settings::SESSION;
use piton_protocols::workflow::settings::WORKFLOW;

use pages::{all, blocks, read, region, table};
use scratch::Scratch;

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[test]
fn budgets_are_those_of_the_code() {
    let rows = budget::TABLE.iter().map(|row| {
        vec![code(row.name), code(row.default), row.limits.to_owned(), row.action.to_owned()]
    });
    let wanted = table(&["budget", "default", "what it limits", "when it is used up"], rows);
    region("docs/budgets.md", "table: budgets", &wanted);
}

#[test]
fn differences_on_resume_are_those_of_the_code() {
    let rows = resume::TABLE.iter().map(|row| {
        let severity = match row.severity {
            Severity::Stops => "stops",
            Severity::Warns => "warns",
            Severity::RunsAgain => "runs again",
        };
        vec![code(row.name), row.what.to_owned(), severity.to_owned(), row.remedy().to_string()]
    });
    let wanted = table(&["name", "what differs", "effect", "what to do"], rows);
    region("docs/resume.md", "table: resume", &wanted);
}

#[test]
fn errors_are_those_of_the_code() {
    let ours = error_codes::TABLE.iter();
    let mut all: Vec<_> = ours.chain(piton_formats::diagnostic::CODES).collect();
    all.sort_by_key(|entry| entry.code);
    let rows = all.into_iter().map(|entry| {
        let texts = [entry.title, entry.cause, entry.next].map(str::to_owned);
        [vec![code(entry.code)], texts.to_vec()].concat()
    });
    let wanted = table(&["code", "what it says", "cause", "next step"], rows);
    region("docs/errors.md", "table: errors", &wanted);
    let documents = piton_formats::diagnostic::CODES.iter().map(|entry| code(entry.code));
    let wanted = documents.collect::<Vec<_>>().join(",\n") + ".";
    region("docs/errors.md", "table: document-codes", &wanted);
}

/// The help is what the program says; the page must say the same.
#[test]
fn exit_codes_are_those_of_the_help() {
    let help = help(&[]);
    let words: Vec<&str> = help.split_whitespace().collect();
    let joined = words.join(" ");
    let list = joined.split("Exit codes: ").nth(1).and_then(|t| t.split('.').next()).unwrap();
    let rows = list.split(", ").map(|entry| {
        let (number, meaning) = entry.split_once(' ').unwrap();
        vec![code(number), meaning.to_owned()]
    });
    region("docs/exit-codes.md", "table: exit-codes", &table(&["code", "meaning"], rows));
}

#[test]
fn the_tools_of_agents_are_those_of_the_code() {
    use piton_view::mcp::{TOOLS, resources::TEMPLATES, tools::Param};
    let name = |param: &Param| {
        if param.required { format!("**`{}`**", param.name) } else { code(param.name) }
    };
    let rows = TOOLS.iter().map(|tool| {
        let takes: Vec<String> = tool.params.iter().map(name).collect();
        vec![code(tool.name), takes.join(", "), tool.about.to_owned()]
    });
    let wanted = table(&["tool", "arguments", "what it does"], rows);
    region("docs/mcp.md", "table: mcp-tools", &wanted);
    let runs = vec![code("piton://runs"), "The runs of the project".to_owned()];
    let forms = TEMPLATES.iter().map(|form| vec![code(form.uri), form.about.to_owned()]);
    let wanted = table(&["address", "what it is"], std::iter::once(runs).chain(forms));
    region("docs/mcp.md", "table: mcp-resources", &wanted);
}

#[test]
fn template_names_are_those_of_the_code() {
    let names = piton_formats::template::NAMES.iter();
    let rows = names.map(|(name, doc)| vec![code(name), (*doc).to_owned()]);
    region("docs/plan.md", "table: templates", &table(&["name", "what it is"], rows));
}

#[test]
fn the_template_of_tasks_is_that_of_the_code() {
    use piton_protocols::lanes::phase::{TASK_PROMPT, TASK_PROMPT_NAMES};
    let rows = TASK_PROMPT_NAMES.iter().map(|(name, doc)| vec![code(name), (*doc).to_owned()]);
    region("docs/phase-documents.md", "table: task-prompt", &table(&["name", "what it is"], rows));
    region(
        "docs/phase-documents.md",
        "table: task-template",
        &format!("```text\n{TASK_PROMPT}```"),
    );
}

#[test]
fn keys_are_those_of_the_code() {
    for (page, name, section) in [
        ("docs/plan.md", "plan", &keys::PLAN),
        ("docs/plan.md", "phase", &keys::PHASE),
        ("docs/plan.md", "lane", &keys::LANE),
        ("docs/plan.md", "step", &keys::STEP),
        ("docs/plan.md", "defaults", &keys::DEFAULTS),
        ("docs/plan.md", "budgets", &keys::BUDGETS),
        ("docs/plan.md", "agents", &keys::AGENT),
        ("docs/replans.md", "replan", &keys::REPLAN),
        ("docs/settings.md", "settings", &keys::SETTINGS),
        ("docs/settings.md", "lanes", &keys::LANES),
        ("docs/settings.md", "pull_request", &keys::PULL_REQUEST),
        ("docs/settings.md", "snapshots", &keys::SNAPSHOTS),
        ("docs/settings.md", "gc", &keys::GC),
        ("docs/settings.md", "secrets", &keys::SECRETS),
        ("docs/settings.md", "prices", &keys::PRICES),
        ("docs/settings.md", "windows", &keys::WINDOWS),
    ] {
        let rows = section.keys().into_iter().map(|key| key_row(section, key));
        let wanted = table(&["key", "value", "default", "meaning"], rows);
        region(page, &format!("table: keys {name}"), &wanted);
    }
    for (page, name, section) in [
        ("docs/pipelines.md", "pipeline", &PIPELINE),
        ("docs/pipelines.md", "pipeline-stage", &STAGE),
        ("docs/workflows.md", "workflow", &WORKFLOW),
        ("docs/sessions.md", "session", &SESSION),
    ] {
        // A stage has the keys of a step too; the page of plans has those.
        let keys = section.keys().into_iter().filter(|key| keys::STEP.key(key.name).is_none());
        let wanted =
            table(&["key", "value", "default", "meaning"], keys.map(|key| key_row(section, key)));
        region(page, &format!("table: keys {name}"), &wanted);
    }
    // Whatever section is added must have a place above.
    assert_eq!(keys::SECTIONS.len(), 16, "a section has no table in the documentation");
}

/// A key with the default that its explanation ends with.
fn key_row(section: &Section, key: Key) -> Vec<String> {
    let in_brackets = key.doc.strip_suffix(')').and_then(|doc| doc.rsplit_once(" ("));
    let required = key.name == "id" || (section.title == keys::PLAN.title && key.name == "phase");
    let (doc, default) = match (in_brackets, key.kind) {
        (Some((doc, default)), _) => (doc, default.to_owned()),
        (None, _) if required => (key.doc, "required".to_owned()),
        (None, Kind::Choice(choices)) => (key.doc, code(choices[0])),
        (None, _) if section.title == keys::BUDGETS.title => {
            let row = budget::TABLE.iter().find(|row| row.name == key.name).unwrap();
            (key.doc, code(row.default))
        }
        (None, _) => (key.doc, "none".to_owned()),
    };
    vec![code(key.name), value(key.kind), default, doc.to_owned()]
}

fn value(kind: Kind) -> String {
    let word = match kind {
        Kind::Text => "string",
        Kind::Id => "id",
        Kind::Ids => "list of ids",
        Kind::Path => "path",
        Kind::Paths => "list of paths",
        Kind::Flag => "`true` or `false`",
        Kind::Globs => "list of paths or globs",
        Kind::Words => "list of strings",
        Kind::Command => "command",
        Kind::Duration => "duration",
        Kind::Size => "size",
        Kind::Money => "dollars",
        Kind::Decimal => "number",
        Kind::Count(min, _) => return format!("whole number from {min}"),
        Kind::Env => "table of strings",
        Kind::Choice(choices) => {
            return choices.iter().map(|c| code(c)).collect::<Vec<_>>().join(" or ");
        }
        Kind::Table(_) => "table",
        Kind::Tables(_) => "list of tables",
        Kind::Named(_) => "tables by name",
    };
    word.to_owned()
}

fn plan_problems(text: &str) -> Vec<String> {
    let settings = Settings::default();
    let read = |_: &str| Ok("a prompt".to_owned());
    let input = Input { file: "plan.toml", text, settings: &settings, git: true, read: &read };
    let problems = match read_plan(&input) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    problems.into_iter().map(|p| format!("line {}: {}", p.line, p.message)).collect()
}

#[test]
fn every_plan_and_every_settings_file_that_is_shown_can_be_used() {
    let mut seen = 0;
    for block in all().iter().flat_map(|page| blocks(page)) {
        if block.language != "toml" {
            continue;
        }
        let place = format!("{}:{}", block.page, block.line);
        let problems = match block.marker.as_str() {
            "plan" | "file: plan.toml" => plan_problems(&block.text),
            "settings" | "file: piton.toml" => match settings(&block.text) {
                Ok(_) => Vec::new(),
                Err(problems) => problems.into_iter().map(|p| p.message).collect(),
            },
            // Files of other names are there for a transcript, broken ones included.
            other => {
                assert!(other.starts_with("file: "), "{place}: a comment must say what this is");
                continue;
            }
        };
        assert!(problems.is_empty(), "{place}: {problems:?}");
        seen += 1;
    }
    assert!(seen >= 5, "only {seen} blocks were found");
}

/// Settings with the sections of all protocols.
fn settings(text: &str) -> Result<Settings, Vec<piton_formats::Diagnostic>> {
    use piton_protocols::table::{TABLE, sections};
    piton_formats::settings::read_settings_with("piton.toml", text, &sections(TABLE))
}

fn help(args: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_piton")).args(args).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_is_documented() {
    let text: String = all().iter().map(|page| read(page)).collect();
    let help = help(&[]);
    let commands = help.split("Commands:").nth(1).and_then(|t| t.split("\n\n").next()).unwrap();
    let names = commands.lines().filter_map(|line| {
        let rest = line.strip_prefix("  ").filter(|r| !r.starts_with(' '))?;
        rest.split_whitespace().next()
    });
    let missing: Vec<&str> =
        names.filter(|name| *name != "help" && !text.contains(&format!("piton {name}"))).collect();
    assert!(missing.is_empty(), "not documented: {missing:?}");
}

/// A page that names a file which moved sends people nowhere.
#[test]
fn files_of_the_repository_that_are_named_exist() {
    for page in all() {
        let text = read(&page);
        let named = text.split('`').skip(1).step_by(2);
        for path in named.filter(|t| t.starts_with("crates/") || t.starts_with("examples/")) {
            assert!(pages::repository().join(path).exists(), "{page} names {path}");
        }
    }
}

/// A transcript that no longer happens teaches people to distrust the rest.
#[test]
fn transcripts_happen_as_shown() {
    let mut seen = 0;
    for page in all() {
        let blocks = blocks(&page);
        if !blocks.iter().any(|b| b.marker == "run") {
            continue;
        }
        let scratch = Scratch::new();
        for block in blocks {
            if let Some(name) = block.marker.strip_prefix("file: ") {
                scratch.write(name, &block.text);
            } else if block.marker == "run" {
                transcript(&scratch, &block.text, &format!("{page}:{}", block.line));
                seen += 1;
            }
        }
    }
    assert!(seen >= 2, "only {seen} transcripts were found");
}

/// Runs each line after `$ ` and looks for the lines shown after it.
fn transcript(scratch: &Scratch, text: &str, place: &str) {
    for part in format!("\n{text}").split("\n$ ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        let output = scratch.sh(command);
        let mut lines = output.lines();
        for wanted in shown.lines().filter(|l| !l.trim().is_empty() && l.trim() != "…") {
            assert!(
                lines.by_ref().any(|line| fits(line, wanted)),
                "{place}: `{command}` does not say `{wanted}`, but:\n{output}"
            );
        }
    }
}

/// Whether a line is as shown, where `…` stands for anything.
fn fits(line: &str, shown: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return line.trim_end() == shown.trim_end();
    };
    let Some(mut rest) = line.trim_end().strip_prefix(first) else {
        return false;
    };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last.trim_end())
}

#[test]
fn elisions_stand_for_anything() {
    assert!(fits("12:03 run r-1 is complete", "…run … complete"));
    assert!(fits("same", "same") && !fits("same", "sam"));
    assert!(!fits("run r-1 failed", "run … complete"));
    assert!(fits("ab", "…") && !fits("ab", "b…"));
}

/// The quickstart is the first thing a newcomer runs: it must work in a repository without
/// `target`.
#[test]
fn the_quickstart_runs_and_is_complete() {
    let plan = read("examples/quickstart/plan.toml");
    assert_eq!(plan_problems(&plan), Vec::<String>::new());
    let scratch = Scratch::new();
    scratch.write("examples/quickstart/plan.toml", &plan);
    let said = scratch.sh("piton run examples/quickstart/plan.toml; echo \"exit $?\"");
    assert!(said.ends_with("exit 0\n"), "{said}");
    let report = scratch.repository().join("target/quickstart/report.txt");
    assert!(std::fs::read_to_string(&report).unwrap().contains("bolt\nrock\nrope"), "{said}");
    // Only the step whose evidence is gone runs again.
    std::fs::remove_file(&report).unwrap();
    let said = scratch.sh("piton run examples/quickstart/plan.toml; echo \"exit $?\"");
    assert!(said.contains("report.txt is missing") && said.ends_with("exit 0\n"), "{said}");
    let lines = rust_example::standing(&scratch.repository()).unwrap();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with(": complete, 6 of 6 steps"), "{lines:?}");
}

/// The example of pipelines goes to its end as its README says, with a sign-off by tick and by command.
#[test]
fn the_example_of_a_pipeline_runs_and_is_complete() {
    let scratch = Scratch::new();
    for name in ["piton.toml", "agent.sh", "constitution.md", "specs/001-greeting/feature.spec.md"]
    {
        scratch.write(name, &read(&format!("examples/pipeline/{name}")));
    }
    scratch.sh("git add --all && git commit --quiet -m Begin");
    let run = "piton run specs/001-greeting; echo \"exit $?\"";
    let said = scratch.sh(run);
    assert!(said.contains("Spec approval") && said.ends_with("exit 3\n"), "{said}");
    scratch.sh("sed -i 's/- \\[ \\] Spec/- [x] Spec/' specs/001-greeting/.pipeline-state.md");
    for gate in ["tasks", "refactor"] {
        let said = scratch.sh(run);
        assert!(said.contains("sign-off") && said.ends_with("exit 3\n"), "{said}");
        let said = scratch.sh(&format!("piton approve {gate}"));
        assert!(said.contains("approved gate"), "{said}");
    }
    let said = scratch.sh(run);
    assert!(said.contains("is complete") && said.ends_with("exit 0\n"), "{said}");
    assert_eq!(scratch.sh("sh greet.sh Ada"), "Hello, Ada!\n");
}

/// The example of workflows fails where its README says so, and resumes from there.
#[test]
fn the_example_of_a_workflow_runs_and_is_complete() {
    let scratch = Scratch::new();
    let plans = "specs/027_greeting/plans";
    let (plan, expanded) =
        (format!("{plans}/001_implementation.md"), format!("{plans}/phase_2_greet.md"));
    for name in ["piton.toml", "agent.sh", &plan, &expanded] {
        scratch.write(name, &read(&format!("examples/workflow/{name}")));
    }
    scratch.sh("git add --all && git commit --quiet -m Begin");
    let said = scratch.sh(&format!("piton run {plan}; echo \"exit $?\""));
    assert!(said.contains("Phase 2 failed") && said.ends_with("exit 1\n"), "{said}");
    let said = scratch.sh(&format!("touch fixed; piton run {plan} --resume; echo \"exit $?\""));
    assert!(said.contains("Resuming from Phase 2") && said.ends_with("exit 0\n"), "{said}");
    assert_eq!(scratch.sh("sh demo.sh"), "Hello, Ada!\n");
    assert_eq!(scratch.sh(&format!("grep -c '\\[x\\]' {plan} {expanded} | cut -d: -f2")), "4\n2\n");
}

/// The example of a task list ticks every box.
#[test]
fn the_example_of_a_task_list_runs_and_is_complete() {
    let scratch = Scratch::new();
    for name in ["piton.toml", "agent.sh", "specs/001-greeting/tasks.md"] {
        scratch.write(name, &read(&format!("examples/speckit/{name}")));
    }
    scratch.sh("git add --all && git commit --quiet -m Begin");
    let said = scratch.sh("piton run specs/001-greeting/tasks.md; echo \"exit $?\"");
    assert!(said.ends_with("exit 0\n"), "{said}");
    assert_eq!(scratch.sh("sh main.sh Ada"), "Hello, Ada!\n");
    assert_eq!(scratch.sh("grep -c '\\[x\\]' specs/001-greeting/tasks.md"), "4\n");
}

#[test]
fn the_example_for_rust_is_the_one_that_is_compiled() {
    let source = include_str!("docs/rust_example.rs");
    let (_, shown) = source.split_once("// docs/rust.md\n").unwrap();
    region("docs/rust.md", "rust: example", &format!("```rust\n{shown}```\n"));
    let found = rust_example::steps("[[phase]]\nid = \"P\"\nrun = \"make\"\n");
    assert_eq!(found, Ok(vec!["P/main/work".to_owned()]));
    assert!(rust_example::steps("[[phase]]\nid = \"P\"\n").is_err());
}
