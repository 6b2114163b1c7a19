//! Packs that git made, in every way it makes them, read beside git.

use std::path::Path;
use std::process::Command;

use super::*;

fn git(dir: &Path, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(args).current_dir(dir);
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn text(dir: &Path, args: &[&str]) -> String {
    String::from_utf8(git(dir, args)).expect("git prints text").trim().to_owned()
}

/// A repository in which files grow from commit to commit, so that most follow from others.
fn grown() -> tempfile::TempDir {
    let tmp = tempfile::tempdir().expect("a temporary folder");
    let dir = tmp.path();
    git(dir, &["init", "-q", "-b", "main"]);
    let noise = |n: usize| n.wrapping_mul(2_654_435_761) >> 9 & 0xffff;
    for version in 0..8 {
        for file in 0..6 {
            let lines: Vec<String> = (0..200 * file).map(|l| noise(l).to_string()).collect();
            let mut text = lines.join("\n");
            text.insert_str(text.len() / 2, &format!("\nof version {version}\n"));
            std::fs::write(dir.join(format!("f{file}")), text).expect("it is written");
        }
        git(dir, &["add", "-A"]);
        git(dir, &["commit", "-q", "-m", "more"]);
    }
    std::fs::write(dir.join("empty"), "").expect("it is written");
    std::fs::write(dir.join("large"), vec![7; 3 << 20]).expect("it is written");
    let random: Vec<u8> = (0..100_000).map(|n| noise(n).to_le_bytes()[0]).collect();
    std::fs::write(dir.join("random"), random).expect("it is written");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "others"]);
    tmp
}

/// Reads all files of all commits, as git has them; says how many.
fn read_all(dir: &Path) -> usize {
    let packs = Packs::open(&dir.join(".git/objects"));
    let mut reader = Reader::new(&packs);
    let mut content = Vec::new();
    let args = ["cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)"];
    let mut count = 0;
    for line in text(dir, &args).lines() {
        let (kind, id) = line.split_once(' ').expect("two words");
        let oid = Oid::from_hex(id.as_bytes()).expect("an id");
        let place = packs.find(oid).unwrap_or_else(|| panic!("{id} lies in a pack"));
        assert!(packs.contains(oid));
        let read = reader.blob(place, &mut content);
        assert_eq!(read.is_some(), kind == "blob", "{kind} {id}");
        if kind == "blob" {
            assert!(content == git(dir, &["cat-file", "blob", id]), "{id}");
            count += 1;
        }
    }
    assert_eq!(packs.find(Oid([0x5a; LEN])), None);
    count
}

fn packs(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join(".git/objects/pack")).expect("there are packs");
    let files = entries.map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|e| e == "pack")).collect()
}

#[test]
fn what_git_packed_is_read_as_git_reads_it() {
    let tmp = grown();
    let dir = tmp.path();
    let deltas = ["repack", "-adfq", "--depth=50", "--window=50"];
    for by_offset in ["true", "false"] {
        let setting = format!("repack.useDeltaBaseOffset={by_offset}");
        git(dir, &[&["-c", &setting], &deltas[..]].concat());
        assert_eq!(packs(dir).len(), 1);
        let shown = text(dir, &["verify-pack", "-v", &packs(dir)[0].display().to_string()]);
        assert!(shown.contains("chain length = 3"), "differences follow from differences: {shown}");
        assert_eq!(read_all(dir), 8 * 6 + 3);
    }
}

#[test]
fn offsets_beyond_32_bits_have_a_table_of_their_own() {
    let tmp = grown();
    let dir = tmp.path();
    git(dir, &["repack", "-adq"]);
    let pack = packs(dir).remove(0);
    let index = pack.with_extension("idx");
    std::fs::remove_file(&index).expect("the index goes");
    let (pack, index) = (pack.display().to_string(), index.display().to_string());
    git(dir, &["index-pack", "--index-version=2,0x100", "-o", &index, &pack]);
    read_all(dir);
}

#[test]
fn several_packs_and_those_of_another_repository_are_found() {
    let tmp = grown();
    let dir = tmp.path();
    git(dir, &["repack", "-adq"]);
    std::fs::write(dir.join("later"), "later").expect("it is written");
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "later"]);
    git(dir, &["repack", "-dq"]);
    assert_eq!(packs(dir).len(), 2);
    let all = read_all(dir);
    let clone = tempfile::tempdir().expect("a temporary folder");
    let (from, to) = (dir.display().to_string(), clone.path().display().to_string());
    git(dir, &["clone", "-q", "--shared", &from, &to]);
    assert_eq!(read_all(clone.path()), all);
}

#[test]
fn a_damaged_pack_gives_nothing_or_what_was_there() {
    let tmp = grown();
    let dir = tmp.path();
    git(dir, &["repack", "-adfq", "--depth=50", "--window=50"]);
    let file = packs(dir).remove(0);
    let whole = std::fs::read(&file).expect("it is read");
    let ids = text(dir, &["ls-tree", "-r", "--format=%(objectname)", "HEAD~1"]);
    let expected: Vec<Vec<u8>> =
        ids.lines().map(|id| git(dir, &["cat-file", "blob", id])).collect();
    // As git writes them packs can't be written to.
    std::fs::remove_file(&file).expect("it goes");
    let mut refused = 0;
    for step in 0..200 {
        let mut bytes = whole.clone();
        let at = 12 + step * (whole.len() - 40) / 200;
        bytes[at] ^= 1 << (step % 8);
        if step % 5 == 0 {
            bytes.truncate(at);
        }
        std::fs::write(&file, &bytes).expect("it is written");
        let packs = Packs::open(&dir.join(".git/objects"));
        let mut reader = Reader::new(&packs);
        let mut content = Vec::new();
        for (id, expected) in ids.lines().zip(&expected) {
            let place = packs.find(Oid::from_hex(id.as_bytes()).expect("an id")).expect("a place");
            match reader.blob(place, &mut content) {
                // A base that is another object of the same length can't be recognised without hashing
                // all of it, which git does not do either.
                Some(()) => assert_eq!(content.len(), expected.len(), "{id} of damage at {at}"),
                None => refused += 1,
            }
        }
    }
    assert!(refused > 0);
}
