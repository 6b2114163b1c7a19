//! Gates: a person is asked once, from wherever, and no step answers for them.
//!
//! Questions on a terminal are not asked here: these runs have none.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

use std::path::Path;

use common::{Project, wait_until};
use piton_core::event::{Event, GateDecided};
use piton_core::persons;
use rustix::process::Signal;

/// One lane goes on, another and a whole phase wait.
const PLAN: &str = r#"
[[phase]]
id = "P1"

[[phase.lane]]
id = "free"
steps = [
  { id = "one", run = "echo one >> ran.txt; echo made > made.txt", artifacts = ["made.txt"] },
  { id = "two", run = "echo two >> ran.txt" },
]

[[phase.lane]]
id = "asked"
gate = "Interface frozen"
run = "echo asked >> ran.txt"

[[phase]]
id = "P2"
gate = "Release approval"
run = "echo release >> ran.txt"

[[phase]]
id = "P3"
needs = []
run = "echo apart >> ran.txt"
"#;

fn decisions(project: &Project) -> Vec<GateDecided> {
    let decided = |e: Event| match e {
        Event::GateDecided(e) => Some(e),
        _ => None,
    };
    project.events("").into_iter().filter_map(decided).collect()
}

fn sorted(project: &Project) -> Vec<String> {
    let mut lines = project.lines("ran.txt");
    lines.sort();
    lines
}

/// If this fails, a gate holds up work that does not depend on it, or a person must guess how to go
/// on.
#[test]
fn a_run_waits_for_a_person_after_all_else_ran() {
    let project = Project::with_plan(PLAN);
    let said = project.piton(&["run", "plan.toml", "--run-id", "r1"]).exits(3);
    said.says("piton approve r1 P1/asked").says("Interface frozen");
    assert_eq!(sorted(&project), ["apart", "one", "two"]);
    let status = project.status_json("r1");
    assert_eq!(status["status"], "waiting");
    assert_eq!(status["waiting_for"].as_array().map(Vec::len), Some(1), "P2 is not reached yet");
    assert_eq!(status["waiting_for"][0]["gate"], "P1/asked");
    assert_eq!(status["waiting_for"][0]["name"], "Interface frozen");

    // Neither another look nor `--yes` is an approval.
    for args in [["resume"].as_slice(), &["resume", "--yes"], &["run", "plan.toml", "--yes"]] {
        project.piton(args).exits(3).says("piton approve r1 P1/asked");
    }
    assert!(decisions(&project).is_empty());
    project.piton(&["approve", "r1", "P1/asked"]).exits(0).says("piton resume r1");
    assert_eq!(sorted(&project), ["apart", "one", "two"], "approving is not running");
    project.piton(&["resume"]).exits(3).says("piton approve r1 P2");
    // By its text, and without naming the run.
    project.piton(&["approve", "release approval"]).exits(0);
    project.piton(&["resume"]).exits(0);
    assert_eq!(sorted(&project), ["apart", "asked", "one", "release", "two"]);
    let asked = project.events("").into_iter().filter(|e| matches!(e, Event::GateAsked(_)));
    assert_eq!(asked.count(), 2, "each gate is asked about once");
}

/// If this fails, nobody can tell later who approved what.
#[test]
fn a_decision_is_recorded_with_who_when_and_what() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml", "--run-id", "r1"]).exits(3);
    project.piton(&["approve", "r1", "P1/asked", "-m", "looks fine"]).exits(0);
    let recorded = decisions(&project);
    assert_eq!(recorded.len(), 1);
    let decided = &recorded[0];
    assert_eq!((decided.by.as_str(), decided.message.as_str()), ("tester", "looks fine"));
    assert!(decided.approved && decided.gate.0 == "P1/asked");
    let [artifact] = decided.artifacts.as_slice() else { panic!("{decided:?}") };
    assert_eq!(artifact.path, "made.txt");
    assert_eq!(artifact.sha256, piton_core::hash::Sha::of(b"made\n"));
    let shown = project.piton(&["show", "r1", "--json"]).exits(0).json();
    assert_eq!(shown["plan_hash"], decided.plan_hash.to_string().as_str());
    let gate = shown["gates"].as_array().into_iter().flatten().find(|g| g["gate"] == "P1/asked");
    let decision = gate.map(|g| g["decisions"][0].clone()).unwrap_or_default();
    assert_eq!(decision["by"], "tester");
    assert!(decision["at"].as_str().is_some_and(|at| at.contains('T')), "{decision}");
    project.piton(&["show", "r1"]).exits(0).says("approved by tester").says("looks fine");
}

