//! Linux: the calls that the keeper makes of the kernel, and the crate's only unsafe code.
//!
//! A child shares the keeper's memory until its exec, as with `posix_spawn`: a fork or a `pre_exec`
//! hook costs two to four times as much. It is not `posix_spawn` itself because that cannot say on
//! which CPUs a child may run, and asks about every signal there is. Looking at other processes is
//! in `table`, choosing CPUs in `cpus`.

#![expect(unsafe_code, reason = "clone and signal dispositions have no safe interface")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::io::Errno;
use rustix::process::WaitOptions;
use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

use super::{Command, Pid};

/// Bytes of stack that a child has before its exec, in units of 16 for the alignment: it calls a
/// dozen system calls and nothing else; the C library's own start takes 36 KiB.
const STACK_UNITS: usize = (64 << 10) / size_of::<u128>();

/// One past the highest signal number.
const SIGNALS_END: i32 = 65;

/// What a child needs between its clone and its exec, all prepared by the parent.
struct Launch<'a> {
    program: &'a CStr,
    argv: *const *const c_char,
    env: *const *const c_char,
    dir: &'a CStr,
    /// What become descriptors 0, 1 and 2.
    streams: [i32; 3],
    /// Signals that are not at their default in the keeper.
    signals: &'a [i32],
    /// Where the child may run, if the keeper itself is held elsewhere.
    cpus: Option<&'a CpuSet>,
    /// Written by the child: the error number of what failed.
    errno: i32,
}

/// Starts a process in a session of its own; the failure of its exec is this call's failure.
pub(crate) fn spawn(command: &Command<'_>) -> io::Result<Pid> {
    let argv = pointers(command.argv.iter().map(AsRef::as_ref));
    let env = pointers(command.env.iter().copied());
    let streams = [command.stdin, command.stdout, command.stderr].map(|fd| fd.as_raw_fd());
    let mut launch = Launch {
        program: command.program,
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        dir: command.dir,
        streams,
        signals: changed_signals(),
        cpus: command.cpus,
        errno: 0,
    };
    let launch = &raw mut launch;
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_UNITS);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the child runs `child` on a stack of its own (which grows down from the end of the
    // allocation) while this thread is suspended until the child's exec or exit, so all that
    // `launch` points to outlives it and is used by one of the two at a time. Signals are blocked
    // meanwhile, because a handler that ran in the child would run in our memory.
    let (pid, error) = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let top = stack.as_mut_ptr().add(STACK_UNITS).cast();
        let pid = libc::clone(child, top, flags, launch.cast());
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        (pid, error)
    };
    if pid < 0 {
        return Err(error);
    }
    // SAFETY: the child is past its exec or gone, and writes no more.
    let errno = unsafe { (*launch).errno };
    if errno == 0 {
        return Ok(pid);
    }
    let failed = rustix::process::Pid::from_raw(pid);
    while matches!(rustix::process::waitpid(failed, WaitOptions::empty()), Err(Errno::INTR)) {}
    Err(io::Error::from_raw_os_error(errno))
}

/// The arguments of `clone3`, up to the newest that is used here.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Lets the child be born in the cgroup given; the kernel knows it since 5.7.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// Starts a program (by its path) in a cgroup, with our environment and these standard streams.
/// If it cannot be executed, the child exits at once.
pub(crate) fn spawn_into(
    group: BorrowedFd<'_>,
    argv: &[CString],
    streams: [BorrowedFd<'_>; 3],
) -> io::Result<Pid> {
    let words = pointers(argv.iter().map(AsRef::as_ref));
    let program = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    let convert = |number: i32| u64::try_from(number).map_err(io::Error::other);
    let arguments = CloneArguments {
        flags: CLONE_INTO_CGROUP,
        exit_signal: convert(libc::SIGCHLD)?,
        cgroup: convert(group.as_raw_fd())?,
        ..CloneArguments::default()
    };
    let size = size_of::<CloneArguments>();
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of everything, and of all
    // threads only this one. The structure is the kernel's, and its size is told.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
    if pid == 0 {
        // SAFETY: in the child, only calls that are safe after a fork of a process with threads:
        // nothing here allocates or takes a lock. Streams and words were made before.
        unsafe {
            for (to, stream) in (0..).zip(&streams) {
                libc::dup2(stream.as_raw_fd(), to);
            }
            libc::execv(program.as_ptr(), words.as_ptr().cast());
            libc::_exit(127)
        }
    }
    if pid < 0 {
        Err(io::Error::last_os_error())
    } else {
        Pid::try_from(pid).map_err(io::Error::other)
    }
}

/// What a child does first: it must not allocate, lock or return, for it shares our memory.
extern "C" fn child(launch: *mut c_void) -> i32 {
    let launch = launch.cast::<Launch<'_>>();
    // SAFETY: `spawn` passes a valid `Launch` that nobody else uses until the exec; all of these
    // calls may be made between a vfork and an exec, and their pointers are valid.
    unsafe {
        if !prepare(&*launch) {
            (*launch).errno = *libc::__errno_location();
            libc::_exit(127);
        }
        libc::execve((*launch).program.as_ptr(), (*launch).argv, (*launch).env);
        (*launch).errno = *libc::__errno_location();
        libc::_exit(127)
    }
}

/// Makes the child what it should be at its exec; false if something failed.
///
/// # Safety
/// Only for a child between its clone and its exec.
unsafe fn prepare(launch: &Launch<'_>) -> bool {
    let mut none = MaybeUninit::uninit();
    // SAFETY: as in `child`; the set is initialised before its use.
    unsafe {
        // Before signals are let through: our handlers must not run here.
        for &signal in launch.signals {
            libc::signal(signal, libc::SIG_DFL);
        }
        if let Some(cpus) = launch.cpus {
            // Fails only if the machine took all of these away, and has then chosen others.
            let _ = rustix::thread::sched_setaffinity(None, cpus);
        }
        let placed = (0..).zip(launch.streams).all(|(to, from)| {
            if from == to {
                libc::fcntl(to, libc::F_SETFD, 0) == 0
            } else {
                libc::dup2(from, to) == to
            }
        });
        libc::sigemptyset(none.as_mut_ptr());
        placed
            && libc::setsid() >= 0
            && libc::chdir(launch.dir.as_ptr()) == 0
            && libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()) == 0
    }
}

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
