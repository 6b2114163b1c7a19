//! What an attempt is told, and what it may tell: variables, failure context, facts, budgets.

use super::{RUN, attempts, one_step, project, run, shown};
use serde_json::{Value, json};

/// Lost: a step could neither make itself idempotent nor find its files.
#[test]
fn an_attempt_knows_its_place() {
    let plan = one_step(
        "env | grep '^PITON_' > env.txt\ncp \"$PITON_FAILURE_CONTEXT\" context.json\n\
         test -w \"$(dirname \"$PITON_OUTPUT\")\"",
        "env = { COLOUR = \"blue\" }",
    );
    let project = project(&plan);
    let output = run(&project);
    assert_eq!(output.code, 0, "{output:?}");
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
    assert_eq!(context["attempts"], json!([]));
    assert_eq!(context["text"], "");
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
    let project = project(&plan);
    let output = run(&project);
    assert_eq!(output.code, 0, "{output:?}");
    let read = |n: u32| -> Value {
        serde_json::from_str(&project.read(&format!("context-{n}.json"))).unwrap()
    };
    assert_eq!(read(1)["attempts"], json!([]));
    let lines = |n: u32| (2..=6).map(|l| format!("try {n} line {l}")).collect::<Vec<_>>();
    let second = read(2);
    assert_eq!(second["step"], "P/L/s");
    assert_eq!(second["attempts"].as_array().unwrap().len(), 1);
    let third = read(3);
    assert_eq!(
        third["attempts"],
        json!([
            {"attempt": 1, "class": "command", "error": "exit code 1", "lines": lines(1)},
            {"attempt": 2, "class": "command", "error": "exit code 1", "lines": lines(2)},
        ])
    );
    let text = third["text"].as_str().unwrap();
    assert!(text.starts_with("Attempt 1: exit code 1\n  try 1 line 2\n"), "{text}");
    assert!(text.contains("Attempt 2: exit code 1\n  try 2 line 2\n"), "{text}");
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
    let project = project(&plan);
    assert_eq!(run(&project).code, 0);
    let step = shown(&project);
    assert_eq!(step["artifacts"][0]["path"], "made.txt");
    assert_eq!(step["artifacts"][0]["sha256"].as_str().unwrap().len(), 64);
    let attempt = &attempts(&project)[0];
    assert_eq!(attempt["tokens"], 120);
    assert_eq!(attempt["notes"], json!(["left the slow tests out"]));
    let used = &project.status_json(RUN)["used"];
    assert_eq!(used["tokens"], 120);
    assert_eq!(used["money_micros"], 250_000);
}

/// Lost: a step with broken facts would fail although its work is done, or nobody would know.
#[test]
fn broken_facts_warn_and_fail_nothing() {
    let project = project(&one_step("echo 'no json' > \"$PITON_OUTPUT\"", ""));
    let output = run(&project);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("warning: P/L/s: PITON_OUTPUT is not JSON"), "{output:?}");
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
        let project = project(&plan(limit));
        project.write("fact.json", fact);
        let output = run(&project);
        assert_eq!(output.code, 6, "{name}: {output:?}");
        assert!(output.stderr.contains(&format!("raise `{name}` in the plan")), "{output:?}");
        assert_eq!(project.lines("ran.txt"), ["spend"]);
        let again = project.piton(&["resume", RUN]);
        assert_eq!(again.code, 6, "{name} is still used up: {again:?}");
        project.write("plan.toml", &plan(raised));
        let output = project.piton(&["resume", RUN]);
        assert_eq!(output.code, 0, "{name}: {output:?}");
        assert_eq!(project.lines("ran.txt"), ["spend", "after"]);
    }
}
