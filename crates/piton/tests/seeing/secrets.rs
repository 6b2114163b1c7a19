//! Secrets stay out of what Piton writes: ledger, failure context, terminal, views of the log.
//!
//! The raw log files are the steps' own and hold what they wrote; that is documented.

use std::path::Path;

use super::common::{Output, PITON, Project, wait_until};

const SECRET: &str = "hunter2-correct-horse";

/// A step that leaks `$DEPLOY_TOKEN` wherever it can, fails, and leaks again.
const LEAK: &str = r#"
title = "Leak"
[[phase]]
id = "P"
[[phase.lane]]
id = "L"
[[phase.lane.step]]
id = "s"
retries = 1
backoff = "1ms"
run = '''
cp "$PITON_FAILURE_CONTEXT" context-$PITON_ATTEMPT.json
echo "using $DEPLOY_TOKEN"
echo "errors $DEPLOY_TOKEN too" >&2
echo "{\"notes\": \"noted $DEPLOY_TOKEN\"}" > "$PITON_OUTPUT"
exit 1
'''
"#;

/// All bytes of Piton's state but the raw logs of steps, and the plan's own files around a replan.
fn state(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let is_raw = ["logs", "replans"].contains(&path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() && !is_raw {
            bytes.extend(state(&path));
        } else if path.is_file() {
            bytes.extend(std::fs::read(&path).unwrap());
        }
    }
    bytes
}

/// Checks everything Piton wrote or shows after a run of [`LEAK`] that knew the secret.
#[track_caller]
fn nothing_leaked(
    project: &Project,
    ran: &Output,
    secret: &str,
    command: impl Fn(&[&str]) -> Output,
) {
    assert!(project.has("context-2.json"), "it did not fail as it should: {ran:?}");
    let context = project.read("context-2.json");
    assert!(context.contains("using [redacted]"), "{context}");
    let bytes = state(&project.state_dir());
    let at = bytes.windows(secret.len()).position(|w| w == secret.as_bytes());
    let near = |at: usize| String::from_utf8_lossy(&bytes[at.saturating_sub(80)..at]).into_owned();
    assert!(at.is_none(), "the secret is in Piton's state after: {}", near(at.unwrap()));
    let views = [
        command(&["log", "r"]),
        command(&["log", "r", "--json"]),
        command(&["show", "r"]),
        command(&["show", "r/P/L/s"]),
        command(&["show", "r/P/L/s", "--json"]),
        command(&["status", "r"]),
        command(&["status", "r", "--json"]),
    ];
    for (place, text) in views.iter().chain([ran]).map(|o| (o, format!("{}{}", o.stdout, o.stderr)))
    {
        assert!(!text.contains(secret), "shown: {place:?}");
    }
    assert!(!context.contains(secret) && views[0].stdout.contains("using [redacted]"));
}

/// Lost: a deploy token printed by a failing step would stand in the ledger for ever.
#[test]
fn the_value_of_a_secret_variable_is_nowhere() {
    let project = Project::with_plan(LEAK);
    let command = |args: &[&str]| {
        project.finish(project.command(PITON).env("DEPLOY_TOKEN", SECRET).args(args))
    };
    let ran = command(&["run", "plan.toml", "--run-id", "r"]).exits(1).says("using [redacted]");
    nothing_leaked(&project, &ran, SECRET, command);
}

/// Lost: the same in a stream that a program reads.
#[test]
fn the_stream_of_events_is_redacted() {
    let project = Project::with_plan(LEAK);
    let mut command = project.command(PITON);
    command.env("DEPLOY_TOKEN", SECRET).args(["run", "plan.toml", "--json"]);
    project.finish(&mut command).exits(1).silent_about(SECRET).says("noted [redacted]");
}