/// If this fails, a decision can be taken twice, or be changed after it was acted on.
#[test]
fn a_person_is_asked_once() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml"]).exits(3);
    project.piton(&["approve", "P1/asked"]).exits(0);
    for verb in ["approve", "reject"] {
        project.piton(&[verb, "P1/asked"]).exits(2).says("already approved by tester");
    }
    project.piton(&["approve", "P9"]).exits(2).says("P1/asked");
    let run = project.run_id();
    project.piton(&["approve", &run]).exits(2).says("hint: ");
    assert_eq!(decisions(&project).len(), 1);
}

/// If this fails, a no is lost, or can't be taken back.
#[test]
fn a_rejected_gate_fails_the_run_until_it_is_approved_after_all() {
    let project = Project::with_plan(PLAN);
    project.piton(&["run", "plan.toml"]).exits(3);
    project.piton(&["reject", "P1/asked", "-m", "not yet"]).exits(0).says("rejected");
    project.piton(&["resume"]).exits(1).says("piton approve");
    assert_eq!(project.status(""), "failed");
    assert!(!project.lines("ran.txt").contains(&"asked".to_owned()));
    project.piton(&["approve", "P1/asked"]).exits(0);
    project.piton(&["resume"]).exits(3);
    assert!(project.lines("ran.txt").contains(&"asked".to_owned()));
}

/// A lane that waits for a file beside a gate.
const BUSY: &str = r#"
[[phase]]
id = "P1"

[[phase.lane]]
id = "busy"
run = "touch begun; while [ ! -e go ]; do sleep 0.02; done"

[[phase.lane]]
id = "asked"
gate = "Go"
run = "touch asked.txt; while [ ! -e go ]; do sleep 0.02; done"
"#;

/// If this fails, a person must stop a run to say yes to it.
#[test]
fn a_gate_is_decided_while_the_driver_lives() {
    let project = Project::with_plan(BUSY);
    let driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    wait_until("the gate", || project.status_json("")["waiting_for"][0]["gate"] == "P1/asked");
    project.piton(&["approve", "P1/asked", "-m", "go"]).exits(0).says("approved");
    // The same driver goes on at once: the step starts while the other is still at work.
    project.wait_for("asked.txt");
    project.piton(&["approve", "P1/asked"]).exits(2).says("already approved");
    project.write("go", "");
    driver.wait().exits(0);
    assert_eq!(decisions(&project).len(), 1);
}

/// If this fails, an agent approves its own work.
#[test]
fn a_step_can_not_decide_about_its_own_run() {
    let tries = [
        "$PROGRAM approve P2",
        "env -u PITON_MARK -u PITON_RUN_ID -u PITON_ATTEMPT_KEY $PROGRAM approve P2",
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" USER=boss $PROGRAM approve P2",
        "setsid -w env -i PATH=\"$PATH\" HOME=\"$HOME\" $PROGRAM approve P2",
        "(setsid env -i PATH=\"$PATH\" HOME=\"$HOME\" sh -c \"$PROGRAM approve P2; echo \\$? > orphan.txt\" &); while [ ! -s orphan.txt ]; do sleep 0.02; done; exit $(cat orphan.txt)",
        "PITON_RUN_ID=other PITON_MARK=other $PROGRAM reject P2",
        "$PROGRAM retry build --again",
        "$PROGRAM skip P2/main/work",
        "$PROGRAM abort",
    ];
    let guarded = tries.map(|t| format!("({t}) 2>> said.txt; echo $? >> codes.txt\n"));
    let lines = guarded.concat();
    let project = Project::with_plan(&format!(
        "[[phase]]\nid = \"P1\"\nrun = '''\n{lines}'''\n\n[[phase]]\nid = \"P2\"\ngate = \"Go\"\nrun = \"true\"\n"
    ));
    project.piton(&["run", "plan.toml"]).exits(3);
    assert_eq!(project.lines("codes.txt"), vec!["4"; tries.len()], "{}", project.read("said.txt"));
    assert!(decisions(&project).is_empty());
    assert!(project.read("said.txt").contains("a step cannot decide about it"));
    // A person still can.
    project.piton(&["approve", "P2"]).exits(0);
    project.piton(&["resume"]).exits(0);
}

