//! Everything that differs between systems: starting processes, looking at them, signalling them.
//!
//! Linux is complete. Elsewhere the crate builds, and the keeper says that it cannot run.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod table;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

pub use system::Tether;
pub(crate) use system::{
    Free, Waiting, become_subreaper, close_inherited, ignore_signals, memory_file, now_ticks,
    peer_pid, punch_hole, signal, socket_path, spawn, wait_gone,
};
pub(crate) use table::{
    all, boot_id, command_line, environment, is_exiting, namespace, one, processor_ticks, variable,
};

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;

/// A process id as the system has it, always positive.
pub(crate) type Pid = i32;

/// A process as the system's table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Pid,
    pub(crate) session: Pid,
    /// When it started, in the kernel's clock ticks since boot: with the pid, its identity.
    pub(crate) start: u64,
    /// A zombie: nothing runs, nothing can be signalled.
    pub(crate) zombie: bool,
    /// The kernel's short name of the program, at most 15 bytes.
    pub(crate) name: String,
}

/// What to start, ready for the kernel: no allocation happens between here and the start.
pub(crate) struct Command<'a> {
    pub(crate) program: &'a CStr,
    pub(crate) argv: &'a [CString],
    pub(crate) env: &'a [&'a CStr],
    pub(crate) dir: &'a CStr,
    pub(crate) stdin: BorrowedFd<'a>,
    pub(crate) stdout: BorrowedFd<'a>,
    pub(crate) stderr: BorrowedFd<'a>,
    /// What is restored before its program, if the keeper is held on a CPU.
    pub(crate) free: Option<Free>,
}
