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
    /// What is done about a closed terminal instead of stopping.
    on_hangup: Option<Box<dyn FnMut()>>,
}

impl Signals {
    /// Begins to catch them, but for those that whoever started this program wants ignored: `nohup`
    /// a closed terminal, a shell the Ctrl-C that is not meant for its background jobs.
    pub fn catch() -> std::io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let wanted = |signal: &i32| *signal == SIGTERM || !is_in(ignored, *signal);
        let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(wanted);
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, signals)?;
        Ok(Self { delivery, on_hangup: None })
    }

    /// A closed terminal does not ask the driver to stop any more: this is done instead.
    pub fn on_hangup(&mut self, act: impl FnMut() + 'static) {
        self.on_hangup = Some(Box::new(act));
    }

    /// Takes what came.
    pub fn take(&mut self) -> Vec<i32> {
        let mut came: Vec<i32> = self.delivery.pending().collect();
        if let Some(act) = self.on_hangup.as_mut().filter(|_| came.contains(&SIGHUP)) {
            act();
            came.retain(|signal| *signal != SIGHUP);
        }
        came
    }
}

/// The signals that a process ignores, one bit for each, as the system tells of it.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn is_in(bits: u64, signal: i32) -> bool {
    (1..=64).contains(&signal) && bits >> (signal - 1) & 1 == 1
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

/// Whether the other end of a connection is gone.
pub fn is_closed(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a driver that was started with `nohup` would end with its terminal.
    #[test]
    fn what_is_ignored_is_read_from_the_bits() {
        let bits = ignored("Name:\tpiton\nSigBlk:\tffff\nSigIgn:\t0000000000001003\n");
        assert!(is_in(bits, SIGHUP) && is_in(bits, SIGINT) && !is_in(bits, SIGTERM));
        assert_eq!(ignored("SigIgn: nothing"), 0);
    }
}
