//! The views a driver writes after a commit, and the fence it raises before its first ref.

use piton_core::{Event, Timestamp};

use super::Driver;
use crate::error::Result;
use crate::observer::Note;

impl Driver<'_> {
    /// Writes the views anew; one that can't be written is said, and written with the next.
    pub(super) fn views(&mut self, before: u64) {
        let Some(rooms) = self.world.rooms() else { return };
        let events: Vec<(u64, Timestamp, &Event)> =
            (before + 1..).zip(&self.batch).map(|(seq, e)| (seq, self.at, e)).collect();
        let logged = rooms.log(&self.row.run_id, &events);
        let viewed = self.batch.iter().any(Event::is_viewed);
        let written = if viewed { rooms.views(&self.plan, &self.state) } else { Ok(Vec::new()) };
        let warnings = match logged.and(written) {
            Ok(warnings) => warnings,
            Err(error) => vec![format!("a view was not written: {error}")],
        };
        for warning in warnings {
            self.observer.note(&Note::Warning(warning));
        }
    }

    /// From here on refs move only while this driver's epoch is the newest.
    pub(super) fn raise_fence(&mut self) -> Result<()> {
        let epoch = self.epoch;
        if let Some(rooms) = self.world.rooms() {
            rooms.fence(epoch)?;
        }
        Ok(())
    }
}
