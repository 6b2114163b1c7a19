//! `piton.toml`: how Piton works in a project.
//!
//! The plan takes precedence over these settings, and they over the built-in defaults. Reads a
//! text; the program finds the file.

pub mod agents;
mod lanes;
mod replan;

use std::collections::BTreeMap;

use piton_core::Millis;
use piton_core::budget::{Budgets, Spend};
use piton_core::plan::{Command, OnChange, OnFailure};
use piton_core::redact::Names;

use crate::diagnostic::{Diagnostic, code, quoted};
use crate::keys::{self, Section};
use crate::sink::{Sink, parse};
use crate::text_rules::check_path;
use crate::toml_reader::Node;

pub(crate) use agents::read_agents;
pub use agents::{Agent, Models};
pub use lanes::{LaneDefaults, Lanes, PullRequest, Snapshots, Views};
pub use replan::Replan;

/// Default number of lanes at once: agents mostly wait for their provider, not for a core.
pub const JOBS_DEFAULT: u32 = 4;

/// How Piton works in a project, with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How many lanes run at once.
    pub jobs: u32,
    /// What runs when a run waits, fails or completes; not a template.
    pub notify: Option<Command>,
    /// Whether a run continues in the background when its terminal closes.
    pub detach_on_hangup: bool,
    /// What happens to the rest when a step fails, if the plan does not say.
    pub on_failure: OnFailure,
    /// Values for steps that have none of their own.
    pub defaults: Defaults,
    /// Limits of runs.
    pub budgets: Budgets,
    /// Programs that get prompts, by name.
    pub agents: BTreeMap<String, Agent>,
    /// What is said of models.
    pub models: Models,
    /// When phases are planned again; nothing where it is not said.
    pub replan: Option<Replan>,
    /// How lanes work.
    pub lanes: Lanes,
    /// How lanes open pull requests.
    pub pull_request: PullRequest,
    /// What snapshots hold.
    pub snapshots: Snapshots,
    /// What `piton gc` keeps.
    pub gc: Gc,
    /// Which variables are secret and which are not, whatever they are called.
    pub secrets: Names,
    /// The sections of protocols, checked by their keys, as they are written.
    pub protocols: BTreeMap<String, serde_json::Value>,
}

/// Values for lanes and steps; `None` leaves the decision to the next wider place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// The agent that gets prompts.
    pub agent: Option<String>,
    /// How often a failed step is tried again.
    pub retries: Option<u32>,
    /// Wait before the first retry.
    pub backoff: Option<Millis>,
    /// Longest time of one attempt.
    pub timeout: Option<Millis>,
    /// Longest time without output.
    pub idle_timeout: Option<Millis>,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Option<Millis>,
    /// Environment variables to add.
    pub env: BTreeMap<String, String>,
    /// Working directory below the project's root.
    pub dir: Option<String>,
    /// Programs that may keep running after the step.
    pub keep: Option<Vec<String>>,
    /// What lanes inherit.
    pub lane: LaneDefaults,
}

/// What `piton gc` keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gc {
    /// How many finished runs are kept.
    pub keep_runs: u32,
    /// How many days a finished run is kept.
    pub keep_days: u32,
}

impl Default for Gc {
    fn default() -> Self {
        Self { keep_runs: 20, keep_days: 30 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            jobs: JOBS_DEFAULT,
            notify: None,
            detach_on_hangup: true,
            on_failure: OnFailure::default(),
            defaults: Defaults::default(),
            budgets: Budgets::default(),
            agents: BTreeMap::new(),
            models: Models::default(),
            replan: None,
            lanes: Lanes::default(),
            pull_request: PullRequest::default(),
            snapshots: Snapshots::default(),
            gc: Gc::default(),
            secrets: Names::default(),
            protocols: BTreeMap::new(),
        }
    }
}