/// If this fails, an agent approves, ends or deletes the work of another run.
#[test]
fn a_step_can_not_decide_about_another_run() {
    let clean = "env -i PATH=\"$PATH\" HOME=\"$HOME\" $PROGRAM";
    let tries = [
        "$PROGRAM approve other P2".to_owned(),
        format!("{clean} reject other P2"),
        format!("setsid -w {clean} abort other"),
        format!("{clean} rollback other"),
        "$PROGRAM undo other".to_owned(),
        "$PROGRAM retry other P1 --again".to_owned(),
        format!("{clean} skip other P2"),
        "$PROGRAM run other.toml --fresh".to_owned(),
        "$PROGRAM resume other --takeover".to_owned(),
        "$PROGRAM resume other --accept-plan".to_owned(),
        "$PROGRAM gc".to_owned(),
    ];
    let count = tries.len();
    let lines = tries.map(|t| format!("({t}) 2>> said.txt; echo $? >> codes.txt\n")).concat();
    let project = Project::with_plan(&format!("[[phase]]\nid = \"P1\"\nrun = '''\n{lines}'''\n"));
    let other = "[[phase]]\nid = \"P1\"\nrun = \"true\"\n[[phase]]\nid = \"P2\"\ngate = \"Go\"\nrun = \"true\"\n";
    project.write("other.toml", other);
    project.commit();
    project.piton(&["run", "other.toml", "--run-id", "other"]).exits(3);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    assert_eq!(project.lines("codes.txt"), vec!["4"; count], "{}", project.read("said.txt"));
    assert_eq!(project.status("other"), "waiting");
    let refused = |event: &Event| matches!(event, Event::CommandRefused(_));
    assert!(project.events("r").iter().any(refused), "the run whose step tried it records it");
    project.piton(&["approve", "other", "P2", "--no-resume"]).exits(0);
}

/// Lost: nobody learns that an agent tried to approve, end or delete; or its loop fills the ledger.
#[test]
fn what_a_step_tries_is_recorded_once() {
    let tries = [
        "$PROGRAM approve P2",
        "$PROGRAM approve P2",
        "env -i PATH=\"$PATH\" HOME=\"$HOME\" $PROGRAM abort",
        "$PROGRAM gc",
        "$PROGRAM rollback",
        "$PROGRAM undo",
        "$PROGRAM run plan.toml --fresh",
        "$PROGRAM resume --takeover",
    ];
    let lines = tries.map(|t| format!("({t}) 2>> said.txt; echo $? >> codes.txt\n")).concat();
    let project = Project::with_plan(&format!(
        "[[phase]]\nid = \"P1\"\nrun = '''\n{lines}'''\n\n[[phase]]\nid = \"P2\"\ngate = \"Go\"\nrun = \"true\"\n"
    ));
    let output = project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    assert_eq!(project.lines("codes.txt"), vec!["4"; tries.len()], "{}", project.read("said.txt"));
    output.says("P1/main/work tried `piton gc` and was refused");
    let tried = |event: Event| match event {
        Event::CommandRefused(e) => Some((e.command, e.step?.to_string(), e.attempt?)),
        _ => None,
    };
    let mut tried: Vec<_> = project.events("r").into_iter().filter_map(tried).collect();
    tried.sort();
    let once = ["abort", "approve", "gc", "resume", "rollback", "run", "undo"];
    let step = || "P1/main/work".to_owned();
    assert_eq!(tried, once.map(|command| (command.to_owned(), step(), 1)));
    project.piton(&["report", "r"]).exits(0).says("piton abort");
}

