//! How lanes work, as plans say it: where, with which steps of Piton's own, and what is refused.
//!
//! What would be lost without them: agents that overwrite each other's files, work that is merged
//! untested, and keys that promise something and do nothing.

use std::fmt::Write as _;

use piton_core::Plan;
use piton_core::lane::{Isolation, LaneRules, Merge, OnRetry, Role};
use piton_core::plan::{Command, Lane, Work};

use super::{Input, STEPS_MAX, read_plan};
use crate::diagnostic::Diagnostic;
use crate::settings::{Settings, read_settings};

const AGENT: &str = "[agents.claude]\ncommand = [\"claude\"]\n";

fn read(settings: &str, git: bool, text: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let settings: Settings =
        read_settings("piton.toml", settings).unwrap_or_else(|problems| panic!("{problems:?}"));
    let read = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let text = format!("{AGENT}{text}");
    read_plan(&Input { file: "plan.toml", text: &text, settings: &settings, git, read: &read })
}

fn lanes(settings: &str, git: bool, text: &str) -> Vec<Lane> {
    let (plan, _) = read(settings, git, text).unwrap_or_else(|problems| panic!("{problems:#?}"));
    plan.phases.into_iter().flat_map(|phase| phase.lanes).collect()
}

fn lane(text: &str) -> Lane {
    lanes("", true, text).remove(0)
}

fn ids(lane: &Lane) -> Vec<&str> {
    lane.steps.iter().map(|step| step.id.as_str()).collect()
}

fn shell(line: &str) -> Command {
    Command::Shell(line.to_owned())
}

/// The code, the line (below the agent's two) and the hint of each problem.
fn problems(git: bool, settings: &str, text: &str) -> Vec<(&'static str, usize, String)> {
    let found = match read(settings, git, text) {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    };
    found.into_iter().map(|d| (d.code, d.line - 2, d.hint.unwrap_or_default())).collect()
}

const TWO_AGENTS: &str = r#"
[defaults]
agent = "claude"
[[phase]]
id = "P"
[[phase.lane]]
id = "a"
prompt = "do a"
[[phase.lane]]
id = "b"
prompt = "do b"
[[phase.lane]]
id = "c"
run = "make c"
"#;

#[test]
fn agents_side_by_side_work_in_worktrees_where_there_is_git() {
    let isolations = |git: bool, text: &str| -> Vec<Isolation> {
        lanes("", git, text).iter().map(|lane| lane.rules.isolation).collect()
    };
    let (tree, place) = (Isolation::Worktree, Isolation::InPlace);
    assert_eq!(isolations(true, TWO_AGENTS), [tree, tree, tree]);
    let in_place = TWO_AGENTS.replace("prompt", "isolation = \"in-place\"\nprompt");
    assert_eq!(isolations(false, &in_place), [place, place, place]);
    let one = TWO_AGENTS.replace("prompt = \"do b\"", "run = \"make b\"");
    assert_eq!(isolations(true, &one), [place, place, place]);
    let said = TWO_AGENTS.replace("id = \"b\"\n", "id = \"b\"\nisolation = \"in-place\"\n");
    assert_eq!(isolations(true, &said), [tree, place, tree]);
}

/// Lost: without git, two agents would change the same files at once, and nobody had agreed to it.
#[test]
fn without_git_agents_side_by_side_are_refused_unless_the_plan_says_in_place() {
    let found = problems(false, "", TWO_AGENTS);
    assert_eq!(found.len(), 1, "once, not for every lane: {found:?}");
    assert_eq!((found[0].0, found[0].1), ("needs-git", 7));
    assert!(found[0].2.contains("isolation = \"in-place\""), "{}", found[0].2);
    let one = TWO_AGENTS.replace("prompt = \"do b\"", "run = \"make b\"");
    assert_eq!(problems(false, "", &one), [], "one agent disturbs nobody");
    assert_eq!(problems(true, "", TWO_AGENTS), [], "with git there are worktrees");
    for (from, to) in [
        ("[defaults]\n", "[defaults]\nisolation = \"in-place\"\n"),
        ("id = \"P\"\n", "id = \"P\"\nisolation = \"in-place\"\n"),
        ("prompt", "isolation = \"in-place\"\nprompt"),
    ] {
        let text = TWO_AGENTS.replace(from, to);
        assert_eq!(problems(false, "", &text), [], "{text}");
    }
    let settings = "[defaults]\nisolation = \"in-place\"\n";
    assert_eq!(problems(false, settings, TWO_AGENTS), []);
}

