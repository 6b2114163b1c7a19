//! What would be lost if these failed: somebody's save, or a reader's trust in whole files.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

struct Rig {
    dir: tempfile::TempDir,
    files: Replacer,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = Replacer::new(dir.path(), dir.path());
        Self { dir, files }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("view/list")
    }

    fn is(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    /// What is beside the file.
    fn beside(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("view")).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "list");
        names.sort();
        names
    }

    /// Adds a line of ours, if it is not there; `meanwhile` happens after the look.
    fn add(&mut self, line: &str, mut meanwhile: impl FnMut(&Path)) -> io::Result<()> {
        let path = self.path();
        self.files.replace(&path, "now", &mut |there, _| {
            let text = String::from_utf8_lossy(there.unwrap_or_default()).into_owned();
            meanwhile(&path);
            if text.lines().any(|known| known == line) {
                return Ok(Wanted::AsItIs);
            }
            Ok(Wanted::Text { text: format!("{text}{line}\n").into_bytes(), sync: false })
        })
    }
}

/// Saves as editors do: a new file in the place of the old one.
fn save(path: &Path, text: &str) {
    let new = path.with_file_name("editor");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

#[test]
fn a_save_between_look_and_exchange_is_merged() {
    for by_rename in [true, false] {
        let mut rig = Rig::new();
        rig.add("one", |_| ()).unwrap();
        let mut saves = vec!["one\nthird\n", "one\ntheirs\n"];
        rig.add("two", |path| match saves.pop() {
            Some(text) if by_rename => save(path, text),
            Some(text) => std::fs::write(path, text).unwrap(),
            None => (),
        })
        .unwrap();
        assert_eq!(rig.is(), "one\nthird\ntwo\n", "the last save of theirs, and ours");
        assert!(rig.beside().is_empty(), "{:?}", rig.beside());
    }
}

#[test]
fn a_file_that_comes_or_goes_meanwhile_is_no_failure() {
    let mut rig = Rig::new();
    let mut first = true;
    rig.add("ours", |path| {
        if std::mem::take(&mut first) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            save(path, "theirs\n");
        }
    })
    .unwrap();
    assert_eq!(rig.is(), "theirs\nours\n");
    let mut first = true;
    rig.add("more", |path| {
        if std::mem::take(&mut first) {
            std::fs::remove_file(path).unwrap();
        }
    })
    .unwrap();
    assert_eq!(rig.is(), "more\n");
    assert!(rig.beside().is_empty());
}

#[test]
fn somebody_who_never_stops_saving_loses_nothing() {
    let mut rig = Rig::new();
    rig.add("ours", |_| ()).unwrap();
    let mut count = 0;
    let error = rig
        .add("more", |path| {
            count += 1;
            save(path, &format!("save {count}\n"));
        })
        .unwrap_err();
    assert!(error.to_string().contains("others change this file"), "{error}");
    let last = format!("save {count}\n");
    let kept = std::fs::read_to_string(rig.dir.path().join("view/list.saved-now")).unwrap();
    assert!(rig.is() == last || kept == last, "{} / {kept}", rig.is());
    assert_eq!(rig.beside(), ["list.saved-now"]);
    assert_eq!(rig.files.warnings.len(), 1);
}

/// Stops where a kill would, leaves what is there to the next, and looks that nothing is lost.
#[test]
fn a_killed_writer_leaves_nothing_and_loses_nothing() {
    let old: &[u8] = b"one\n";
    let new: &[u8] = b"one\ntwo\n";
    let theirs: &[u8] = b"one\ntheirs\n";
    let swap = || format!("swap-{}-{}", short(old), short(new));
    // What is beside, what the file holds, and what it must hold after the next writer.
    let cases: [(&str, &[u8], &[u8], &str); 6] = [
        ("part", b"one\nt", old, "one\ntwo\n"),
        ("part", new, old, "one\ntwo\n"),
        ("swap", new, old, "one\ntwo\n"),
        ("swap", old, new, "one\ntwo\n"),
        ("swap", theirs, new, "one\ntheirs\ntwo\n"),
        ("swap", theirs, b"later\n", "later\ntwo\n"),
    ];
    for (index, (kind, aside, there, wanted)) in cases.into_iter().enumerate() {
        let mut rig = Rig::new();
        let path = rig.path();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, there).unwrap();
        let rest = if kind == "part" { "part".to_owned() } else { swap() };
        std::fs::write(path.with_file_name(format!(".list.piton-{rest}")), aside).unwrap();
        rig.add("two", |_| ()).unwrap();
        assert_eq!(rig.is(), wanted, "case {index}");
        let kept: &[&str] = if index == 5 { &["list.saved-now"] } else { &[] };
        assert_eq!(rig.beside(), kept, "case {index}");
    }
}