/// Lost: an agent whose command is refused is told which command would destroy what is in its way.
#[test]
fn no_error_tells_a_step_to_decide_or_destroy() {
    let tries = [
        "$PROGRAM run plan.toml",
        "$PROGRAM run plan.toml --fresh",
        "$PROGRAM resume",
        "$PROGRAM resume other",
        "$PROGRAM rollback --to nowhere",
        "$PROGRAM show nothing",
        "$PROGRAM run broken.toml",
        "$PROGRAM run failed.toml",
        "$PROGRAM doctor --new-ledger",
    ];
    let lines = tries.map(|t| format!("({t}) > /dev/null 2>> said.txt\n")).concat();
    let project =
        Project::with_plan(&format!("[[phase]]\nid = \"P1\"\nrun = '''\n{lines}true'''\n"));
    project.write("broken.toml", "[[phase]]\n");
    project.write("failed.toml", "[[phase]]\nid = \"F\"\nrun = \"exit 1\"\n");
    project.piton(&["run", "failed.toml", "--run-id", "other"]).exits(1);
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    let said = project.read("said.txt");
    let hints = said.lines().filter(|line| line.starts_with("hint:") || line.starts_with("error"));
    for hint in hints.clone() {
        let words: Vec<&str> = hint.split(['`', ' ']).collect();
        let named = |word: &&str| persons::OPTIONS.contains(word);
        assert!(!words.iter().any(named), "{hint}");
        let command = |pair: &[&str]| pair[0] == "piton" && persons::is_command(pair[1]);
        assert!(!words.windows(2).any(command), "{hint}");
    }
    assert!(hints.count() > tries.len(), "{said}");
    assert!(said.contains("ask the person who started the run"), "{said}");
}

/// Lost: a remedy that names such a command in its words, where nobody can see that it does.
#[test]
fn commands_of_people_are_no_plain_words() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for file in walkdir::WalkDir::new(crates).into_iter().flatten() {
        let path = file.path();
        let is_source = path.components().any(|part| part.as_os_str() == "src");
        if !is_source || path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        // Only what is written to be a remedy; tests and tables of documentation show all of it.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let words = code.lines().map(str::trim);
        for line in
            words.filter(|line| [".hint(\"", ".or(\"", "Words \""].iter().any(|w| line.contains(w)))
        {
            let text = line
                .split(&['`', '"'])
                .filter(|part| part.starts_with("piton ") || part.starts_with("--"));
            let plain = line.contains("Piton \"") || line.contains("Option \"");
            for part in text.filter(|_| !plain) {
                let arguments = part.strip_prefix("piton ").unwrap_or(part);
                assert!(!persons::is_command(arguments), "{}: {line}", path.display());
            }
        }
    }
}

