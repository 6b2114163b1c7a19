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

#[test]
#[ignore = "measures; run by hand"]
fn a_snapshot_against_the_recipe() {
    for count in [10, 10_000, 100_000] {
        let repo = Repo::empty();
        files(&repo, count);
        repo.commit();
        repo.git(&["gc", "-q"]);
        let start = Instant::now();
        repo.take();
        let first = start.elapsed();
        let (mut ours, mut theirs, mut same) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..7 {
            change(&repo, count, round);
            let start = Instant::now();
            repo.take();
            ours.push(start.elapsed());
            repo.take();
            std::thread::sleep(std::time::Duration::from_millis(30));
            repo.take();
            let start = Instant::now();
            assert!(!repo.take().changed);
            same.push(start.elapsed());
            let start = Instant::now();
            recipe(&repo);
            theirs.push(start.elapsed());
        }
        for all in [&mut ours, &mut theirs, &mut same] {
            all.sort();
        }
        eprintln!(
            "{count} files: first {first:?}, changed {:?} (recipe {:?}), unchanged {:?}",
            ours[3], theirs[3], same[3]
        );
    }
}
