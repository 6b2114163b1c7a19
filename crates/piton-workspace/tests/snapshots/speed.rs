//! How long snapshots take; run by hand: `cargo nextest run --release --run-ignored only speed`.

use std::time::Instant;

use crate::support::Repo;

fn files(repo: &Repo, count: usize) {
    for n in 0..count {
        let folder = format!("d{:02}/e{:02}", n / 1000 % 100, n / 20 % 50);
        repo.write(&format!("{folder}/file{n:06}.txt"), format!("content of {n}\n").repeat(20));
    }
}

fn change(repo: &Repo, count: usize, round: usize) {
    for n in 0..10 {
        let n = (n * count / 10 + round) % count;
        let folder = format!("d{:02}/e{:02}", n / 1000 % 100, n / 20 % 50);
        repo.write(&format!("{folder}/file{n:06}.txt"), format!("changed in {round}\n").repeat(20));
    }
    for n in 0..5 {
        repo.write(&format!("d00/new{round}-{n}.txt"), format!("new {round} {n}"));
    }
}

fn recipe(repo: &Repo) {
    let index = repo.beside("recipe-index");
    std::fs::copy(repo.path(".git/index"), &index).unwrap();
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(repo.dir()).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        let output = command.args(args).env("GIT_INDEX_FILE", &index).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&["add", "-A"]);
    let tree = run(&["write-tree"]);
    let commit = run(&["commit-tree", &tree, "-m", "snapshot"]);
    run(&["update-ref", "refs/recipe", &commit]);
}

fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let rest = text.rsplit(')').next().unwrap().to_owned();
    rest.split_whitespace().skip(11).take(4).map(|n| n.parse::<u64>().unwrap()).sum()
}

fn floor(repo: &Repo) -> usize {
    let next = std::sync::Mutex::new(vec![repo.dir().to_owned()]);
    let busy = std::sync::atomic::AtomicUsize::new(0);
    let total = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                loop {
                    let mut q = next.lock().unwrap();
                    let Some(dir) = q.pop() else {
                        drop(q);
                        if busy.load(std::sync::atomic::Ordering::SeqCst) == 0 {
                            return;
                        }
                        std::thread::yield_now();
                        continue;
                    };
                    busy.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    drop(q);
                    let fd = rustix::fs::open(
                        &dir,
                        rustix::fs::OFlags::RDONLY,
                        rustix::fs::Mode::empty(),
                    )
                    .unwrap();
                    let mut d = rustix::fs::Dir::new(fd).unwrap();
                    let mut kids = vec![];
                    let mut n = 0;
                    while let Some(e) = d.read() {
                        let e = e.unwrap();
                        let name = e.file_name();
                        if name.to_bytes() == b"."
                            || name.to_bytes() == b".."
                            || name.to_bytes() == b".git"
                        {
                            continue;
                        }
                        let st = rustix::fs::statat(
                            d.fd().unwrap(),
                            name,
                            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
                        )
                        .unwrap();
                        n += 1;
                        if rustix::fs::FileType::from_raw_mode(st.st_mode).is_dir() {
                            use std::os::unix::ffi::OsStrExt as _;
                            kids.push(dir.join(std::ffi::OsStr::from_bytes(name.to_bytes())));
                        }
                    }
                    total.fetch_add(n, std::sync::atomic::Ordering::SeqCst);
                    next.lock().unwrap().extend(kids);
                    busy.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
        }
    });
    total.into_inner()
}

#[test]
#[ignore = "measures; run by hand"]
fn a_snapshot_against_the_recipe() {
    for count in [10, 10_000, 50_000] {
        let repo = Repo::empty();
        files(&repo, count);
        repo.commit();
        repo.git(&["gc", "-q"]);
        let start = Instant::now();
        repo.take();
        let first = start.elapsed();
        let mut c = [0u64; 4];
        let mut fl = vec![];
        let (mut ours, mut theirs, mut same) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..7 {
            change(&repo, count, round);
            let t = cpu();
            let start = Instant::now();
            repo.take();
            ours.push(start.elapsed());
            c[0] += cpu() - t;
            repo.take();
            std::thread::sleep(std::time::Duration::from_millis(30));
            repo.take();
            let t = cpu();
            let start = Instant::now();
            assert!(!repo.take().changed);
            same.push(start.elapsed());
            c[1] += cpu() - t;
            let t = cpu();
            let start = Instant::now();
            recipe(&repo);
            theirs.push(start.elapsed());
            c[2] += cpu() - t;
            let t = cpu();
            let start = Instant::now();
            floor(&repo);
            fl.push(start.elapsed());
            c[3] += cpu() - t;
        }
        for all in [&mut ours, &mut theirs, &mut same] {
            all.sort();
        }
        eprintln!(
            "{count} files: min {:?} {:?} {:?} floor {:?} cpu ticks of 7: {c:?} first {first:?}, changed {:?} (recipe {:?}), unchanged {:?}",
            ours[0],
            theirs[0],
            same[0],
            fl.iter().min(),
            ours[3],
            theirs[3],
            same[3]
        );
    }
}