/// Lost: a secret in a plan's own variables would be recorded with the plan, or through output.
#[test]
fn a_secret_of_the_plan_is_nowhere() {
    let plan = format!("{LEAK}env = {{ DEPLOY_TOKEN = \"{SECRET}\" }}\n");
    let project = Project::with_plan(&plan);
    let command = |args: &[&str]| project.piton(args);
    let ran = command(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    nothing_leaked(&project, &ran, SECRET, command);
    // The step itself had it: the raw log says so.
    let log = std::fs::read_to_string(project.state_dir().join("runs/r/logs/P/L.out")).unwrap();
    assert!(log.contains(SECRET));
}

/// Lost: a token that is in no variable (typed, fetched, printed by a tool) would be recorded.
#[test]
fn well_known_tokens_are_nowhere() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    // Put together in the step, so that neither plan nor environment holds it.
    let plan =
        LEAK.replace("cp \"", "DEPLOY_TOKEN=ghp_$(printf 'a1B2%.0s' 1 2 3 4 5 6 7 8 9)\ncp \"");
    let project = Project::with_plan(&plan);
    let command = |args: &[&str]| project.piton(args);
    let ran = command(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    nothing_leaked(&project, &ran, &token, command);
}

/// Lost: a variable that a person declares secret would be treated like any other.
#[test]
fn a_variable_named_in_the_settings_is_secret() {
    let plan = LEAK.replace("DEPLOY_TOKEN", "LICENCE");
    let project = Project::with_plan(&plan);
    project.write("piton.toml", "[secrets]\nnames = [\"LICENCE\"]\n");
    let command =
        |args: &[&str]| project.finish(project.command(PITON).env("LICENCE", SECRET).args(args));
    let ran = command(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    nothing_leaked(&project, &ran, SECRET, command);
}

/// Lost: a token that a replan is given would be recorded with its rules, its failure or its plan.
#[test]
fn a_secret_of_a_replan_is_nowhere() {
    let plan = format!(
        "[defaults]\nenv = {{ DEPLOY_TOKEN = \"{SECRET}\" }}\n\n\
         [replan]\nrun = \"echo by {SECRET}; sh revise.sh\"\n\n\
         [[phase]]\nid = \"P\"\nrun = \"exit 86\"\n"
    );
    let project = Project::with_plan(&plan);
    project.write(
        "revise.sh",
        "echo \"using $DEPLOY_TOKEN\"\n[ -e better ] || { echo $DEPLOY_TOKEN >&2; exit 1; }\n\
         sed -i 's/exit 86/true/' plan.toml\n",
    );
    let hidden = |project: &Project, ran: &Output| {
        let bytes = state(&project.state_dir());
        let at = bytes.windows(SECRET.len()).position(|w| w == SECRET.as_bytes());
        let near =
            |at: usize| String::from_utf8_lossy(&bytes[at.saturating_sub(80)..at]).into_owned();
        assert!(at.is_none(), "the secret is in Piton's state after: {}", near(at.unwrap()));
        for args in [&["log", "r"][..], &["show", "r", "--json"], &["status", "r"], &["report"]] {
            project.piton(args).exits(0).silent_about(SECRET);
        }
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(SECRET), "{ran:?}");
    };
    let ran = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    hidden(&project, &ran.says("[redacted]"));
    project.write("better", "");
    let ran = project.piton(&["resume", "r", "--force-replan"]).exits(0);
    hidden(&project, &ran);
    // Whoever resumes without knowing the secret takes the plan for the same.
    project.piton(&["resume", "r"]).exits(0).silent_about("changed");
}

/// Lost: words that people give with decisions would carry secrets into the ledger.
#[test]
fn messages_of_people_are_redacted() {
    let project = super::waiting();
    let command = |args: &[&str]| {
        project.finish(project.command(PITON).env("DEPLOY_TOKEN", SECRET).args(args))
    };
    command(&["checkpoint", "-m", &format!("with {SECRET}")]).exits(0).silent_about(SECRET);
    command(&["approve", "r", "Q", "-m", &format!("use {SECRET}")]).exits(0).silent_about(SECRET);
    let bytes = state(&project.state_dir());
    assert!(!bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()));
}

/// Lost: the same of secrets that only the plan knows.
#[test]
fn messages_of_people_are_redacted_by_what_the_plan_knows() {
    let project = Project::with_plan(&format!(
        "[[phase]]\nid = \"P\"\ngate = \"Go\"\nrun = \"true\"\nenv = {{ DEPLOY_TOKEN = \"{SECRET}\" }}\n"
    ));
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    let told = format!("it was {SECRET}");
    for args in [&["checkpoint", "-m"][..], &["reject", "r", "P", "-m"], &["abort", "r", "-m"]] {
        project.piton(&[args, &[&told]].concat()).exits(0).silent_about(SECRET);
    }
    let bytes = state(&project.state_dir());
    assert!(!bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()));
}

