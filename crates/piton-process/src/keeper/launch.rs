//! From a request to a process: environment, program lookup, standard input, and error messages.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::journal::Ticks;
use crate::os::{self, Command, Free, Pid};
use crate::protocol::{ATTEMPT_VARIABLE, Env, MARK_VARIABLE, NewFile, NotStarted, Part, Start};

/// Where programs are looked up when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What runs a script without an interpreter line, as a shell would.
const SHELL: &CStr = c"/bin/sh";

/// The driver's environment, ready to be passed on.
#[derive(Default)]
pub(super) struct BaseEnv(Vec<(Vec<u8>, CString)>);

impl BaseEnv {
    pub(super) fn new(env: &Env) -> Self {
        let ready = env.0.iter().filter_map(|(name, value)| {
            Some((name.as_bytes().to_owned(), entry(name.as_bytes(), value.as_bytes())?))
        });
        Self(ready.collect())
    }
}

/// `name=value`, unless it contains a zero byte, which no environment can hold.
fn entry(name: &[u8], value: &[u8]) -> Option<CString> {
    CString::new([name, b"=", value].concat()).ok()
}

/// What a new child has besides its request.
pub(super) struct Surroundings<'a> {
    pub(super) env: &'a BaseEnv,
    pub(super) mark: &'a str,
    pub(super) null: &'a File,
    pub(super) stdout: &'a File,
    pub(super) stderr: &'a File,
    pub(super) free: Option<Free>,
}

/// Why a start failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: String,
    command_not_found: bool,
}

impl Failure {
    pub(super) fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), command_not_found: false }
    }

    pub(super) fn io(what: &str, error: &io::Error) -> Self {
        Self::new(format!("{what}: {error}"))
    }

    pub(super) fn into_reply(self, key: &str) -> NotStarted {
        NotStarted {
            key: key.to_owned(),
            error: self.error,
            command_not_found: self.command_not_found,
        }
    }
}

/// Starts one part of an attempt; gives its pid and the bounds of its start time.
pub(super) fn part(
    start: &Start,
    part: &Part,
    around: &Surroundings<'_>,
) -> Result<(Pid, Ticks), Failure> {
    with_command(start, part, around, |command| match os::spawn(command) {
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            let shell = CString::from(SHELL);
            let words = [shell.clone(), command.program.to_owned()];
            let argv: Vec<CString> =
                words.into_iter().chain(command.argv.iter().skip(1).cloned()).collect();
            os::spawn(&Command { program: &shell, argv: &argv, ..*command })
        }
        other => other,
    })
}

/// Makes the process of a part, which waits for the signal to go. Whether its program can be
/// executed is known only then.
pub(super) fn waiting(
    start: &Start,
    part: &Part,
    around: &Surroundings<'_>,
) -> Result<(os::Waiting, Ticks), Failure> {
    with_command(start, part, around, os::Waiting::new)
}

/// Builds a command and does something with it; also returns the time that took.
fn with_command<T>(
    start: &Start,
    part: &Part,
    around: &Surroundings<'_>,
    act: impl FnOnce(&Command<'_>) -> io::Result<T>,
) -> Result<(T, Ticks), Failure> {
    let Some(program) = part.argv.first().filter(|program| !program.is_empty()) else {
        return Err(Failure::new("the command is empty; name a program to run"));
    };
    let own: Vec<(&str, CString)> = own_variables(start, around.mark)?;
    let env = compose(around.env, &start.unset, &own);
    let path = lookup(program, &env, &start.dir)?;
    let argv: Option<Vec<CString>> =
        part.argv.iter().map(|arg| CString::new(arg.as_bytes()).ok()).collect();
    let argv = argv
        .ok_or_else(|| Failure::new("an argument contains a NUL byte; pass such data in a file"))?;
    let dir = CString::new(start.dir.as_os_str().as_bytes())
        .map_err(|_| Failure::new("the working directory's path contains a NUL byte"))?;
    let content = part.stdin.as_ref().map(|text| os::memory_file(text.as_bytes())).transpose();
    let content = content.map_err(|error| Failure::io("could not prepare the input", &error))?;
    let command = Command {
        program: &path,
        argv: &argv,
        env: &env,
        dir: &dir,
        stdin: content.as_ref().map_or(around.null.as_fd(), AsFd::as_fd),
        stdout: around.stdout.as_fd(),
        stderr: around.stderr.as_fd(),
        free: around.free,
    };
    let from = os::now_ticks();
    let done = act(&command);
    let to = os::now_ticks();
    match done {
        Ok(done) => Ok((done, Ticks { from, to })),
        Err(error) => Err(explain(&error, program, &start.dir)),
    }
}

/// The variables of the attempt; the mark and the key cannot be overridden.
fn own_variables<'a>(start: &'a Start, mark: &str) -> Result<Vec<(&'a str, CString)>, Failure> {
    let given = start.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let given = given.filter(|(name, _)| *name != MARK_VARIABLE && *name != ATTEMPT_VARIABLE);
    let ours = [(MARK_VARIABLE, mark), (ATTEMPT_VARIABLE, start.key.as_str())];
    given
        .chain(ours)
        .map(|(name, value)| match entry(name.as_bytes(), value.as_bytes()) {
            Some(entry) if !name.is_empty() && !name.contains('=') => Ok((name, entry)),
            _ => Err(Failure::new(format!(
                "the variable {name:?} is not valid in an environment; check its name and value"
            ))),
        })
        .collect()
}

