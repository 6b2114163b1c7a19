//! HEAD of the project's own folder, which a rollback in place leaves where it is: steps that commit
//! there move it, and their commits are the user's to take back.

use piton_core::Event;
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_engine::world::Rewind;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Result;
use crate::ui::lane_words::short;

/// HEAD moved since the checkpoint.
pub struct HeadLeft {
    then: String,
    now: String,
}

impl HeadLeft {
    /// Looks whether HEAD moved since the checkpoint to which the project's folder goes back.
    pub fn of(
        context: &Context,
        store: &mut Store,
        loaded: &Loaded,
        rewind: &Rewind,
    ) -> Result<Option<Self>> {
        let now = context.project.head();
        let (Some(now), true) = (now, rewind.targets.iter().any(|t| t.lane.is_none())) else {
            return Ok(None);
        };
        let then = seen_before(store, loaded, rewind.intent.after_event)?;
        Ok(then.filter(|then| *then != now).map(|then| Self { then, now }))
    }

    /// For people.
    pub fn words(&self) -> String {
        let (then, now) = (short(&self.then), short(&self.now));
        format!(
            "  stays   HEAD at {now} (it was at {then}; commits are not taken back: \
             `git reset {then}` does that and leaves the files)"
        )
    }

    /// As data.
    pub fn json(&self) -> Value {
        json!({"was": self.then, "stays": self.now})
    }
}

/// The commit that was last seen checked out before an event.
fn seen_before(store: &mut Store, loaded: &Loaded, event: u64) -> Result<Option<String>> {
    let (mut seen, mut after) = (None, 0);
    loop {
        let page = store.events(&loaded.row, after)?;
        let Some((last, ..)) = page.last() else { return Ok(seen) };
        after = *last;
        for (_, _, event) in page.iter().filter(|(seq, ..)| *seq <= event) {
            let head = match event {
                Event::RunCreated(e) => &e.head,
                Event::DriverAttached(e) => &e.head,
                Event::DriverLeft(e) => &e.head,
                Event::CheckpointRecorded(e) => &e.head,
                _ => continue,
            };
            seen = head.clone().or(seen);
        }
        if after >= event {
            return Ok(seen);
        }
    }
}
