//! The failure scenarios of the recovery contract: record, prompt, resume, rollback.

use serde_json::json;

use super::scene::{CHECKPOINTS, DOCUMENT, LaneDoc, Scene, document, lane};

/// Checks the prompt of the contract: stage, checkpoints, the way on, the way back.
#[track_caller]
fn prompted(said: &super::common::Output, lane: &str, stage: &str) {
    let said = &said.stderr;
    let stages = said.lines().find(|line| line.starts_with("current stage: ")).unwrap_or_default();
    assert!(stages.contains(&format!("{lane} {stage}")), "{said}");
    assert!(said.contains(CHECKPOINTS), "{said}");
    assert!(said.contains(&format!("piton run {DOCUMENT} --resume --run-id ")), "{said}");
    assert!(said.contains(&format!("piton run {DOCUMENT} --rollback --run-id ")), "{said}");
    assert!(said.contains("before_lane_start"), "{said}");
}

/// Lost: what a lane that went well must leave, and that nothing else is left.
#[test]
fn lanes_that_go_well_reach_base_and_leave_nothing_but_their_records() {
    let scene = Scene::of(&[lane("SL-1"), lane("SL-2")]);
    scene.run(&[]).exits(0);
    scene.nothing_left();
    assert!(scene.project.has("SL-1-01.txt") && scene.project.has("SL-2-01.txt"));
    assert_eq!(scene.subjects("main").len(), 3);
    for name in ["SL-1", "SL-2"] {
        for (stage, status) in [
            ("before_lane_start", "ready"),
            ("after_lane_start", "in_progress"),
            ("after_lane_tests", "complete"),
            ("pre_pr", "complete"),
        ] {
            let record = scene.record(name, stage);
            assert_eq!(record["status"], status, "{record:#}");
            assert!(record.get("retry_attempt").is_none(), "{record:#}");
            assert_eq!(record["worktree_path"], scene.workspace(name).display().to_string());
            assert_eq!(record["base_branch"], "main");
        }
        let tested = scene.record(name, "after_lane_tests");
        assert_eq!(tested["exit_code"], 0);
        assert_eq!(tested["test_command"], format!("test -e {name}-01.txt"));
        assert_eq!(scene.record(name, "pre_pr")["target_branch"], "main");
    }
    let run = scene.record("SL-1", "pre_pr")["run_id"].as_str().unwrap().to_owned();
    let report = scene.project.read(&format!(".claude/run-reports/{run}.md"));
    assert!(report.contains("| SL-1 | Lane SL-1 |"), "{report}");
}

/// Lost: a network that stays away would leave no record of what was tried, and no way on.
#[test]
fn a_network_failure_is_recorded_at_its_stage_with_the_last_command() {
    let scene = Scene::with(&document("", &[lane("SL-1")], ""), "[budgets]\nnetwork_wait = \"1s\"");
    scene.agent("SL-1", "echo 'fatal: Could not resolve host: example.org' >&2; exit 128");
    let said = scene.run(&[]).exits(1);
    prompted(&said, "P1/SL-1", "after_lane_start");
    let record = scene.record("SL-1", "after_lane_start");
    assert_eq!(record["status"], "failed");
    let command = record["last_command"].as_str().unwrap();
    assert!(command.contains("agent.sh"), "{record:#}");
    assert!(record["notes"].as_str().unwrap().contains(command), "{record:#}");
    assert_eq!(record["exit_code"], 128);
    scene.usual_agent("SL-1");
    scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    scene.nothing_left();
    assert_eq!(scene.stage_status("SL-1", "pre_pr"), "complete");
}