/// If this fails, an agent ends the keeper that holds it, leaves all it could be known by, and approves.
#[test]
fn what_was_approved_while_the_keeper_was_lost_is_asked_for_again() {
    let project = Project::with_plan(&BUSY.replace("touch begun", "echo begun >> begun"));
    let mut driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    let asked = || project.status_json("r")["waiting_for"][0]["gate"] == "P1/asked";
    let lose_keeper = || {
        wait_until("the keeper killed", || {
            let left = project.keepers();
            for keeper in &left {
                common::kill(keeper.pid, Signal::KILL);
            }
            left.is_empty()
        });
    };
    project.wait_for("begun");
    wait_until("the gate", asked);
    driver.stop_at_rest();
    lose_keeper();
    // Who asks from here is known by nothing: it could be the step.
    let asking = project.spawn(&["approve", "r", "P1/asked"]);
    wait_until("the request", || inbox(&project) == 1);
    driver.signal(Signal::CONT);
    asking.wait().exits(2).says("its keeper was lost").says("approve it again");
    // The same where no driver is left to ask.
    wait_until("the second attempt", || project.lines("begun").len() == 2);
    driver.kill();
    lose_keeper();
    let said = project.piton(&["approve", "r", "P1/asked"]).exits(4);
    said.says("[inside-a-step]").says("piton resume r");
    assert!(decisions(&project).is_empty() && asked());
    project.write("go", "");
    project.piton(&["resume", "r"]).exits(3);
    project.piton(&["approve", "r", "P1/asked"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
}

/// The requests that were ever made.
fn inbox(project: &Project) -> u32 {
    let ledger = rusqlite::Connection::open(project.state_dir().join("ledger.db")).unwrap();
    ledger.query_row("SELECT count(*) FROM requests", [], |row| row.get(0)).unwrap()
}

/// If this fails, a row in a table is as good as a person's word, however it came there.
#[test]
fn an_approval_that_no_command_made_is_refused() {
    let project = Project::with_plan(BUSY);
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    let ledger = rusqlite::Connection::open(project.state_dir().join("ledger.db")).unwrap();
    let body = r#"{"ask":"decide","gate":"P1/asked","approved":true,"message":""}"#;
    let forged = "INSERT INTO requests (run, key, at, sender, tag, version, body) \
                  SELECT id, 'k', 0, 'ann', 'request', 1, ?1 FROM runs";
    ledger.execute(forged, [body.as_bytes()]).unwrap();
    let answer = || -> Option<String> {
        ledger.query_row("SELECT answer FROM requests", [], |row| row.get(0)).unwrap()
    };
    wait_until("an answer", || answer().is_some());
    let answer = answer().unwrap();
    assert!(answer.contains("no piton command made this request"), "{answer}");
    project.write("go", "");
    driver.wait().exits(3);
    assert!(decisions(&project).is_empty());
}

/// If this fails, a decision is on record with the time at which a stopped driver woke up.
#[test]
fn a_decision_is_as_old_as_the_word_of_the_person() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P\"\nrun = \"touch begun; while [ ! -e go ]; do sleep 0.02; done\"\n\n\
         [[phase]]\nid = \"Q\"\ngate = \"Go\"\nrun = \"true\"\n",
    );
    let driver = project.spawn(&["run", "plan.toml", "--run-id", "r"]);
    project.wait_for("begun");
    driver.stop_at_rest();
    let before = now();
    project.piton(&["approve", "r", "Q"]);
    let after = now();
    std::thread::sleep(std::time::Duration::from_millis(50));
    driver.signal(Signal::CONT);
    project.write("go", "");
    driver.wait().exits(0);
    let decided = project.events("r").into_iter().find_map(|event| match event {
        Event::GateDecided(decided) => decided.at,
        _ => None,
    });
    assert!(decided.is_some_and(|at| (before..=after).contains(&at.0)), "{decided:?}");
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or_default()
}

/// If this fails, an agent leaves a program behind that approves when nobody looks.
#[test]
fn a_daemon_that_a_step_left_on_purpose_can_not_decide_either() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P1\"\nkeep = [\"sh\"]\n\
         run = '(setsid sh daemon.sh </dev/null >/dev/null 2>&1 &)'\n\n\
         [[phase]]\nid = \"P2\"\ngate = \"Go\"\nrun = \"true\"\n",
    );
    project.write(
        "daemon.sh",
        "while [ ! -e go ]; do sleep 0.02; done\n\
         env -i PATH=\"$PATH\" HOME=\"$HOME\" \"$PROGRAM\" approve P2 2> said.txt\n\
         echo $? > code.tmp; mv code.tmp code.txt\n",
    );
    project.piton(&["run", "plan.toml"]).exits(3);
    wait_until("the keeper has gone", || project.keepers().is_empty());
    project.write("go", "");
    project.wait_for("code.txt");
    assert_eq!(project.lines("code.txt"), ["4"], "{}", project.read("said.txt"));
    assert!(decisions(&project).is_empty());
    assert!(project.read("said.txt").contains("a step cannot decide about it"));
    project.piton(&["approve", "P2"]).exits(0);
}

/// If this fails, a step can't leave a remark, or a remark needs a driver.
#[test]
fn a_checkpoint_is_recorded_with_and_without_a_driver() {
    let project = Project::with_plan(
        &BUSY.replace("touch begun;", "$PROGRAM checkpoint -m inside; touch begun;"),
    );
    let driver = project.spawn(&["run", "plan.toml"]);
    project.wait_for("begun");
    project.piton(&["checkpoint", "-m", "beside"]).exits(0).says("manual-2");
    project.write("go", "");
    driver.wait().exits(3);
    project.piton(&["checkpoint", "-m", "after"]).exits(0).says("manual-3");
    let points = project.status_json("")["checkpoints"].clone();
    let said: Vec<_> =
        points.as_array().into_iter().flatten().map(|c| c["message"].clone()).collect();
    assert_eq!(said, ["inside", "beside", "after"]);
    project.piton(&["checkpoint"]).exits(2);
}