/// Lost: what a step says while nobody drives would be recorded by whoever goes on from a shell that
/// does not know the secret.
#[test]
fn what_a_step_said_before_a_resume_that_does_not_know_its_secret_is_nowhere() {
    let project = Project::with_plan(
        &LEAK.replace("cp \"", "touch begun; while [ ! -e go ]; do sleep 0.02; done\ncp \""),
    );
    let mut first = project.command(PITON);
    first.env("DEPLOY_TOKEN", SECRET).args(["run", "plan.toml", "--run-id", "r"]);
    let mut driver = project.start(&mut first);
    project.wait_for("begun");
    driver.kill();
    project.write("go", "");
    let ran = project.piton(&["resume", "r"]).exits(1);
    nothing_leaked(&project, &ran, SECRET, |args| {
        project.finish(project.command(PITON).env("DEPLOY_TOKEN", SECRET).args(args))
    });
}

/// The same when the keeper is gone too, and nobody knows the secret any more.
#[test]
fn what_a_step_said_whose_secret_nobody_knows_any_more_is_copied_nowhere() {
    let project = Project::with_plan(
        &LEAK.replace("cp \"", "touch begun; while [ ! -e go ]; do sleep 0.02; done\ncp \""),
    );
    project.write("piton.toml", "[lanes]\nviews = \"on\"\n");
    let mut first = project.command(PITON);
    first.env("DEPLOY_TOKEN", SECRET).args(["run", "plan.toml", "--run-id", "r"]);
    let mut driver = project.start(&mut first);
    project.wait_for("begun");
    driver.kill();
    project.write("go", "");
    let dir = project.state_dir().join("runs/r");
    let fact = || piton_process::Journal::read(&dir).unwrap().fact("P/L/s#1");
    wait_until("its end", || matches!(fact(), piton_process::Fact::Finished(_)));
    project.kill_all();
    let ran = project.piton(&["resume", "r"]).exits(1).silent_about(SECRET);
    let told = "DEPLOY_TOKEN was set when it ran and is not known now";
    let told = [told, "`piton log r --step P/L/s --attempt 1`"];
    let shown = project.piton(&["show", "r/P/L/s"]).exits(0).silent_about(SECRET);
    let context = project.read("context-2.json");
    let report = project.read(".claude/run-reports/r.md");
    let log = project.read(".claude/run-logs/r.jsonl");
    for text in [&ran.stderr, &shown.stdout, &context, &report, &log] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert!(told.iter().all(|words| context.contains(words)), "{context}");
    assert!(shown.stdout.contains(told[0]), "{}", shown.stdout);
    let bytes = state(&project.state_dir());
    assert!(!bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()), "it is recorded");
    // What the second attempt said, which never had it, is told as ever.
    assert!(shown.stdout.contains("errors  too"), "{}", shown.stdout);
}

/// Lost: a run could be resumed only from a shell that knows the same secrets, and one that does
/// not would record them.
#[test]
fn a_resume_that_does_not_know_a_secret_of_the_plan_goes_on_without_it() {
    let plan = format!(
        "[[phase]]\nid = \"P\"\nrun = \"echo {SECRET} >> ran.txt\"\n\
         [[phase]]\nid = \"Q\"\ngate = \"Go\"\nrun = \"echo on {SECRET} >> ran.txt\"\n"
    );
    let project = Project::with_plan(&plan);
    let mut first = project.command(PITON);
    project.finish(first.args(["run", "plan.toml"]).env("DEPLOY_TOKEN", SECRET)).exits(3);
    project.piton(&["approve", "Q"]).exits(0);
    project.piton(&["resume"]).exits(0).silent_about("changed");
    assert_eq!(project.lines("ran.txt"), [SECRET.to_owned(), format!("on {SECRET}")]);
    let bytes = state(&project.state_dir());
    assert!(!bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()), "it is recorded");
}

