//! Systems without a keeper yet: everything builds, nothing starts.
//!
//! The keeper refuses to run here: it could not keep all promises.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::{Command, Pid, Process};

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What a child gets back of what its keeper had, which keeps it all here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Free {}

/// Holds nothing here.
#[derive(Debug, Default)]
pub struct Tether;

impl Tether {
    pub(crate) fn that_lets_finish() -> Self {
        Self
    }

    /// Names no CPU.
    pub fn hold_here(&mut self) -> Option<usize> {
        None
    }

    pub(crate) fn hold(&mut self, _cpu: usize) -> bool {
        false
    }

    /// Does nothing.
    pub fn let_go(&mut self) {}

    pub(crate) fn free(&self) -> Option<Free> {
        None
    }
}

pub(crate) fn spawn(_command: &Command<'_>) -> io::Result<Pid> {
    unsupported()
}

/// A child that waits for the word to go, of which there are none here.
pub(crate) enum Waiting {}

impl Waiting {
    pub(crate) fn new(_command: &Command<'_>) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn pid(&self) -> Pid {
        match *self {}
    }

    pub(crate) fn release(&mut self) {
        match *self {}
    }

    pub(crate) fn reaped(&mut self) -> bool {
        match *self {}
    }
}

pub(crate) fn close_inherited() {}

pub(crate) fn ignore_signals() {}

pub(crate) fn become_subreaper() -> io::Result<()> {
    unsupported()
}

pub(crate) fn now_ticks() -> u64 {
    0
}

pub(crate) fn memory_file(_content: &[u8]) -> io::Result<OwnedFd> {
    unsupported()
}

pub(crate) fn punch_hole(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    unsupported()
}

pub(crate) fn socket_path(_dir: BorrowedFd<'_>, path: &Path, name: &str) -> PathBuf {
    path.join(name)
}

pub(crate) fn peer_pid(_socket: impl AsFd) -> Option<Pid> {
    None
}

pub(crate) fn signal(_process: &Process, _signal: Signal) {}

pub(crate) fn wait_gone(_processes: &[Process], _limit: Duration) -> bool {
    true
}
