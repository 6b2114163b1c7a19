//! Git commands that people are told to paste: each is provoked, given to a shell as it stands, and
//! succeeds; and what a run merged is in base as before.
//!
//! The sources are looked through for such commands, so that none comes in without being run here. One
//! with a name or a path in it is worded by `shell::git` alone, which quotes it. Folder and names here
//! need that.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{Output, PITON, Project};
use piton_core::Event;

/// Where commands with names or paths in them are worded, and what shows that they work.
const SHOWN: [(&str, &str, fn()); 13] = [
    ("piton-core/src/refusals.rs", "rebase", a_conflict),
    ("piton-workspace/src/refusals.rs", "", a_merge_under_way),
    ("piton-workspace/src/refusals.rs", "config", a_repository_of_somebody_else),
    ("piton-workspace/src/refusals.rs", "branch", a_base_that_only_a_remote_has),
    ("piton-workspace/src/checks/repository.rs", "config", a_remote_that_gets_everything),
    ("piton-workspace/src/merge/sides.rs", "show", a_conflict_of_binary_files),
    ("piton-workspace/src/worktree/error.rs", "worktree", a_locked_worktree),
    ("piton/src/commands/import.rs", "branch", an_imported_base_that_is_not_here),
    ("piton-view/src/leftover.rs", "worktree", what_a_merge_elsewhere_left),
    ("piton-view/src/leftover.rs", "branch", what_a_merge_elsewhere_left),
    ("piton-world/src/refusals.rs", "switch", a_validation_elsewhere),
    ("piton-world/src/refusals.rs", "switch", another_branch),
    ("piton-world/src/refusals.rs", "switch", a_lane_off_its_branch),
];

/// Commands without names: they are run as they stand, with words for what the person fills in.
const FIXED: [(&str, &str); 15] = [
    ("git init", ""),
    ("git status", ""),
    ("git branch", ""),
    ("git version", ""),
    ("git fsck", ""),
    ("git ls-files --full-name", ""),
    ("git fetch", ""),
    ("git pull", ""),
    ("git fetch --refetch", ""),
    ("git fetch --unshallow", ""),
    ("git gc", ""),
    ("git commit --allow-empty -m Start", ""),
    ("git revert COMMIT", "HEAD~"),
    ("git worktree add -f PATH BRANCH", "../linked side"),
    ("git worktree repair PATH", "../linked"),
];

/// Scenes that are played side by side: they mostly wait for processes.
const AT_ONCE: usize = 4;

/// Told because of what it would destroy.
const NOT_ADVICE: [&str; 1] = ["git clean -fdx"];

/// Lost: work, or a person's patience, to a command that Piton told them to paste.
#[test]
fn every_git_command_that_is_told_is_known_here_and_quoted() {
    let (mut worded, mut fixed) = (BTreeSet::new(), BTreeSet::new());
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    sources(crates, &mut |path, text| {
        let file = path.strip_prefix(crates).unwrap().display().to_string();
        let quoted = text.match_indices("`git ").map(|(at, _)| (&text[at + 1..], '`'));
        let parts = text.match_indices("Shell \"git ").map(|(at, _)| (&text[at + 7..], '"'));
        for (rest, end) in quoted.chain(parts) {
            let told = rest.split(end).next().unwrap();
            assert!(!told.contains('{') || told == "git {command}", "{file}: unquoted in `{told}`");
            if told != "git {command}" && !NOT_ADVICE.contains(&told) {
                fixed.insert(told.to_owned());
            }
        }
        for part in ["shell(\"git ", "command(\"git "] {
            let parts = text.match_indices(part).map(|(at, _)| &text[at + part.len()..]);
            let told = parts.map(|rest| format!("git {}", rest.split('"').next().unwrap()));
            fixed.extend(told);
        }
        for call in ["git(None, &", "git(Some("] {
            for (at, _) in text.match_indices(call) {
                // Those that end what is under way come from a list.
                let words = text[at..].split_once(", &").map_or("", |(_, words)| words);
                let word = words.strip_prefix("[\"").and_then(|words| words.split('"').next());
                worded.insert((file.clone(), word.unwrap_or_default().to_owned()));
            }
        }
    });
    let known = FIXED.iter().map(|(command, _)| (*command).to_owned()).collect();
    assert_eq!(fixed, known, "run it here");
    let known = SHOWN.iter().map(|(file, word, _)| ((*file).to_owned(), (*word).to_owned()));
    assert_eq!(worded, known.collect(), "show here that it works");
}

