//! The times a driver goes by. Clocks can be set back, and run on while a machine sleeps; the time awake
//! does neither.

use piton_core::{Millis, Timestamp};
use piton_ledger::HEARTBEAT_EVERY_MS;

/// How long the inbox is not read again, however much happens: a person notices no fiftieth of a second,
/// and many short steps need not ask after each.
const INBOX_REST: Millis = Millis(20);
/// How far the clock may run ahead of the time awake before that is a sleep: more than a clock that
/// is being corrected ever does.
const SLEEP_MIN: Millis = Millis::from_secs(5);

pub(super) struct Clock {
    /// When what is recorded happens: one time for all events of a commit, because a replay must see
    /// what was applied.
    pub(super) at: Timestamp,
    /// The time awake, and the clock when it was read.
    pub(super) awake: Millis,
    read_at: Timestamp,
    /// Both when the lease was last renewed.
    renewed: (Timestamp, Millis),
    /// The time awake when the inbox was last read.
    pub(super) inbox_read: Option<Millis>,
}

impl Clock {
    pub(super) fn new(at: Timestamp, awake: Millis) -> Self {
        Self { at, awake, read_at: at, renewed: (at, awake), inbox_read: None }
    }

    /// Goes on to now; gives the time that the machine slept, or that its clock jumped ahead.
    pub(super) fn advance(&mut self, at: Timestamp, awake: Millis) -> Option<Millis> {
        let passed = at.since(self.read_at).0;
        let slept = passed.saturating_sub(awake.0.saturating_sub(self.awake.0));
        (self.at, self.read_at, self.awake) = (at, at, awake);
        (slept >= SLEEP_MIN.0).then_some(Millis(slept))
    }

    /// Notes that the lease was renewed.
    pub(super) fn renew(&mut self) {
        self.renewed = (self.read_at, self.awake);
    }

    /// Whether the lease should be renewed: by the clock, which shows a suspend, or by the time awake,
    /// which goes on where the clock was set back.
    pub(super) fn heartbeat_is_due(&self) -> bool {
        let (at, awake) = self.renewed;
        self.at.since(at).0.max(self.passed(awake).0) >= HEARTBEAT_EVERY_MS.unsigned_abs()
    }

    pub(super) fn inbox_is_due(&self) -> bool {
        self.inbox_read.is_none_or(|read| self.passed(read) >= INBOX_REST)
    }

    /// The time awake since.
    pub(super) fn passed(&self, since: Millis) -> Millis {
        Millis(self.awake.0.saturating_sub(since.0))
    }
}
