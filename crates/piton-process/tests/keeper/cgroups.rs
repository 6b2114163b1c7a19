//! What hides from marks and sessions, where cgroups can be written; skipped, with the reason on
//! standard error, where they cannot.

use std::fs;
use std::path::PathBuf;

use piton_process::{Event, Keeper, Request, Spawn, Start, cgroup, keeper_alive, strays};
use rustix::process::Signal;

use crate::support::{Run, event, lives, run, signal, start, until};

/// A daemon that nothing but the cgroup tells from a stranger: no environment, a session of its
/// own, and its parents gone.
const HIDDEN: &str = "(env -i setsid sh -c 'cd /; echo $$ >&3; exec sleep 1000' \
                      3>hidden </dev/null >/dev/null 2>&1 &)";

/// A run with a keeper in a cgroup; none where there are no cgroups to use.
fn grouped() -> Option<(Run, Keeper, PathBuf)> {
    let test = Run::new();
    let keeper = test.keeper(1);
    match cgroup::used(test.dir()).unwrap() {
        Ok(()) => {
            let groups = cgroup::groups(test.dir());
            assert_eq!(groups.len(), 1);
            assert!(groups[0].ends_with(format!("piton-{}", test.mark)));
            Some((test, keeper, groups[0].clone()))
        }
        Err(reason) => {
            #[expect(clippy::print_stderr, reason = "whoever reads the results must know")]
            {
                eprintln!("skipped, the keeper has no cgroup here: {reason}");
            }
            None
        }
    }
}

/// Runs a step that leaves a hidden daemon; gives its pid once it has become what it will be.
fn hide(test: &Run, keeper: &mut Keeper, step: Start) -> u32 {
    assert!(run(keeper, step).success());
    let pid = test.pid("hidden");
    let name = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    until("the daemon sleeps", || name() == "sleep\n");
    pid
}

fn shut_down(mut keeper: Keeper, test: &Run) {
    keeper.send(&[Request::Shutdown]).unwrap();
    event(&mut keeper, |event| matches!(event, Event::Leftovers(_)).then_some(()));
    keeper.farewell(test.dir());
}

/// Lost: what a step started would work on beside its next attempt, and nobody would know.
#[test]
fn a_daemon_that_hides_is_found_after_the_keeper_s_death() {
    let Some((test, mut keeper, group)) = grouped() else { return };
    let hidden = hide(&test, &mut keeper, test.step("a", HIDDEN));
    assert!(strays::find(&test.mark, keeper_alive(test.dir()), &[]).is_empty());
    test.kill_keeper();
    let found = strays::find(&test.mark, None, &[]);
    assert!(found.iter().any(|stray| stray.pid == hidden && stray.key.is_none()), "{found:?}");
    strays::sweep(&test.mark, None, &[]).unwrap();
    assert!(!lives(hidden));
    cgroup::tidy(test.dir());
    assert!(!group.exists(), "{}", group.display());
}

/// Lost: a database that a person wants to stay would be ended, or its cgroup never removed.
#[test]
fn a_kept_daemon_that_hides_stays_and_its_group_goes_after_it() {
    let Some((test, mut keeper, group)) = grouped() else { return };
    let keep = ["sleep".to_owned()];
    let mut step = test.step("a", HIDDEN);
    step.keep = keep.to_vec();
    let hidden = hide(&test, &mut keeper, step);
    shut_down(keeper, &test);
    assert!(strays::sweep(&test.mark, None, &keep).unwrap().is_empty());
    assert!(lives(hidden) && group.is_dir());
    // The next keeper shares the group with it, and a killed one changes nothing for it.
    drop(test.keeper(2));
    assert_eq!(cgroup::groups(test.dir()), std::slice::from_ref(&group));
    assert!(strays::sweep(&test.mark, keeper_alive(test.dir()), &keep).unwrap().is_empty());
    test.kill_keeper();
    assert!(strays::sweep(&test.mark, None, &keep).unwrap().is_empty());
    assert!(lives(hidden));
    signal(hidden, Signal::KILL);
    until("it is gone", || !lives(hidden));
    cgroup::tidy(test.dir());
    assert!(!group.exists());
}

/// Lost: a run that is forgotten would leave its cgroup until the machine restarts.
#[test]
fn a_group_is_given_up_with_its_daemon_alive() {
    let Some((test, mut keeper, group)) = grouped() else { return };
    let mut step = test.step("a", HIDDEN);
    step.keep = vec!["sleep".into()];
    let hidden = hide(&test, &mut keeper, step);
    shut_down(keeper, &test);
    cgroup::disband(test.dir());
    assert!(lives(hidden) && !group.exists());
    signal(hidden, Signal::KILL);
}

/// Lost: every run would leave a folder behind, whoever ended its keeper.
#[test]
fn nothing_is_left_of_a_keeper_that_ends() {
    let Some((test, mut keeper, group)) = grouped() else { return };
    run(&mut keeper, test.step("a", "true"));
    shut_down(keeper, &test);
    assert!(!group.exists(), "ended by its driver");
    let keeper = test.keeper(2);
    assert!(group.is_dir());
    signal(keeper.welcome().pid, Signal::TERM);
    until("a signal ended it", || keeper_alive(test.dir()).is_none());
    assert!(!group.exists(), "ended by a signal");
    let mut keeper = test.keeper(3);
    let helper = Spawn {
        argv: ["sh", "-c", "while [ ! -e go ]; do sleep 0.01; done"].map(str::to_owned).into(),
        env: Vec::new(),
        dir: test.dir().to_owned(),
        log: test.path("helper"),
        timeout_ms: 0,
        tell: false,
    };
    keeper.send(&[Request::Spawn(helper)]).unwrap();
    shut_down(keeper, &test);
    assert!(group.is_dir(), "its helper still runs");
    fs::write(test.path("go"), "").unwrap();
    until("it waited for its helper", || keeper_alive(test.dir()).is_none());
    assert!(!group.exists(), "ended after its helper");
}

/// Lost: whoever can make a cgroup of its own, as container tools do, would get away.
#[test]
fn groups_below_are_seen_and_removed() {
    let Some((test, mut keeper, group)) = grouped() else { return };
    fs::write(test.path("group"), group.to_str().unwrap()).unwrap();
    let inner = "mkdir -p \"$(cat group)/a/b\"; echo $$ > \"$(cat group)/a/b/cgroup.procs\"";
    start(&mut keeper, test.step("a", &format!("{inner}; {HIDDEN}; sleep 1000")));
    let hidden = test.pid("hidden");
    assert!(strays::find(&test.mark, keeper_alive(test.dir()), &[]).is_empty());
    test.kill_keeper();
    strays::sweep(&test.mark, None, &[]).unwrap();
    assert!(!lives(hidden));
    cgroup::tidy(test.dir());
    assert!(!group.exists());
}

/// Lost: ending what one run left would end the steps of another.
#[test]
fn runs_at_once_have_groups_of_their_own() {
    let Some((one, mut keeper_one, group)) = grouped() else { return };
    let Some((two, mut keeper_two, other)) = grouped() else { return };
    assert_ne!(group, other);
    let of_one = hide(&one, &mut keeper_one, one.step("a", HIDDEN));
    let of_two = hide(&two, &mut keeper_two, two.step("a", HIDDEN));
    one.kill_keeper();
    strays::sweep(&one.mark, None, &[]).unwrap();
    assert!(!lives(of_one) && lives(of_two));
    assert!(run(&mut keeper_two, two.step("b", "true")).success());
}