/// The sources of all crates, without comments and tests.
fn sources(dir: &Path, each: &mut impl FnMut(&Path, &str)) {
    for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "target", "piton-testkit"].contains(&&*name) {
            sources(&path, each);
        } else if path.extension().is_some_and(|end| end == "rs")
            && path.components().any(|part| part.as_os_str() == "src")
        {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            each(&path, &lines.collect::<Vec<_>>().join("\n"));
        }
    }
}

#[test]
fn every_worded_command_works() {
    let mut failed = Vec::new();
    for some in SHOWN.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let scenes: Vec<_> =
                some.iter().map(|(file, word, scene)| (file, word, scope.spawn(scene))).collect();
            for (file, word, scene) in scenes {
                failed.extend(scene.join().err().map(|_| format!("{file}: {word}")));
            }
        });
    }
    assert_eq!(failed, [""; 0], "see above");
}

#[test]
fn every_fixed_command_works() {
    let project = merged("");
    project.git(&["branch", "side"]);
    project.write("more.txt", "");
    project.commit();
    let origin = format!("file://{}", project.root().display());
    project.git(&["clone", "-q", "--depth=1", "--no-single-branch", &origin, "../shallow"]);
    let shallow = project.outside().join("shallow");
    for (command, words) in FIXED {
        if command.contains("repair") {
            // The repository is moved.
            fs::rename(&shallow, project.outside().join("moved")).unwrap();
            let said = project.piton_in(&project.outside().join("linked"), &["doctor"]);
            said.says("git worktree repair PATH");
        }
        let at = if command.contains("repair") { "moved" } else { "shallow" };
        let mut filled = command.to_owned();
        let names = ["COMMIT", "PATH", "BRANCH"].into_iter().filter(|name| command.contains(name));
        for (name, word) in names.zip(words.split(' ')) {
            filled = filled.replace(name, word);
        }
        let line = format!("cd ../{at} && {filled}");
        paste(&project, &line).exits(0);
        let base = ["-C", &format!("../{at}"), "show", "main:kept.txt"];
        assert_eq!(project.git(&base), "kept\n", "{command}");
    }
}

/// A lane in a worktree that does this.
fn lane(id: &str, run: &str) -> String {
    format!("[[phase.lane]]\nid = \"{id}\"\nisolation = \"worktree\"\nrun = '''{run}'''\n")
}

/// A repository with a merged lane, whose file is `kept.txt`, and a plan of these lanes.
fn merged(lanes: &str) -> Project {
    let project = Project::without_git("it's a $repo");
    project.git(&["init", "-q", "-b", "main"]);
    project.write("a.txt", "base\n");
    project.write(".gitignore", ".claude/\n");
    project.write(
        "kept.toml",
        &format!("[[phase]]\nid = \"K\"\n{}", lane("K", "echo kept > kept.txt")),
    );
    project.write("plan.toml", &format!("[[phase]]\nid = \"P\"\n{lanes}"));
    project.commit();
    project.piton(&["run", "kept.toml", "--run-id", "kept"]).exits(0);
    project
}

fn run(project: &Project) -> Output {
    project.piton(&["run", "plan.toml", "--run-id", "r"])
}

/// The git commands that were told.
fn told(said: &Output) -> Vec<String> {
    let text = format!("{}\n{}", said.stdout, said.stderr);
    let lines = text.lines();
    let quoted = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted.filter(|text| text.starts_with("git ")).map(str::to_owned).collect()
}

