//! `[agents.NAME]` of plan and settings: which programs get prompts. `[prices.NAME]` and `[windows.NAME]`:
//! what their models cost, and how much they hold.

use std::collections::BTreeMap;

use piton_core::Plan;
use piton_core::agent::{self, COMMAND, OnLimit, PRICES_DEFAULT, Permissions, Prices, Window};
use piton_core::plan::{Command, Work};

use crate::diagnostic::{code, quoted};
use crate::sink::{Located, Sink};
use crate::text_rules::{check_id, check_path, read_command};
use crate::toml_reader::Node;

/// A program that gets prompts.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// The program as a step's definition names it; each text of a command is a template.
    pub command: Command,
    /// What its table says of its window; the rest is as its model, its name and its program have it.
    pub window: Window,
    /// Everything else.
    pub rules: agent::Agent,
}

/// What settings say by the name of a model, an agent or a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Models {
    /// What tokens cost.
    pub prices: BTreeMap<String, Prices>,
    /// How many tokens fit, and how full a window may be.
    pub windows: BTreeMap<String, Window>,
}

impl Models {
    /// What is said of a window by the first of these names that says it, each part for itself.
    pub fn window<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Window {
        let said = names.into_iter().filter_map(|name| self.windows.get(name));
        said.fold(Window::default(), |found, more| found.or(*more))
    }
}

impl Agent {
    /// A command of the user's own.
    pub fn of_command(name: &str, command: Command) -> Self {
        Self { command, window: Window::default(), rules: agent::Agent::new(name, COMMAND) }
    }

    /// A program that Piton knows.
    fn known(window: Window, rules: agent::Agent) -> Self {
        let binary = rules.binary.as_ref().unwrap_or(&rules.program).clone();
        let model = rules.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]);
        let command = Command::Args(std::iter::once(binary).chain(model).collect());
        Self { command, window, rules }
    }
}

/// The agents that need no table.
pub fn built_in() -> BTreeMap<String, Agent> {
    let known = agent::PROGRAMS.iter().filter(|program| **program != COMMAND);
    let plain = |name: &str| Agent::known(Window::default(), agent::Agent::new(name, name));
    known.map(|name| ((*name).to_owned(), plain(name))).collect()
}

/// Programs that take MCP servers for one call.
const MCP_PROGRAMS: [&str; 3] = ["claude", "codex", "opencode"];

/// An agent by name: one of these, or one that needs no table.
pub fn named(agents: &BTreeMap<String, Agent>, name: &str) -> Option<Agent> {
    agents.get(name).cloned().or_else(|| built_in().remove(name))
}

/// Reads `[agents.NAME]`; an agent without a usable command is reported and left out.
pub(crate) fn read_agents(
    root: &Node<'_, '_>,
    has_spec: bool,
    sink: &mut Sink<'_>,
) -> BTreeMap<String, Agent> {
    let mut agents = BTreeMap::new();
    for (name, node) in root.named("agents", sink) {
        check_id(&name, sink);
        // There is only one kind; its name is still checked.
        let _ = node.choice("kind", sink);
        let has_command = node.key_span("command").is_some();
        let own = agent::PROGRAMS.iter().copied().find(|program| *program == name.value);
        let usual = if has_command { Some(COMMAND) } else { own };
        let program = node.choice("program", sink).or(usual).unwrap_or(COMMAND);
        let rules = read_rules(&node, agent::Agent::new(&name.value, program), sink);
        let window = read_window(&node, "window", sink);
        let agent = if program == COMMAND {
            if !has_command {
                let message = format!("the agent {} has no `command`", quoted(&name.value));
                let hint =
                    "add command = [\"program\", \"argument\"], or `program` for a known one";
                sink.error(code::MISSING, &name.span, message, hint);
            }
            // The agent is known even if its command is wrong: one mistake is reported once.
            let command =
                read_command(&node, "command", has_spec, sink).unwrap_or(Command::Args(Vec::new()));
            Agent { command, window, rules }
        } else {
            Agent::known(window, agent::Agent { binary: read_binary(&node, sink), ..rules })
        };
        agents.insert(name.value, agent);
    }
    agents
}

/// The executable of a known program: its name alone, because Piton knows its arguments.
fn read_binary(node: &Node<'_, '_>, sink: &mut Sink<'_>) -> Option<String> {
    let Located { value, span } = node.command("command", sink)?;
    let words = match value {
        Command::Shell(line) => vec![line],
        Command::Args(words) => words,
    };
    if let Ok([word]) = <[String; 1]>::try_from(words) {
        return Some(word);
    }
    let message = "the `command` of a known program is its name or path alone";
    sink.error(code::BAD_VALUE, &span, message, "put its arguments into `args`");
    None
}

