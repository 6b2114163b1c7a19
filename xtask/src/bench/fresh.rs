//! A file system nobody wrote to before: a loop-mounted ext4 image.
//!
//! How long ext4 takes to create files varies twentyfold with what was deleted before, so whatever
//! creates or deletes many is measured on one of these. Mounting needs rights and a loop device;
//! where it fails the rows say so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes of an image: twice what a hundred thousand small files need. It is sparse.
const BYTES: u64 = 4 << 30;
/// Files an image has room for.
const INODES: &str = "600000";
/// Longest wait for a file system to be given up by those who used it.
const UNMOUNT_WAIT: Duration = Duration::from_secs(60);
/// The pause between two tries.
const UNMOUNT_EVERY: Duration = Duration::from_millis(50);

/// A mounted image; it goes with this value.
pub(super) struct Fresh {
    image: PathBuf,
    dir: PathBuf,
}

impl Fresh {
    /// Makes and mounts one below a folder.
    pub(super) fn mount(below: &Path) -> Result<Self, String> {
        let image = below.join("fresh.img");
        let dir = below.join("fresh");
        fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
        let file = fs::File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(BYTES).map_err(|e| e.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-N", INODES]).arg(&image))?;
        // The kernel would go on to fill in the tables of inodes while we measure.
        let mut mount = Command::new("mount");
        let mounted = run(mount.args(["-o", "loop,noinit_itable"]).arg(&image).arg(&dir));
        if mounted.is_err() {
            // Nothing was mounted; a leftover file is deleted with the folder of the measurement.
            let _ = fs::remove_file(&image);
        }
        mounted.map(|()| Self { image, dir })
    }

    /// Where it is mounted.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        piton_workspace::refs::end_processes();
        let deadline = Instant::now() + UNMOUNT_WAIT;
        while run(Command::new("umount").arg(&self.dir)).is_err() {
            if Instant::now() > deadline {
                eprintln!("{} is still mounted: unmount it by hand", self.dir.display());
                return;
            }
            std::thread::sleep(UNMOUNT_EVERY);
        }
        // A leftover file is deleted with the folder of the measurement.
        let _ = fs::remove_file(&self.image);
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|e| format!("{name} could not be started: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
