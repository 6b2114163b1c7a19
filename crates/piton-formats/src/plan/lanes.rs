//! How a lane works: where, how its work gets into base, and its tests.
//!
//! Decided when all lanes of a phase are read, because it depends on the other lanes: agents that
//! write at the same time need their own folders.

use std::ops::Range;

use piton_core::lane::{Isolation, LaneRules, Merge, OnRetry};
use piton_core::plan::{Command, Work};

use super::build::{Builder, LaneDraft, PhaseDraft};
use super::implicit::{self, Frame};
use crate::diagnostic::{code, quoted};
use crate::keys;
use crate::settings::{Defaults, LaneDefaults};
use crate::template;
use crate::toml_reader::Node;

/// A phase with this many lanes with prompts works in worktrees: one agent alone disturbs nobody.
const AGENT_LANES_MIN: usize = 2;

/// The rules of a lane, as the document states them.
pub(super) struct Said {
    /// Its own keys, with their places.
    own: Vec<(&'static str, Range<usize>)>,
    /// Its values, inherited ones included.
    defaults: Defaults,
    alone: bool,
    provides: Vec<String>,
    /// Whether one of its steps has a prompt.
    pub(super) has_prompt: bool,
}

/// The lane keys that a table has.
fn own_keys(node: &Node<'_, '_>) -> Vec<(&'static str, Range<usize>)> {
    let place = |key: &keys::Key| node.key_span(key.name).map(|span| (key.name, span));
    keys::LANE_INHERITED.iter().filter_map(place).collect()
}

impl Builder<'_, '_> {
    /// Reads the rules of a lane; `defaults` already includes the lane's own values.
    pub(super) fn said(&mut self, node: &Node<'_, '_>, defaults: &Defaults) -> Said {
        let provides = node.texts("provides", self.sink).unwrap_or_default();
        Said {
            own: own_keys(node),
            defaults: defaults.clone(),
            alone: node.flag("alone", self.sink).unwrap_or(false),
            provides: provides.into_iter().map(|gate| gate.value).collect(),
            has_prompt: false,
        }
    }

    /// Reports a table that asks for worktrees without git.
    pub(super) fn check_git(&mut self, node: &Node<'_, '_>, lane: &LaneDefaults) {
        if lane.isolation == Some(Isolation::Worktree) && !self.input.git {
            let span = node.text("isolation", self.sink).map_or(node.span.clone(), |t| t.span);
            self.refuse_worktree(&span, "a worktree needs git, but there is no git repository");
        }
    }

    fn refuse_worktree(&mut self, span: &Range<usize>, message: &str) {
        let hint = "run `git init` and make a first commit, or write isolation = \"in-place\"";
        self.sink.error(code::NEEDS_GIT, span, message, hint);
        self.reported_git = true;
    }

    /// Decides how the lanes of a phase work; `is_short` if the phase itself is the lane.
    pub(super) fn set_rules(
        &mut self,
        node: &Node<'_, '_>,
        lanes: &mut [LaneDraft],
        is_short: bool,
    ) {
        let agents = lanes.iter().filter(|lane| lane.said.has_prompt).count();
        let usual = if self.input.git && agents >= AGENT_LANES_MIN {
            Isolation::Worktree
        } else {
            Isolation::InPlace
        };
        for lane in &mut *lanes {
            let undecided = lane.said.has_prompt && lane.said.defaults.lane.isolation.is_none();
            if !self.input.git && agents >= AGENT_LANES_MIN && undecided && !self.reported_git {
                let span = lane.id.span.clone();
                let message = "several lanes give prompts to agents, and without git they would change the same files";
                self.refuse_worktree(&span, message);
            }
            self.set_lane_rules(lane, usual);
        }
        if is_short || lanes.iter().any(|lane| !lane.lane.rules.isolation.is_in_place()) {
            return;
        }
        let counts = |name: &str| !matches!(name, "isolation" | "commit" | "commit_message");
        for (name, span) in own_keys(node).iter().filter(|(name, _)| counts(name)) {
            let message = format!("`{name}` has no effect: all lanes of the phase work in place");
            let hint = format!("add isolation = \"worktree\", or remove `{name}`");
            self.sink.warn(code::UNUSED, span, message, hint);
        }
    }

