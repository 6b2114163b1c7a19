//! What an attempt is told, and what it may tell: variables, failure context, facts, budgets.

use serde_json::{Value, json};

use super::common::Project;
use super::{RUN, attempts, one_step, run, shown};

/// Lost: a step could neither make itself idempotent nor find its files.
#[test]
fn an_attempt_knows_its_place() {
    let plan = one_step(
        "env | grep '^PITON_' > env.txt\ncp \"$PITON_FAILURE_CONTEXT\" context.json\n\
         test -w \"$(dirname \"$PITON_OUTPUT\")\"",
        "env = { COLOUR = \"blue\" }",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0);
    let env = project.read("env.txt");
    for line in [
        "PITON_RUN_ID=r",
        "PITON_PHASE=P",
        "PITON_LANE=L",
        "PITON_STEP=s",
        "PITON_ATTEMPT=1",
        "PITON_STEP_KEY=r/P/L/s",
    ] {
        assert!(env.lines().any(|l| l == line), "no {line} in\n{env}");
    }
    for name in ["PITON_FAILURE_CONTEXT=/", "PITON_OUTPUT=/"] {
        assert!(env.lines().any(|l| l.starts_with(name)), "no {name} in\n{env}");
    }
    let context: Value = serde_json::from_str(&project.read("context.json")).unwrap();
    assert_eq!(context, json!({"attempts": [], "text": ""}));
}

/// Lost: a retry would start blind; an agent would make the same mistake again.
#[test]
fn each_retry_gets_all_failures_before_it() {
    let plan = one_step(
        "cp \"$PITON_FAILURE_CONTEXT\" context-$PITON_ATTEMPT.json\n\
         echo \"$PITON_STEP_KEY\" >> keys.txt\n\
         for n in 1 2 3 4 5 6; do echo \"try $PITON_ATTEMPT line $n\"; done\n\
         test \"$PITON_ATTEMPT\" -ge 3",
        "retries = 2\nbackoff = \"10ms\"",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0);
    let read = |n: u32| -> Value {
        serde_json::from_str(&project.read(&format!("context-{n}.json"))).unwrap()
    };
    assert_eq!(read(1)["attempts"], json!([]));
    let third = read(3);
    let lines = |n: u32| (2..=6).map(|l| format!("try {n} line {l}")).collect::<Vec<_>>();
    let command = third["attempts"][0]["command"].as_str().unwrap().to_owned();
    assert!(command.starts_with("cp ") && command.contains("-ge 3"), "{command}");
    let second = read(2);
    assert_eq!(second["step"], "P/L/s");
    assert_eq!(second["attempts"].as_array().unwrap().len(), 1);
    let failed = |n: u32| {
        json!({"attempt": n, "class": "command", "error": "exit code 1", "lines": lines(n),
            "command": command, "exit_code": 1})
    };
    assert_eq!(third["attempts"], json!([failed(1), failed(2)]));
    let text = third["text"].as_str().unwrap();
    let said = "exit code 1\n  failed: cp \"$PITON_FAILURE_CONTEXT\" \
                context-$PITON_ATTEMPT.json … (exit 1)\n";
    assert!(text.starts_with(&format!("Attempt 1: {said}  try 1 line 2\n")), "{text}");
    assert!(text.contains(&format!("Attempt 2: {said}  try 2 line 2\n")), "{text}");
    let keys = project.lines("keys.txt");
    assert_eq!(keys, ["r/P/L/s"; 3], "the key is the same for every attempt");
}

/// Lost: token use, notes and artifacts that a step reports would vanish.
#[test]
fn facts_that_a_step_reports_are_recorded() {
    let plan = one_step(
        "echo made > made.txt\n\
         echo '{\"tokens\": {\"input\": 100, \"output\": 20}, \"cost_usd\": 0.25}' > \"$PITON_OUTPUT\"\n\
         echo '{\"notes\": \"left the slow tests out\", \"artifacts\": [\"made.txt\"]}' >> \"$PITON_OUTPUT\"",
        "",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0);
    let step = shown(&project);
    assert_eq!(step["artifacts"][0]["path"], "made.txt");
    assert_eq!(step["artifacts"][0]["sha256"].as_str().unwrap().len(), 64);
    let attempt = &attempts(&project)[0];
    assert_eq!(attempt["tokens"], 120);
    assert_eq!(attempt["cost_usd"], 0.25);
    assert_eq!(attempt["notes"], json!(["left the slow tests out"]));
    let used = &project.status_json(RUN)["used"];
    assert_eq!(used["tokens"], 120);
    assert_eq!(used["money_micros"], 250_000);
}