/// Lost: the title or a gate that names a secret would stand in the ledger and in every view.
#[test]
fn the_title_and_the_gates_of_a_plan_are_redacted() {
    let project = Project::with_plan(&format!(
        "title = \"Release with {SECRET}\"\n[[phase]]\nid = \"A\"\nrun = \"true\"\n\
         [[phase]]\nid = \"B\"\ngate = \"Go with {SECRET}?\"\nrun = \"true\"\n"
    ));
    let command = |args: &[&str]| {
        project.finish(project.command(PITON).env("DEPLOY_TOKEN", SECRET).args(args))
    };
    command(&["run", "plan.toml", "--dry-run"]).exits(0).silent_about(SECRET);
    command(&["run", "plan.toml", "--run-id", "r"]).exits(3).silent_about(SECRET);
    for view in [&["status"][..], &["status", "--json"], &["show"], &["runs", "--json"]] {
        command(view).exits(0).silent_about(SECRET).says("[redacted]");
    }
    let bytes = state(&project.state_dir());
    assert!(!bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()));
    // A shell that does not know the secret takes the plan for the same one.
    project.piton(&["resume", "--dry-run"]).exits(0).silent_about("the plan changed");
}

/// Lost: a typing error in a plan would put the password beside it on the terminal, or into the log
/// of whatever started Piton.
#[test]
fn what_is_wrong_with_a_plan_is_shown_without_its_secrets() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"A\"\nrunn = \"curl -H hunter2-correct-horse ghp_a1B2a1B2a1B2a1B2a1B2a1B2\"\n\
         env = { DB_PASSWORD = \"swordfish-77\", timeout = 5 }\n",
    );
    for form in [&["run", "plan.toml"][..], &["run", "plan.toml", "--json"]] {
        let mut command = project.command(PITON);
        let said = project.finish(command.env("DEPLOY_TOKEN", SECRET).args(form)).exits(2);
        said.silent_about(SECRET).silent_about("swordfish").silent_about("ghp_a1B2");
    }
    let said = project.piton(&["run", "plan.toml"]).exits(2).says("plan.toml:3:1");
    said.says("DB_PASSWORD = \"************\"");
}

/// Lost: finished work would run again because a variable was set since.
#[test]
fn a_resume_that_knows_more_secrets_takes_the_plan_for_the_same() {
    let project = Project::with_plan(&format!(
        "[[phase]]\nid = \"A\"\nrun = \"echo {SECRET} >> ran.txt\"\n[[phase]]\nid = \"B\"\nrun = \"test -e go\"\n"
    ));
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    project.write("go", "");
    project.piton(&["retry", "r"]).exits(0);
    let mut command = project.command(PITON);
    let said = project.finish(command.env("DEPLOY_TOKEN", SECRET).args(["resume", "r"]));
    said.exits(0).silent_about("changed");
    assert_eq!(project.lines("ran.txt").len(), 1);
}

/// Lost: a path that holds a secret would be recorded, or not be found again.
#[test]
fn a_path_with_a_secret_in_it_is_refused() {
    let project = Project::with_plan(&format!(
        "[[phase]]\nid = \"A\"\nrun = \"true\"\nartifacts = [\"out/{SECRET}.txt\"]\n"
    ));
    let mut command = project.command(PITON);
    let said = project.finish(command.env("DEPLOY_TOKEN", SECRET).args(["run", "plan.toml"]));
    said.exits(2).says("secret-path").silent_about(SECRET);
}

