//! What `piton doctor` says of agent programs: which are found, which versions, and what is missing for
//! work without a person.

use piton_agents::ready::{Gap, Seen, gaps, needs};
use piton_view::answers::{AgentFound, Finding};
use piton_world::installed;

use crate::environment::environment;

/// Looks at the agent programs of this machine.
pub fn look() -> Vec<Seen> {
    let environment = environment();
    installed::all(&environment.inherited, environment.home.as_deref())
}

/// A finding for each program that is there, and one for those that are not.
pub fn findings(seen: &[Seen]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = seen.iter().filter_map(finding).collect();
    let missing: Vec<&str> = seen.iter().filter(|s| s.path.is_none()).map(|s| s.id).collect();
    if !missing.is_empty() {
        findings.push(Finding::ok(format!("agent programs not found: {}", missing.join(", "))));
    }
    findings
}

fn finding(seen: &Seen) -> Option<Finding> {
    let (id, path) = (seen.id, seen.path.as_ref()?);
    let needs = needs(id)?;
    let version = seen.version.as_deref().unwrap_or("unknown");
    let tested = if version == needs.tested {
        String::new()
    } else {
        format!(" (tested with {})", needs.tested)
    };
    let what = format!("agent {id}: {path}, version {version}{tested}");
    Some(match gaps(seen).first() {
        Some(Gap::NoAnswer) => Finding::warning(what)
            .next(format!("check what `{path} --version` prints; it did not answer")),
        // There are ways to log in that cannot be seen, and the program may never be used.
        Some(Gap::NoLogin) => {
            Finding::ok(what).next(format!("no login was found: {}", needs.log_in))
        }
        _ => Finding::ok(what).next(format!("unattended: {}", needs.before)),
    })
}

/// The same for programs.
pub fn answers(seen: &[Seen]) -> Vec<AgentFound<'_>> {
    seen.iter()
        .map(|seen| AgentFound {
            id: seen.id,
            path: seen.path.as_deref(),
            version: seen.version.as_deref(),
            tested: needs(seen.id).map(|needs| needs.tested),
            login: seen.has_login,
            missing: gaps(seen).into_iter().map(Gap::as_str).collect(),
        })
        .collect()
}
