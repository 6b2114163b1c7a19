//! Plans at the command line: what is refused and how, the dry run, and every way to write work.
//!
//! The grammar has its own tests in the library; here stands what a person meets: exit codes, the
//! messages, and what a step is really given.

mod common;

use common::Project;

/// If this fails, a broken plan starts to run, or its author must find its mistakes one by one.
#[test]
fn all_mistakes_of_a_plan_are_shown_at_once_with_their_place_and_a_hint() {
    let project = Project::with_plan(
        r#"title = "wrong"
on_failur = "stop"

[[phase]]
id = "P1"

[[phase.lane]]
id = "A"
needs = ["B"]
run = "echo ran > ran.txt"
timeout = "5 parsecs"

[[phase.lane]]
id = "B"
needs = ["A"]
run = "true"
artifacts = ["../outside.txt"]

[[phase]]
id = "P1"
run = "true"
artifacts = ["/etc/passwd"]

[[phase]]
id = "P3"
needs = ["P9"]
run = "true"
"#,
    );
    let refused = project.piton(&["run", "plan.toml"]).exits(2);
    for (place, code, underlined) in [
        ("plan.toml:2:1", "unknown-key", "on_failur"),
        ("plan.toml:11:12", "bad-duration", "\"5 parsecs\""),
        ("plan.toml:17:15", "bad-path", "\"../outside.txt\""),
        ("plan.toml:20:7", "duplicate-id", "\"P1\""),
        ("plan.toml:22:15", "bad-path", "\"/etc/passwd\""),
        ("plan.toml:26:11", "unknown-id", "\"P9\""),
        ("plan.toml:9:11", "cycle", "\"B\""),
    ] {
        let lines: Vec<&str> = refused.stderr.lines().collect();
        let at = lines
            .iter()
            .position(|l| l.starts_with(place) && l.contains(&format!("[{code}]")))
            .unwrap_or_else(|| panic!("no {code} at {place}:\n{}", refused.stderr));
        let source = lines[at + 1..].iter().position(|l| l.contains(underlined));
        let source = at + 1 + source.unwrap_or_else(|| panic!("{code}: the line is not shown"));
        let carets = lines[source + 1].matches('^').count();
        let from = lines[source + 1].find('^').unwrap_or_default();
        assert!(carets > 0, "{code}: nothing is underlined");
        let under = lines[source].get(from..from + carets).unwrap_or_default();
        let bare = underlined.trim_matches('"');
        assert!(under.contains(bare), "{code}: `{under}` is underlined");
        let hint = lines[source + 2];
        assert!(hint.contains("hint: "), "{code}: {hint}");
    }
    let refused = refused.says("on_failure");
    assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    assert!(!project.has("ran.txt") && !project.state_dir().exists());
}

/// If this fails, a program that reads `--json` can't tell what is wrong with a plan.
#[test]
fn a_refused_plan_is_json_on_request() {
    let project =
        Project::with_plan("[[phase]]\nid = \"P1\"\nrun = \"true\"\ntimeout = \"soon\"\n");
    let refused = project.piton(&["run", "plan.toml", "--json"]).exits(2);
    let problem = &refused.json()["error"]["problems"][0];
    assert_eq!(problem["code"], "bad-duration");
    assert_eq!((problem["line"].as_u64(), problem["column"].as_u64()), (Some(4), Some(12)));
}

/// If this fails, a program that reads `--json` takes a warning for what refused the document.
#[test]
fn the_error_of_a_refused_document_is_told_before_its_warnings() {
    let text = "# P1: T\n## Interface Freeze Gates\n- [?] IF-0-P1-A: a\n\
                ## Lane Index\n- SL-1 -- One\n  - Depends on: SL-9\n";
    let project = Project::new();
    project.write("phase.md", text);
    let refused = project.piton(&["run", "phase.md", "--json"]).exits(2).json();
    let error = &refused["error"];
    assert_eq!(error["code"], "unknown-id", "{error:#}");
    assert!(error["message"].as_str().is_some_and(|m| m.contains("phase.md:6:")), "{error:#}");
    let problems = error["problems"].as_array().cloned().unwrap_or_default();
    let of = |p: &serde_json::Value| format!("{} {}", p["severity"], p["code"]).replace('"', "");
    let kinds: Vec<_> = problems.iter().map(of).collect();
    assert_eq!(kinds, ["warning bad-gate", "error unknown-id"]);
}