/// Lost: lanes in worktrees would start without what an agent did before, or a person's branch would get
/// commits that nobody asked for.
#[test]
fn prompts_in_place_commit_where_lanes_in_worktrees_follow() {
    let commits = |git: bool, text: &str| -> Vec<bool> {
        lanes("", git, text).iter().map(|lane| lane.rules.commits).collect()
    };
    let first = "[[phase]]\nid = \"first\"\nagent = \"claude\"\nprompt = \"p\"\n";
    let command = first.replace("prompt = \"p\"", "run = \"make\"");
    let after = format!("{first}{TWO_AGENTS}");
    assert_eq!(commits(true, &after), [true, false, false, false]);
    assert_eq!(commits(true, first), [false], "nothing follows");
    assert_eq!(commits(true, &format!("{TWO_AGENTS}{first}"))[3..], [false], "nothing follows it");
    assert!(!commits(true, &format!("{command}{TWO_AGENTS}"))[0], "a command is no agent");
    let said =
        |text: &str, word: &str| text.replace("prompt", &format!("commit = \"{word}\"\nprompt"));
    assert!(!commits(true, &after.replacen("prompt", "commit = \"never\"\nprompt", 1))[0]);
    assert_eq!(commits(true, &said(first, "phase")), [true]);
    assert_eq!(commits(false, &said(first, "phase")), [false], "without git");
}

#[test]
fn the_nearest_place_that_says_how_a_lane_works_decides() {
    let text = r#"
[defaults]
merge = "none"
copy = ["a"]
[[phase]]
id = "P"
isolation = "worktree"
merge = "pr"
on_retry = "reset"
[[phase.lane]]
id = "x"
merge = "queue"
copy = [".env"]
commit_message = "{{ lane.id }}: done"
alone = true
provides = ["IF-0-P"]
run = "make"
[[phase.lane]]
id = "y"
run = "make"
[[phase.lane]]
id = "z"
isolation = "in-place"
run = "make"
"#;
    let settings = "[defaults]\nsetup = \"make deps\"\n[lanes]\nmessage = \"from settings\"\n";
    let found = lanes(settings, true, text);
    assert_eq!(
        found[0].rules,
        LaneRules {
            isolation: Isolation::Worktree,
            merge: Merge::Queue,
            copy: vec![".env".to_owned()],
            on_retry: OnRetry::Reset,
            message: Some("{{ lane.id }}: done".to_owned()),
            alone: true,
            provides: vec!["IF-0-P".to_owned()],
            ..LaneRules::default()
        }
    );
    assert_eq!(
        (found[1].rules.merge, found[1].rules.copy.as_slice()),
        (Merge::PullRequest, ["a".to_owned()].as_slice())
    );
    assert_eq!(found[1].rules.message.as_deref(), Some("from settings"));
    assert_eq!(ids(&found[0]), ["setup", "work"]);
    assert_eq!(ids(&found[1]), ["setup", "work", "pull-request"]);
    assert!(found[2].rules.is_default(), "nothing of it holds in place: {:?}", found[2].rules);
    assert_eq!(ids(&found[2]), ["work"]);
}

#[test]
fn implicit_steps_stand_around_the_work_with_the_lane_s_limits() {
    let lane = lane(
        r#"
[[phase]]
id = "P"
isolation = "worktree"
merge = "pr"
[[phase.lane]]
id = "x"
setup = ["npm", "ci"]
retries = 2
timeout = "5m"
idle_timeout = "1m"
env = { A = "1" }
dir = "web"
steps = [
  { id = "one", run = "a", test = "make test", retries = 7 },
  { id = "two", run = "b", test = ["make", "lint"], env = { B = "2" } },
  { id = "three", run = "c", test = "make test" },
]
"#,
    );
    assert_eq!(ids(&lane), ["setup", "one", "two", "three", "tests", "pull-request"]);
    let tests = vec![shell("make test"), Command::Args(vec!["make".to_owned(), "lint".to_owned()])];
    assert_eq!(lane.rules.tests, tests);
    assert_eq!(lane.steps[4].work, Work::Tests(tests));
    assert_eq!(
        lane.steps[0].work,
        Work::Run(Command::Args(vec!["npm".to_owned(), "ci".to_owned()]))
    );
    let roles: Vec<Role> = lane.steps.iter().map(|s| s.role).collect();
    let (work, rest) = (Role::Work, [Role::Tests, Role::PullRequest]);
    assert_eq!(roles, [Role::Setup, work, work, work, rest[0], rest[1]]);
    for index in [0, 4, 5] {
        let step = &lane.steps[index];
        assert_eq!((step.retries, step.timeout.0), (2, 300_000), "{}", step.id);
        assert_eq!(step.idle_timeout.map(|t| t.0), Some(60_000), "{}", step.id);
        assert_eq!(step.env["A"], "1", "{}", step.id);
        assert!(step.test.is_none() && step.artifacts.is_empty() && step.inputs.is_empty());
    }
    let dirs: Vec<&str> = [0, 4, 5].iter().map(|i| lane.steps[*i].dir.as_str()).collect();
    assert_eq!(dirs, ["web", "web", ""]);
    assert_eq!(lane.steps[4].env["B"], "2", "what a test was given by its step it is given again");
}

#[test]
fn work_that_is_not_merged_is_not_tested_again() {
    let text = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nmerge = \"none\"\nrun = \"a\"\ntest = \"t\"\n";
    let lane = lane(text);
    assert_eq!((ids(&lane), lane.tests()), (vec!["work"], vec!["t".to_owned()]));
    let untested = self::lane(&text.replace("test = \"t\"\n", "").replace("none", "queue"));
    assert_eq!(ids(&untested), ["work"]);
}

