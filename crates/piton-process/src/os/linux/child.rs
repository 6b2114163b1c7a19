//! A child between its clone and its exec: started at once, or prepared and started later.
//!
//! It shares the keeper's memory until its exec, as with `posix_spawn`: a fork or a `pre_exec` hook
//! costs two to four times as much. It is not `posix_spawn` itself because that cannot say on which
//! CPUs a child may run, asks about every signal there is, and cannot let a child wait for the word
//! to go.

use std::ffi::{CStr, CString, c_char, c_void};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::io::{Errno, FdFlags};
use rustix::process::{Signal, WaitOptions};
use rustix::thread::futex;

use super::super::{Command, Free, Pid};
use super::{changed_signals, interrupt_again, pointers};

/// Bytes of stack that a child has before its exec, in units of 16 for the alignment: it calls a
/// dozen system calls and nothing else; the C library's own start takes 36 KiB.
const STACK_UNITS: usize = (64 << 10) / size_of::<u128>();

/// What a child needs between its clone and its exec, all prepared by the parent.
struct Launch {
    program: *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
    dir: *const c_char,
    /// What become descriptors 0, 1 and 2.
    streams: [i32; 3],
    /// Whether the child waits for its word, and is nothing without this parent.
    waits_for: Option<Pid>,
    /// One of the words below.
    word: AtomicU32,
    /// Signals that are not at their default in the keeper.
    signals: &'static [i32],
    /// What the child gets back, if the keeper itself is held.
    free: Option<Free>,
    /// Written by the child: the error number of what failed.
    errno: AtomicI32,
}

/// There is no word yet.
const WAIT: u32 = 0;
/// The child is to execute its program.
const GO: u32 = 1;

/// The words of a command as the kernel takes them, valid as long as the command is.
struct Words {
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
}

impl Words {
    fn of(argv: &[CString], env: &[&CStr]) -> Self {
        let argv = pointers(argv.iter().map(AsRef::as_ref));
        Self { argv, env: pointers(env.iter().copied()) }
    }
}

/// Clones a child that runs [`child`] in our memory.
///
/// # Safety
/// What `launch` points to, and the stack, must stay until the child is past its exec or gone.
unsafe fn clone(launch: *mut Launch, stack: &mut Vec<u128>, flags: i32) -> io::Result<Pid> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the child runs on a stack of its own, which grows down from the end of the
    // allocation. Signals are blocked in it until their handlers are gone, because one that ran in
    // the child would run in our memory.
    let (pid, error) = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let top = stack.as_mut_ptr().add(STACK_UNITS).cast();
        let pid = libc::clone(child, top, flags | libc::CLONE_VM | libc::SIGCHLD, launch.cast());
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        (pid, error)
    };
    if pid < 0 { Err(error) } else { Ok(pid) }
}