/// The command with these words that was told, in a shell; it succeeds, and base has what was merged.
#[track_caller]
fn pastes(project: &Project, said: &Output, words: &str) {
    let all = told(said);
    let command = all.iter().find(|command| command.contains(words));
    let command = command.unwrap_or_else(|| panic!("no `{words}` in {all:#?}\n{said:#?}"));
    paste(project, command).exits(0);
    assert_eq!(project.git(&["show", "main:kept.txt"]), "kept\n", "{command}");
}

fn paste(project: &Project, command: &str) -> Output {
    let mut sh = project.command("sh");
    sh.env("GIT_EDITOR", "true").env("GIT_CONFIG_GLOBAL", project.outside().join("gitconfig"));
    project.finish(sh.args(["-c", command]))
}

/// Two lanes of which the second finds that base has another `a.txt` by now.
fn contested(first: &str, second: &str) -> Project {
    let after = "while ! git cat-file -e main:first.txt; do sleep 0.02; done 2> ../../../../told";
    let first = lane("A", &format!("{first}; echo > first.txt"));
    merged(&format!("{first}{}", lane("B", &format!("{after}; {second}"))))
}

fn a_conflict() {
    let project = contested("echo A > a.txt", "echo B > a.txt");
    let said = run(&project).exits(4);
    let begin = told(&said).into_iter().find(|c| c.ends_with("rebase main")).unwrap();
    assert_eq!(paste(&project, &begin).code, 1, "both sides are there");
    project.write(".worktrees/P/B/a.txt", "AB\n");
    paste(&project, "git -C .worktrees/P/B add a.txt").exits(0);
    let under_way = project.piton(&["resume", "r"]).exits(4);
    assert!(told(&under_way).iter().any(|c| c.ends_with("rebase --continue")));
    pastes(&project, &said, "rebase --continue");
    project.piton(&["resume", "r"]).exits(0);
    assert_eq!(project.read("a.txt"), "AB\n");
}

fn a_conflict_of_binary_files() {
    let project = contested("printf '\\0A' > a.png", "printf '\\0B' > a.png");
    let said = project.piton(&["run", "plan.toml", "--run-id", "r", "--retries", "1"]);
    let lines = project.events("r").into_iter().find_map(|event| match event {
        Event::LaneReopened(e) => Some(e.lines.join("\n")),
        _ => None,
    });
    pastes(&project, &Output { stdout: lines.unwrap(), ..said }, "git show");
}

fn a_merge_under_way() {
    let project = merged(&lane("A", "true"));
    project.git(&["switch", "-qc", "side", "HEAD~"]);
    project.write("kept.txt", "other\n");
    project.commit();
    project.git(&["switch", "-q", "main"]);
    project.sh("git merge side").exits(1);
    let said = run(&project).exits(4);
    pastes(&project, &said, "merge --abort");
    project.piton(&["resume", "r"]).exits(0);
}

fn a_repository_of_somebody_else() {
    let project = merged(&lane("A", "true"));
    let foreign = "GIT_TEST_ASSUME_DIFFERENT_OWNER";
    let mut command = project.command(PITON);
    command.args(["run", "plan.toml", "--run-id", "r"]).env(foreign, "1");
    let said = project.finish(&mut command);
    pastes(&project, &said, "safe.directory");
    paste(&project, &format!("{foreign}=1 git status")).exits(0);
}

fn a_base_that_only_a_remote_has() {
    let project = merged(&lane("A", "true"));
    project.git(&["update-ref", "refs/remotes/origin/the;re", "main"]);
    let said = project.piton(&["run", "plan.toml", "--run-id", "r", "--base", "the;re"]).exits(4);
    pastes(&project, &said, "git branch");
    project.git(&["rev-parse", "refs/heads/the;re"]);
}

fn a_remote_that_gets_everything() {
    let project = merged(&lane("A", "true"));
    project.git(&["remote", "add", "o;x", "../x.git"]);
    project.git(&["config", "remote.o;x.push", "+refs/*:refs/*"]);
    let said = run(&project).exits(0);
    pastes(&project, &said, "git config");
    assert!(project.git(&["config", "--get-all", "remote.o;x.push"]).contains("^refs/piton"));
}