impl Defaults {
    /// The values of `narrower`, and these where it has none; variables are joined by name.
    #[must_use]
    pub(crate) fn under(&self, narrower: Self) -> Self {
        let mut env = self.env.clone();
        env.extend(narrower.env);
        Self {
            agent: narrower.agent.or_else(|| self.agent.clone()),
            retries: narrower.retries.or(self.retries),
            backoff: narrower.backoff.or(self.backoff),
            timeout: narrower.timeout.or(self.timeout),
            idle_timeout: narrower.idle_timeout.or(self.idle_timeout),
            grace: narrower.grace.or(self.grace),
            env,
            dir: narrower.dir.or_else(|| self.dir.clone()),
            keep: narrower.keep.or_else(|| self.keep.clone()),
            lane: self.lane.under(narrower.lane),
        }
    }
}

/// The sections of protocols: the id of each and the keys that it may have.
pub type Sections = [(&'static str, &'static Section)];

/// Reads settings without sections of protocols; returns all problems at once.
pub fn read_settings(file: &str, text: &str) -> Result<Settings, Vec<Diagnostic>> {
    read_settings_with(file, text, &[])
}

/// Reads settings; returns all problems at once.
pub fn read_settings_with(
    file: &str,
    text: &str,
    protocols: &Sections,
) -> Result<Settings, Vec<Diagnostic>> {
    let mut sink = Sink::new(file, text);
    let settings = parse(&mut sink).and_then(|root| {
        let node = Node::with(&root, "settings", &keys::SETTINGS, protocols, &mut sink)?;
        let mut settings = read(&node, &mut sink);
        for (id, section) in protocols {
            let found = node.section(id, section, &mut sink);
            settings.protocols.extend(found.map(|value| ((*id).to_owned(), value)));
        }
        Some(settings)
    });
    match settings {
        Some(settings) if !sink.has_errors() => Ok(settings),
        _ => Err(sink.finish()),
    }
}

fn read(root: &Node<'_, '_>, sink: &mut Sink<'_>) -> Settings {
    let mut settings = Settings::default();
    if let Some(jobs) = root.count32("jobs", sink) {
        settings.jobs = jobs;
    }
    settings.notify = root.command("notify", sink).map(|command| command.value);
    settings.detach_on_hangup = root.choice("on_hangup", sink) != Some("stop");
    if let Some(choice) = read_on_failure(root, sink) {
        settings.on_failure = choice;
    }
    if let Some(node) = root.table("defaults", sink) {
        settings.defaults = read_defaults(&node, true, sink);
    }
    settings.budgets = read_budgets(root, &settings.budgets, sink);
    settings.agents = read_agents(root, true, sink);
    settings.models = agents::read_models(root, sink);
    settings.replan = Replan::read(root, true, sink);
    settings.lanes = lanes::read_lanes(root, sink);
    settings.pull_request = lanes::read_pull_request(root, sink);
    settings.snapshots = lanes::read_snapshots(root, sink);
    if let Some(node) = root.table("gc", sink) {
        settings.gc.keep_runs = node.count32("keep_runs", sink).unwrap_or(settings.gc.keep_runs);
        settings.gc.keep_days = node.count32("keep_days", sink).unwrap_or(settings.gc.keep_days);
    }
    if let Some(node) = root.table("secrets", sink) {
        settings.secrets.more = read_names(&node, "names", sink);
        settings.secrets.except = read_names(&node, "except", sink);
    }
    settings
}

/// Reads names of variables.
fn read_names(node: &Node<'_, '_>, key: &str, sink: &mut Sink<'_>) -> Vec<String> {
    let names = node.texts(key, sink).unwrap_or_default();
    for name in names.iter().filter(|name| name.value.is_empty() || name.value.contains('=')) {
        let message = format!("{} is not a valid variable name", quoted(&name.value));
        sink.error(code::BAD_ENV, &name.span, message, "use the name of an environment variable");
    }
    names.into_iter().map(|name| name.value).collect()
}

/// Reads `on_failure`.
pub(crate) fn read_on_failure(node: &Node<'_, '_>, sink: &mut Sink<'_>) -> Option<OnFailure> {
    node.choice("on_failure", sink).map(|choice| match choice {
        "continue" => OnFailure::Continue,
        _ => OnFailure::Stop,
    })
}

