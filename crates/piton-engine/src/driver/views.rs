//! The views a driver writes after a commit.

use piton_core::{Event, Millis, Timestamp};

use super::Driver;

/// How long views rest after they were written: many lanes change them many times a second, and
/// whoever looks at them notices no fifth of one.
const VIEWS_REST: Millis = Millis(200);

/// How far the views are behind the ledger.
#[derive(Default)]
pub(super) struct Views {
    /// Whether something happened that they show.
    are_behind: bool,
    /// When they were last written, by the time awake: clocks can be set back.
    written: Option<Millis>,
    /// What was said when they were.
    said: Vec<String>,
}

impl Driver<'_> {
    /// Passes to the views what a commit made durable, and writes them if they are due.
    pub(super) fn view(&mut self, durable: &[(u64, Event)]) {
        let Some(views) = self.world.views() else { return };
        let at = self.clock.at;
        let events: Vec<(u64, Timestamp, &Event)> =
            durable.iter().map(|(seq, event)| (*seq, at, event)).collect();
        self.views.are_behind = true;
        if views.happened(&events, &self.state) {
            self.write_views();
        }
        self.write_views_if_due();
    }

    /// Writes the views unless they are as the ledger, or were written a moment ago; says how long
    /// that moment still lasts.
    pub(super) fn write_views_if_due(&mut self) -> Option<Millis> {
        if !self.views.are_behind {
            return None;
        }
        let awake = self.world.awake();
        let rested = self.views.written.map_or(VIEWS_REST.0, |at| awake.0.saturating_sub(at.0));
        if rested < VIEWS_REST.0 {
            return Some(Millis(VIEWS_REST.0 - rested));
        }
        self.write_views();
        None
    }

    /// Writes the views anew; one that can't be written is said, and written with the next.
    pub(super) fn write_views(&mut self) {
        if !std::mem::take(&mut self.views.are_behind) {
            return;
        }
        let Some(views) = self.world.views() else { return };
        let warnings = match views.write(&self.plan, &self.state) {
            Ok(warnings) => warnings,
            Err(error) => vec![format!("a view was not written: {error}")],
        };
        // One that cannot be written is tried with each event, and said once.
        let said = std::mem::replace(&mut self.views.said, warnings.clone());
        for warning in warnings.into_iter().filter(|warning| !said.contains(warning)) {
            self.warn(warning);
        }
        self.views.written = Some(self.world.awake());
    }
}