/// Lost: names that a plan gives to things, or a step to its files, would carry a secret into the
/// ledger.
#[test]
fn a_secret_in_a_name_is_nowhere() {
    let project = Project::with_plan(&format!(
        r#"
on_failure = "continue"
[agents.{SECRET}]
command = "cat"
[[phase]]
id = "P"
[[phase.lane]]
id = "agent"
agent = "{SECRET}"
prompt = "hello"
[[phase.lane]]
id = "keep"
run = ["{SECRET}"]
keep = ["{SECRET}"]
[[phase.lane]]
id = "said"
run = """echo '{{"artifacts": ["{SECRET}.txt"]}}' > $PITON_OUTPUT; touch {SECRET}.txt"""
[[phase.lane]]
id = "glob"
run = "true"
needs = ["said"]
artifacts = ["*.txt"]
"#
    ));
    let piton = |args: &[&str]| {
        let mut command = project.command(PITON);
        project.finish(command.env("DEPLOY_TOKEN", SECRET).args(args))
    };
    let said = piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    said.says("P/said/work: PITON_OUTPUT: artifact [redacted].txt has a secret in its name")
        .says("artifact [redacted].txt has a secret in its name, which would be recorded")
        .silent_about(SECRET);
    assert_eq!(project.step_status("P/said/work"), "complete");
    let bytes = state(&project.state_dir().join("runs"));
    assert!(!bytes.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()), "beside the ledger");
    let ledger = std::fs::read(project.state_dir().join("ledger.db")).unwrap();
    assert!(!ledger.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()), "in the ledger");

    project.write(
        "plan.toml",
        &format!("[[phase]]\nid = \"A\"\nrun = \"true\"\ndir = \"{SECRET}\"\n"),
    );
    piton(&["run", "plan.toml", "--fresh"]).exits(2).says("secret-path").silent_about(SECRET);
}

/// A key as it is read from a file: too long for the last lines of a failure.
fn key() -> String {
    let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2g\n".repeat(30);
    format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\n")
}

/// Lost: the last lines of a private key, which alone do not look like one, would be recorded with
/// the failure and given to the next attempt.
#[test]
fn a_private_key_is_nowhere() {
    let plan = LEAK.replace("echo \"using $DEPLOY_TOKEN\"", "echo using; cat id_key");
    let plan = plan.replace("echo \"errors $DEPLOY_TOKEN too\"", "cat id_key");
    let project = Project::with_plan(&plan.replace("noted $DEPLOY_TOKEN", "noted"));
    project.write("id_key", &key());
    let ran = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1).says("| [redacted]");
    let mut shown = format!("{}{}", ran.stdout, ran.stderr) + &project.read("context-2.json");
    let views: [&[&str]; 5] = [
        &["log", "r"],
        &["log", "r", "--json"],
        &["log", "r", "-f", "--stream", "stderr"],
        &["show", "r/P/L/s"],
        &["status", "r", "--json"],
    ];
    for view in views {
        shown += &project.piton(view).exits(0).stdout;
    }
    shown += &String::from_utf8_lossy(&state(&project.state_dir()));
    assert!(!shown.contains("b3Bl"), "{shown}");
    assert!(project.read("context-2.json").contains("[redacted]"));
}

/// Lost: a variable whose name only resembles that of a secret would blank out half of a log, and
/// make plans impossible.
#[test]
fn what_only_resembles_a_secret_is_shown() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"A\"\nrun = \"mkdir -p build/out && echo $CACHE_KEY > build/out/x\"\n\
         artifacts = [\"build/out/x\"]\nenv = { DATA_PATH = \"build/out\", CACHE_KEY = \"build/out/x\" }\n",
    );
    project.piton(&["run", "plan.toml"]).exits(2).says("secret-path");
    project.write("piton.toml", "[secrets]\nexcept = [\"CACHE_KEY\"]\n");
    project.piton(&["run", "plan.toml"]).exits(0);
    project.piton(&["show", "--json"]).exits(0).silent_about("[redacted]");
}

/// Lost: a line of an agent, with a whole file in it, that no program can read any more; or a
/// secret in two halves.
#[test]
fn a_long_line_stays_one() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"A\"\nrun = '''\nhead -c 65530 /dev/zero | tr '\\0' a\n\
         echo $DEPLOY_TOKEN\nprintf '\\033[1mhunter2\\033[0m-correct-horse\\n'\nexit 1\n'''\n",
    );
    let command = |args: &[&str]| {
        project.finish(project.command(PITON).env("DEPLOY_TOKEN", SECRET).args(args))
    };
    command(&["run", "plan.toml"]).exits(1).silent_about("hunter2").silent_about("horse");
    for form in [&["log"][..], &["log", "--json"], &["show", "A"]] {
        command(form).exits(0).silent_about("hunter2").silent_about("horse");
    }
    let log = command(&["log"]).stdout;
    assert_eq!(log.lines().map(str::len).collect::<Vec<_>>(), [65530 + 10, 10 + 8]);
}
