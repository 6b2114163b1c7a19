//! A run as still text, for `status` and `show`: its header, and phases, lanes and steps below.
//!
//! Pure. Says every status with symbol and word. Times are lengths, not clock times, where they can
//! be: `status` is a cold command and need not load a time zone.

use std::collections::HashMap;
use std::fmt::Write as _;

use piton_core::evidence::Rerun;
use piton_core::state::{LaneState, PhaseState, Progress, StepState};
use piton_core::summary::{
    lane_status, may_act, phase_status, progress, run_status, standing, standing_verdict,
    step_status,
};
use piton_core::{GateRef, Millis, RunState, Status, StepPath, Timestamp};
use piton_engine::Loaded;
use piton_protocols::{TABLE, blockers};

use super::look::{Look, STRONG, style_of};
use super::status_json::pending_rerun;
use super::text::{count, sanitize, wrap};
use super::{here, lane_words, summary, time, words};

/// Columns that a wrapped line is set in below its first.
pub const HANG: usize = 4;

/// Header and tree of a run; every line ends in a newline.
pub fn render(
    loaded: &Loaded,
    driver_lives: bool,
    rerun: &[Rerun],
    now: Timestamp,
    look: &Look,
) -> String {
    let mut out = header(loaded, driver_lives, now, look);
    out.push('\n');
    let mut tree = Tree { fold: true, ..Tree::new(loaded, driver_lives, rerun, now, look) };
    for phase in &loaded.state.phases {
        tree.phase(phase);
    }
    out.push_str(&tree.out);
    out
}

/// The header of a run: name, status, time, driver, and what to type if it stands still.
pub fn header(loaded: &Loaded, driver_lives: bool, now: Timestamp, look: &Look) -> String {
    let Loaded { row, state, .. } = loaded;
    let status = run_status(state, driver_lives);
    let (over, all) = progress(state);
    // The last sign of life of a driver that is gone: an event of its own, or the heartbeat of its
    // lease. What a person records later is no part of it.
    let heard = row.owner.as_ref().map_or(state.counted_at, |l| Timestamp(l.heartbeat_at));
    let end = if driver_lives { now } else { state.counted_at.max(heard) };
    let elapsed = end.since(state.created_at);
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let text = wrap(&format!("{name:<8} {value}"), look.width, HANG);
        let _ = writeln!(out, "{}", text.replacen(name, &look.paint(STRONG, name), 1));
    };
    line("run", &format!("{} {}", sanitize(&row.run_id), sanitize(&state.title)));
    line("plan", &sanitize(&state.plan_path));
    let shown = format!("{} {status}", look.symbol(status));
    let ago = now.since(state.last_at);
    line(
        "status",
        &match (loaded.seq, elapsed) {
            (0, _) => format!("{shown}, nothing recorded yet, created {ago} ago"),
            (_, Millis(0)) => format!("{shown}, {over}/{all} steps, last event {ago} ago"),
            _ => {
                format!("{shown}, {over}/{all} steps, elapsed {elapsed}, last event {ago} ago")
            }
        },
    );
    match &row.owner {
        Some(lease) if driver_lives && lease.owner.is_stopped() => {
            let (pid, run) = (lease.owner.pid, sanitize(&row.run_id));
            line("driver", &format!("{}, which is stopped", sanitize(&lease.owner.to_string())));
            line("next", &format!("kill -CONT {pid}"));
            line("or", &here::told(&format!("piton resume {run} --takeover")));
        }
        Some(lease) if driver_lives => line("driver", &sanitize(&lease.owner.to_string())),
        Some(lease) => {
            line("driver", &format!("none ({} is gone)", sanitize(&lease.owner.to_string())));
        }
        None => line("driver", "none"),
    }
    if let Some(words) = super::lane_words::cut_short(state).filter(|_| !driver_lives) {
        line("note", &words);
    }
    if let Some(last) = state.checkpoints.last() {
        line("saved", &format!("checkpoint {}: {}", sanitize(&last.name), sanitize(&last.message)));
    }
    for task in blockers(TABLE, state) {
        line("fix", &sanitize(&task.words()));
    }
    if !driver_lives && !status.is_final() {
        for command in next_commands(loaded) {
            // A command is there to be copied: it is not wrapped.
            let _ = writeln!(out, "{}     {command}", look.paint(STRONG, "next"));
        }
    }
    out.replacen(&shown, &look.paint(style_of(status), &shown), 1)
}

