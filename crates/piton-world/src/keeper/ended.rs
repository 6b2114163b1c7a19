//! The end of an attempt, in the engine's words instead of the keeper's.

use piton_core::event::LogRanges;
use piton_core::{Millis, Timestamp};
use piton_engine::world::{Attempt, Cause, Ended};
use piton_process::protocol::{self, Exit};
use signal_hook::consts::{SIGHUP, SIGTERM};

/// How a shell reports that its child died of a signal: this much more than its number.
const BY_SIGNAL: i32 = 128;

/// Whether an attempt died of a signal that asks it to end. If its keeper is gone too, both got the
/// signal: a machine that shuts down, or a session that ends, sends it to all processes.
pub(super) fn was_asked_to_end(ended: &Ended) -> bool {
    let by = ended.signal.or_else(|| ended.code.map(|code| code - BY_SIGNAL));
    ended.cause == Cause::Exited && by.is_some_and(|signal| [SIGTERM, SIGHUP].contains(&signal))
}

/// The end of an attempt from an exit that the keeper reports.
pub(super) fn ended_of(attempt: &Attempt, exit: &Exit) -> Ended {
    let range = |r: protocol::Range| (r.start, r.end);
    Ended {
        attempt: attempt.clone(),
        part: exit.part,
        part_began: exit.part_began_ns,
        code: exit.code,
        signal: exit.signal,
        cause: match exit.cause {
            protocol::Cause::Exited | protocol::Cause::Unknown => Cause::Exited,
            protocol::Cause::Timeout => Cause::Timeout,
            protocol::Cause::IdleTimeout => Cause::IdleTimeout,
            protocol::Cause::Ended => Cause::Ended,
            protocol::Cause::NotStarted => Cause::NotStarted,
        },
        error: exit.error.clone(),
        at: Timestamp(i64::try_from(exit.ended_ms).unwrap_or(i64::MAX)),
        duration: Millis(exit.duration_ms),
        logs: LogRanges {
            stdout: range(exit.stdout),
            stderr: range(exit.stderr),
            stdout_dropped: exit.dropped.stdout.map(range),
            stderr_dropped: exit.dropped.stderr.map(range),
        },
    }
}
