//! Linux: the calls that the keeper makes of the kernel, and the crate's only unsafe code.
//!
//! How children are started is in `child`, choosing CPUs in `cpus`.

#![expect(unsafe_code, reason = "clone and signal dispositions have no safe interface")]

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::{ClockId, clock_gettime};

use super::{Pid, Process};

mod child;
mod cpus;

pub(crate) use child::{Waiting, spawn};
pub(crate) use cpus::Free;
pub use cpus::Tether;

/// One past the highest signal number.
const SIGNALS_END: i32 = 65;

/// The signals that this process handles or ignores. Asked once: the keeper sets them all before
/// it starts anything, and asking about each at every start costs more than all the rest of it.
fn changed_signals() -> &'static [i32] {
    static CHANGED: OnceLock<Vec<i32>> = OnceLock::new();
    CHANGED.get_or_init(|| {
        let is_changed = |signal: &i32| {
            let mut action = MaybeUninit::<libc::sigaction>::uninit();
            // SAFETY: only asks; a call that succeeded has initialised the action.
            unsafe {
                libc::sigaction(*signal, ptr::null(), action.as_mut_ptr()) == 0
                    && action.assume_init().sa_sigaction != libc::SIG_DFL
            }
        };
        (1..SIGNALS_END).filter(is_changed).collect()
    })
}

fn pointers<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*const c_char> {
    strings.map(CStr::as_ptr).chain([ptr::null()]).collect()
}

/// Closes every descriptor beyond the standard three: what a shell or build tool passed on to the
/// driver must not stay open for as long as the keeper lives.
pub(crate) fn close_inherited() {
    // SAFETY: called once, first thing in the keeper, before it opens anything of its own.
    let _ = unsafe { libc::close_range(3, u32::MAX, 0) };
}

/// Ignores what a terminal or a closed socket sends, and unblocks what the driver had blocked.
pub(crate) fn ignore_signals() {
    let mut set = MaybeUninit::uninit();
    // SAFETY: SIG_IGN runs no code of ours; `set` is initialised before its use.
    unsafe {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTSTP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::sigemptyset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
    }
}

/// Makes orphans among the descendants children of this process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(Into::into)
}

/// The time since boot in the ticks of a process's start time.
pub(crate) fn now_ticks() -> u64 {
    static PER_SECOND: OnceLock<u64> = OnceLock::new();
    let per_second = *PER_SECOND.get_or_init(|| {
        // SAFETY: reads a constant of the system.
        u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100)
    });
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * per_second + nanos * per_second / 1_000_000_000
}

/// How a thread is scheduled, as the kernel takes it; up to what has been there from the beginning.
#[repr(C)]
#[derive(Default)]
struct Scheduling {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// How long it may run before others do, in nanoseconds, or 0 for what is usual; kernels before
    /// 6.12 pay no attention to it.
    slice: u64,
    deadline: u64,
    period: u64,
}

/// The longest slice there is: threads with a shorter one, which all others have, go first.
const SLICE_MAX_NS: u64 = 100_000_000;

/// Lets the calling thread not interrupt who wakes it, and give way to who wakes up; false if it is
/// scheduled in a way that a person chose, or may not change it.
pub(super) fn let_finish() -> bool {
    // SAFETY: asks about the calling thread.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    policy == libc::c_long::from(libc::SCHED_OTHER) && schedule(libc::SCHED_BATCH, SLICE_MAX_NS)
}

/// Takes [`let_finish`] back.
pub(super) fn interrupt_again() {
    schedule(libc::SCHED_OTHER, 0);
}

/// Says how the calling thread is scheduled; may be called between a clone and an exec.
fn schedule(policy: i32, slice: u64) -> bool {
    let size = u32::try_from(size_of::<Scheduling>()).unwrap_or(0);
    // SAFETY: asks about the calling thread.
    let nice = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    // The call gives 20 less it, so that it is never negative.
    let nice = 20 - i32::try_from(nice).unwrap_or(20);
    let policy = u32::try_from(policy).unwrap_or(0);
    let how = Scheduling { size, policy, nice, slice, ..Scheduling::default() };
    // SAFETY: the structure is the kernel's, and contains its size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const how, 0) == 0 }
}

/// A file in memory with this content, read from its start.
pub(crate) fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(fd);
    file.write_all(content)?;
    let fd = OwnedFd::from(file);
    rustix::fs::seek(&fd, rustix::fs::SeekFrom::Start(0))?;
    Ok(fd)
}

/// Frees the disk space of a range, which then reads as zeros; the file keeps its size.
pub(crate) fn punch_hole(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, mode, offset, len).map_err(Into::into)
}

/// A path for the socket `name` in an open directory, short whatever the directory's length.
pub(crate) fn socket_path(dir: BorrowedFd<'_>, _path: &Path, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}

/// The process at the other end of a local socket.
pub(crate) fn peer_pid(socket: impl AsFd) -> Option<Pid> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    Some(peer.pid.as_raw_nonzero().get())
}

/// Opens a process, if it is still the one that was seen: a pid may be used again.
fn open(process: &Process) -> Option<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(process.pid)?;
    let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let now = super::table::one(process.pid)?;
    (now.start == process.start).then_some(fd)
}

/// Signals exactly this process; it is not an error if it is gone.
pub(crate) fn signal(process: &Process, signal: Signal) {
    if let Some(fd) = open(process) {
        let _ = pidfd_send_signal(&fd, signal);
    }
}

/// Waits until these processes are dead, up to a limit; returns whether all are.
pub(crate) fn wait_gone(processes: &[Process], limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    processes.iter().all(|process| {
        let Some(fd) = open(process) else {
            return true;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        matches!(poll(&mut fds, timeout.as_ref()), Ok(count) if count > 0)
    })
}
