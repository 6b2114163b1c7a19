//! Signals for the driver as something to poll.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// Signals that ask the driver to stop.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
}

impl Signals {
    /// Begins to catch them.
    pub fn catch() -> std::io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let signals = [SIGINT, SIGTERM, SIGHUP];
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, signals)?;
        Ok(Self { delivery })
    }

    /// Takes what came.
    pub fn take(&mut self) -> Vec<i32> {
        self.delivery.pending().collect()
    }
}

/// Waits until the keeper speaks, a signal comes or the time is over.
pub fn poll(
    keeper: Option<BorrowedFd<'_>>,
    signals: Option<&Signals>,
    timeout: Duration,
) -> std::io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
    if let Some(fd) = keeper {
        fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    }
    if let Some(signals) = signals {
        fds.push(PollFd::from_borrowed_fd(signals.delivery.get_read().as_fd(), PollFlags::IN));
    }
    let timeout = rustix::event::Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