/// Starts a process in a session of its own; the failure of its exec is this call's failure.
pub(crate) fn spawn(command: &Command<'_>) -> io::Result<Pid> {
    let words = Words::of(command.argv, command.env);
    let mut launch = Launch::new(command, &words);
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_UNITS);
    // SAFETY: this thread is suspended until the child's exec or exit, so all that `launch` points
    // to outlives it and is used by one of the two at a time.
    let pid = unsafe { clone(&raw mut launch, &mut stack, libc::CLONE_VFORK)? };
    match launch.errno.load(Ordering::Relaxed) {
        0 => Ok(pid),
        errno => {
            wait_for(pid);
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}

/// Waits for the end of a child.
fn wait_for(pid: Pid) {
    let pid = rustix::process::Pid::from_raw(pid);
    while matches!(rustix::process::waitpid(pid, WaitOptions::empty()), Err(Errno::INTR)) {}
}

/// A child that has everything but its program, and waits for the word to go. If the word never
/// comes, because this is dropped or the keeper dies, it ends without having done anything.
pub(crate) struct Waiting {
    pid: Pid,
    /// What the child uses until its exec.
    launch: *mut Launch,
    memory: ManuallyDrop<(Words, Vec<u8>, Vec<u128>)>,
    is_released: bool,
    is_reaped: bool,
}

impl Waiting {
    /// Makes the child of a command, and lets it wait.
    pub(crate) fn new(command: &Command<'_>) -> io::Result<Self> {
        // Our own copies, because the child may need them after the caller has dropped its own; all
        // in one piece, because there are dozens of variables.
        let words = || {
            let fixed = [command.program, command.dir].into_iter();
            fixed.chain(command.argv.iter().map(AsRef::as_ref)).chain(command.env.iter().copied())
        };
        let mut text =
            Vec::with_capacity(words().map(CStr::count_bytes).sum::<usize>() + words().count());
        let mut places = Vec::with_capacity(words().count());
        for word in words() {
            places.push(text.len());
            text.extend_from_slice(word.to_bytes_with_nul());
        }
        let places: Vec<*const c_char> =
            places.into_iter().map(|place| text[place..].as_ptr().cast()).collect();
        let list = |words: &[*const c_char]| words.iter().copied().chain([ptr::null()]).collect();
        let (argv, env) = places[2..].split_at(command.argv.len());
        let words = Words { argv: list(argv), env: list(env) };
        let mut launch = Launch::new(command, &words);
        (launch.program, launch.dir) = (places[0], places[1]);
        launch.waits_for = Some(rustix::process::getpid().as_raw_nonzero().get());
        let launch = Box::into_raw(Box::new(launch));
        let memory = ManuallyDrop::new((words, text, Vec::with_capacity(STACK_UNITS)));
        let mut waiting = Self { pid: 0, launch, memory, is_released: false, is_reaped: true };
        // SAFETY: `Drop` frees none of this before the child is known to be gone.
        waiting.pid = unsafe { clone(launch, &mut waiting.memory.2, 0)? };
        waiting.is_reaped = false;
        Ok(waiting)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets it go.
    pub(crate) fn release(&mut self) {
        self.is_released = true;
        let word = &self.launch().word;
        word.store(GO, Ordering::Release);
        // Fails for no address that is mapped.
        let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
    }

    /// Notes that somebody has waited for its end; says whether its program could not be executed.
    pub(crate) fn reaped(&mut self) -> bool {
        self.is_reaped = true;
        self.launch().errno.load(Ordering::Relaxed) != 0
    }

    fn launch(&self) -> &Launch {
        // SAFETY: it is freed by `Drop` alone; what the child writes to is atomic.
        unsafe { &*self.launch }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_reaped {
            if self.is_released {
                // It may or may not be past its exec: its memory stays.
                return;
            }
            // It may be stopped, and nobody waited for it yet: the number is its own.
            if let Some(pid) = rustix::process::Pid::from_raw(self.pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            wait_for(self.pid);
        }
        // SAFETY: the child is gone, or never was.
        unsafe {
            drop(Box::from_raw(self.launch));
            ManuallyDrop::drop(&mut self.memory);
        }
    }
}

impl Launch {
    fn new(command: &Command<'_>, words: &Words) -> Self {
        Self {
            program: command.program.as_ptr(),
            argv: words.argv.as_ptr(),
            env: words.env.as_ptr(),
            dir: command.dir.as_ptr(),
            streams: [command.stdin, command.stdout, command.stderr].map(|fd| fd.as_raw_fd()),
            waits_for: None,
            word: AtomicU32::new(WAIT),
            signals: changed_signals(),
            free: command.free,
            errno: AtomicI32::new(0),
        }
    }
}

/// What a child does first: it must not allocate, lock or return, for it shares our memory. Nor may
/// it fail through the C library: its `errno` is ours too, and we may be running.
extern "C" fn child(launch: *mut c_void) -> i32 {
    let launch = launch.cast::<Launch>();
    // SAFETY: a valid `Launch` that lives until the exec; all of these calls may be made between a
    // vfork and an exec, and their pointers are valid.
    unsafe {
        let errno = match prepare(&*launch) {
            Ok(()) => execve((*launch).program, (*launch).argv, (*launch).env),
            Err(error) => error.raw_os_error(),
        };
        (*launch).errno.store(errno, Ordering::Relaxed);
        libc::_exit(127)
    }
}

/// Makes the child what it should be at its exec.
///
/// # Safety
/// Only for a child between its clone and its exec.
unsafe fn prepare(launch: &Launch) -> rustix::io::Result<()> {
    // SAFETY: as in `child`; the set is initialised before its use, and the descriptors were open
    // in the keeper when it cloned.
    unsafe {
        // Before signals are let through: our handlers must not run here.
        for &signal in launch.signals {
            libc::signal(signal, libc::SIG_DFL);
        }
        for (to, from) in (0..).zip(launch.streams) {
            place(from, to)?;
        }
        rustix::process::setsid()?;
        rustix::process::chdir(CStr::from_ptr(launch.dir))?;
        if let Some(parent) = launch.waits_for {
            await_word(&launch.word, parent)?;
        }
        if let Some(free) = &launch.free {
            if free.interrupts {
                interrupt_again();
            }
            // Fails only if the machine took all of these away, and has then chosen others.
            let _ = rustix::thread::sched_setaffinity(None, &free.cpus);
        }
        let mut none = MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
    Ok(())
}

/// Makes a descriptor the one of a standard stream, to stay open over the exec.
///
/// # Safety
/// It is open.
unsafe fn place(from: i32, to: i32) -> rustix::io::Result<()> {
    // SAFETY: as the caller says.
    let fd = unsafe { BorrowedFd::borrow_raw(from) };
    match to {
        _ if from == to => rustix::io::fcntl_setfd(fd, FdFlags::empty()),
        0 => rustix::stdio::dup2_stdin(fd),
        1 => rustix::stdio::dup2_stdout(fd),
        _ => rustix::stdio::dup2_stderr(fd),
    }
}

/// Returns when the word to go has come; the child is killed when it cannot come any more.
fn await_word(word: &AtomicU32, parent: Pid) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let here = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if here != Some(parent) {
        // The parent died before we asked for a signal.
        // SAFETY: ends the calling process, a child before its exec, and touches nothing.
        unsafe { libc::_exit(0) }
    }
    while word.load(Ordering::Acquire) == WAIT {
        // A word that came meanwhile, and a signal, end this early.
        let _ = futex::wait(word, futex::Flags::PRIVATE, WAIT, None);
    }
    rustix::process::set_parent_process_death_signal(None)
}

/// Executes a program, or gives the error number; without the C library, see [`child`].
///
/// # Safety
/// The pointers are those of valid, terminated strings and lists.
#[cfg(target_arch = "x86_64")]
unsafe fn execve(
    program: *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
) -> i32 {
    let mut result = libc::SYS_execve;
    // SAFETY: the kernel's convention for a call with three arguments.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") program,
            in("rsi") argv,
            in("rdx") env,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    i32::try_from(-result).unwrap_or(libc::EINVAL)
}

/// As above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
unsafe fn execve(
    program: *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
) -> i32 {
    let result: libc::c_long;
    // SAFETY: the kernel's convention for a call with three arguments.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") libc::SYS_execve,
            inlateout("x0") program => result,
            in("x1") argv,
            in("x2") env,
            options(nostack)
        );
    }
    i32::try_from(-result).unwrap_or(libc::EINVAL)
}

/// As above; where the call is not spelled out, the error number may for once be mistaken for one
/// of the keeper's.
///
/// # Safety
/// As above.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn execve(
    program: *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        libc::execve(program, argv, env);
        *libc::__errno_location()
    }
}