/// If this fails, a plan that is not there, or is a folder, ends in a riddle.
#[test]
fn a_plan_that_can_not_be_read_is_a_usage_error() {
    let project = Project::new();
    project.piton(&["run", "nothing.toml"]).exits(2).says("nothing.toml").says("hint: ");
    project.piton(&["run", "."]).exits(2).says("hint: ");
    let latin =
        b"title = \"\xc3\xa4\"\n# \xc3\xa4 sp\xe4t\n[[phase]]\nid = \"P\"\nrun = \"true\"\n";
    std::fs::write(project.root().join("latin.toml"), latin).unwrap_or_default();
    let refused = project.piton(&["run", "latin.toml"]).exits(2);
    refused.says("latin.toml:2:7: error: the file is not valid UTF-8: byte 0xe4").says("hint: ");
    assert!(!project.state_dir().exists());
}

const WAVES: &str = r#"
[[phase]]
id = "P1"

[[phase.lane]]
id = "A"
steps = [{ id = "one", run = "echo one >> ran.txt" }, { id = "two", run = "echo two >> ran.txt" }]

[[phase.lane]]
id = "B"
run = "echo b >> ran.txt"

[[phase]]
id = "P2"
gate = "Ship it"
run = ["printf", "%s", "p2"]
"#;