#[test]
fn nothing_is_written_when_nothing_changes() {
    use std::os::unix::fs::MetadataExt as _;
    let mut rig = Rig::new();
    rig.add("one", |_| ()).unwrap();
    let before = std::fs::metadata(rig.path()).unwrap();
    rig.add("one", |_| ()).unwrap();
    let after = std::fs::metadata(rig.path()).unwrap();
    assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
}

#[test]
fn modes_and_links_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut rig = Rig::new();
    let real = rig.dir.path().join("real");
    std::fs::write(&real, "one\n").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir_all(rig.path().parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, rig.path()).unwrap();
    rig.add("two", |_| ()).unwrap();
    assert!(rig.path().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "one\ntwo\n");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn writers_at_once_lose_nothing_and_readers_see_whole_files() {
    const LINES: usize = 250;
    let mut rig = Rig::new();
    rig.add("first", |_| ()).unwrap();
    let (path, dir) = (rig.path(), rig.dir.path().to_owned());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !over.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.starts_with("first\n") && text.ends_with('\n'), "{text:?}");
                looks += 1;
            }
            looks
        });
        let writers = ["a", "b"].map(|name| {
            let mut files = Replacer::new(&dir, &dir);
            let path = &path;
            scope.spawn(move || {
                for line in 0..LINES {
                    let line = format!("{name}{line}\n");
                    let merge = &mut |there: Option<&[u8]>, _: bool| {
                        let mut text = there.unwrap_or_default().to_vec();
                        text.extend_from_slice(line.as_bytes());
                        Ok(Wanted::Text { text, sync: false })
                    };
                    files.replace(path, "now", merge).unwrap();
                }
            })
        });
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    assert_eq!(rig.is().lines().count(), 1 + 2 * LINES);
    assert!(rig.beside().is_empty());
}

/// Lost: any file that a link of the repository, or of a step, leads to.
#[test]
fn nothing_is_written_through_a_link_out_of_the_project() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    let mine = outside.path().join("list");
    std::fs::write(&mine, "mine\n").unwrap();
    let (view, part) = ("view", "view/.list.piton-part");
    for (link, target) in [(view, outside.path()), ("view/list", &mine), (part, &mine)] {
        let mut rig = Rig::new();
        let link = rig.dir.path().join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, &link).unwrap();
        let done = rig.add("ours", |_| ());
        let logged = super::super::log::append(&rig.files, &rig.path(), "logged\n");
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine\n", "{}", link.display());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        if link.ends_with(part) {
            assert!(done.is_ok() && rig.is() == "ours\nlogged\n", "{done:?}");
            continue;
        }
        for error in [done, logged].map(|done| done.unwrap_err().to_string()) {
            assert!(error.contains("[link-leads-out]"), "{error}");
            assert!(error.contains(&*link.to_string_lossy()), "{error}");
        }
    }
    // One that stays in the project is followed, however it is written.
    for is_absolute in [true, false] {
        let mut rig = Rig::new();
        let kept = rig.dir.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        let target = if is_absolute { &kept } else { Path::new("kept") };
        symlink(target, rig.dir.path().join(view)).unwrap();
        rig.add("ours", |_| ()).unwrap();
        assert_eq!(std::fs::read_to_string(kept.join("list")).unwrap(), "ours\n");
    }
}
