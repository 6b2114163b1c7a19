//! Snapshots survive: a collection of garbage, a power cut, and being many.

use piton_workspace::snapshot;

use crate::support::{CHAIN, RUN, Repo};

#[test]
fn a_collection_of_garbage_by_the_user_takes_nothing() {
    let repo = Repo::new();
    repo.write("untracked", "u");
    std::fs::create_dir(repo.path("empty")).unwrap();
    repo.chmod("a.txt", 0o600);
    let everything = repo.everything();
    let taken = repo.take();
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.git(&["clean", "-fdqx"]);
    repo.chmod("a.txt", 0o644);
    repo.restore(&taken.commit);
    assert_eq!(repo.everything(), everything);
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn an_object_that_was_there_but_never_synced_is_written_again() {
    let repo = Repo::new();
    repo.take();
    repo.write("new", "content");
    let oid = repo.git(&["hash-object", "-w", "new"]);
    let taken = repo.take();
    // What a power cut leaves of a file that was never synced.
    let loose = repo.path(&format!(".git/objects/{}/{}", &oid[..2], &oid[2..]));
    std::fs::remove_file(&loose).unwrap();
    std::fs::write(&loose, "").unwrap();
    assert_eq!(repo.shows(&taken, "new"), "content");
}

#[test]
fn first_snapshots_do_not_rely_on_loose_objects() {
    let repo = Repo::new();
    let taken = repo.take();
    for fan in std::fs::read_dir(repo.path(".git/objects")).unwrap() {
        let fan = fan.unwrap().path();
        if fan.file_name().is_some_and(|name| name.len() == 2) {
            let epoch = repo.git(&["rev-parse", &format!("refs/piton/{RUN}/epoch")]);
            for object in std::fs::read_dir(&fan).unwrap() {
                let object = object.unwrap().path();
                if !epoch.ends_with(object.file_name().unwrap().to_str().unwrap()) {
                    std::fs::remove_file(object).unwrap();
                }
            }
        }
    }
    assert_eq!(repo.shows(&taken, "a.txt"), "one");
    assert_eq!(repo.shows(&taken, "src/b.txt"), "two");
}

#[test]
fn many_snapshots_leave_few_packs() {
    let repo = Repo::new();
    let packs = || {
        let found = std::fs::read_dir(repo.path(".git/objects/pack")).unwrap();
        let paths = found.map(|e| e.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|e| e == "pack")).count()
    };
    for round in 0..60 {
        repo.write("a.txt", format!("round {round}\n"));
        repo.take();
    }
    assert!(packs() < 20, "{} packs", packs());
    assert_eq!(repo.git(&["rev-list", "--count", CHAIN]), "60");
    repo.git(&["fsck", "--strict"]);
    let garbage = repo.git(&["count-objects", "-v"]);
    assert!(garbage.contains("garbage: 0"), "{garbage}");
}

#[test]
fn snapshots_say_what_they_cost() {
    let repo = Repo::new();
    let prefix = format!("refs/piton/{RUN}/");
    repo.take();
    let before = snapshot::costs(repo.dir(), &prefix).unwrap();
    let noise: Vec<u8> =
        (0..40_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    repo.write("noise", noise);
    repo.take();
    let after = snapshot::costs(repo.dir(), &prefix).unwrap();
    assert!(after.bytes > before.bytes + 50_000, "{before:?} {after:?}");
    assert!(after.objects > before.objects);
}