/// What to type next in a run that nobody drives.
pub fn next_commands(loaded: &Loaded) -> Vec<String> {
    let Loaded { row, state, seq } = loaded;
    if *seq == 0 {
        let resume = format!("piton resume {}", sanitize(&row.run_id));
        return vec![here::told(&resume).into_owned()];
    }
    let verdict = standing_verdict(state).unwrap_or(piton_core::event::Verdict::Interrupted);
    let mut commands = summary::next_commands(state, verdict);
    commands.truncate(1);
    commands
}

/// One phase with its lanes, or one lane with its steps, for `show`; empty if there is none.
pub fn subtree(
    loaded: &Loaded,
    driver_lives: bool,
    rerun: &[Rerun],
    phase: &str,
    lane: Option<&str>,
    now: Timestamp,
    look: &Look,
) -> String {
    let Some(phase) = loaded.state.phase(phase) else {
        return String::new();
    };
    let mut tree = Tree::new(loaded, driver_lives, rerun, now, look);
    match lane {
        None => tree.phase(phase),
        Some(id) => {
            for lane in phase.lanes.iter().filter(|l| l.id == id) {
                tree.lane(2, phase, lane);
            }
        }
    }
    tree.out
}

/// Steps of a lane that are listed in any case; of longer lanes a status counts the finished ones.
const STEPS_UNFOLDED_MAX: usize = 25;

struct Tree<'a> {
    state: &'a RunState,
    /// The status of the whole.
    run: Status,
    rerun: HashMap<&'a StepPath, &'a str>,
    now: Timestamp,
    look: &'a Look,
    /// Whether the finished steps of long lanes are only counted.
    fold: bool,
    out: String,
}

impl<'a> Tree<'a> {
    fn new(
        loaded: &'a Loaded,
        driver_lives: bool,
        rerun: &'a [Rerun],
        now: Timestamp,
        look: &'a Look,
    ) -> Self {
        let (state, run) = (&loaded.state, run_status(&loaded.state, driver_lives));
        let rerun = rerun.iter().map(|r| (&r.step, r.reason.as_str())).collect();
        Self { state, run, rerun, now, look, fold: false, out: String::new() }
    }

    /// A line with a status: symbol, id, word, and what else there is to say.
    fn line(&mut self, indent: usize, status: Status, id: &str, more: &str) {
        let symbol = self.look.symbol(status);
        let text = format!("{:indent$}{symbol} {} {status}{more}", "", sanitize(id));
        let text = wrap(&text, self.look.width, indent + HANG);
        if self.look.color {
            let painted = self.look.paint(style_of(status), symbol);
            self.out.push_str(&text.replacen(symbol, &painted, 1));
        } else {
            self.out.push_str(&text);
        }
        self.out.push('\n');
    }

    /// A line of words below.
    fn words(&mut self, indent: usize, text: &str) {
        let text = format!("{:indent$}{text}", "");
        self.out.push_str(&wrap(&text, self.look.width, indent + HANG));
        self.out.push('\n');
    }

    fn phase(&mut self, phase: &PhaseState) {
        let steps = || phase.lanes.iter().flat_map(|l| &l.steps);
        let over = steps().filter(|s| s.progress.is_over()).count();
        let mut more = format!(", {over}/{}", steps().count());
        if phase.driven_ms.0 > 0 {
            let _ = write!(more, ", {}", phase.driven_ms);
        }
        let runs = phase.lanes.iter().any(LaneState::is_running);
        let acts = phase.lanes.iter().any(may_act);
        let status = standing(phase_status(self.state, phase), self.run, runs, acts);
        self.line(0, status, &phase.id, &more);
        self.gate(2, &GateRef(phase.id.clone()));
        for lane in phase.lanes.iter().filter(|l| l.task.is_none()) {
            self.lane(2, phase, lane);
        }
    }