/// Reads `on_change`.
pub(crate) fn read_on_change(node: &Node<'_, '_>, sink: &mut Sink<'_>) -> Option<OnChange> {
    node.choice("on_change", sink).map(|choice| match choice {
        "ask" => OnChange::Ask,
        _ => OnChange::Rerun,
    })
}

/// Reads the values that lanes and steps inherit, from any table that may have them.
pub(crate) fn read_defaults(node: &Node<'_, '_>, has_spec: bool, sink: &mut Sink<'_>) -> Defaults {
    let dir = node.text("dir", sink);
    Defaults {
        agent: node.text("agent", sink).map(|agent| agent.value),
        retries: node.count32("retries", sink),
        backoff: node.duration("backoff", sink),
        timeout: node.duration_above_zero("timeout", sink),
        idle_timeout: node.duration_above_zero("idle_timeout", sink),
        grace: node.duration("grace", sink),
        env: node.env("env", sink),
        dir: dir.and_then(|dir| check_path("dir", &dir, sink)),
        keep: node
            .texts("keep", sink)
            .map(|names| names.into_iter().map(|name| name.value).collect()),
        lane: lanes::read_lane_defaults(node, has_spec, sink),
    }
}

/// Reads `[budgets]`; missing keys come from `base`.
pub(crate) fn read_budgets(root: &Node<'_, '_>, base: &Budgets, sink: &mut Sink<'_>) -> Budgets {
    let Some(node) = root.table("budgets", sink) else {
        return base.clone();
    };
    // Named one by one so that a new budget cannot be forgotten here.
    Budgets {
        attempts: node.count32("attempts", sink).unwrap_or(base.attempts),
        run_time: node.duration_above_zero("run_time", sink).unwrap_or(base.run_time),
        phase_time: node.duration_above_zero("phase_time", sink).unwrap_or(base.phase_time),
        step_time: node.duration_above_zero("step_time", sink).unwrap_or(base.step_time),
        tokens: node.count("tokens", sink).unwrap_or(base.tokens),
        money_micros: node.money("money", sink).unwrap_or(base.money_micros),
        log_bytes: node.size("log_bytes", sink).unwrap_or(base.log_bytes),
        run_log_bytes: node.size("run_log_bytes", sink).unwrap_or(base.run_log_bytes),
        network_wait: node.duration("network_wait", sink).unwrap_or(base.network_wait),
        rate_limit_wait: node.duration("rate_limit_wait", sink).unwrap_or(base.rate_limit_wait),
        restarts: node.count32("restarts", sink).unwrap_or(base.restarts),
        same_failure: node.count32("same_failure", sink).unwrap_or(base.same_failure),
        step: read_spend(&node, ("step_tokens", "step_money"), base.step, sink),
        lane: read_spend(&node, ("lane_tokens", "lane_money"), base.lane, sink),
        phase: read_spend(&node, ("phase_tokens", "phase_money"), base.phase, sink),
        day: read_spend(&node, ("day_tokens", "day_money"), base.day, sink),
    }
}