/// Lost: a failing test would leave no command and exit code, and resume would not test again.
#[test]
fn a_failing_test_is_recorded_and_a_fix_by_hand_is_taken_on() {
    let failing = LaneDoc { test: "grep -q right SL-1-01.txt".to_owned(), ..lane("SL-1") };
    let scene = Scene::of(&[failing]);
    let said = scene.run(&[]).exits(1);
    prompted(&said, "P1/SL-1", "after_lane_tests");
    let record = scene.record("SL-1", "after_lane_tests");
    assert_eq!(record["status"], "failed");
    assert_eq!(record["test_command"], "grep -q right SL-1-01.txt");
    assert_eq!(record["exit_code"], 1);
    assert!(record.get("retry_attempt").is_none(), "no retry was configured: {record:#}");
    assert_eq!(scene.stage_status("SL-1", "retry_attempt"), "");
    // The agent would do the same again; a person knows better.
    scene.agent("SL-1", "echo right > SL-1-01.txt");
    let said = scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    prompted(&said, "P1/SL-1", "after_lane_tests");
    assert_eq!(scene.project.read("SL-1-01.txt"), "right\n");
    assert_eq!(scene.stage_status("SL-1", "after_lane_tests"), "complete");
    scene.nothing_left();
}

/// Lost: rollback from a failed lane would not reach its start, or resume would not begin there.
#[test]
fn a_failed_lane_rolls_back_by_its_hint_and_starts_over() {
    let failing = LaneDoc { test: "grep -q right SL-1-01.txt".to_owned(), ..lane("SL-1") };
    let scene = Scene::of(&[failing]);
    scene.agent("SL-1", "echo wrong > SL-1-01.txt; echo more > untracked.txt");
    scene.run(&[]).exits(1);
    let record = scene.record("SL-1", "after_lane_tests");
    let hint = record["rollback_hint"].as_str().unwrap();
    let said = scene.paste(&format!("{hint} --yes")).exits(0);
    assert!(said.stderr.contains("current stage:"), "{}", said.stderr);
    assert!(said.stderr.contains(CHECKPOINTS), "{}", said.stderr);
    assert!(said.stderr.contains("piton run plans/phase-1.md --rollback"), "{}", said.stderr);
    assert_eq!(scene.stage_status("SL-1", "after_lane_tests"), "rolled_back");
    assert_eq!(scene.stage_status("SL-1", "after_lane_start"), "rolled_back");
    assert!(!scene.workspace("SL-1").join("untracked.txt").exists(), "files are back");
    scene.agent("SL-1", "test ! -e SL-1-01.txt && echo right > SL-1-01.txt");
    scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    scene.nothing_left();
    assert_eq!(scene.project.read("SL-1-01.txt"), "right\n");
    assert!(!scene.project.has("untracked.txt"));
}