    fn lane(&mut self, at: usize, phase: &PhaseState, lane: &LaneState) {
        let way = lane_words::way(lane).map(|way| format!(", {way}")).unwrap_or_default();
        let status = lane_status(self.state, phase, lane);
        let status = standing(status, self.run, lane.is_running(), may_act(lane));
        self.line(at, status, &lane.id, &way);
        if let Some(work) = &lane.work {
            let place = lane_words::place(work, &self.state.root).filter(|_| !lane.is_over());
            let began = lane_words::beginning(work).filter(|_| !lane.is_over());
            let lines = [place, began, lane_words::blocked(work), lane_words::degraded(work)];
            lines.iter().flatten().for_each(|text| self.words(at + 2, text));
        }
        if lane.gate.is_some() {
            self.gate(at + 2, &GateRef(format!("{}/{}", phase.id, lane.id)));
        }
        let fold = self.fold && lane.steps.len() > STEPS_UNFOLDED_MAX;
        let quiet = |s: &StepState| fold && s.progress == Progress::Done && self.rerun.is_empty();
        let folded = lane.steps.iter().filter(|s| quiet(s)).count();
        let shown: Vec<&StepState> = lane.steps.iter().filter(|s| !quiet(s)).collect();
        if folded > 0 {
            let place = format!("{}/{}", phase.id, lane.id);
            let run = words::run_id(self.state);
            let steps = count(folded, "finished step");
            let more = format!("{steps} (piton show {run}/{place} lists them)");
            self.words(at + 2, &here::told(&more));
        }
        for step in shown {
            self.step(at + 2, phase, lane, step);
            // Tasks stand below the step that waits for them.
            for task in phase.tasks_at(&lane.id, &step.id) {
                self.lane(at + 4, phase, task);
            }
        }
    }

    /// What is known of a gate; a gate that was not reached yet says nothing.
    fn gate(&mut self, indent: usize, place: &GateRef) {
        let Some(gate) = self.state.gates.get(place) else {
            return;
        };
        let name = sanitize(&gate.name);
        match &gate.decision {
            None if self.state.ended.is_some() => {
                self.words(indent, &format!("gate \"{name}\" was not decided"));
            }
            None => {
                let asked = self.now.since(gate.asked_at);
                self.words(
                    indent,
                    &format!("gate \"{name}\" waits for a person, asked {asked} ago"),
                );
                let run = words::run_id(self.state);
                let approve = format!("piton approve {run} {place}");
                let _ = writeln!(self.out, "{:indent$}{}", "", here::told(&approve));
            }
            Some(decision) => {
                let verb = if decision.approved { "approved" } else { "rejected" };
                self.words(
                    indent,
                    &format!("gate \"{name}\" {verb} by {}", sanitize(&decision.by)),
                );
            }
        }
    }

    fn step(&mut self, at: usize, phase: &PhaseState, lane: &LaneState, step: &StepState) {
        let more = self.about(step);
        self.line(at, step_status(self.state, phase, lane, step), &step.id, &more);
        if matches!(step.progress, Progress::Failed | Progress::Waiting { .. })
            && !step.failure_context.is_empty()
        {
            self.words(at + 2, &summary::why_failed(step));
        }
        let stale = if self.rerun.is_empty() {
            None
        } else {
            self.rerun.get(&StepPath::new(&phase.id, &lane.id, &step.id)).copied()
        };
        if let Some(reason) = stale.or_else(|| pending_rerun(step)) {
            self.words(at + 2, &format!("runs again: {}", sanitize(reason)));
        }
    }

