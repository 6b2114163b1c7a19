//! Both sides of a conflict in one tree, whatever kind it is.
//!
//! If these fail, one side of a conflict could be lost without anybody having decided so.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod tree_support;

use std::fs;

use piton_workspace::merge::{Disputed, Rebase, rebase, sides};
use piton_workspace::worktree;
use tree_support::{commit, git, hermetic, write};

#[test]
fn sides_that_are_no_text_lie_beside_their_file() {
    hermetic(|repo| {
        repo.write("gone.txt", "one\n");
        fs::write(repo.root.join("logo.png"), b"\0old").unwrap();
        // A name that is taken gets another.
        repo.write("logo.png~lane", "mine\n");
        repo.commit("start");
        let lane = repo.lane("SL-1");
        write(&lane.path, "a.txt", "one\nlane\nthree\n");
        fs::write(lane.path.join("logo.png"), b"\0lane").unwrap();
        fs::remove_file(lane.path.join("gone.txt")).unwrap();
        write(&lane.path, "d", "a file\n");
        let head = commit(&lane.path, "lane");
        repo.write("a.txt", "one\nbase\nthree\n");
        fs::write(repo.root.join("logo.png"), b"\0base").unwrap();
        repo.write("gone.txt", "one\nmore\n");
        repo.write("d/x", "in a folder\n");
        let onto = repo.commit("base");

        let start = repo.head(&format!("{onto}^"));
        let Rebase::Conflict { files, .. } = rebase(&repo.root, &head, &start, &onto).unwrap()
        else {
            panic!("there is a conflict");
        };
        assert_eq!(files, ["a.txt", "d", "gone.txt", "logo.png"], "by the names people know");
        let found = sides(&repo.root, &onto, &head).unwrap();
        let names: Vec<_> = found.files.iter().map(|f| f.path.to_str().unwrap()).collect();
        assert_eq!(names, ["a.txt", "d", "gone.txt", "logo.png"]);
        let markers: Vec<_> = found.files.iter().map(|f| f.has_markers).collect();
        assert_eq!(markers, [true, false, false, false]);
        let words: Vec<String> = found.files.iter().map(Disputed::words).collect();
        assert!(words[1].starts_with("d (file/directory): base has none, the lane has d~lane"));
        assert!(words[2].contains("(modify/delete): base has gone.txt~base"), "{}", words[2]);
        assert!(words[2].contains("the lane has none"), "{}", words[2]);

        let tree = found.tree(&lane.path).unwrap();
        let listed = git(&repo.root, &["ls-tree", "-r", "--name-only", &tree]);
        let beside: Vec<&str> = listed.lines().filter(|l| l.contains('~')).collect();
        let expected =
            ["d~lane", "gone.txt~base", "logo.png~base", "logo.png~lane", "logo.png~lane~"];
        assert_eq!(beside, expected);
        let show = |name: &str| git(&repo.root, &["cat-file", "blob", &format!("{tree}:{name}")]);
        assert_eq!(show("d~lane").trim_end(), "a file");
        assert_eq!(show("logo.png~lane").trim_end(), "mine");
        assert_eq!(show("logo.png~lane~"), "\0lane");
        assert!(show("a.txt").contains("<<<<<<< "));
        // The same again, whoever was killed in between.
        assert_eq!(sides(&repo.root, &onto, &head).unwrap().tree(&lane.path).unwrap(), tree);
    });
}

/// Lost: what base deleted or renamed since a lane began would come back to base with the lane's work,
/// because a conflict elsewhere was put into its worktree.
#[test]
fn what_base_deleted_is_gone_where_a_conflict_is_put_in() {
    hermetic(|repo| {
        repo.write("old name.txt", "one\ntwo\nthree\n");
        repo.commit("start");
        let lane = repo.lane("SL-1");
        write(&lane.path, "a.txt", "one\nlane\nthree\n");
        let head = commit(&lane.path, "lane");
        repo.write("a.txt", "one\nbase\nthree\n");
        repo.git(&["mv", "old name.txt", "name.txt"]);
        repo.git(&["rm", "-q", "dir/b.txt"]);
        let onto = repo.commit("base");
        let tree = sides(&repo.root, &onto, &head).unwrap().tree(&lane.path).unwrap();
        // Twice: whoever comes after a kill does it again.
        for _ in 0..2 {
            worktree::move_with_files(&lane.path, &onto, &tree, &repo.fence()).unwrap();
            assert_eq!(git(&lane.path, &["rev-parse", "HEAD"]), onto);
            assert_eq!(git(&lane.path, &["status", "--porcelain", "-uall"]).trim(), "M a.txt");
            assert!(lane.path.join("name.txt").is_file() && !lane.path.join("dir").exists());
        }
    });
}
