//! What checkpoints and recoveries cost an agent, counted with the tokenizer of `piton brief`.

use piton_agents::tokens::count;
use serde_json::json;

use super::hooks::{hook, record};
use super::scene::{BOARD, Scene};

/// Tokens that a fresh agent may be given.
const CONTEXT_TOKENS_MAX: usize = 2_000;
/// Tokens that may be said when a checkpoint is made.
const TALK_TOKENS_MAX: usize = 500;

/// Lost: a recovery eats the context that it is to save, or leaves out what the agent must know.
#[test]
fn context_and_talk_are_within_their_limits_however_much_the_bank_says() {
    let scene = Scene::new();
    let dense: Vec<String> = (0..4_000).map(|n| format!("{:x}-{n};", n * 7919)).collect();
    let dense = dense.concat();
    let prose = "Every word of this file is read by somebody, and most by nobody. ".repeat(400);
    let lines = |text: &str| format!("---\nx: 1\n---\n# Strategy\n\n{text}\n");
    scene.project.write("context-strategy.md", &lines(&dense));
    scene.project.write("token-monitoring.md", &lines(&prose));
    let objective = format!("---\ncurrentObjective:\n  summary: \"{prose}\"\n---\n");
    scene.project.write("activeContext.md", &objective);
    let criteria: Vec<String> =
        (0..60).map(|n| format!("criterion {n} {}", &prose[..200])).collect();
    let board = format!(
        "backlog: []\ninProgress:\n  - id: T1\n    title: \"{}\"\n    description: \"{dense}\"\n    ac: \"{}\"\ndone: []\n",
        &prose[..2_000],
        criteria.join("|")
    );
    scene.project.write(BOARD, &board);
    let saved = scene.answer("checkpoint --session a --tokens 182000");
    let talk = saved["talk"].as_str().unwrap_or_default();
    assert!(!talk.is_empty() && count(talk) <= TALK_TOKENS_MAX, "{}", count(talk));
    let context = scene.answer("start --session b")["context"].clone();
    let context = context.as_str().unwrap_or_default();
    assert!(count(context) <= CONTEXT_TOKENS_MAX, "{} tokens", count(context));
    for heading in [
        "## context-strategy.md (recovery mode)",
        "the rest is in context-strategy.md",
        "## token-monitoring.md",
        "## projectConfig.md\n\nSTACK_ID: fastapi",
        "## activeContext.md",
        "## Current task\n\nT1: Every word",
        "## Next steps\n\n- Finish T1",
        "- deliverables.md: only for a release task",
    ] {
        assert!(context.contains(heading), "{heading}\n{context}");
    }
}

/// Lost: nobody would see that recoveries cost more than the protocol allows.
#[test]
fn show_and_report_name_each_part_beside_its_budget_and_warn_at_twice() {
    let scene = Scene::new();
    scene.answer("task start T003 --session a");
    let saved = scene.answer("checkpoint --session a --tokens 151000");
    let talk = count(saved["talk"].as_str().unwrap_or_default());
    let document = scene.project.read("checkpoints/latest.json");
    let context = scene.answer("start --session b --tokens 1000")["context"].clone();
    let context = count(context.as_str().unwrap_or_default());
    let early = scene.piton("show").exits(0);
    early.says("task completion            - of  15000 tokens").silent_about("twice its budget");
    scene.answer("task finish T003 --session b --tokens 31000");
    let shown = scene.piton("show").exits(0);
    let document = count(&document);
    let shown = shown.says(&format!("checkpoint creation {:>8} of    500 tokens", document + talk));
    let shown = shown.says(&format!("checkpoint load     {document:>8} of    300 tokens"));
    let shown = shown.says(&format!("recovery context    {context:>8} of   2000 tokens"));
    let shown =
        shown.says("task completion        30000 of  15000 tokens  warning: twice its budget");
    let shown = shown.says("full sync");
    let total = shown.stdout.lines().find(|line| line.trim().starts_with("total "));
    assert!(total.is_some_and(|line| line.contains(" of  19000 tokens")), "{}", shown.stdout);
    let report = scene.piton("report").exits(0);
    report
        .says("## Recovery")
        .says("| 19\u{202f}000 |")
        .says("| 15\u{202f}000 |")
        .says("twice its budget");
}

/// Lost: without tokens on the command line, as agents work, the task would cost nothing.
#[test]
fn what_hooks_measured_is_what_the_task_took() {
    let scene = Scene::new();
    scene.answer("task start T003 --session a");
    scene.answer("checkpoint --session a");
    hook(&scene, "claude", "SessionStart", "b", json!({}));
    for tokens in [20_000, 24_000, 29_000] {
        let at = json!({ "transcript_path": record(&scene, tokens) });
        hook(&scene, "claude", "PostToolBatch", "b", at);
    }
    scene.answer("task finish T003 --session b");
    scene.piton("show").exits(0).says("task completion         9000 of  15000 tokens");
}

/// Lost: the end of each turn saves the work, and what the recovery took is forgotten.
#[test]
fn a_recovery_is_counted_although_its_work_is_saved() {
    let scene = Scene::new();
    scene.answer("task start T003 --session a");
    scene.answer("checkpoint --session a --tokens 182000");
    let document = count(&scene.project.read("checkpoints/latest.json"));
    hook(&scene, "claude", "SessionStart", "b", json!({}));
    for tokens in [20_000, 29_000] {
        let at = json!({ "transcript_path": record(&scene, tokens) });
        hook(&scene, "claude", "PostToolBatch", "b", at);
        hook(&scene, "claude", "Stop", "b", json!({}));
    }
    scene.answer("task finish T003 --session b");
    let shown = scene.piton("show").exits(0);
    let shown = shown.says(&format!("checkpoint load     {document:>8} of    300 tokens"));
    shown.silent_about("recovery context          -").silent_about("checkpoint creation       -");
}
