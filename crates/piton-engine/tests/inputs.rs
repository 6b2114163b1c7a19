//! Declared inputs that cannot be read: the trouble of their step, not of the run.

use piton_core::StepPath;
use piton_core::event::{Class, Event, Outcome, Verdict};
use piton_core::plan::Step;
use piton_core::state::Progress;
use piton_testkit::{Care, Effect, Rig, Script, plans};

#[test]
fn an_unreadable_input_fails_its_step_and_nothing_else() {
    let reader = Step { inputs: vec!["secret.txt".to_owned()], ..plans::step("read") };
    let lanes = vec![plans::lane("A", vec![reader]), plans::lane_of("B", &["one", "two"])];
    let mut plan = plans::plan(vec![plans::phase("P", lanes)]);
    plan.on_failure = piton_core::plan::OnFailure::Continue;
    let rig = Rig::new(plan, Script::default());
    rig.machine.borrow_mut().put("secret.txt", "text");
    rig.machine.borrow_mut().unreadable.insert("secret.txt".to_owned());
    let ending = rig.run().expect("the driver goes on");
    assert_eq!(ending.verdict, Verdict::Failed);
    let progress = |lane, step| ending.state.step(&StepPath::new("P", lane, step)).cloned();
    assert_eq!(progress("A", "read").map(|s| s.progress), Some(Progress::Failed));
    assert_eq!(progress("B", "two").map(|s| s.progress), Some(Progress::Done));
    let failed =
        rig.events().expect("the ledger is readable").into_iter().find_map(|e| match e.2 {
            Event::StepFinished(finished) => match finished.outcome {
                Outcome::Failed { class, error, .. } => Some((class, error)),
                _ => None,
            },
            _ => None,
        });
    let (class, error) = failed.expect("the failure is recorded");
    assert_eq!(class, Class::Input, "a retry would not help");
    assert!(error.contains("an input can't be read: secret.txt"), "{error}");
    let started = rig.machine.borrow().log.iter().any(|effect| {
        matches!(effect, Effect::Started { .. }) && format!("{effect:?}").contains("read")
    });
    assert!(!started, "nothing of it ran");
    assert_eq!(rig.violations(Care::NothingAgain), Vec::<String>::new());
}
