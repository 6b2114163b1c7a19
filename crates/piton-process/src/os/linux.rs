//! Linux: the calls that the keeper makes of the kernel, and the crate's only unsafe code.
//!
//! Children start through `posix_spawn`, which shares memory with the keeper until the exec: a
//! fork or a `pre_exec` hook costs two to four times as much. Looking at other processes is in
//! `table`.

#![expect(unsafe_code, reason = "posix_spawn and signal dispositions have no safe interface")]

use std::ffi::{CStr, CString, c_char, c_short};
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::time::{ClockId, clock_gettime};

use super::{Command, Pid};

/// The highest signal that is reset in children; the real-time signals above are not inherited as
/// ignored in practice, and each one costs a system call per start.
const RESET_SIGNAL_MAX: i32 = 31;

/// Turns the error number that the `posix_spawn` family returns into a result.
fn check(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

struct Attributes(MaybeUninit<libc::posix_spawnattr_t>);

impl Attributes {
    /// A new session, an empty signal mask, and default dispositions.
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointer is valid for writing an attribute object.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        let mut this = Self(raw);
        let signals = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        let flags =
            c_short::try_from(signals).map_err(io::Error::other)? | libc::POSIX_SPAWN_SETSID;
        let mut set = MaybeUninit::uninit();
        // SAFETY: `this.0` was initialised above; `set` is initialised by sigemptyset before any
        // other use, and all pointers are valid during the calls.
        unsafe {
            check(libc::posix_spawnattr_setflags(this.0.as_mut_ptr(), flags))?;
            libc::sigemptyset(set.as_mut_ptr());
            check(libc::posix_spawnattr_setsigmask(this.0.as_mut_ptr(), set.as_ptr()))?;
            for signal in 1..=RESET_SIGNAL_MAX {
                if signal != libc::SIGKILL && signal != libc::SIGSTOP {
                    libc::sigaddset(set.as_mut_ptr(), signal);
                }
            }
            check(libc::posix_spawnattr_setsigdefault(this.0.as_mut_ptr(), set.as_ptr()))?;
        }
        Ok(this)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: constructed only with an initialised object, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}

struct Actions(MaybeUninit<libc::posix_spawn_file_actions_t>);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: the pointer is valid for writing an actions object.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        Ok(Self(raw))
    }

    fn change_dir(&mut self, dir: &CStr) -> io::Result<()> {
        // SAFETY: initialised object, valid C string (which the library copies).
        check(unsafe {
            libc::posix_spawn_file_actions_addchdir_np(self.0.as_mut_ptr(), dir.as_ptr())
        })
    }

    fn place(&mut self, from: BorrowedFd<'_>, to: i32) -> io::Result<()> {
        // SAFETY: initialised object; the descriptor is open, and only numbers are stored.
        check(unsafe {
            libc::posix_spawn_file_actions_adddup2(self.0.as_mut_ptr(), from.as_raw_fd(), to)
        })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: constructed only with an initialised object, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

/// Starts a process in a session of its own; the failure of its exec is this call's failure.
pub(crate) fn spawn(command: &Command<'_>) -> io::Result<Pid> {
    let attributes = Attributes::new()?;
    let mut actions = Actions::new()?;
    actions.place(command.stdin, 0)?;
    actions.place(command.stdout, 1)?;
    actions.place(command.stderr, 2)?;
    actions.change_dir(command.dir)?;
    let argv = pointers(command.argv.iter().map(AsRef::as_ref));
    let env = pointers(command.env.iter().copied());
    let mut pid: Pid = 0;
    // SAFETY: all objects are initialised and live through the call; both arrays end with a null
    // pointer and their strings are borrowed by `command`. The kernel does not write to them: the
    // `*mut` of the signature is historical.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            command.program.as_ptr(),
            actions.0.as_ptr(),
            attributes.0.as_ptr(),
            argv.as_ptr(),
            env.as_ptr(),
        )
    })?;
    Ok(pid)
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

fn pointers<'a>(strings: impl Iterator<Item = &'a CStr>) -> Vec<*mut c_char> {
    strings.map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
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