fn read_spend(
    node: &Node<'_, '_>,
    (tokens, money): (&str, &str),
    base: Spend,
    sink: &mut Sink<'_>,
) -> Spend {
    Spend {
        tokens: node.count(tokens, sink).unwrap_or(base.tokens),
        money_micros: node.money(money, sink).unwrap_or(base.money_micros),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use piton_core::budget::TABLE;

    #[test]
    fn nothing_said_means_the_built_in_values() {
        assert_eq!(read_settings("piton.toml", ""), Ok(Settings::default()));
        assert_eq!(Settings::default().jobs, 4);
    }

    #[test]
    fn the_table_of_budgets_says_what_the_code_does() {
        let quote = |text: &str| match text.parse::<u64>() {
            Ok(_) => text.to_owned(),
            Err(_) => format!("\"{text}\""),
        };
        let rows: Vec<String> =
            TABLE.iter().map(|row| format!("{} = {}\n", row.name, quote(row.default))).collect();
        // Every row is off its default first, so that a row nobody reads cannot pass.
        let base = Budgets {
            attempts: 1,
            run_time: Millis(1),
            phase_time: Millis(1),
            step_time: Millis(1),
            tokens: 1,
            money_micros: 1,
            log_bytes: 1,
            run_log_bytes: 1,
            network_wait: Millis(1),
            rate_limit_wait: Millis(1),
            restarts: 1,
            same_failure: 2,
            step: Spend { tokens: 1, money_micros: 1 },
            lane: Spend { tokens: 1, money_micros: 1 },
            phase: Spend { tokens: 1, money_micros: 1 },
            day: Spend { tokens: 1, money_micros: 1 },
        };
        let text = format!("[budgets]\n{}", rows.concat());
        let mut sink = Sink::new("piton.toml", &text);
        let root = parse(&mut sink);
        let read = root
            .as_ref()
            .and_then(|root| Node::new(root, "settings", &keys::SETTINGS, &mut sink))
            .map(|node| read_budgets(&node, &base, &mut sink));
        assert_eq!(read, Some(Budgets::default()));
        assert_eq!(sink.finish(), []);
    }

    #[test]
    fn reads_every_key() {
        let text = r#"
jobs = 2
notify = ["notify-send", "piton"]
on_hangup = "stop"
on_failure = "continue"
[defaults]
agent = "fake"
retries = 2
backoff = "5s"
timeout = "1h"
idle_timeout = "5m"
grace = "3s"
env = { A = "1" }
dir = "./sub/"
keep = ["sccache"]
[budgets]
money = 2.5
log_bytes = 1000
[agents.fake]
kind = "command"
command = "fake --root {{ root | sh }}"
[gc]
keep_runs = 1
keep_days = 2
[secrets]
names = ["DEPLOY_KEY"]
except = ["CACHE_KEY"]
"#;
        let settings = read_settings("piton.toml", text);
        let expected = Settings {
            jobs: 2,
            notify: Some(Command::Args(vec!["notify-send".to_owned(), "piton".to_owned()])),
            detach_on_hangup: false,
            on_failure: OnFailure::Continue,
            defaults: Defaults {
                agent: Some("fake".to_owned()),
                retries: Some(2),
                backoff: Some(Millis(5_000)),
                timeout: Some(Millis(3_600_000)),
                idle_timeout: Some(Millis(300_000)),
                grace: Some(Millis(3_000)),
                env: BTreeMap::from([("A".to_owned(), "1".to_owned())]),
                dir: Some("sub".to_owned()),
                keep: Some(vec!["sccache".to_owned()]),
                lane: LaneDefaults::default(),
            },
            budgets: Budgets { money_micros: 2_500_000, log_bytes: 1_000, ..Budgets::default() },
            agents: BTreeMap::from([(
                "fake".to_owned(),
                Agent::of_command("fake", Command::Shell("fake --root {{ root | sh }}".to_owned())),
            )]),
            gc: Gc { keep_runs: 1, keep_days: 2 },
            secrets: Names {
                more: vec!["DEPLOY_KEY".to_owned()],
                except: vec!["CACHE_KEY".to_owned()],
            },
            ..Settings::default()
        };
        assert_eq!(settings, Ok(expected));
    }

    #[test]
    fn all_problems_at_once_from_top_to_bottom() {
        let text = "job = 3\njobs = 0\n[gc]\nkeep_runs = -1\n[agents.x]\nkind = \"comand\"\n[secrets]\nnames = [\"A=B\"]\n";
        let problems = read_settings("piton.toml", text).err().unwrap_or_default();
        let seen: Vec<(usize, &str)> = problems.iter().map(|d| (d.line, d.code)).collect();
        assert_eq!(
            seen,
            [
                (1, code::UNKNOWN_KEY),
                (2, code::BAD_VALUE),
                (4, code::BAD_VALUE),
                (5, code::MISSING),
                (6, code::BAD_VALUE),
                (8, code::BAD_ENV),
            ]
        );
        assert_eq!(problems[0].hint.as_deref(), Some("did you mean `jobs`?"));
    }
}