    /// Decides which lanes in place commit what they leave: prompts do where lanes in worktrees follow,
    /// for those start from a commit.
    pub(super) fn set_commits(&mut self, phases: &mut [PhaseDraft]) {
        let in_place = |draft: &LaneDraft| draft.lane.rules.isolation.is_in_place();
        let last = phases.iter().rposition(|phase| !phase.lanes.iter().all(in_place));
        for (at, phase) in phases.iter_mut().enumerate() {
            for draft in phase.lanes.iter_mut().filter(|draft| in_place(draft)) {
                let LaneDraft { lane, said, .. } = draft;
                let values = &said.defaults.lane;
                let usual = said.has_prompt && last.is_some_and(|last| at <= last);
                lane.rules.commits = self.input.git && values.commits.unwrap_or(usual);
                if lane.rules.commits {
                    let message = || self.input.settings.lanes.message.clone();
                    lane.rules.message = values.commit_message.clone().or_else(message);
                    continue;
                }
                let key = said.own.iter().find(|(name, _)| *name == "commit_message");
                if let Some((name, span)) = key {
                    let message = format!("`{name}` has no effect on a lane that commits nothing");
                    let hint = format!("add commit = \"phase\" to the lane, or remove `{name}`");
                    self.sink.warn(code::UNUSED, span, message, hint);
                }
            }
        }
    }

    fn set_lane_rules(&mut self, draft: &mut LaneDraft, usual: Isolation) {
        let said = &draft.said;
        let values = said.defaults.lane.clone();
        draft.lane.rules = LaneRules {
            isolation: values.isolation.unwrap_or(usual),
            alone: said.alone,
            provides: said.provides.clone(),
            ..LaneRules::default()
        };
        if draft.lane.rules.isolation.is_in_place() {
            self.refuse_in_place(said, &values);
            return;
        }
        if !self.input.git && !self.reported_git {
            let span = draft.id.span.clone();
            self.refuse_worktree(&span, "the settings ask for worktrees, but there is no git");
        }
        let rules = &mut draft.lane.rules;
        rules.merge = values.merge.unwrap_or_default();
        rules.copy = values.copy.unwrap_or_default();
        rules.on_retry = values.on_retry.unwrap_or_default();
        rules.message = values.commit_message.or_else(|| self.input.settings.lanes.message.clone());
        self.check_steps(draft);
        let nothing = Work::Run(Command::Args(Vec::new()));
        let frame = Frame {
            pattern: self.bare_step(String::new(), nothing, &draft.said.defaults),
            setup: values.setup,
            pull_request: &self.input.settings.pull_request,
        };
        for _ in 0..implicit::complete(&mut draft.lane, &frame) {
            self.count_step(&draft.id.span);
        }
    }

    /// Reports keys of a lane that have no effect where it works.
    fn refuse_in_place(&mut self, said: &Said, values: &LaneDefaults) {
        for (name, span) in &said.own {
            let asks = match *name {
                "isolation" | "commit" | "commit_message" => false,
                "merge" => values.merge.is_some_and(|merge| merge != Merge::None),
                "on_retry" => values.on_retry == Some(OnRetry::Reset),
                _ => true,
            };
            if !asks {
                continue;
            }
            let hint = format!("add isolation = \"worktree\" to the lane, or remove `{name}`");
            if *name == "copy" {
                let message = format!("`{name}` has no effect on a lane that works in place");
                self.sink.warn(code::UNUSED, span, message, hint);
            } else {
                let message = format!("`{name}` needs a worktree, but the lane works in place");
                self.sink.error(code::NEEDS_WORKTREE, span, message, hint);
            }
        }
    }

    /// Reports steps that clash with the implicit ones.
    fn check_steps(&mut self, draft: &LaneDraft) {
        for id in draft.step_ids.iter().filter(|id| implicit::RESERVED.contains(&id.value.as_str()))
        {
            let message = format!("{} is reserved for a step that Piton adds", quoted(&id.value));
            let hint = format!("choose another id, such as `own-{}`", id.value);
            self.sink.error(code::RESERVED_ID, &id.span, message, hint);
        }
        if draft.lane.rules.merge == Merge::None {
            return;
        }
        for (step, id) in draft.lane.steps.iter().zip(&draft.step_ids) {
            if step.test.as_ref().is_some_and(uses_step) {
                let message = "the test uses `step.id`, but that is `tests` when it runs again before the merge";
                let hint = format!("write `{}` into the command", id.value);
                self.sink.error(code::CLASHING_TESTS, &id.span, message, hint);
            }
        }
        if let Some(name) = implicit::clash(&draft.lane) {
            let message = format!(
                "two steps with a test give {} different values, but their tests run together before the merge",
                quoted(name)
            );
            let hint = format!("write the value of {name} into the test commands");
            self.sink.error(code::CLASHING_TESTS, &draft.id.span, message, hint);
        }
    }
}

fn uses_step(test: &Command) -> bool {
    let uses = |text: &String| template::uses(text, "step.id");
    match test {
        Command::Shell(line) => uses(line),
        Command::Args(args) => args.iter().any(uses),
    }
}