fn read_rules(node: &Node<'_, '_>, usual: agent::Agent, sink: &mut Sink<'_>) -> agent::Agent {
    let words = |name: &str, sink: &mut Sink<'_>| -> Vec<String> {
        let found = node.texts(name, sink).unwrap_or_default();
        found.into_iter().map(|word| word.value).collect()
    };
    let mcp = node.text("mcp", sink);
    if let Some(Located { span, .. }) =
        mcp.as_ref().filter(|_| !MCP_PROGRAMS.contains(&&*usual.program))
    {
        let message = format!("{} cannot be given MCP servers by `mcp`", usual.program);
        let hint = "put them into its own settings";
        sink.error(code::BAD_VALUE, span, message, hint);
    }
    agent::Agent {
        model: node.text("model", sink).map(|model| model.value),
        permissions: match node.choice("permissions", sink) {
            Some("own") => Permissions::Own,
            Some("all") => Permissions::All,
            _ => Permissions::Edits,
        },
        tools: words("tools", sink),
        args: words("args", sink),
        env: node.env("env", sink),
        mcp: mcp.and_then(|path| check_path("mcp", &path, sink)),
        handoffs: node.count32("handoffs", sink).unwrap_or(usual.handoffs),
        requests: node.count32("requests", sink).unwrap_or(usual.requests),
        silence: node.duration("silence", sink).unwrap_or(usual.silence),
        on_limit: match node.choice("on_limit", sink) {
            Some("fallback") => OnLimit::Fallback,
            Some("stop") => OnLimit::Stop,
            _ => OnLimit::Park,
        },
        limit_wait: node.duration("limit_wait", sink).unwrap_or(usual.limit_wait),
        fallback: words("fallback", sink),
        ..usual
    }
}

/// The size of a window, and percentages, of which each is at most the next.
fn read_window(node: &Node<'_, '_>, size: &str, sink: &mut Sink<'_>) -> Window {
    let tokens = node.count(size, sink);
    // Hundredths of a percent as written, thousandths of the whole as stored.
    let mut share = |name: &str| node.complexity(name, sink).map(|percent| percent.0 / 10);
    let (warning, critical, halt) = (share("warning"), share("critical"), share("halt"));
    let read = Window { tokens, warning, critical, halt };
    if !read.thresholds().rise() {
        let message = "`warning`, `critical` and `halt` must rise, and be at most 100";
        let hint = "the defaults are 75, 90 and 97.5";
        sink.error(code::BAD_VALUE, &node.span, message, hint);
    }
    read
}

/// Reads `[prices.NAME]` and `[windows.NAME]`.
pub(crate) fn read_models(root: &Node<'_, '_>, sink: &mut Sink<'_>) -> Models {
    let windows = root.named("windows", sink).into_iter();
    let windows = windows.map(|(name, node)| (name.value, read_window(&node, "tokens", sink)));
    Models { windows: windows.collect(), prices: read_prices(root, sink) }
}

fn read_prices(root: &Node<'_, '_>, sink: &mut Sink<'_>) -> BTreeMap<String, Prices> {
    let mut prices = BTreeMap::new();
    for (name, node) in root.named("prices", sink) {
        let read = Prices {
            input: node.money("input", sink).unwrap_or(PRICES_DEFAULT.input),
            cached: node.money("cached", sink).unwrap_or(PRICES_DEFAULT.cached),
            output: node.money("output", sink).unwrap_or(PRICES_DEFAULT.output),
        };
        prices.insert(name.value, read);
    }
    prices
}

/// The agents that the prompts of a plan name, and those that may take their place. A command about
/// which nothing else is said needs no entry.
pub fn used(
    plan: &Plan,
    agents: &BTreeMap<String, Agent>,
    models: &Models,
) -> BTreeMap<String, agent::Agent> {
    let of_replan = plan.replan.iter().filter_map(|rules| rules.by.as_deref());
    let steps = plan.steps().map(|(_, step)| step).chain(of_replan);
    let (mut names, mut fallbacks): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for step in steps {
        if let Work::Prompt { agent, .. } = &step.work
            && !names.contains(agent)
        {
            names.push(agent.clone());
        }
        for other in &step.fallback {
            if !fallbacks.contains(other) {
                fallbacks.push(other.clone());
            }
        }
    }
    names.extend(fallbacks.iter().cloned());
    let mut used = BTreeMap::new();
    while let Some(name) = names.pop() {
        let Some(Agent { mut rules, command, window }) = named(agents, &name) else { continue };
        // The command of a prompt's own agent is that of its step.
        rules.command = (!rules.is_known() && fallbacks.contains(&name)).then_some(command);
        let called = [rules.model.as_deref(), Some(&rules.name), Some(&rules.program)];
        let called = || called.into_iter().flatten();
        let prices = called().find_map(|name| models.prices.get(name)).copied();
        let window = window.or(models.window(called()));
        (rules.prices, rules.window) = (prices, window.tokens);
        rules.thresholds = window.thresholds();
        let is_plain = rules == agent::Agent::new(&name, COMMAND);
        if is_plain || used.get(&name) == Some(&rules) {
            continue;
        }
        names.extend(rules.fallback.iter().cloned());
        fallbacks.extend(rules.fallback.iter().cloned());
        used.insert(name, rules);
    }
    used
}