/// Lost: a test that passes or fails for the reason that it runs in another folder than its step.
#[test]
fn tests_run_where_their_steps_do() {
    let steps = |a: &str, b: &str| {
        format!(
            "[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"x\"\nisolation = \"worktree\"\nsteps = [{{ id = \"a\", run = \"a\", test = \"make test\"{a} }}, {{ id = \"b\", run = \"b\", test = \"make test\"{b} }}]\n"
        )
    };
    let found = |a: &str, b: &str| {
        let lane = lane(&steps(a, b));
        (lane.steps[2].dir.clone(), lane.tests())
    };
    assert_eq!(found("", ""), (String::new(), vec!["make test".to_owned()]));
    let same = ", dir = \"web\"";
    assert_eq!(found(same, same), ("web".to_owned(), vec!["make test".to_owned()]));
    let apart = vec!["cd web || exit\nmake test".to_owned(), "make test".to_owned()];
    assert_eq!(found(same, ""), (String::new(), apart));
}

/// One row: the keys of a lane with `run = "t"` as its work, then code, line and part of the hint.
const REFUSED_IN_PLACE: &[(&str, &str, &str)] = &[
    ("setup = \"make\"", "needs-worktree", "isolation = \"worktree\""),
    ("merge = \"pr\"", "needs-worktree", "remove `merge`"),
    ("merge = \"queue\"", "needs-worktree", "remove `merge`"),
    ("on_retry = \"reset\"", "needs-worktree", "remove `on_retry`"),
    ("copy = [\".env\"]", "unused-key", "remove `copy`"),
    ("commit_message = \"m\"", "unused-key", "remove `commit_message`"),
];

#[test]
fn what_needs_a_worktree_is_not_silently_ignored_in_place() {
    for (key, code, hint) in REFUSED_IN_PLACE {
        for place in ["", "[[phase.lane]]\nid = \"x\"\n"] {
            let text = format!("[[phase]]\nid = \"P\"\n{place}run = \"t\"\n{key}\n");
            let found = problems(true, "", &text);
            let line = text.lines().count();
            assert_eq!(found.len(), 1, "{text}{found:?}");
            assert_eq!((found[0].0, found[0].1), (*code, line), "{text}");
            assert!(found[0].2.contains(hint), "{text}: {}", found[0].2);
        }
        let text =
            format!("[[phase]]\nid = \"P\"\n{key}\n[[phase.lane]]\nid = \"x\"\nrun = \"t\"\n");
        let found = problems(true, "", &text);
        // A lane in place may commit with the message of its phase.
        let wanted = if key.starts_with("commit") { None } else { Some(("unused-key", 3)) };
        let first = found.first().map(|problem| (problem.0, problem.1));
        assert_eq!((found.len(), first), (wanted.iter().len(), wanted), "for no lane of the phase");
        let defaults = format!("[defaults]\n{key}\n[[phase]]\nid = \"P\"\nrun = \"t\"\n");
        assert_eq!(problems(true, "", &defaults), [], "other phases may have worktrees");
    }
    for key in
        ["merge = \"none\"", "on_retry = \"keep\"", "isolation = \"in-place\"", "alone = true"]
    {
        let text =
            format!("[[phase]]\nid = \"P\"\n[[phase.lane]]\nid = \"x\"\nrun = \"t\"\n{key}\n");
        assert_eq!(problems(true, "", &text), [], "{key} is true in place");
    }
}

#[test]
fn without_git_there_are_no_worktrees() {
    let text = "[[phase]]\nid = \"P\"\nisolation = \"worktree\"\nsetup = \"make\"\nrun = \"t\"\n";
    let found = problems(false, "", text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, found[0].1), ("needs-git", 3));
    assert!(found[0].2.contains("git init"), "{}", found[0].2);
    assert_eq!(problems(true, "", text), []);
    let settings = "[defaults]\nisolation = \"worktree\"\n";
    let text = "[[phase]]\nid = \"P\"\nrun = \"t\"\n[[phase]]\nid = \"Q\"\nrun = \"t\"\n";
    let found = problems(false, settings, text);
    assert_eq!(found.len(), 1, "once, not for every lane: {found:?}");
    let own = "[defaults]\nisolation = \"in-place\"\n";
    assert_eq!(problems(false, settings, &format!("{own}{text}")), []);
}

#[test]
fn implicit_steps_count_as_steps() {
    let mut text = String::from("[[phase]]\nid = \"p\"\nisolation = \"worktree\"\nsetup = \"s\"\n");
    for lane in 0..=STEPS_MAX / 2 {
        let _ = writeln!(text, "[[phase.lane]]\nid = \"l{lane}\"\nrun = \"t\"");
    }
    let found = problems(true, "", &text);
    assert_eq!((found.len(), found[0].0), (1, "too-large"));
}