/// Lost: a step with broken facts would fail although its work is done, or nobody would know.
#[test]
fn broken_facts_warn_and_fail_nothing() {
    let project = Project::with_plan(&one_step("echo 'no json' > \"$PITON_OUTPUT\"", ""));
    run(&project).exits(0).says("warning: P/L/s: PITON_OUTPUT is not JSON");
}

/// Lost: an agent at night could spend without end; or a stopped run could not go on.
#[test]
fn budgets_of_tokens_and_money_stop_the_run_until_they_are_raised() {
    for (name, limit, raised, fact) in [
        ("tokens", "50", "500", "{\"tokens\": 60}"),
        ("money", "\"0.10\"", "\"5.00\"", "{\"cost_usd\": 0.2}"),
    ] {
        let plan = |limit: &str| {
            format!(
                "title = \"Spend\"\n[budgets]\n{name} = {limit}\n[[phase]]\nid = \"P\"\n\
                 [[phase.lane]]\nid = \"L\"\nsteps = [\n\
                 {{ id = \"spend\", run = 'echo spend >> ran.txt; cat fact.json > \"$PITON_OUTPUT\"' }},\n\
                 {{ id = \"after\", run = 'echo after >> ran.txt' }},\n]\n"
            )
        };
        let project = Project::with_plan(&plan(limit));
        project.write("fact.json", fact);
        run(&project).exits(6).says(&format!("raise `{name}` in the plan"));
        assert_eq!(project.lines("ran.txt"), ["spend"]);
        project.piton(&["resume", RUN]).exits(6);
        assert_eq!(project.lines("ran.txt"), ["spend"], "{name} is still used up");
        project.write("plan.toml", &plan(raised));
        project.piton(&["resume", RUN]).exits(0);
        assert_eq!(project.lines("ran.txt"), ["spend", "after"]);
    }
}

/// Lost: an agent that may write to nothing but its own folders overwrites any file of the user, by a
/// link where the files of the next attempt will be; or has one read to it, by a link as its facts.
#[test]
fn no_link_of_a_step_leads_what_is_written_or_read_for_it_elsewhere() {
    let plan = one_step(
        "dir=$(dirname \"$PITON_OUTPUT\"); cat \"$PITON_FAILURE_CONTEXT\" > context.json\n\
         plant() { mkdir -p \"$(dirname \"$1\")\"; ln -s \"$PWD/../mine\" \"$1\"; }\n\
         case $PITON_ATTEMPT in\n\
         1) for what in failures.json output.json prompt.md; do\n\
         plant \"$dir/P~L~s.2.$what\"; plant \"$dir/P~L~s.2/$what\"; done\n\
         exit 1;;\n\
         *) rm -f \"$PITON_OUTPUT\"; ln -s \"$PWD/../facts\" \"$PITON_OUTPUT\";;\nesac",
        "retries = 1\nbackoff = \"10ms\"",
    );
    let project = Project::with_plan(&plan);
    let at = |name: &str| project.outside().join(name);
    std::fs::write(at("mine"), "mine").unwrap();
    std::fs::write(at("facts"), "{\"tokens\": 7}").unwrap();
    let said = run(&project).exits(0);
    assert_eq!(std::fs::read_to_string(at("mine")).unwrap(), "mine");
    said.says("PITON_OUTPUT is a link");
    assert_eq!(std::fs::read_to_string(at("facts")).unwrap(), "{\"tokens\": 7}");
    assert_eq!(project.status_json(RUN)["used"]["tokens"], 0);
    assert!(project.read("context.json").contains("exit code 1"), "it has its own files");
}
