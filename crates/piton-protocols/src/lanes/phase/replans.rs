//! When a phase document is planned again.

use piton_core::plan::ReplanRules;
use piton_formats::plan::replan::{UnknownAgent, rules};
use piton_formats::settings::{Replan, Settings};

/// `[replan]` of the settings, with nothing that starts a replan by itself unless it is named there.
pub(super) fn replans(settings: &Settings) -> Result<ReplanRules, UnknownAgent> {
    let said = settings.replan.clone().unwrap_or_default();
    let named = Replan {
        test_failures: said.test_failures.or(Some(0)),
        scope_drift: said.scope_drift.or(Some(false)),
        ..said
    };
    rules(&named, &settings.agents, &settings.defaults)
}