/// Lost: the log entries of the contract, where an attempt has printed nothing itself.
#[test]
fn an_attempt_without_output_is_told_of_by_the_run_log() {
    let failing = LaneDoc { index: &["Retries: 1"], test: "false".to_owned(), ..lane("SL-1") };
    let scene = Scene::of(&[failing]);
    scene.run(&[]).exits(1);
    let record = scene.record("SL-1", "retry_attempt");
    let context: Vec<&str> =
        record["failure_context"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
    let second = context.iter().position(|l| l.starts_with("Attempt 2: ")).unwrap();
    assert!(context[0].starts_with("Attempt 1: "), "{context:#?}");
    assert!(context[1].starts_with("lane_start ok: from main "), "{context:#?}");
    assert_eq!(context[second - 1], "task_start SL-1-01 ok: attempt 1");
    assert_eq!(context.len() - second, 6, "{context:#?}");
    assert_eq!(context[context.len() - 1], "task_start SL-1-01 ok: attempt 2");
    // What comes after a resume is told of by what was before it.
    scene.resume(&[]).exits(1);
    let record = scene.record("SL-1", "retry_attempt");
    let last = record["failure_context"].as_array().unwrap().last().unwrap();
    assert_eq!(last, "task_start SL-1-01 ok: attempt 4");
}

/// Lost: the contract's record of a retry, and the failure context an agent learns from.
#[test]
fn retries_are_recorded_and_pass_on_what_went_wrong() {
    let failing = LaneDoc {
        index: &["Retries: 2"],
        test: "grep -q right SL-1-01.txt".to_owned(),
        ..lane("SL-1")
    };
    let scene = Scene::of(&[failing]);
    let seen = scene.outside("seen");
    scene.agent(
        "SL-1",
        &format!(
            "cp .claude/x . 2>/dev/null; cat \"$(git rev-parse --git-common-dir)/../{CHECKPOINTS}\" > {seen}.$PITON_ATTEMPT\n\
             cat \"$PITON_PROMPT_FILE\" > {seen}.prompt\n\
             cp \"$PITON_FAILURE_CONTEXT\" {seen}.context\n\
             word=wrong; test $PITON_ATTEMPT = 3 && word=right\n\
             echo said in attempt $PITON_ATTEMPT; echo $word > SL-1-01.txt",
            seen = seen.display()
        ),
    );
    scene.run(&[]).exits(0);
    let then = |attempt: u32| -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(scene.outside(&format!("seen.{attempt}"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    for (attempt, retry) in [(2, 1), (3, 2)] {
        let records = then(attempt);
        let record = records.iter().find(|r| r["stage"] == "retry_attempt").unwrap();
        assert_eq!(record["status"], "retrying", "{record:#}");
        assert_eq!(record["retry_attempt"], retry);
        assert_eq!(record["max_retries"], 2);
        let context = record["failure_context"].as_array().unwrap();
        let errors = context.iter().filter(|l| l.as_str().unwrap().starts_with("Attempt "));
        assert_eq!(errors.count(), usize::try_from(retry).unwrap(), "{record:#}");
        let tests = records.iter().find(|r| r["stage"] == "after_lane_tests").unwrap();
        assert_eq!((&tests["status"], &tests["exit_code"]), (&json!("failed"), &json!(1)));
    }
    let prompt = std::fs::read_to_string(scene.outside("seen.prompt")).unwrap();
    assert!(prompt.contains("Attempt 2: ") && prompt.contains("exit code 1"), "{prompt}");
    let context = std::fs::read_to_string(scene.outside("seen.context")).unwrap();
    assert!(context.contains("exit code 1"), "{context}");
    assert_eq!(scene.stage_status("SL-1", "retry_attempt"), "complete");
    assert_eq!(scene.record("SL-1", "after_lane_tests")["status"], "complete");
    scene.nothing_left();
}

/// Lost: exhausted retries would look like any failure, or say another number than the contract's.
#[test]
fn exhausted_retries_are_failed_with_all_that_went_wrong() {
    let failing = LaneDoc { test: "grep -q right SL-1-01.txt".to_owned(), ..lane("SL-1") };
    let scene = Scene::of(&[failing]);
    scene.agent("SL-1", "echo line of $PITON_ATTEMPT; echo $PITON_ATTEMPT > SL-1-01.txt");
    let said = scene.run(&["--retries", "2"]).exits(1);
    prompted(&said, "P1/SL-1", "after_lane_tests");
    for stage in ["retry_attempt", "after_lane_tests"] {
        let record = scene.record("SL-1", stage);
        assert_eq!(record["status"], "failed", "{record:#}");
        assert_eq!(record["retry_attempt"], 2);
        assert_eq!(record["max_retries"], 2);
        let context = record["failure_context"].as_array().unwrap();
        for attempt in 1..=3 {
            let error = format!("Attempt {attempt}: ");
            assert!(context.iter().any(|l| l.as_str().unwrap().starts_with(&error)), "{record:#}");
        }
    }
    scene.agent("SL-1", "echo right > SL-1-01.txt");
    let hint = scene.record("SL-1", "retry_attempt")["resume_hint"].as_str().unwrap().to_owned();
    scene.paste(&hint).exits(0);
    assert_eq!(scene.project.read("SL-1-01.txt"), "right\n");
    scene.nothing_left();
}

/// Lost: lanes of `plan.toml` would have other records than those of phase documents.
#[test]
fn lanes_of_a_plan_have_the_same_records() {
    let scene = Scene::planned(
        "title = \"Work\"\n[[phase]]\nid = \"P1\"\n[[phase.lane]]\nid = \"SL-1\"\n\
         isolation = \"worktree\"\n[[phase.lane.step]]\nid = \"make\"\nretries = 1\n\
         run = \"echo $PITON_ATTEMPT > made.txt\"\ntest = \"grep -q 3 made.txt\"\n",
    );
    scene.project.piton(&["run", "plan.toml"]).exits(1).says("current stage: P1/SL-1");
    let record = scene.record("SL-1", "after_lane_tests");
    assert_eq!(record["status"], "failed", "{record:#}");
    assert_eq!(record["test_command"], "grep -q 3 made.txt");
    assert_eq!(scene.record("SL-1", "retry_attempt")["retry_attempt"], 1);
    scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    assert_eq!(scene.project.read("made.txt"), "3\n");
    scene.nothing_left();
}

/// Lost: the hint of a lane in place would end with the same failure again and again.
#[test]
fn the_hint_of_a_failed_lane_in_place_gives_it_new_attempts() {
    let scene = Scene::planned(
        "title = \"Work\"\n[[phase]]\nid = \"P1\"\n[[phase.lane]]\nid = \"a\"\n\
         isolation = \"worktree\"\n[[phase.lane.step]]\nid = \"make\"\nrun = \"echo a > a.txt\"\n\
         [[phase]]\nid = \"P2\"\nrun = \"test -e .git/ok\"\n",
    );
    scene.project.piton(&["run", "plan.toml"]).exits(1);
    let all = scene.records();
    let failed = all.iter().find(|r| r["phase"] == "P2" && r["status"] == "failed").unwrap();
    let hint = failed["resume_hint"].as_str().unwrap();
    scene.paste(hint).exits(1);
    scene.project.write(".git/ok", "");
    scene.paste(hint).exits(0);
    scene.nothing_left();
}

/// Lost: lanes of `plan.toml` without a network would end in another way.
#[test]
fn a_lane_of_a_plan_waits_for_the_network_and_is_recorded() {
    let scene = Scene::planned(
        "title = \"Work\"\n[budgets]\nnetwork_wait = \"2s\"\n[[phase]]\nid = \"P1\"\n\
         [[phase.lane]]\nid = \"SL-1\"\nisolation = \"worktree\"\n[[phase.lane.step]]\n\
         id = \"fetch\"\nrun = \"test -e $PITON_ROOT/.git/net && touch got.txt || { echo connection refused; exit 9; }\"\n",
    );
    let said = scene.project.piton(&["run", "plan.toml"]).exits(1).says("continues at");
    assert!(said.stderr.contains("current stage: P1/SL-1 after_lane_start (failed)"));
    let record = scene.record("SL-1", "after_lane_start");
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(9)));
    assert!(record["last_command"].as_str().unwrap().contains("got.txt"), "{record:#}");
    assert_eq!(scene.project.step("P1/SL-1/fetch")["attempts"], 2, "it waited once by itself");
    scene.project.write(".git/net", "");
    scene.paste(record["resume_hint"].as_str().unwrap()).exits(0);
    scene.nothing_left();
}

/// Lost: a folder or plan with blanks and quotes would make hints that mean something else.
#[test]
fn hints_are_true_when_pasted_whatever_the_names_are() {
    let failing = LaneDoc { test: "grep -q right SL-1-01.txt".to_owned(), ..lane("SL-1") };
    let scene = Scene::of(std::slice::from_ref(&failing));
    let odd = "plans/it's $(touch gone) phase.md";
    scene.project.write(odd, &document("", &[failing], ""));
    scene.project.commit();
    scene.project.piton(&["run", odd]).exits(1);
    scene.agent("SL-1", "echo right > SL-1-01.txt");
    let hint = scene.record("SL-1", "after_lane_tests")["resume_hint"].as_str().unwrap().to_owned();
    scene.paste(&hint).exits(0);
    assert!(!scene.project.has("gone"));
    scene.nothing_left();
}

/// Lost: lanes of the same name in two phases would be taken for each other by their hints.
#[test]
fn hints_tell_lanes_of_the_same_name_apart() {
    let phase = |id: &str, needs: &str| {
        format!(
            "[[phase]]\nid = \"{id}\"\n{needs}\n[[phase.lane]]\nid = \"SL-1\"\n\
             isolation = \"worktree\"\n[[phase.lane.step]]\nid = \"make\"\n\
             run = \"test -e $PITON_ROOT/.git/{id} && touch {id}.txt\"\n"
        )
    };
    let plan = format!("title = \"T\"\n{}{}", phase("P1", ""), phase("P2", "needs = [\"P1\"]"));
    let scene = Scene::planned(&plan);
    scene.project.write(".git/P1", "");
    scene.project.piton(&["run", "plan.toml"]).exits(1);
    let all = scene.records();
    let failed = all.iter().find(|r| r["phase"] == "P2" && r["status"] == "failed").unwrap();
    let hint = |name: &str| failed[name].as_str().unwrap().to_owned();
    scene.paste(&format!("{} --yes", hint("rollback_hint"))).exits(0);
    assert!(scene.project.has("P1.txt"), "the lane of the other phase stays merged");
    scene.project.write(".git/P2", "");
    scene.paste(&hint("resume_hint")).exits(0);
    assert!(scene.project.has("P2.txt"));
    scene.nothing_left();
}

/// Lost: retries that were asked for would end with the driver that was told of them, and the record
/// of them would say for ever that another follows.
#[test]
fn retries_that_were_asked_for_hold_for_the_resume() {
    let scene = Scene::of(&[lane("SL-1")]);
    let at = scene.outside("").display().to_string();
    scene.agent(
        "SL-1",
        &format!(
            "touch {at}/begun-$PITON_ATTEMPT\n\
             [ $PITON_ATTEMPT = 2 ] && while [ ! -e {at}/go ]; do sleep 0.02; done\nexit 1"
        ),
    );
    let args = ["run", super::scene::DOCUMENT, "--run-id", "b2", "--retries", "3"];
    let mut driver = scene.project.start(scene.command("piton").args(args));
    super::common::wait_until("the second attempt", || scene.outside("begun-2").exists());
    super::common::wait_until("the record of the retry", || {
        scene.stage_status("SL-1", "retry_attempt") == "retrying"
    });
    driver.kill();
    std::fs::write(scene.outside("go"), "").unwrap();
    let hint = scene.record("SL-1", "retry_attempt")["resume_hint"].as_str().unwrap().to_owned();
    scene.paste(&hint).exits(1);
    assert_eq!(scene.project.step("P1/SL-1/SL-1-01")["attempts"], 4);
    let record = scene.record("SL-1", "retry_attempt");
    assert_eq!((&record["status"], &record["retry_attempt"]), (&json!("failed"), &json!(3)));
    assert!(record["failure_context"].to_string().contains("Attempt 4"), "{record:#}");
}

/// Lost: a person who pastes the way back of a lane that shares its folder would get a refusal.
#[test]
fn hints_of_lanes_that_share_a_folder_are_true_when_pasted() {
    let lane = |id: &str, more: &str| {
        format!("[[phase.lane]]\nid = \"{id}\"\nrun = \"echo {id} > {id}.txt\"\n{more}")
    };
    let plan = format!(
        "title = \"Shared\"\n[[phase]]\nid = \"P1\"\n{}{}[[phase]]\nid = \"P2\"\n{}",
        lane("A", ""),
        lane("W", "isolation = \"worktree\"\n"),
        lane("C", "")
    );
    let scene = Scene::planned(&plan);
    scene.project.piton(&["run", "plan.toml", "--run-id", "r"]).exits(0);
    let hint = scene.record("C", "before_lane_start")["rollback_hint"].as_str().unwrap().to_owned();
    scene.paste(&format!("{hint} --yes")).exits(0);
    assert!(scene.project.has("A.txt") && !scene.project.has("C.txt"));
    // The words of a refusal lead there too.
    let said = scene.project.finish(scene.command("piton").args(["rollback", "--phase", "P2"]));
    said.exits(2).says("--to P2/C@before_lane_start");
}
