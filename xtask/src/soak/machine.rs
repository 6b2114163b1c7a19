//! The machine of a round: a boot id that changes, and a disk that loses its power.
//!
//! Such a round runs on a thread with a mount namespace of its own. In it a file covers the boot id of
//! the kernel for every program that the round starts, and an ext4 file system in an image is mounted
//! for the round alone. However the round ends, the kernel unmounts both and frees the loop device
//! when the last process of the namespace is gone.
#![expect(unsafe_code, reason = "rustix has no safe function for a namespace, nor for this ioctl")]

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::Broken;
use super::scratch::Scratch;
use crate::rng::Rng;

/// Where the kernel tells the boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Enough for a round. The image is sparse: it takes what is written.
const DISK_BYTES: u64 = 1 << 30;
/// Shuts a file system down (`FS_IOC_SHUTDOWN`).
const SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);
/// Not even the journal in memory is written: what nobody synced is lost.
const NO_LOG_FLUSH: u32 = 2;

/// Carries something out on a thread with a mount namespace of its own.
pub(super) fn apart<T: Send>(act: impl FnOnce() -> Result<T, Broken> + Send) -> Result<T, Broken> {
    let begin = || {
        // SAFETY: only mounts are split off; file descriptors stay those of all threads.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }
            .map_err(|e| format!("a mount namespace cannot be made: {e}"))?;
        call("mount", &["--make-rprivate".as_ref(), "/".as_ref()])?;
        act()
    };
    thread::scope(|scope| scope.spawn(begin).join().unwrap_or(Err("a round panicked".to_owned())))
}

/// Whether rounds can have a boot id of their own here.
pub(super) fn can_reboot() -> Result<(), Broken> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    apart(|| Boot::new(dir.path(), &mut Rng::of_round(0, "", 0)).map(drop))
}

/// Whether rounds can have a disk of their own here.
pub(super) fn can_lose_power() -> Result<(), Broken> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    can_reboot().and_then(|()| apart(|| Disk::new(dir.path())?.cut()))
}

/// The boot id that the programs of a round see.
pub(super) struct Boot(PathBuf);

impl Boot {
    /// Covers that of the kernel with a file in this folder.
    pub(super) fn new(folder: &Path, rng: &mut Rng) -> Result<Self, Broken> {
        let boot = Self(folder.join("boot_id"));
        boot.next(rng)?;
        call("mount", &["--bind".as_ref(), &boot.0, BOOT_ID.as_ref()])?;
        Ok(boot)
    }

    /// The machine starts again.
    pub(super) fn next(&self, rng: &mut Rng) -> Result<(), Broken> {
        let id = format!("{:08x}-0000-4000-8000-{:012x}\n", rng.next() >> 32, rng.next() >> 16);
        fs::write(&self.0, id).map_err(|e| e.to_string())
    }
}

/// A disk with a file system, in an image.
pub(super) struct Disk {
    image: PathBuf,
    at: PathBuf,
}

impl Disk {
    /// Makes one in this folder, and mounts it at `disk` there.
    pub(super) fn new(folder: &Path) -> Result<Self, Broken> {
        let disk = Self { image: folder.join("disk.img"), at: folder.join("disk") };
        let image = File::create(&disk.image).map_err(|e| e.to_string())?;
        image.set_len(DISK_BYTES).map_err(|e| e.to_string())?;
        fs::create_dir(&disk.at).map_err(|e| e.to_string())?;
        call("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), &disk.image])?;
        disk.mount()?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub(super) fn at(&self) -> &Path {
        &self.at
    }

    fn mount(&self) -> Result<(), Broken> {
        call("mount", &["-o".as_ref(), "loop".as_ref(), &self.image, &self.at])
    }

    /// Brings everything written so far to the disk.
    pub(super) fn sync(&self) -> Result<(), Broken> {
        let root = File::open(&self.at).map_err(|e| e.to_string())?;
        rustix::fs::syncfs(root).map_err(|e| format!("syncfs: {e}"))
    }

    /// Cuts the power: from now on nothing is written, and what was not synced is lost.
    pub(super) fn cut(&self) -> Result<(), Broken> {
        let root = File::open(&self.at).map_err(|e| e.to_string())?;
        // SAFETY: this ioctl reads the number that the pointer leads to, and writes nothing.
        unsafe { ioctl(root.as_fd(), Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH)) }
            .map_err(|e| format!("the file system cannot be shut down: {e}"))
    }

    /// The power is back: the file system is mounted anew, which replays its journal. Nobody may have
    /// a file open there any more.
    pub(super) fn restart(&self) -> Result<(), Broken> {
        let mut why = String::new();
        let image = [Path::new("--noheadings"), "--associated".as_ref(), &self.image];
        let is_free = || output("losetup", &image).is_ok_and(|list| list.is_empty());
        // Processes that were killed let go of it late, and with them their namespaces.
        let unmounted = Scratch::until(|| {
            why = call("umount", &[&self.at]).err().unwrap_or_default();
            why.is_empty()
        });
        if !unmounted || !Scratch::until(is_free) {
            return Err(format!("the disk is still in use: {why}"));
        }
        self.mount()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Where this fails the kernel does it, at the end of the namespace.
        let _ = call("umount", &["--lazy".as_ref(), &self.at]);
    }
}

/// Calls a program of the system; what it complained about if it fails.
fn call(program: &str, words: &[&Path]) -> Result<(), Broken> {
    output(program, words).map(drop)
}

fn output(program: &str, words: &[&Path]) -> Result<String, Broken> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim_end()))
}
