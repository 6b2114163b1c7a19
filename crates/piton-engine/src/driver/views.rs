//! The views a driver writes after a commit, and the fence it raises before its first ref.

use piton_core::{Event, Millis, Timestamp};

use super::Driver;
use crate::error::Result;
use crate::observer::Note;

/// How long views rest after they were written: many lanes change them many times a second, and
/// whoever looks at them notices no fifth of one.
const VIEWS_REST: Millis = Millis(200);

/// What of the views is behind the ledger.
#[derive(Default)]
pub(super) struct Behind {
    /// Something happened that they show.
    is: bool,
    /// When they were last written, by the time awake: clocks can be set back.
    written: Option<Millis>,
}

impl Driver<'_> {
    /// Tells the views what a commit made durable, and writes them if they are due.
    pub(super) fn view(&mut self, before: u64) {
        let Some(rooms) = self.world.rooms() else { return };
        let events: Vec<(u64, Timestamp, &Event)> =
            (before + 1..).zip(&self.batch).map(|(seq, e)| (seq, self.at, e)).collect();
        self.behind.is |= rooms.log(&self.row.run_id, &events);
        if self.batch.iter().any(Event::is_shown_first) {
            self.views();
        }
        self.views_if_due();
    }

    /// Writes the views unless they are as the ledger, or were written a moment ago; says how long
    /// that moment still lasts.
    pub(super) fn views_if_due(&mut self) -> Option<Millis> {
        if !self.behind.is {
            return None;
        }
        let awake = self.world.awake();
        let rested = self.behind.written.map_or(VIEWS_REST.0, |at| awake.0.saturating_sub(at.0));
        if rested < VIEWS_REST.0 {
            return Some(Millis(VIEWS_REST.0 - rested));
        }
        self.views();
        None
    }

    /// Writes the views anew; one that can't be written is said, and written with the next.
    pub(super) fn views(&mut self) {
        if !std::mem::take(&mut self.behind.is) {
            return;
        }
        let Some(rooms) = self.world.rooms() else { return };
        let warnings = match rooms.views(&self.plan, &self.state) {
            Ok(warnings) => warnings,
            Err(error) => vec![format!("a view was not written: {error}")],
        };
        for warning in warnings {
            self.observer.note(&Note::Warning(warning));
        }
        self.behind.written = Some(self.world.awake());
    }

    /// From here on refs move only while this driver's epoch is the newest.
    pub(super) fn raise_fence(&mut self) -> Result<()> {
        let (epoch, seq) = (self.epoch, self.seq);
        if let Some(rooms) = self.world.rooms() {
            rooms.fence(epoch)?;
            rooms.recorded(seq);
        }
        Ok(())
    }
}