/// If this fails, looking at a plan changes the project, or does not show what would happen.
#[test]
fn a_dry_run_prints_waves_and_commands_and_makes_nothing() {
    let project = Project::with_plan(WAVES);
    let before = project.sh("find . | sort").stdout;
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    let lines: Vec<&str> = said.stdout.lines().map(str::trim).collect();
    let wanted = [
        "wave 1",
        "P1/A/one: echo one >> ran.txt",
        "P1/B/work: echo b >> ran.txt",
        "wave 2",
        "P1/A/two: echo two >> ran.txt",
        "wave 3",
        "P2/main/work: printf %s p2",
        "gate P2: \"Ship it\" must be approved first",
    ];
    assert_eq!(lines, wanted, "{}", said.stdout);
    assert_eq!(project.sh("find . | sort").stdout, before);

    let json = project.piton(&["run", "plan.toml", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(json["waves"].as_array().map(Vec::len), Some(3), "{json}");
    assert_eq!(json["waves"][0][0]["step"], "P1/A/one");
    assert_eq!(json["gates"][0]["gate"], "P2");
}

/// If this fails, lanes with many needs are shown in another order than they would run in.
#[test]
fn a_dry_run_of_random_needs_shows_each_lane_right_after_the_last_it_needs() {
    const LANES: usize = 60;
    let mut dice = 7_u64;
    let mut roll = |below: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % below
    };
    let project = Project::new();
    for density in [2, 10, 40, 100] {
        // Named in an order of its own, so that what is needed stands before and after.
        let name = |lane: usize| format!("L{}", (lane * 37 + 11) % LANES);
        let mut wanted: Vec<Vec<String>> = Vec::new();
        let (mut waves, mut blocks) = (Vec::new(), Vec::new());
        for lane in 0..LANES {
            let needs: Vec<usize> = (0..lane).filter(|_| roll(100) < density).collect();
            let wave = needs.iter().map(|need| waves[*need] + 1).max().unwrap_or(0);
            waves.push(wave);
            wanted.resize(wanted.len().max(wave + 1), Vec::new());
            wanted[wave].push(format!("P/{}/work", name(lane)));
            let needs: Vec<String> = needs.into_iter().map(name).collect();
            blocks.push(format!("id = {:?}\nneeds = {needs:?}\nrun = \"true\"\n", name(lane)));
        }
        blocks.sort();
        let lanes = blocks.join("[[phase.lane]]\n");
        project.write("plan.toml", &format!("[[phase]]\nid = \"P\"\n[[phase.lane]]\n{lanes}"));
        let json = project.piton(&["run", "plan.toml", "--dry-run", "--json"]).exits(0).json();
        let step = |s: &serde_json::Value| s["step"].as_str().unwrap_or_default().to_owned();
        let list = |of: &serde_json::Value| of.as_array().cloned().unwrap_or_default();
        let mut found: Vec<Vec<String>> =
            list(&json["waves"]).iter().map(|w| list(w).iter().map(step).collect()).collect();
        for wave in found.iter_mut().chain(&mut wanted) {
            wave.sort();
        }
        assert_eq!(found, wanted, "density {density}");
    }
}

/// If this fails, a command with blanks or signs in it looks like another one.
#[test]
fn a_dry_run_prints_lists_as_a_shell_would_take_them() {
    let plan =
        "[[phase]]\nid = \"P\"\nrun = [\"echo\", \"a b\", \"it's\", \"\", \"$HOME\", \"*\"]\n";
    let project = Project::with_plan(plan);
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    let typed = r"echo 'a b' 'it'\''s' '' '$HOME' '*'";
    assert!(said.stdout.contains(&format!("P/main/work: {typed}\n")), "{}", said.stdout);
    let json = project.piton(&["run", "plan.toml", "--dry-run", "--json"]).exits(0).json();
    let step = &json["waves"][0][0];
    assert_eq!(step["command"], typed);
    assert_eq!(step["argv"], serde_json::json!(["echo", "a b", "it's", "", "$HOME", "*"]));
}

/// If this fails, a person reads templates, and not what would be run; or does not see the tests.
#[test]
fn a_dry_run_fills_in_what_is_known_and_shows_tests() {
    let plan = "title = \"T\"\n[agents.w]\ncommand = \"cat\"\n[[phase]]\nid = \"P\"\nagent = \"w\"\nprompt = \"Do {{ lane.id }} of {{ title }} ({{ run.id }}){% if failure_context %} again{% endif %}.\"\ntest = [\"make\", \"{{ step.id }}\", \"a b\"]\n";
    let project = Project::with_plan(plan);
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    let wanted =
        "  P/main/work: w: Do main of T ({{ run.id }}).\n    then the test: make work 'a b'\n";
    assert!(said.stdout.contains(wanted), "{}", said.stdout);
    let json = project.piton(&["run", "plan.toml", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(json["waves"][0][0]["test"], "make work 'a b'");
}

/// If this fails, a plan that somebody sent writes over the screen of whoever looks at it.
#[test]
fn a_dry_run_is_harmless_to_a_terminal() {
    let plan = "[[phase]]\nid = \"P\"\ngate = \"a\\u001b[2Jb\"\nrun = \"rm\\recho \\u001b[31mx\\nwave 9\\n\"\n";
    let project = Project::with_plan(plan);
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    let wanted =
        "wave 1\n  P/main/work: rm echo x\n    wave 9\ngate P: \"ab\" must be approved first\n";
    assert_eq!(said.stdout, wanted);
}

/// If this fails, an unfinished run makes a dry run say things twice, or what is not so.
#[test]
fn a_dry_run_of_an_unfinished_run_says_each_thing_once() {
    let plan = "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"x\"\nretries = 0\nrun = \"echo {{ failure_context }}; false\"\n\
                [[phase.lane]]\nid = \"y\"\nneeds = [\"x\"]\nrun = \"true\"\n";
    let project = Project::with_plan(plan);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(1);
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    assert_eq!(said.stderr.matches("unquoted-text").count(), 1, "{}", said.stderr);
    let json = project.piton(&["run", "plan.toml", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(json["resume"]["run_id"], "r");
    assert_eq!(json["failed"], serde_json::json!(["P/x/work"]));
    let held = serde_json::json!([{"step": "P/y/work", "reason": "it needs lane P/x, which would not be done"}]);
    assert_eq!(json["skipped"], held);
    project.piton(&["retry", "r", "P/x/work"]).exits(0);
    let said = project.piton(&["run", "plan.toml", "--dry-run", "--lane", "P/y"]).exits(0);
    said.says("it needs P/x, which is not finished").silent_about("running");
}

/// If this fails, a person learns only afterwards which lanes leave their folder.
#[test]
fn a_dry_run_says_where_lanes_in_worktrees_would_work() {
    let plan = "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"a\"\nisolation = \"worktree\"\nmerge = \"pr\"\nrun = \"make\"\n[[phase.lane]]\nid = \"b\"\nrun = \"make\"\n";
    let project = Project::with_plan(plan);
    let said = project.piton(&["run", "plan.toml", "--dry-run"]).exits(0);
    let wanted = "lane P/a: worktree .worktrees/P/a, branch lane/P/a, merged by pull request";
    assert!(said.stdout.contains(wanted), "{}", said.stdout);
    assert!(said.stdout.contains("P/a/pull-request: push the branch"), "{}", said.stdout);
    assert!(!said.stdout.contains("lane P/b"), "{}", said.stdout);
    let json = project.piton(&["run", "plan.toml", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(json["lanes"][0]["branch"], "lane/P/a");
    assert_eq!(json["lanes"][1]["isolation"], "in-place");
}

/// If this fails, a person can't see before a resume what is left out and why.
#[test]
fn a_dry_run_of_a_begun_run_says_what_is_skipped_and_why() {
    let project = Project::with_plan(WAVES);
    project.piton(&["run", "plan.toml"]).exits(3);
    let events = project.events("").len();
    for args in [["run", "plan.toml", "--dry-run"].as_slice(), &["resume", "--dry-run"]] {
        project
            .piton(args)
            .exits(0)
            .says("skipped P1/A/one: finished before")
            .says("skipped P1/B/work: finished before")
            .says("P2/main/work: printf %s p2");
    }
    assert_eq!(project.events("").len(), events, "a dry run was recorded");
    assert_eq!(project.lines("ran.txt").len(), 3);
}

/// If this fails, the wrong file fills the memory, or is waited for for ever.
#[test]
fn a_file_without_end_is_no_plan_and_no_prompt() {
    let project = Project::with_plan(
        "[agents.w]\ncommand = \"cat\"\n[[phase]]\nid = \"P\"\nagent = \"w\"\nprompt_file = \"pipe\"\n",
    );
    project.piton(&["run", "/dev/zero"]).exits(2).says("plan-unreadable").says("more than");
    project.sh("mkfifo pipe");
    project
        .piton(&["run", "plan.toml"])
        .exits(2)
        .says("unreadable-prompt")
        .says("not a regular file");
    project.remove("pipe");
    project.sh("ln -s /dev/zero pipe");
    project.piton(&["run", "plan.toml"]).exits(2).says("unreadable-prompt");
    // A plan may come through a pipe; what looks at its run later does not wait there.
    project.sh("mkfifo once; printf '[[phase]]\\nid = \"P\"\\nrun = \"false\"\\n' > once &");
    project.piton(&["run", "once", "--run-id", "r"]).exits(1);
    project.piton(&["log", "r"]).exits(0);
    project.piton(&["resume", "r"]).exits(1);
}

/// If this fails, every command waits for ever, or fills the memory, because of the wrong settings.
#[test]
fn settings_that_are_a_pipe_or_without_end_are_refused() {
    let project = Project::with_plan("[[phase]]\nid = \"P\"\nrun = \"true\"\n");
    for (make, why) in [
        ("mkfifo piton.toml", "piton.toml: it is not a regular file"),
        ("truncate -s 2G piton.toml", "piton.toml: it has more than 1048576 bytes"),
    ] {
        project.sh(make).exits(0);
        for args in [&["run", "plan.toml"][..], &["status"], &["doctor"]] {
            let said = project.piton(args).says(why);
            assert_ne!(said.code, 0, "{args:?}");
        }
        project.remove("piton.toml");
    }
    // The same for what commands name.
    project.sh("mkfifo pipe").exits(0);
    for args in [["inspect", "pipe"], ["import", "pipe"]] {
        project.piton(&args).exits(2).says("not a regular file");
    }
}

/// If this fails, the short forms mean something else than the long one.
#[test]
fn short_forms_are_the_long_form() {
    let project = Project::with_plan(
        r#"
[[phase]]
id = "bare"
run = "echo $PITON_PHASE/$PITON_LANE/$PITON_STEP >> ran.txt"

[[phase]]
id = "lanes"
lane = [{ id = "L", run = "echo $PITON_PHASE/$PITON_LANE/$PITON_STEP >> ran.txt" }]

[[phase]]
id = "long"
[[phase.lane]]
id = "L"
[[phase.lane.step]]
id = "S"
run = "echo $PITON_PHASE/$PITON_LANE/$PITON_STEP >> ran.txt"
"#,
    );
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.lines("ran.txt"), ["bare/main/work", "lanes/L/work", "long/L/S"]);
}

/// If this fails, an argument list goes through the shell, or a text does not.
#[test]
fn a_text_goes_through_the_shell_and_a_list_does_not() {
    let project = Project::with_plan(
        r#"
[[phase]]
id = "shell"
run = "echo $((20 + 3)) > shell.txt; echo $0 | grep -q sh"

[[phase]]
id = "list"
run = ["sh", "-c", 'printf "%s\n" "$@" > list.txt', "x", "$HOME and * ;", "two words", ""]
"#,
    );
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.lines("shell.txt"), ["23"]);
    assert_eq!(project.lines("list.txt"), ["$HOME and * ;", "two words", ""]);
}

/// If this fails, steps run in the wrong folder, or without the variables the plan gives them.
#[test]
fn variables_and_folders_are_inherited_and_overruled() {
    let project = Project::with_plan(
        r#"
[defaults]
env = { COLOR = "blue", SIZE = "1" }

[[phase]]
id = "P1"
dir = "sub"
env = { SIZE = "2" }

[[phase.lane]]
id = "A"
run = "echo $COLOR $SIZE $(basename $PWD) > a.txt"

[[phase.lane]]
id = "B"
dir = "."
env = { COLOR = "red" }
run = "echo $COLOR $SIZE $(basename $PWD) > b.txt"
"#,
    );
    project.write("sub/keep", "");
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.read("sub/a.txt"), "blue 2 sub\n");
    assert_eq!(project.read("b.txt"), "red 2 repo\n");
}

/// If this fails, prompts and commands can't tell which run, attempt or failure they are about.
#[test]
fn templates_are_filled_in_for_each_attempt() {
    let project = Project::with_plan(
        r#"
title = "Trial"
spec = "spec.md"

[[phase]]
id = "P1"
retries = 1
backoff = "1ms"
run = '''
echo '{{ title }} {{ run.id }} {{ phase.id }}/{{ lane.id }}/{{ step.id }} {{ attempt }} {{ spec }}' >> ran.txt
printf '%s' {{ failure_context | sh }} > context.{{ attempt }}
echo "it's \"odd\"; touch injected" >&2
test {{ attempt }} = 2
'''
"#,
    );
    project.write("spec.md", "the spec");
    project.piton(&["run", "plan.toml", "--run-id", "r1"]).exits(0);
    let lines = project.lines("ran.txt");
    assert_eq!(lines, ["Trial r1 P1/main/work 1 spec.md", "Trial r1 P1/main/work 2 spec.md"]);
    assert_eq!(project.read("context.1"), "");
    let context = project.read("context.2");
    assert!(context.starts_with("Attempt 1: "), "{context}");
    assert!(context.contains("it's \"odd\"; touch injected"), "{context}");
    assert!(!project.has("injected"), "log text was run by the shell");
}

/// If this fails, an agent does not get its prompt, or a plan can't name its agents.
#[test]
fn a_prompt_reaches_its_agent_on_stdin_and_as_a_file() {
    let project = Project::with_plan(
        r#"
[defaults]
agent = "copy"

[agents.copy]
command = "cat > stdin.$PITON_PHASE; cp \"$PITON_PROMPT_FILE\" file.$PITON_PHASE"

[[phase]]
id = "P1"
prompt = "Build {{ phase.id }}, attempt {{ attempt }}.\nTake care."

[[phase]]
id = "P2"
agent = "other"
prompt_file = "prompts/p2.md"
test = "grep -q Read stdin.P2"
"#,
    );
    project.write("prompts/p2.md", "Read {{ title }}.");
    project.write("agent.sh", "#!/bin/sh\nsh -c \"$1\"\n");
    project.write(
        "piton.toml",
        "[agents.other]\nkind = \"command\"\ncommand = [\"sh\", \"agent.sh\", \"cat > stdin.P2\"]\n",
    );
    project.piton(&["run", "plan.toml"]).exits(0);
    let wanted = "Build P1, attempt 1.\nTake care.";
    assert_eq!(project.read("stdin.P1"), wanted);
    assert_eq!(project.read("file.P1"), wanted);
    assert_eq!(project.read("stdin.P2"), "Read plan.");
}

/// If this fails, editors can't check plans and settings.
#[test]
fn schemas_are_json() {
    let project = Project::new();
    for document in ["plan", "settings"] {
        let schema = project.piton(&["schema", document]).exits(0).json();
        assert!(schema["$schema"].is_string(), "{schema}");
        assert!(schema["properties"]["defaults"].is_object(), "{schema}");
    }
    assert!(!project.state_dir().exists());
}

/// If this fails, plans saved by some editors are refused, or their lines carry returns along.
#[test]
fn a_plan_with_a_byte_order_mark_and_crlf_runs() {
    let plan = "\u{feff}[[phase]]\r\nid = \"P1\"\r\nrun = '''\r\necho one > ran.txt\r\necho two >> ran.txt\r\n'''\r\n";
    let project = Project::with_plan(plan);
    project.piton(&["run", "plan.toml"]).exits(0);
    assert_eq!(project.read("ran.txt"), "one\ntwo\n");
}

/// Lost: nobody could say which protocol a run follows, or a wrong name would be passed over.
#[test]
fn a_plan_names_the_protocol_of_its_runs() {
    let project = Project::new();
    let phase = "[[phase]]\nid = \"P\"\nrun = \"true\"\n";
    let follows = |run: &str| project.status_json(run)["protocol"].clone();
    project.write("plan.toml", phase);
    project.piton(&["run", "plan.toml", "--run-id", "a"]).exits(0);
    assert_eq!(follows("a"), serde_json::json!({"id": "plain", "version": 1, "reader": "plain"}));
    project.write("plan.toml", &format!("protocol = \"lanes\"\n{phase}"));
    project.piton(&["run", "plan.toml", "--fresh", "--run-id", "b"]).exits(0);
    assert_eq!(follows("b"), serde_json::json!({"id": "lanes", "version": 1, "reader": "plain"}));
    project.write("plan.toml", &format!("protocol = \"lane\"\n{phase}"));
    let refused = project.piton(&["run", "plan.toml", "--fresh"]).exits(2);
    refused.says("there is no protocol `lane`").says("lanes, pipeline, workflow, session, plain");
}