/// Builds the environment of a child.
fn compose<'a>(base: &'a BaseEnv, unset: &[String], own: &'a [(&str, CString)]) -> Vec<&'a CStr> {
    let replaced = |name: &[u8]| {
        own.iter().any(|(own, _)| own.as_bytes() == name)
            || unset.iter().any(|unset| unset.as_bytes() == name)
    };
    // The last of several values for one name wins, as it does in a shell.
    let last = |index: usize, name: &str| !own[index + 1..].iter().any(|(later, _)| *later == name);
    let kept = base.0.iter().filter(|(name, _)| !replaced(name)).map(|(_, entry)| entry.as_c_str());
    let own = own.iter().enumerate().filter(|(index, (name, _))| last(*index, name));
    kept.chain(own.map(|(_, (_, entry))| entry.as_c_str())).collect()
}

/// Finds a program in the child's own `PATH`.
fn lookup(program: &str, env: &[&CStr], dir: &Path) -> Result<CString, Failure> {
    let path = |bytes: &OsStr| {
        CString::new(bytes.as_bytes())
            .map_err(|_| Failure::new("the program's name contains a NUL byte"))
    };
    if program.contains('/') {
        return path(OsStr::new(program));
    }
    let search = env.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    let search = search.unwrap_or(DEFAULT_PATH.as_bytes());
    for entry in search.split(|&byte| byte == b':') {
        let candidate: PathBuf = dir.join(OsStr::from_bytes(entry)).join(program);
        if rustix::fs::access(&candidate, Access::EXEC_OK).is_ok() && candidate.is_file() {
            return path(candidate.as_os_str());
        }
    }
    if !dir.is_dir() {
        return Err(explain(&io::Error::from_raw_os_error(libc::ENOENT), program, dir));
    }
    Err(Failure {
        error: format!("command not found: {program}; install it or correct PATH"),
        command_not_found: true,
    })
}

/// Says what a failed start means.
fn explain(error: &io::Error, program: &str, dir: &Path) -> Failure {
    let errno = error.raw_os_error();
    let command_not_found = dir.is_dir() && errno == Some(libc::ENOENT);
    let error = match errno {
        _ if !dir.is_dir() => format!(
            "the working directory {} does not exist; restore it or correct the plan",
            dir.display()
        ),
        Some(libc::E2BIG) => format!(
            "the arguments and environment of {program} are too long for the system; pass long text \
             through standard input or a file"
        ),
        Some(libc::ENOENT) => {
            format!("command not found: {program} (or its interpreter); correct its path")
        }
        Some(libc::EACCES) => {
            format!("{program} is not executable; check its mode (chmod +x) and its folder")
        }
        Some(libc::EAGAIN | libc::ENOMEM) => {
            format!("the system cannot start more processes ({error}); end some, then retry")
        }
        _ => format!("could not start {program}: {error}; try to run it yourself"),
    };
    Failure { error, command_not_found }
}

/// Writes the files of an attempt.
pub(super) fn write_files(files: &[NewFile]) -> Result<(), Failure> {
    for file in files {
        write_file(&file.path, file.content.as_bytes()).map_err(|error| {
            Failure::io(&format!("could not write {}", file.path.display()), &error)
        })?;
    }
    Ok(())
}

/// Writes a new file into the folder of an attempt. Other steps can write beside that folder, and
/// into it while the attempt is only made ready: no link is followed, and what is there is not
/// written to.
fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let names = path.parent().and_then(|dir| Some((dir.parent()?, dir.file_name()?)));
    let (Some((above, dir)), Some(name)) = (names, path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let above = rustix::fs::open(above, folder, Mode::empty())?;
    match rustix::fs::mkdirat(&above, dir, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let dir = rustix::fs::openat(&above, dir, folder, Mode::empty())?;
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&dir, name, new, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(content)
}
