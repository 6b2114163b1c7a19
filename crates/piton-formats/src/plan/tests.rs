//! Plans that are read, plans that are refused: one row per refusal, with its place and hint.
//!
//! What would be lost without them: a plan that starts and then cannot go on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use piton_core::plan::{Command, OnFailure, Plan, Work};
use piton_core::{LanePath, Millis};
use proptest::prelude::*;

use super::{Input, STEPS_MAX, read_plan};
use crate::diagnostic::{Diagnostic, Severity, render};
use crate::settings::{Agent, Settings, read_settings};

fn settings() -> Settings {
    let agent = Agent::of_command("claude", Command::Args(vec!["claude".to_owned()]));
    Settings { agents: BTreeMap::from([("claude".to_owned(), agent)]), ..Settings::default() }
}

fn read(text: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let files = |path: &str| match path {
        "prompts/mail.md" => Ok("Write {{ title }}.\n".to_owned()),
        "prompts/bad.md" => Ok("one\n {{ nope_nope }}".to_owned()),
        "prompts/empty.md" => Ok(" \n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let settings = settings();
    read_plan(&Input {
        file: "plans/auth.toml",
        text,
        settings: &settings,
        git: true,
        read: &files,
    })
}

fn accepted(text: &str) -> Plan {
    match read(text) {
        Ok((plan, _)) => plan,
        Err(problems) => panic!("{problems:#?}"),
    }
}

fn problems(text: &str) -> Vec<Diagnostic> {
    match read(text) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    }
}

const EXAMPLE: &str = r#"# the long form of one phase, the short form of another
title = "Shop"
spec = "specs/shop.md"
on_failure = "continue"

[defaults]
agent = "claude"
isolation = "in-place"
retries = 1
timeout = "45m"
env = { A = "1", B = "2" }

[budgets]
money = "12.50"
step_time = "1h"
log_bytes = "1MiB"

[agents.codex]
command = ["codex", "exec", "--title", "{{ title }}"]

[[phase]]
id = "P1"
gate = "Spec approval"

[[phase.lane]]
id = "CART"
prompt = "Build the cart of {{ spec }}."
test = "cargo test -p cart"
artifacts = ["./crates/cart//src/lib.rs"]
inputs = ["specs/**/*.md"]
retries = 3
env = { B = "3" }

[[phase.lane]]
id = "MAIL"
needs = ["CART"]
dir = "mail"
steps = [{ id = "schema", run = "make schema" }, { id = "send", agent = "codex", prompt_file = "prompts/mail.md", timeout = "5m" }]

[[phase]]
id = "P2"
run = ["make", "release"]

[[phase]]
id = "P3"
needs = []
keep = ["daemon"]
[[phase.lane]]
id = "x"
needs = ["P1/MAIL"]
[[phase.lane.step]]
id = "s"
run = "true"
"#;

#[test]
fn the_example_is_read_as_it_is_meant() {
    let plan = accepted(EXAMPLE);
    assert_eq!((plan.title.as_str(), plan.spec.as_deref()), ("Shop", Some("specs/shop.md")));
    assert_eq!(plan.on_failure, OnFailure::Continue);
    assert_eq!((plan.budgets.money_micros, plan.budgets.log_bytes), (12_500_000, 1 << 20));
    let paths: Vec<String> = plan.steps().map(|(path, _)| path.to_string()).collect();
    assert_eq!(paths, ["P1/CART/work", "P1/MAIL/schema", "P1/MAIL/send", "P2/main/work", "P3/x/s"]);

    let steps: Vec<_> = plan.steps().map(|(_, step)| step).collect();
    assert_eq!(steps[0].artifacts, ["crates/cart/src/lib.rs"]);
    assert_eq!(steps[0].inputs, ["specs/**/*.md"]);
    assert_eq!(steps[0].test, Some(Command::Shell("cargo test -p cart".to_owned())));
    assert_eq!((steps[0].retries, steps[1].retries), (3, 1));
    assert_eq!((steps[0].env["A"].as_str(), steps[0].env["B"].as_str()), ("1", "3"));
    assert_eq!((steps[1].env["B"].as_str(), steps[1].dir.as_str()), ("2", "mail"));
    assert_eq!(steps[2].timeout, Millis::from_secs(300));
    assert_eq!(steps[3].timeout, Millis::from_secs(45 * 60));
    assert_eq!(
        steps[3].work,
        Work::Run(Command::Args(vec!["make".to_owned(), "release".to_owned()]))
    );
    assert_eq!(steps[4].keep, ["daemon"]);
    let Work::Prompt { agent, command, prompt } = &steps[2].work else { panic!("a prompt") };
    assert_eq!((agent.as_str(), prompt.as_str()), ("codex", "Write {{ title }}.\n"));
    assert!(matches!(command, Command::Args(args) if args[0] == "codex"));

    assert_eq!(plan.phases[1].after, ["P1"]);
    assert!(plan.phases[1].needs.is_empty());
    assert!(plan.phases[2].after.is_empty() && plan.phases[2].needs.is_empty());
    assert_eq!(
        plan.phases[0].lanes[1].needs,
        [LanePath { phase: "P1".to_owned(), lane: "CART".to_owned() }]
    );
    assert_eq!(
        plan.phases[2].lanes[0].needs,
        [LanePath { phase: "P1".to_owned(), lane: "MAIL".to_owned() }]
    );
    assert_eq!(plan.gates().len(), 1);
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let windows = format!("\u{feff}{}", EXAMPLE.replace('\n', "\r\n"));
    assert_eq!(accepted(&windows).hash(), accepted(EXAMPLE).hash());
    let found = problems(
        "\u{feff}titel = \"x\"\r\n[[phase]]\r\nid = \"a\"\r\nrnu = \"x\"\r\nrun = \"true\"\r\n",
    );
    let places: Vec<_> = found.iter().map(|d| (d.line, d.column)).collect();
    assert_eq!(places, [(1, 1), (4, 1)]);
}

#[test]
fn nothing_said_means_the_defaults() {
    let plan = accepted("[[phase]]\nid = \"a\"\nrun = \"true\"\n");
    assert_eq!(plan.title, "auth");
    let (_, step) = plan.steps().next().unwrap_or_else(|| panic!("a step"));
    assert_eq!(
        (step.retries, step.backoff, step.grace),
        (0, Millis::from_secs(1), Millis::from_secs(10))
    );
    assert_eq!((step.timeout, step.idle_timeout), (plan.budgets.step_time, None));
}

#[test]
fn settings_stand_below_the_plan() {
    let settings = read_settings(
        "piton.toml",
        "on_failure = \"continue\"\n[defaults]\nretries = 5\ngrace = \"1s\"\n[budgets]\nattempts = 7\nstep_time = \"2h\"\n",
    )
    .unwrap_or_else(|problems| panic!("{problems:?}"));
    let text =
        "[defaults]\nretries = 2\n[budgets]\nattempts = 9\n[[phase]]\nid = \"a\"\nrun = \"true\"\n";
    let read = |_: &str| Err(io::ErrorKind::NotFound.into());
    let input = Input { file: "p.toml", text, settings: &settings, git: true, read: &read };
    let (plan, _) = read_plan(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
    let (_, step) = plan.steps().next().unwrap_or_else(|| panic!("a step"));
    assert_eq!(
        (step.retries, step.grace, step.timeout),
        (2, Millis(1_000), Millis::from_secs(7_200))
    );
    assert_eq!((plan.budgets.attempts, plan.on_failure), (9, OnFailure::Continue));
}

/// One row: the text, then code, line, column, underlined text, part of the message and of the
/// hint.
type Row = (&'static str, &'static str, usize, usize, &'static str, &'static str, &'static str);

/// A phase of its own before each row's text, so that the row shows one problem only.
const GOOD: &str = "[[phase]]\nid = \"ok\"\nrun = \"true\"\n";

#[rustfmt::skip]
const REFUSED: &[Row] = &[
    ("a = b", "bad-syntax", 4, 5, "b", "not valid TOML", "in quotes"),
    ("title = \"x\"\ntitle = \"y\"", "bad-syntax", 5, 1, "title", "duplicate key", "remove one"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nretrys = 1", "unknown-key", 7, 1, "retrys", "unknown key `retrys` in a phase", "`retries`"),
    ("[defaults]\non_failure = \"stop\"", "unknown-key", 5, 1, "on_failure", "in [defaults]", "belongs to the plan"),
    ("[budgets]\nzzzzzz = 1", "unknown-key", 5, 1, "zzzzzz", "in [budgets]", "known keys: attempts"),
    ("[budgets]\ntoken = 1", "unknown-key", 5, 1, "token", "unknown key", "`tokens`"),
    ("[[phase]]\nid = \"x\"\nrun = 5", "wrong-type", 6, 7, "5", "`run` must be", "make check"),
    ("[[phase]]\nid = \"x\"\nlane = [3]", "wrong-type", 6, 9, "3", "a list of tables", "[[…lane]] before"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nretries = \"2\"", "wrong-type", 7, 12, "2", "a whole number, not a string", "retries = 3"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\ntimeout = 45", "wrong-type", 7, 11, "45", "a duration in quotes", "timeout = \"45m\""),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nartifacts = \"a\"", "wrong-type", 7, 14, "a", "a list of strings", "artifacts = ["),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nenv = { A = 1 }", "wrong-type", 7, 13, "1", "`A` must be a string", "A = \"text\""),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nretries = -1", "bad-value", 7, 11, "-1", "negative", "from 0 to"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nretries = 99999999999", "bad-value", 7, 11, "99999999999", "out of range", "from 0 to 1000000"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nretries = 99999999999999999999", "bad-syntax", 7, 11, "99999999999999999999", "not valid TOML", "63 bits"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\ntimeout = \"45 minutes\"", "bad-duration", 7, 12, "45 minutes", "not a unit", "45m"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\ntimeout = \"0s\"", "bad-duration", 7, 12, "0s", "`timeout` is zero", "longer"),
    ("[budgets]\nlog_bytes = \"5 apples\"", "bad-size", 5, 14, "5 apples", "not a size", "64MB"),
    ("[budgets]\nlog_bytes = -5", "bad-size", 5, 13, "-5", "negative", "64MB"),
    ("[budgets]\nmoney = \"cheap\"", "bad-money", 5, 10, "cheap", "not an amount", "12.50"),
    ("[budgets]\nmoney = -1.5", "bad-money", 5, 9, "-1.5", "negative", "12.50"),
    ("[budgets]\nattempts = 0", "bad-value", 5, 12, "0", "out of range", "from 1 to"),
    ("[[phase]]\nid = \"a b\"\nrun = \"true\"", "bad-id", 5, 7, "a b", "is not a valid id", "letters, digits"),
    ("[[phase]]\nid = \"a.lock\"\nrun = \"true\"", "bad-id", 5, 7, "a.lock", "is not a valid id", "`.lock`"),
    ("[[phase]]\nid = \"\"\nrun = \"true\"", "bad-value", 5, 6, "\"", "`id` is empty", "between the quotes"),
    ("[[phase]]\nrun = \"true\"", "missing-value", 4, 1, "[[phase]]", "a phase has no id", "id = \"NAME\""),
    ("[[phase]]\nid = \"x\"\nlane = [{ run = \"true\" }]", "missing-value", 6, 9, "{ run = \"true\" }", "a lane has no id", "id = "),
    ("[[phase]]\nid = \"ok\"\nrun = \"true\"", "duplicate-id", 5, 7, "ok", "two phases have the id `ok`", "line 2"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", run = \"a\" }, { id = \"l\", run = \"b\" }]", "duplicate-id", 6, 42, "l", "two lanes of a phase", "line 6"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", steps = [{ id = \"s\", run = \"a\" }, { id = \"s\", run = \"b\" }] }]", "duplicate-id", 6, 63, "s", "two steps of a lane", "line 6"),
    ("[[phase]]\nid = \"x\"\nneeds = [\"okk\"]\nrun = \"true\"", "unknown-id", 6, 11, "okk", "unknown phase `okk`", "`ok`"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", needs = [\"main\"], run = \"a\" }]", "unknown-id", 6, 31, "main", "unknown lane `main`", "`ok/main`"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", needs = [\"a/b/c\"], run = \"a\" }]", "unknown-id", 6, 31, "a/b/c", "unknown lane", "PHASE/LANE"),
    ("[[phase]]\nid = \"x\"\nneeds = [\"x\"]\nrun = \"true\"", "cycle", 6, 11, "x", "wait for each other: x -> x", "remove one"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"a\", needs = [\"b\"], run = \"a\" }, { id = \"b\", needs = [\"a\"], run = \"b\" }]", "cycle", 6, 31, "b", "x/a -> x/b -> x/a", "remove one"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"a\", needs = [\"y/b\"], run = \"a\" }]\n[[phase]]\nid = \"y\"\nlane = [{ id = \"b\", run = \"b\" }]", "cycle", 6, 31, "y/b", "x -> x/a -> y/b -> y -> x", "waits for the previous phase"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nlane = [{ id = \"a\", run = \"a\" }]", "mixed-forms", 6, 1, "run", "a phase with `lane`", "move `run`"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"a\", test = \"t\", steps = [{ id = \"s\", run = \"a\" }] }]", "mixed-forms", 6, 21, "test", "a lane with `steps`", "move `test`"),
    ("[[phase]]\nid = \"x\"\nrun = \"true\"\nprompt = \"p\"\nagent = \"claude\"", "two-works", 7, 1, "prompt", "both `run` and `prompt`", "keep one"),
    ("[[phase]]\nid = \"x\"", "missing-value", 4, 1, "[[phase]]", "has no lane and no work", "[[phase.lane]]"),
    ("[[phase]]\nid = \"x\"\nlane = []", "missing-value", 6, 8, "[]", "`lane` is an empty list", "[[…lane]]"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\" }]", "missing-value", 6, 9, "{ id = \"l\" }", "has no step and no work", "`steps"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", steps = [] }]", "missing-value", 6, 29, "[]", "`steps` is an empty list", "steps"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", steps = [{ id = \"s\" }] }]", "missing-value", 6, 30, "{ id = \"s\" }", "the step `s` has no work", "`run`"),
    ("[[phase]]\nid = \"x\"\ntest = \"t\"", "missing-value", 4, 1, "[[phase]]", "has no work", "`run`"),
    ("[[phase]]\nid = \"x\"\nrun = \"  \"", "bad-value", 6, 8, "  ", "empty command", "make check"),
    ("[[phase]]\nid = \"x\"\nrun = []", "bad-value", 6, 7, "[]", "empty command", "make check"),
    ("[[phase]]\nid = \"x\"\nrun = \"a\\u0000b\"", "bad-value", 6, 8, "a\\u0000b", "NUL", "remove it"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nartifacts = [\"/etc/passwd\"]", "bad-path", 7, 15, "/etc/passwd", "absolute", "relative"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nartifacts = [\"a/../../b\"]", "bad-path", 7, 15, "a/../../b", "leaves the project", "without `..`"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nartifacts = [\"{a,../b}\"]", "bad-path", 7, 15, "{a,../b}", "leaves the project", "without `..`"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\ninputs = [\"~/x\"]", "bad-path", 7, 12, "~/x", "home directory", "relative"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\ndir = 'C:\\x'", "bad-path", 7, 8, "C:\\x", "drive", "relative"),
    ("[[phase]]\nid = \"x\"\nagent = \"claude\"\nprompt_file = \"../x\"", "bad-path", 7, 16, "../x", "leaves", "relative"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nartifacts = [\"src/[a\"]", "bad-glob", 7, 15, "src/[a", "invalid glob", "backslash"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nartifacts = [\".\"]", "bad-glob", 7, 15, ".", "root itself", "name files"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nartifacts = [\"{{ run.id }}.txt\"]", "bad-glob", 7, 15, "{{ run.id }}.txt", "templates are not allowed", "name files"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nenv = { PITON_RUN_ID = \"x\" }", "bad-env", 7, 9, "PITON_RUN_ID", "reserved", "do not start with PITON_"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nenv = { \"A=B\" = \"x\" }", "bad-env", 7, 10, "A=B", "`=`", "letters"),
    ("[[phase]]\nid = \"x\"\nprompt = \"p\"\nagent = \"cloude\"", "unknown-agent", 7, 10, "cloude", "unknown agent `cloude`", "`claude`"),
    ("[[phase]]\nid = \"x\"\nprompt = \"p\"\nagent = \"nobody\"", "unknown-agent", 7, 10, "nobody", "unknown agent", "[agents.nobody]"),
    ("[[phase]]\nid = \"x\"\nprompt = \"p\"", "unknown-agent", 6, 1, "prompt", "no agent", "[defaults]"),
    ("[agents.x]\nkind = \"command\"", "missing-value", 4, 9, "x", "has no `command`", "command ="),
    ("[agents.x]\nkind = \"api\"\ncommand = \"x\"", "bad-value", 5, 9, "api", "is not a valid", "kind = \"command\""),
    ("[[phase]]\nid = \"x\"\nrun = \"echo {{ attemt }}\"", "bad-template", 6, 16, "attemt", "unknown name `attemt`", "`attempt`"),
    ("[[phase]]\nid = \"x\"\nrun = [\"echo\", \"{{ title\"]", "bad-template", 6, 20, "title", "invalid template", "raw"),
    ("[[phase]]\nid = \"x\"\nrun = \"echo ${#list[@]}\"", "bad-template", 6, 8, "echo ${#list[@]}", "invalid template", "raw"),
    ("[[phase]]\nid = \"x\"\nrun = \"echo \\t{{ attemt }}\"", "bad-template", 6, 8, "echo \\t{{ attemt }}", "line 1 of the text", "`attempt`"),
    ("[[phase]]\nid = \"x\"\nagent = \"claude\"\nprompt_file = \"prompts/bad.md\"", "bad-template", 7, 16, "prompts/bad.md", "prompts/bad.md:2:5", "known names"),
    ("[[phase]]\nid = \"x\"\nagent = \"claude\"\nprompt_file = \"prompts/no.md\"", "unreadable-prompt", 7, 16, "prompts/no.md", "cannot be read", "create the file"),
    ("[[phase]]\nid = \"x\"\nagent = \"claude\"\nprompt_file = \"prompts/empty.md\"", "unreadable-prompt", 7, 16, "prompts/empty.md", "is empty", "create the file"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nisolation = \"worktre\"", "bad-value", 7, 14, "worktre", "is not a valid", "\"worktree\""),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nprovides = [\"g\"]", "unknown-key", 7, 1, "provides", "in a phase", "a lane"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", run = \"t\", alone = \"yes\" }]", "wrong-type", 6, 41, "yes", "true or false", "alone = true"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"l\", steps = [{ id = \"s\", run = \"t\", setup = \"u\" }] }]", "unknown-key", 6, 53, "setup", "in a step", "belongs to"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nisolation = \"worktree\"\ncommit_message = \"{{ lne }}\"", "bad-template", 8, 22, "lne", "unknown name", "known names"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nisolation = \"worktree\"\ncopy = [\"../x\"]", "bad-path", 8, 10, "../x", "leaves", "relative"),
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nsetup = \"make\"", "needs-worktree", 7, 1, "setup", "works in place", "isolation = "),
    ("[[phase]]\nid = \"x\"\nisolation = \"worktree\"\nlane = [{ id = \"l\", steps = [{ id = \"tests\", run = \"t\" }] }]", "reserved-id", 7, 38, "tests", "is reserved", "`own-tests`"),
    ("[[phase]]\nid = \"x\"\nisolation = \"worktree\"\nlane = [{ id = \"l\", steps = [{ id = \"s\", run = \"t\", test = \"t {{ step.id }}\" }] }]", "clashing-tests", 7, 38, "s", "`step.id`", "write `s`"),
    ("[[phase]]\nid = \"x\"\nisolation = \"worktree\"\nlane = [{ id = \"l\", steps = [{ id = \"s\", run = \"t\", test = \"t\", env = { A = \"1\" } }, { id = \"u\", run = \"t\", test = \"t\", env = { A = \"2\" } }] }]", "clashing-tests", 7, 17, "l", "`A`", "value of A"),
    ("[[phase]]\nid = \"x\"\nagent = \"claude\"\nprompt = \" \"", "bad-value", 7, 11, " ", "`prompt` is empty", "between the quotes"),
];

#[rustfmt::skip]
const WARNED: &[Row] = &[
    ("[[phase]]\nid = \"x\"\nrun = \"t\"\nagent = \"claude\"", "unused-key", 7, 1, "agent", "no effect", "remove"),
    ("[[phase]]\nid = \"x\"\nrun = \"echo {{ spec }}\"", "no-spec", 6, 8, "echo {{ spec }}", "has none", "spec ="),
    ("[[phase]]\nid = \"x\"\nrun = \"echo {{ failure_context }}\"", "unquoted-text", 6, 8, "echo {{ failure_context }}", "logs", "| sh"),
    ("[[phase]]\nid = \"x\"\nlane = [{ id = \"a\", run = \"a\", artifacts = [\"o\"] }, { id = \"b\", run = \"b\", artifacts = [\"./o\"] }]", "shared-artifact", 6, 90, "./o", "x/b and x/a", "needs = [\"x/a\"]"),
];

/// Compares all rows before it fails, so that one change of words shows its whole effect.
fn check_rows(rows: &[Row], severity: Severity) {
    let mut wrong = String::new();
    for (text, code, line, column, underlined, message, hint) in rows {
        let text = format!("{GOOD}{text}\n");
        let found = problems(&text);
        let [problem] = found.as_slice() else {
            let _ = writeln!(wrong, "one problem expected:\n{text}\n{found:#?}");
            continue;
        };
        let right = (problem.severity, problem.code) == (severity, *code)
            && (problem.line, problem.column) == (*line, *column)
            && &text[problem.span.clone()] == *underlined
            && problem.message.contains(message)
            && problem.hint.as_deref().is_some_and(|h| h.contains(hint));
        let shown = render(problem, &text, false, 100);
        if !right || !shown.starts_with(&format!("plans/auth.toml:{line}:{column}: ")) {
            let _ = writeln!(wrong, "expected {code} at {line}:{column}, found:\n{shown}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_refusal_has_its_place_and_a_hint() {
    check_rows(REFUSED, Severity::Error);
}

#[test]
fn every_warning_has_its_place_and_a_hint_and_the_plan_is_read() {
    check_rows(WARNED, Severity::Warning);
    for (text, ..) in WARNED {
        accepted(&format!("{GOOD}{text}\n"));
    }
}

/// Codes that need a huge text, or that only files of protocols have; their own tests name them.
const ELSEWHERE: [&str; 20] = [
    "bad-gate",
    "bad-json",
    "bad-record",
    "bad-yaml",
    "constitution-check",
    "missing-field",
    "needs-git",
    "no-lane-index",
    "no-lanes",
    "no-phase-id",
    "not-utf8",
    "stray-task",
    "too-large",
    "torn-line",
    "unclosed",
    "uneditable-yaml",
    "unfilled",
    "unknown-format",
    "unlisted-gate",
    "unlisted-lane",
];

#[test]
fn every_code_has_a_row() {
    let codes = crate::diagnostic::CODES.iter();
    for entry in codes.filter(|entry| !ELSEWHERE.contains(&entry.code)) {
        let named = |rows: &[Row]| rows.iter().any(|row| row.1 == entry.code);
        assert!(named(REFUSED) || named(WARNED), "{}", entry.code);
    }
}

#[test]
fn problems_at_the_top_of_the_plan() {
    for (text, code, column) in [
        ("", "missing-value", 1),
        ("titel = \"x\"\nphase = [{ id = \"a\", run = \"t\" }]", "unknown-key", 1),
        ("spec = \"../x\"\nphase = [{ id = \"a\", run = \"t\" }]", "bad-path", 9),
        ("on_failure = \"halt\"\nphase = [{ id = \"a\", run = \"t\" }]", "bad-value", 15),
        ("phase = []", "missing-value", 9),
        ("phase = { id = \"a\" }", "wrong-type", 9),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        assert_eq!((found[0].code, found[0].line, found[0].column), (code, 1, column), "{text}");
    }
}

#[test]
fn all_problems_at_once_from_top_to_bottom() {
    let text = "[[phase]]\nid = \"a b\"\nneeds = [\"zz\"]\ntimeout = \"x\"\nrun = \"{{ nope_nope }}\"\nartifacts = [\"/x\"]\nfoo = 1\n";
    let codes: Vec<_> = problems(text).iter().map(|d| (d.line, d.code)).collect();
    assert_eq!(
        codes,
        [
            (2, "bad-id"),
            (3, "unknown-id"),
            (4, "bad-duration"),
            (5, "bad-template"),
            (6, "bad-path"),
            (7, "unknown-key"),
        ]
    );
}

#[test]
fn lanes_that_wait_for_each_other_may_share_an_artifact() {
    for text in [
        "[[phase]]\nid = \"x\"\nlane = [{ id = \"a\", run = \"a\", artifacts = [\"o\"] }, { id = \"b\", needs = [\"a\"], run = \"b\", artifacts = [\"o\"] }]",
        "[[phase]]\nid = \"x\"\nrun = \"a\"\nartifacts = [\"o\"]\n[[phase]]\nid = \"y\"\nrun = \"b\"\nartifacts = [\"o\"]",
    ] {
        assert_eq!(problems(text), [], "{text}");
    }
    let apart = "[[phase]]\nid = \"x\"\nrun = \"a\"\nartifacts = [\"o\"]\n[[phase]]\nid = \"y\"\nneeds = []\nrun = \"b\"\nartifacts = [\"o\"]";
    assert_eq!(problems(apart).len(), 1);
}

/// Lost: a problem would name a phase that has no name.
#[test]
fn what_has_no_name_is_not_named() {
    let said = format!("{:?}", problems("[[phase]]"));
    assert!(said.contains("a phase has no lane and no work") && !said.contains("``"), "{said}");
}

#[test]
fn quoted_failure_context_is_no_warning() {
    let text = "[[phase]]\nid = \"x\"\nrun = \"echo {{ failure_context|sh }} {{- failure_context | trim | sh -}}\"";
    assert_eq!(problems(text), []);
}

#[test]
fn a_plan_of_the_largest_size_is_read_and_one_step_more_is_refused() {
    let mut text = String::new();
    for phase in 0..100 {
        let _ = writeln!(text, "[[phase]]\nid = \"p{phase}\"");
        for lane in 0..10 {
            let _ = writeln!(text, "[[phase.lane]]\nid = \"l{lane}\"");
            for step in 0..10 {
                let _ = writeln!(text, "[[phase.lane.step]]\nid = \"s{step}\"\nrun = \"true\"");
            }
        }
    }
    assert_eq!(accepted(&text).steps().count(), STEPS_MAX);
    text.push_str("[[phase]]\nid = \"more\"\nrun = \"true\"\n");
    let found = problems(&text);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].code, found[0].message.as_str()),
        ("too-large", "the plan has more than 10000 steps")
    );
}

#[test]
fn a_very_long_chain_is_walked_without_recursion() {
    let mut text = String::from("[[phase]]\nid = \"p\"\n");
    for lane in 0..5_000 {
        let _ = writeln!(
            text,
            "[[phase.lane]]\nid = \"l{lane}\"\nneeds = [\"l{}\"]\nrun = \"true\"",
            (lane + 1) % 5_000
        );
    }
    let found = problems(&text);
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains('…') && found[0].message.len() < 300, "{}", found[0].message);
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>(), width in 0usize..120) {
        for problem in problems(&text) {
            let _ = render(&problem, &text, true, width);
        }
        let _ = read_settings("piton.toml", &text);
        let _ = crate::template::check(&text);
    }

    #[test]
    fn no_damaged_plan_makes_the_reader_panic(
        from in 0..EXAMPLE.len(),
        length in 0usize..12,
        insert in "[\\[\\]{}=\"'#,.%\r\n a-z0-9é\u{202e}-]{0,6}",
    ) {
        let end = (from + length).min(EXAMPLE.len());
        let text = format!("{}{insert}{}", &EXAMPLE[..from], &EXAMPLE[end..]);
        for problem in problems(&text) {
            prop_assert!(text.get(problem.span.clone()).is_some());
            let _ = render(&problem, &text, false, 40);
        }
    }
}
