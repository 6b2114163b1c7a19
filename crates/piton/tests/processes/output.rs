//! Output of steps: bytes of every kind, bounded, apart and together.

use super::common::Project;
use super::{RUN, attempts, one_step, outcomes, run};

/// Lost: a step that prints bytes which are no text would break the run, its log or a terminal.
#[test]
fn bytes_of_every_kind_do_no_harm() {
    let plan = one_step(
        "head -c 20000 /dev/urandom\nprintf '\\nbad \\377\\376 bytes\\n'\nprintf 'a\\000b\\n'\n\
         printf '10%%\\r50%%\\r100%%\\n'\nprintf '\\033[2J\\033]0;title\\007'\nprintf 'no end'\nexit 4",
        "",
    );
    let project = Project::with_plan(&plan);
    let output = run(&project).exits(1);
    assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
    let attempt = &attempts(&project)[0];
    let lines = attempt["lines"].as_array().unwrap();
    let last = lines.last().unwrap().as_str().unwrap();
    assert!(last.ends_with("no end"), "{lines:?}");
    assert!(lines.iter().any(|l| l.as_str().unwrap().contains("bad")), "{lines:?}");
    let log = project.piton(&["log", RUN]).exits(0).stdout;
    assert!(log.contains("bad \u{fffd}\u{fffd} bytes"), "invalid UTF-8 is made valid");
    assert!(log.contains("100%") && log.ends_with("no end\n"));
    for line in project.piton(&["log", RUN, "--json"]).exits(0).stdout.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

/// Lost: a step that closes its output would be taken for dead, or hold the run.
#[test]
fn closed_output_is_no_end() {
    let plan = one_step("exec >&- 2>&-\nsleep 0.2\ntouch done.txt", "");
    let project = Project::with_plan(&plan);
    run(&project).exits(0);
    assert!(project.has("done.txt"));
}

/// Lost: nobody could tell errors from output, or see them in their order.
#[test]
fn the_streams_are_seen_apart_and_together() {
    let pause = "sleep 0.3";
    let plan = one_step(
        &format!(
            "echo out-1\n{pause}\necho err-1 >&2\n{pause}\necho out-2\n{pause}\necho err-2 >&2"
        ),
        "",
    );
    let project = Project::with_plan(&plan);
    run(&project).exits(0);
    let log = |stream: &str| project.piton(&["log", RUN, "--stream", stream]).exits(0).stdout;
    assert_eq!(log("stdout"), "out-1\nout-2\n");
    assert_eq!(log("stderr"), "err-1\nerr-2\n");
    assert_eq!(log("both"), "out-1\nerr-1\nout-2\nerr-2\n");
}

/// Lost: one noisy step could fill the disk; or the first error and the last words would go.
#[test]
fn a_long_log_keeps_head_and_tail_and_says_what_went() {
    let plan = one_step("seq -f 'line %.0f and some words that take up room' 1 20000\nexit 1", "");
    let plan = plan.replace("[[phase]]", "[budgets]\nlog_bytes = \"64KB\"\n[[phase]]");
    let project = Project::with_plan(&plan);
    run(&project).exits(1);
    let log = project.piton(&["log", RUN]).exits(0).stdout;
    assert!(log.starts_with("line 1 and"), "{}", &log[..200]);
    assert!(log.contains("dropped …"), "it says that bytes are gone");
    let last = log.lines().last().unwrap();
    assert!(last.starts_with("line 20000 and"), "{last}");
    assert!(log.len() < 100_000, "{} bytes are kept of 64 kB", log.len());
    assert!(!log.contains('\0'), "the hole is not shown");
    let lines = attempts(&project)[0]["lines"].as_array().unwrap().clone();
    assert!(lines[4].as_str().unwrap().starts_with("line 20000 and"), "{lines:?}");
}

/// Lost: a run could fill the disk with many steps, each within its own bound.
#[test]
fn the_log_of_a_whole_run_is_bounded() {
    let plan = super::two_steps("head -c 20000 /dev/zero", "");
    let plan = plan.replace("[[phase]]", "[budgets]\nrun_log_bytes = \"10KB\"\n[[phase]]");
    let project = Project::with_plan(&plan);
    run(&project).exits(6).says("run_log_bytes");
    assert_eq!(outcomes(&project), ["succeeded"]);
    assert!(!project.has("ran.txt"), "nothing new starts");
}
