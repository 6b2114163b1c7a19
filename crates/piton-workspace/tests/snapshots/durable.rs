//! Snapshots survive: a collection of garbage, a power cut, and being many.

use piton_workspace::refs::{self, Ref};
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

/// Needs `strace`; without it nothing is shown here.
#[test]
fn pack_index_folder_ref_and_its_folder_are_synced_in_this_order() {
    let repo = Repo::new();
    repo.take();
    let log = repo.beside("syncs");
    let program = std::env::current_exe().unwrap();
    let traced = std::process::Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat2", "-o"])
        .args([log.as_os_str(), program.as_os_str()])
        .args(["--exact", "--ignored", "durable::take_one_for_the_trace"])
        .env("PITON_TEST_DIR", repo.dir())
        .output();
    let Ok(traced) = traced else { return };
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stdout));
    let log = std::fs::read_to_string(log).unwrap();
    // What a step wrote, before the snapshot that says so.
    let changed = log.lines().position(|l| l.contains("fsync(") && l.contains("/a.txt>"));
    let pack = log.lines().position(|l| l.contains("fsync(") && l.contains("tmp_pack_"));
    assert!(changed.is_some() && changed < pack, "{log}");
    let chain = log.lines().filter_map(|line| {
        let what = line.split_whitespace().nth(1)?;
        let place = line.rsplit_once(".git/")?.1;
        let place = place.split(['>', '"']).next()?;
        let place = place.rsplit_once("piton_").map_or(place, |(start, _)| start);
        let call = what.split('(').next()?;
        Some(format!("{call} {place}"))
    });
    let chain: Vec<String> =
        chain.filter(|l| l.contains("objects/") || l.contains("refs/")).collect();
    let packs = |l: &str| l.starts_with("rename") && l.contains("objects/pack/pack-");
    let shown: Vec<&str> = chain.iter().map(String::as_str).filter(|l| !packs(l)).collect();
    assert_eq!(
        shown,
        [
            // Whoever raised the fence may not have lived to sync it, and the way up to it.
            "fsync objects/d0/0491fd7e5bb6fa28c517a0bb32b8b506539d4d",
            "fsync objects/d0",
            "fsync refs/piton/run-1",
            "fsync refs/piton",
            "fsync objects/pack/tmp_pack_",
            "fsync objects/pack/tmp_idx_",
            "fsync objects/pack",
            "fsync refs/piton/run-1/lane.lock",
            "rename refs/piton/run-1/lane",
            "fsync refs/piton/run-1",
        ]
    );
    assert_eq!(chain.len(), shown.len() + 2);
}

/// Not a test: the process that the test above traces.
#[test]
#[ignore = "run by the test above"]
fn take_one_for_the_trace() {
    let dir = std::path::PathBuf::from(std::env::var_os("PITON_TEST_DIR").unwrap());
    std::fs::write(dir.join("a.txt"), "changed\n").unwrap();
    let workspace = snapshot::Workspace { cache: dir.join(".git/piton/cache/main"), dir };
    let fence = piton_workspace::refs::Fence::raise(&workspace.dir, RUN, 1).unwrap();
    let meta = snapshot::Meta { message: "m", at: 0 };
    snapshot::take(&workspace, &snapshot::Rules::default(), CHAIN, &fence, &meta).unwrap();
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
    for round in 0..70 {
        repo.write("a.txt", format!("round {round}\n"));
        repo.take();
    }
    assert!(packs() < 20, "{} packs", packs());
    assert_eq!(repo.git(&["rev-list", "--count", CHAIN]), "70");
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
    repo.write("noise", noise(40_000, 1));
    repo.take();
    let after = snapshot::costs(repo.dir(), &prefix).unwrap();
    assert!(after.bytes > before.bytes + 50_000, "{before:?} {after:?}");
    assert!(after.objects > before.objects);
}

/// Bytes that can't be packed well.
fn noise(words: u32, seed: u32) -> Vec<u8> {
    (0..words).flat_map(|n| (n ^ seed).wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// Lost: a person would be told that more, or less, goes with the runs they delete than does.
#[test]
fn what_goes_with_many_runs_is_measured_at_once() {
    let repo = Repo::new();
    repo.write("first", noise(40_000, 1));
    repo.take();
    repo.git(&["update-ref", "refs/piton/other/root", CHAIN]);
    repo.write("second", noise(20_000, 7 << 20));
    repo.take();
    let below = |run: &str| refs::list(repo.dir(), &format!("refs/piton/{run}/")).unwrap();
    let (own, other) = (below(RUN), below("other"));
    let alone = |going: &[&[Ref]]| snapshot::shares(repo.dir(), going, &[]).unwrap();
    let all = alone(&[&own])[0];
    assert!(all > 200_000, "{all}");
    // What both have counts for one of them, and for none where the other one stays.
    assert_eq!(alone(&[&own, &other]).iter().sum::<u64>(), all);
    let staying: Vec<&Ref> = other.iter().collect();
    let last = snapshot::shares(repo.dir(), &[&own], &staying).unwrap()[0];
    assert!(last > 60_000 && last < all - 100_000, "{last} of {all}");
    assert!(snapshot::shares(repo.dir(), &[], &staying).unwrap().is_empty());
}