fn a_locked_worktree() {
    let again = "git worktree unlock . && git worktree lock --reason mine .";
    let project = merged(&lane("A", again));
    let said = run(&project);
    pastes(&project, &said, "worktree unlock");
    project.piton(&["resume", "r"]).exits(0);
}

fn an_imported_base_that_is_not_here() {
    let project = merged("");
    for base in ["x;touch${IFS}pwned", "--help"] {
        let record = serde_json::json!([{
            "run_id": "P-1", "phase": "P", "lane": "A", "stage": "before_lane_start",
            "status": "ready", "timestamp": "2025-12-27T10:00:00Z", "base_branch": base,
        }]);
        project.write("records.json", &record.to_string());
        let said = project.piton(&["import", "records.json"]).exits(4);
        let make = told(&said).into_iter().find(|c| c.contains("COMMIT")).unwrap();
        let made = paste(&project, &make.replace("COMMIT", "main"));
        assert!(!project.has("pwned"));
        assert_eq!(made.code == 0, base != "--help", "{made:?}");
    }
    project.git(&["rev-parse", "refs/heads/x;touch${IFS}pwned"]);
}

fn what_a_merge_elsewhere_left() {
    let project = merged(&lane("A", "echo A > a.txt"));
    let gh = "create = \"echo https://x/1\"\nfind = \"true\"\nmerged = \"test -e ../merged\"\n";
    project.write("piton.toml", &format!("[defaults]\nmerge = \"pr\"\n[pull_request]\n{gh}"));
    project.commit();
    project.git(&["init", "-q", "--bare", "../remote.git"]);
    project.git(&["remote", "add", "origin", "../remote.git"]);
    run(&project).exits(3);
    fs::write(project.outside().join("merged"), "").unwrap();
    project.piton(&["resume", "r"]).exits(0);
    let said = project.piton(&["doctor"]).exits(0);
    pastes(&project, &said, "git branch -D");
}

/// The validation across lanes, in the project's folder.
fn validation(run: &str) -> String {
    let step = format!("[[phase.lane.step]]\nid = \"validate-1\"\nrun = '{run}'\n");
    format!("[[phase.lane]]\nid = \"validation\"\nneeds = [\"A\"]\n{step}")
}

fn a_validation_elsewhere() {
    let project = merged(&format!("{}{}", lane("A", "echo > m.txt"), validation("true")));
    project.git(&["worktree", "add", "-q", "-b", "re;l", "../the other"]);
    let said = project.piton(&["run", "plan.toml", "--run-id", "r", "--base", "re;l"]).exits(4);
    pastes(&project, &said, "switch --detach");
    pastes(&project, &said, "git switch");
    project.piton(&["resume", "r"]).exits(0);
}

fn another_branch() {
    let project = merged(&lane("A", "true"));
    project.git(&["branch", "re;l"]);
    project.write("piton.toml", "[lanes]\nbase = \"re;l\"\n");
    project.commit();
    project.git(&["branch", "-f", "re;l"]);
    let said = run(&project).exits(4);
    pastes(&project, &said, "git switch");
    project.piton(&["resume", "r"]).exits(0);
    project.piton(&["rollback", "r", "--yes"]).exits(0);
    project.git(&["switch", "-q", "main"]);
    let said = project.piton(&["resume", "r"]).exits(4);
    pastes(&project, &said, "git switch");
    project.piton(&["resume", "r"]).exits(0);
}

fn a_lane_off_its_branch() {
    let project = merged("");
    let work = "echo w > work.txt; echo mine > ../../../work.txt";
    project.write("plan.toml", &format!("[[phase]]\nid = \"P\"\n{}", lane("A", work)));
    project.commit();
    run(&project).exits(4);
    project.remove("work.txt");
    paste(&project, "git -C .worktrees/P/A checkout -q --detach main").exits(0);
    let said = project.piton(&["resume", "r"]).exits(4);
    pastes(&project, &said, "switch");
    project.piton(&["resume", "r"]).exits(0);
}
