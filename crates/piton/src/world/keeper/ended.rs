//! The end of an attempt, in the engine's words instead of the keeper's.

use piton_core::Millis;
use piton_core::event::LogRanges;
use piton_engine::world::{Attempt, Cause, Ended};
use piton_process::protocol::{self, Exit};

/// What the engine is told of an exit.
pub(super) fn ended_of(attempt: &Attempt, exit: &Exit) -> Ended {
    let range = |r: protocol::Range| (r.start, r.end);
    Ended {
        attempt: attempt.clone(),
        part: exit.part,
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
        duration: Millis(exit.duration_ms),
        logs: LogRanges {
            stdout: range(exit.stdout),
            stderr: range(exit.stderr),
            stdout_dropped: exit.dropped.stdout.map(range),
            stderr_dropped: exit.dropped.stderr.map(range),
        },
    }
}