/// If this fails, a person who means a gate that is still to come approves another one.
#[test]
fn a_text_that_two_gates_have_decides_nothing_until_one_of_them_is_behind() {
    let project = Project::with_plan(
        "[[phase]]\nid = \"P1\"\ngate = \"Go\"\nrun = \"true\"\n\
         [[phase]]\nid = \"P2\"\ngate = \"Go\"\nrun = \"true\"\n",
    );
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    for args in [&["approve", "r", "Go"][..], &["approve", "go"]] {
        let said = project.piton(args).exits(2);
        said.says("error[no-gate]")
            .says("`piton approve r P1` for P1, which is open")
            .says("`piton approve r P2` for P2, which is not open yet");
    }
    project.piton(&["reject", "r", "Go"]).exits(2).says("`piton reject r P2`");
    assert_eq!(decisions(&project), []);
    project.piton(&["approve", "r", "P1"]).exits(0);
    project.piton(&["approve", "r", "Go"]).exits(2).says("for P1, which is approved");
    project.piton(&["resume", "r"]).exits(3);
    project.piton(&["approve", "r", "Go"]).exits(0);
    let decided: Vec<String> = decisions(&project).into_iter().map(|d| d.gate.0).collect();
    assert_eq!(decided, ["P1", "P2"]);
}

/// What is built is approved, then released; what ran is told outside, where no rollback takes it back.
fn released() -> Project {
    let project = Project::with_plan(
        "[[phase]]\nid = \"build\"\nrun = \"echo built >> ../ran; echo b > built.txt\"\n\
         [[phase]]\nid = \"release\"\ngate = \"Release approval\"\n\
         run = \"echo released >> ../ran; test -e ../ok\"\n",
    );
    project.commit();
    project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(3);
    project.piton(&["approve", "r", "release"]).exits(0);
    // What was approved and failed is tried again without a further question.
    project.piton(&["resume", "r"]).exits(1);
    project.sh("touch ../ok").exits(0);
    project.piton(&["retry", "r"]).exits(0).silent_about("Release approval");
    project.piton(&["resume", "r"]).exits(0);
    project
}

/// How often something was done.
fn told(project: &Project, what: &str) -> usize {
    project.sh("cat ../ran").exits(0).stdout.matches(what).count()
}

/// If this fails, what a person took back and has done anew is released on a yes to the old.
#[test]
fn a_rollback_takes_the_approval_of_what_goes_back_with_it() {
    let project = released();
    let gate = "gate \"Release approval\" (release)";
    let plan = project.piton(&["rollback", "r", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(plan["approvals_taken_back"], serde_json::json!(["release"]), "{plan:#}");
    let said = project.piton(&["rollback", "r", "--yes"]).exits(0);
    said.says(&format!("{gate}: its approval is taken back"));
    project.piton(&["show", "r"]).exits(0).says("taken back by tester");
    let said = project.piton(&["undo", "r", "--yes"]).exits(0);
    said.says(&format!("{gate}: its approval comes back"));
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!((told(&project, "built"), told(&project, "released")), (1, 2));
    project.piton(&["undo", "r", "--yes"]).exits(0);
    project.piton(&["resume", "r"]).exits(3).says("piton approve r release");
    assert_eq!((told(&project, "built"), told(&project, "released")), (2, 2));
    project.piton(&["approve", "r", "release"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(told(&project, "released"), 3);
}

/// If this fails, the same happens by `retry --again`.
#[test]
fn what_was_approved_and_runs_again_on_purpose_is_asked_about_again() {
    let project = released();
    let again = ["retry", "r", "build/main/work", "--again", "--downstream"];
    let said = project.piton(&again).exits(0);
    said.says("took back the approval of gate release");
    project.piton(&["resume", "r"]).exits(3).says("piton approve r release");
    assert_eq!((told(&project, "built"), told(&project, "released")), (2, 2));
    project.piton(&["approve", "r", "release"]).exits(0);
    project.piton(&["resume", "r"]).exits(0);
    // A gate before the very step that runs again is asked about too.
    project.piton(&["retry", "r", "release/main/work", "--again"]).exits(0);
    project.piton(&["resume", "r"]).exits(3);
    assert_eq!(told(&project, "released"), 3);
}