    /// Attempts, exit code, times and artifacts of a step.
    fn about(&self, step: &StepState) -> String {
        let mut more = String::new();
        let mut add = |text: &str| {
            more.push_str(", ");
            more.push_str(text);
        };
        match step.progress {
            Progress::Running { since } => add(&format!("for {}", self.now.since(since))),
            progress @ Progress::Waiting { .. } if self.state.ended.is_none() => {
                let due = || "due now".to_owned();
                add(&progress.waits_until(self.now).map_or_else(due, |until| {
                    let left = until.since(self.now);
                    format!("until {} (in {left})", time::ahead(until, self.now))
                }));
            }
            _ if step.duration_ms.0 > 0 => add(&step.duration_ms.to_string()),
            _ => {}
        }
        if step.attempts > 1 {
            add(&count(step.attempts as usize, "attempt"));
        }
        match step.exit_code {
            Some(code) if code != 0 && !matches!(step.progress, Progress::Running { .. }) => {
                add(&format!("exit {code}"));
            }
            _ => {}
        }
        if !step.artifacts.is_empty() {
            add(&count(step.artifacts.len(), "artifact"));
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{failed, lane, loaded};
    use super::super::text::columns;
    use super::*;

    const NOW: Timestamp = Timestamp(17_000);

    #[test]
    fn a_run_at_work_is_told_in_full() {
        let text = render(&loaded(), true, &[], NOW, &Look::plain(80));
        assert_eq!(
            text,
            "run      r-1 Authentication\n\
             plan     plan.toml\n\
             status   ● running, 1/5 steps, elapsed 17.0s, last event 12.0s ago\n\
             driver   process 42 on box\n\
             \n\
             ● P1 running, 1/4\n\
             \x20 ● A running\n\
             \x20   ✓ fetch complete, 1m 05s, 1 artifact\n\
             \x20   ● build running, for 12.0s, 2 attempts\n\
             \x20   ○ pack pending\n\
             \x20 ○ B pending\n\
             \x20   ○ work pending\n\
             ⏸ P2 waiting, 0/1\n\
             \x20 gate \"Spec approval\" waits for a person, asked 15.0s ago\n\
             \x20 piton approve r-1 P2\n\
             \x20 ⏸ main waiting\n\
             \x20   ○ work pending\n"
        );
    }

    /// Lost: a run that was ended for good would count down to an attempt that never comes.
    #[test]
    fn a_run_that_was_ended_waits_for_nothing() {
        let mut loaded = loaded();
        loaded.row.owner = None;
        let (since, until) = (Timestamp(5_000), Timestamp(9_000_000));
        let waits = Progress::Waiting { since, until, class: piton_core::event::Class::Command };
        let step = StepState { progress: waits, ..failed("build") };
        loaded.state.phases[0].lanes[0].steps[1] = step;
        loaded.state.ended = Some(Status::Cancelled);
        let text = render(&loaded, false, &[], NOW, &Look::plain(80));
        let whole = "⊗ P1 cancelled, 1/4\n  ⊗ A cancelled\n    ✓ fetch complete, 1m 05s, 1 artifact\n    \
             ⊗ build cancelled, 1.5s, 2 attempts, exit 7\n      exit 7: the linker said no\n    \
             ○ pack pending\n  ○ B pending\n    ○ work pending\n⊗ P2 cancelled, 0/1\n  \
             gate \"Spec approval\" was not decided\n";
        assert!(text.contains(whole), "{text}");
    }

    #[test]
    fn a_dead_driver_is_said_with_the_way_on() {
        let text = header(&loaded(), false, NOW, &Look::plain(80));
        assert!(text.contains("↯ interrupted"), "{text}");
        assert!(text.contains("driver   none (process 42 on box is gone)\n"), "{text}");
        assert!(text.contains("next     piton resume r-1\n"), "{text}");
    }

    /// Lost: a checkpoint recorded hours after a failure would make the run hours longer.
    #[test]
    fn what_a_person_does_later_makes_a_run_no_longer() {
        let mut loaded = loaded();
        (loaded.row.owner, loaded.state.driven) = (None, false);
        loaded.state.counted_at = Timestamp(5_000);
        loaded.state.last_at = Timestamp(16_000);
        let text = header(&loaded, false, NOW, &Look::plain(80));
        assert!(text.contains("elapsed 5.0s, last event 1.0s ago"), "{text}");
    }

    #[test]
    fn failures_and_reruns_say_why() {
        let mut loaded = loaded();
        loaded.state.phases[0].lanes[1] = lane("B", vec![failed("work")]);
        let rerun = [Rerun {
            step: StepPath::new("P1", "A", "fetch"),
            reason: "artifact a.txt is missing".to_owned(),
        }];
        let text = subtree(&loaded, false, &rerun, "P1", None, NOW, &Look::plain(80));
        assert!(text.contains("      runs again: artifact a.txt is missing\n"), "{text}");
        assert!(
            text.contains(
                "    ✗ work failed, 1.5s, 2 attempts, exit 7\n      exit 7: the linker said no\n"
            ),
            "{text}"
        );
        let lane = subtree(&loaded, false, &rerun, "P1", Some("B"), NOW, &Look::plain(80));
        assert!(lane.starts_with("  ✗ B failed\n") && !lane.contains("fetch"), "{lane}");
        assert_eq!(subtree(&loaded, false, &rerun, "P9", None, NOW, &Look::plain(80)), "");
    }

    #[test]
    fn narrow_terminals_wrap_at_words_but_commands_stay_whole() {
        for width in [40, 20] {
            let text = render(&loaded(), true, &[], NOW, &Look::plain(width));
            assert!(text.contains("  piton approve r-1 P2\n"), "{text}");
            for line in text.lines().filter(|l| !l.contains("piton approve")) {
                assert!(columns(line) <= width, "{line}");
            }
        }
    }

    #[test]
    fn colour_changes_no_word() {
        let look = Look { color: true, ..Look::plain(80) };
        let colored = render(&loaded(), true, &[], NOW, &look);
        assert!(colored.contains("\u{1b}[32m✓\u{1b}[0m fetch"), "{colored}");
        let stripped = anstream::adapter::strip_str(&colored).to_string();
        assert_eq!(stripped, render(&loaded(), true, &[], NOW, &Look::plain(80)));
    }
}
