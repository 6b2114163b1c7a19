//! Limits of accounts, budgets and hand-offs: what parks, what stops, what ends.

use std::process::Command;

use piton_core::Event;

use super::common::{self, Project};
use super::{WORKS, of_agent, project, resume, tokens};

/// A turn at a limit that only the program's words tell.
fn says(words: &str) -> String {
    format!("request 1 100 make; answered 1; ends true api_error \"{words}\"; exit 1\n")
}

/// Waits until the lane is parked: the program was started by then.
fn parked(project: &Project) {
    common::wait_until("the agent is started", || !of_agent(project, "count").is_empty());
    common::wait_until("the lane is parked", || project.step_status("P/main/work") == "parked");
}

fn parked_until(project: &Project) -> Option<String> {
    let status = project.status_json(&project.run_id());
    status["parked_until"].as_str().map(str::to_owned)
}

/// A time of day so many hours ahead, in the words of programs and as it is recorded.
fn in_hours(hours: u32, minute: &str) -> (String, String) {
    let asked = format!("date -u -d '+{hours} hours' '+%-I{minute}%P %H'");
    let output = Command::new("sh").args(["-c", &asked]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let (time, hour) = said.trim().split_once(' ').unwrap();
    let minute = minute.trim_start_matches(':');
    (time.to_owned(), format!("T{hour}:{minute:0>2}:00Z"))
}

/// Lost: a limit of a session, a week or a kind that nobody knows yet is taken for a failure, and all
/// attempts are gone within a second.
#[test]
fn limits_in_words_park_until_their_reset() {
    for (words, hours, minute) in [
        ("You've hit your session limit · resets TIME (UTC)", 3, ""),
        ("You've hit your weekly limit · resets TIME (UTC)", 15, ":30"),
        ("You've hit your Opus limit · resets TIME (UTC)", 5, ":15"),
        ("Your stellar usage is used up. It resets at TIME (UTC).", 9, ""),
    ] {
        // Hours ahead: a reset that was a moment ago is over.
        let (time, clock) = in_hours(hours, minute);
        let words = &words.replace("TIME", &time);
        let project = project("retries = 3", "", &[&says(words), WORKS]);
        let driver = project.spawn(&["run", "plan.toml"]);
        parked(&project);
        let until = parked_until(&project).unwrap();
        assert!(until.ends_with(&clock), "{words}: {until}");
        assert_eq!(of_agent(&project, "count").trim(), "1", "{words}");
        project.piton(&["status"]).exits(0).says("parked, until").says("(in ");
        project.kill_all();
        drop(driver);
    }
}

/// Lost: the whole run waits for the account of one lane; or a reboot makes it forget the limit.
#[test]
fn other_lanes_go_on_and_a_reboot_forgets_no_limit() {
    let limited = "printf '{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":%s}}\\n' \
                   $(($(date +%s) + 8))\n\
                   request 1 100 make; ends true api_error 'You have hit your limit' ',\"api_error\":\"usage_limit_reached\"'; exit 1\n";
    let other = "[[phase]]\nid = \"Q\"\nneeds = []\nrun = \"echo x > other.txt\"";
    let project = project(other, "", &[limited, WORKS]);
    let driver = project.spawn(&["run", "plan.toml"]);
    parked(&project);
    let until = parked_until(&project).unwrap();
    project.wait_for("other.txt");
    project.reboot();
    drop(driver);
    assert_eq!(parked_until(&project).unwrap(), until);
    resume(&project).exits(0).says("continues session");
    assert_eq!(of_agent(&project, "count").trim(), "2");
    let ended = project.sh("date -u +%Y-%m-%dT%H:%M:%SZ").stdout;
    assert!(ended.trim() >= until.as_str(), "{ended} {until}");
    assert_eq!(tokens(&project), 220);
    project.wait_quiet();
}

/// Lost: a step that must not wait waits.
#[test]
fn a_limit_fails_the_step_where_it_shall() {
    let limit = says("You've hit your session limit · resets 9am (UTC)");
    let project = project("retries = 3", "on_limit = \"stop\"", &[&limit]);
    project.piton(&["run", "plan.toml"]).exits(1).says("claude: You've hit your session limit");
    assert_eq!(of_agent(&project, "count").trim(), "1");
}

/// Lost: agents hand a step to each other for ever, as long as each changes something.
#[test]
fn handoffs_have_a_limit() {
    let fills = |n: u32| {
        format!(
            "request 1 91000 make; echo {n} > half.txt; until_stopped; answered 1; \
             ends false hook_stopped ''\n"
        )
    };
    let turns = [fills(1), fills(2), fills(3)];
    let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
    let project = project("", "window = 100000\nhandoffs = 2", &turns);
    project.piton(&["run", "plan.toml"]).exits(1).says("the limit `handoffs` is reached (2)");
    assert_eq!(of_agent(&project, "count").trim(), "3");
    assert_eq!(project.read("half.txt").trim(), "3");
    project.wait_quiet();
}

/// Lost: an agent that asks for the same again and again spends until its time is over.
#[test]
fn requests_of_one_attempt_have_a_limit() {
    let loops = "for n in 1 2 3 4; do request $n 100 make; answered $n; done\n\
                 request 5 100 make; until_stopped; answered 5; ends false hook_stopped ''\n";
    let deaf = "for n in 1 2 3 4 5; do request $n 100 make; answered $n; done; until_stopped\n\
                for n in 6 7 8; do request $n 100 make; answered $n; done; sleep 600\n";
    for turn in [loops, deaf] {
        let project = project("retries = 3", "requests = 5", &[turn, WORKS]);
        let failed = project.piton(&["run", "plan.toml"]).exits(1);
        failed.says("the limit `requests` is reached (5)");
        assert_eq!(of_agent(&project, "count").trim(), "1");
        let plan = project.read("plan.toml").replace("requests = 5", "requests = 50");
        project.write("plan.toml", &plan);
        project.piton(&["retry", "P", "--yes"]);
        resume(&project).exits(0);
        project.wait_quiet();
    }
}

/// Lost: nobody hears that a budget runs out, or hears it with every request; and what has no price
/// never reaches a budget of money.
#[test]
fn a_budget_of_money_warns_once_and_stops_although_the_cost_is_unknown() {
    // By the prices of the documentation: 5 dollars for a million tokens that are sent.
    let spends = "request 1 84000 make; answered 1; until [ -s told ]; do sleep 0.05; done\n\
                  request 2 1000 make; answered 2\n\
                  request 3 40000 make; until_stopped; answered 3; ends false hook_stopped ''\n";
    let budgets = "[budgets]\nmoney = \"0.50\"";
    let project = project("", budgets, &[spends, WORKS]);
    project.write("piton.toml", r#"notify = "echo \"$PITON_MESSAGE\" >> told""#);
    project.commit();
    let stopped = project.piton(&["run", "plan.toml"]).exits(6);
    stopped.says("budget money is used up").says("next: raise `money`");
    let warned = project.events(&project.run_id());
    let warned = warned.iter().filter(|event| matches!(event, Event::BudgetWarned(_))).count();
    assert_eq!(warned, 1);
    assert!(project.read("told").contains("of $0.50"), "{}", project.read("told"));
    let plan = project.read("plan.toml").replace("0.50", "50.00");
    project.write("plan.toml", &plan);
    resume(&project).exits(0).says("continues session");
    project.wait_quiet();
}
