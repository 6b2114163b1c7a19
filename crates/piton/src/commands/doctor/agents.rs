//! What `piton doctor` says of agent programs: which are found, which versions, and what is missing for
//! work without a person.

use std::collections::BTreeMap;

use piton_agents::ready::{Gap, needs};
use piton_core::agent::Agent;
use piton_formats::settings::agents::built_in;
use piton_view::answers::{AgentFound, Finding};
use piton_world::installed::{self, Found, Place, Question};

use crate::context::Context;
use crate::environment::environment;

/// Looks at the programs that need no table, with what the settings say of them, and at those that only
/// the settings name.
pub fn look(context: &Context) -> Vec<Found> {
    let environment = environment();
    let root = &context.project.root;
    let (inherited, home) = (&environment.inherited, environment.home.as_deref());
    let mut agents = built_in();
    agents.extend(context.settings.agents.clone());
    let agents: BTreeMap<String, Agent> =
        agents.into_iter().map(|(name, agent)| (name, agent.rules)).collect();
    installed::agents(agents.values(), &Place { inherited, home, root }, Question::Version)
}

/// A finding for each agent whose program is there or wanted, and one for the others.
pub fn findings(context: &Context, found: &[Found]) -> Vec<Finding> {
    let is_wanted = |found: &&Found| context.settings.agents.contains_key(&found.agent.name);
    let (there, missing): (Vec<&Found>, Vec<&Found>) =
        found.iter().partition(|found| found.seen.path.is_some() || is_wanted(found));
    let mut findings: Vec<Finding> = there.into_iter().map(finding).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|found| found.agent.name.as_str()).collect();
        findings.push(Finding::ok(format!("agent programs not found: {}", names.join(", "))));
    }
    findings
}

fn finding(found: &Found) -> Finding {
    let (seen, name) = (&found.seen, &found.agent.name);
    let version = seen.version.as_deref().unwrap_or("unknown");
    let tested = needs(seen.id).map(|needs| needs.tested).filter(|tested| *tested != version);
    let tested = tested.map(|tested| format!(" (tested with {tested})")).unwrap_or_default();
    let what = match &seen.path {
        Some(path) => format!("agent {name}: {path}, version {version}{tested}"),
        None => format!("agent {name}: {} is not found", seen.id),
    };
    let missing: Vec<String> = found.gaps.iter().map(|gap| gap.advice(&found.agent)).collect();
    // A login may be one that cannot be seen, and not every tool is needed.
    let is_fatal = found.gaps.iter().any(Gap::is_fatal);
    let finding = if is_fatal { Finding::warning(what) } else { Finding::ok(what) };
    if missing.is_empty() { finding } else { finding.next(missing.join("; ")) }
}

/// The same for programs.
pub fn answers(found: &[Found]) -> Vec<AgentFound<'_>> {
    found
        .iter()
        .map(|found| AgentFound {
            id: &found.agent.name,
            program: found.seen.id,
            path: found.seen.path.as_deref(),
            version: found.seen.version.as_deref(),
            tested: needs(found.seen.id).map(|needs| needs.tested),
            login: found.seen.has_login,
            missing: found.gaps.iter().map(Gap::as_str).collect(),
        })
        .collect()
}
