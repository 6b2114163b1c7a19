//! What the settings say about lanes: worktrees, pull requests, views, snapshots.
//!
//! Only values: the code that makes worktrees, opens pull requests and takes snapshots uses them.

use std::collections::BTreeMap;

use piton_core::lane::{Isolation, Merge, OnRetry, TaskWorktrees};
use piton_core::lane_state::MERGE_ROUNDS_MAX;
use piton_core::plan::Command;

use crate::diagnostic::{code, quoted};
use crate::sink::{Located, Sink};
use crate::text_rules::{check_path, check_template, read_command};
use crate::toml_reader::Node;

/// Finds the pull request of a branch: the open one, or the one of exactly this commit. Requests of
/// earlier runs had the same branch name, and a merged one of those says nothing about this work.
const FIND: &str = r#"gh pr list --head "$PITON_BRANCH" --state all --json url,state,headRefOid --jq "map(select(.state == \"OPEN\" or .headRefOid == \"$PITON_HEAD\"))[0].url // empty""#;
/// Opens a pull request with the texts of the lane's commits.
const CREATE: &str = r#"gh pr create --head "$PITON_BRANCH" --base "$PITON_BASE_BRANCH" --fill"#;
/// Succeeds once the recorded pull request is merged; says why if it never will be.
const MERGED: &str = r#"state=$(gh pr view "$PITON_PULL_REQUEST" --json state --jq .state) || exit 2
case "$state" in MERGED) exit 0 ;; CLOSED) echo "it was closed" ;; esac; exit 1"#;

/// Largest file in a snapshot: sources are far smaller, and larger files are made by builds.
const FILE_BYTES_MAX: u64 = 50_000_000;
/// Most files of a work tree: one with more is probably the wrong folder, such as a home directory.
const FILES_MAX: u64 = 1_000_000;

/// What lanes inherit; `None` leaves the decision to the next wider place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneDefaults {
    /// Where they work.
    pub isolation: Option<Isolation>,
    /// How their work gets into base.
    pub merge: Option<Merge>,
    /// Prepares a new worktree.
    pub setup: Option<Command>,
    /// Files to copy into a new worktree.
    pub copy: Option<Vec<String>>,
    /// Whether a retry keeps the files of the last attempt.
    pub on_retry: Option<OnRetry>,
    /// Template of the message for uncommitted work.
    pub commit_message: Option<String>,
    /// Whether what they leave in place is committed.
    pub commits: Option<bool>,
}

impl LaneDefaults {
    /// The values of `narrower`, and these where it has none.
    #[must_use]
    pub(super) fn under(&self, narrower: Self) -> Self {
        Self {
            isolation: narrower.isolation.or(self.isolation),
            merge: narrower.merge.or(self.merge),
            setup: narrower.setup.or_else(|| self.setup.clone()),
            copy: narrower.copy.or_else(|| self.copy.clone()),
            on_retry: narrower.on_retry.or(self.on_retry),
            commit_message: narrower.commit_message.or_else(|| self.commit_message.clone()),
            commits: narrower.commits.or(self.commits),
        }
    }
}

/// How lanes open pull requests. Commands are not templates: they use the variables
/// `PITON_BRANCH`, `PITON_BASE_BRANCH`, `PITON_HEAD` and `PITON_ROOT`.
#[derive(Clone, Debug, PartialEq)]
pub struct PullRequest {
    /// The remote that branches are pushed to.
    pub remote: String,
    /// Prints the URL of the branch's pull request, or nothing.
    pub find: Command,
    /// Opens a pull request and prints its URL.
    pub create: Command,
    /// Succeeds once the pull request `PITON_PULL_REQUEST` is merged.
    pub merged: Command,
}

impl Default for PullRequest {
    fn default() -> Self {
        let shell = |line: &str| Command::Shell(line.to_owned());
        Self {
            remote: "origin".to_owned(),
            find: shell(FIND),
            create: shell(CREATE),
            merged: shell(MERGED),
        }
    }
}

/// Whether the files of the lanes protocol are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Views {
    /// Where the protocol is in use.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How lanes work in this project. Paths are relative to the project's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The branch they start from and merge into; `None` for the current one.
    pub base: Option<String>,
    /// Template of the message for uncommitted work, where no plan has one.
    pub message: Option<String>,
    /// How often a merge starts over because base moved.
    pub merge_rounds: u32,
    /// The folder of the worktrees.
    pub worktrees: String,
    /// Whether tasks of phase documents get their own worktrees.
    pub task_worktrees: TaskWorktrees,
    /// Whether views are written.
    pub views: Views,
    /// The file of the checkpoints.
    pub checkpoints: String,
    /// The folder of the run logs.
    pub run_logs: String,
    /// The folder of the run reports.
    pub run_reports: String,
    /// The file with the template for tasks of phase documents; `None` for the one built in.
    pub task_prompt: Option<String>,
    /// Names of agents by type of task, in the order in which they are tried.
    pub agents: BTreeMap<String, Vec<String>>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            base: None,
            message: None,
            merge_rounds: MERGE_ROUNDS_MAX,
            worktrees: ".worktrees".to_owned(),
            task_worktrees: TaskWorktrees::Auto,
            views: Views::default(),
            checkpoints: ".claude/ai-dev-kit/run-logs/checkpoints.json".to_owned(),
            run_logs: ".claude/run-logs".to_owned(),
            run_reports: ".claude/run-reports".to_owned(),
            task_prompt: None,
            agents: BTreeMap::new(),
        }
    }
}

/// What snapshots hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// Whether runs without worktrees are snapshotted; lanes in worktrees always are.
    pub enabled: bool,
    /// Bytes of the largest file in a snapshot.
    pub file_max: u64,
    /// Files of a work tree past which no snapshot is taken.
    pub files_max: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { enabled: true, file_max: FILE_BYTES_MAX, files_max: FILES_MAX }
    }
}

/// Reads what lanes inherit, from any table that may have it.
pub(crate) fn read_lane_defaults(
    node: &Node<'_, '_>,
    has_spec: bool,
    sink: &mut Sink<'_>,
) -> LaneDefaults {
    if !node.knows("isolation") {
        return LaneDefaults::default();
    }
    LaneDefaults {
        isolation: node.choice("isolation", sink).map(|choice| match choice {
            "worktree" => Isolation::Worktree,
            _ => Isolation::InPlace,
        }),
        merge: node.choice("merge", sink).map(|choice| match choice {
            "pr" => Merge::PullRequest,
            "none" => Merge::None,
            _ => Merge::Queue,
        }),
        setup: read_command(node, "setup", has_spec, sink),
        copy: node.texts("copy", sink).map(|paths| check_copied(paths, sink)),
        on_retry: node.choice("on_retry", sink).map(|choice| match choice {
            "reset" => OnRetry::Reset,
            _ => OnRetry::Keep,
        }),
        commit_message: read_message(node, "commit_message", has_spec, sink),
        commits: node.choice("commit", sink).map(|choice| choice == "phase"),
    }
}

/// Paths of files that are copied: each by its name.
fn check_copied(paths: Vec<Located<String>>, sink: &mut Sink<'_>) -> Vec<String> {
    let mut plain = Vec::new();
    for path in paths {
        let Some(value) = check_path("copy", &path, sink) else { continue };
        let why = match value.as_str() {
            "" => "names the project's root itself",
            text if text.contains('*') => "contains `*`, and globs are not supported here",
            _ => {
                plain.push(value);
                continue;
            }
        };
        let message = format!("`copy` {why}: {}", quoted(&path.value));
        sink.error(code::BAD_PATH, &path.span, message, "name each file or folder by its path");
    }
    plain
}

fn read_message(
    node: &Node<'_, '_>,
    name: &str,
    has_spec: bool,
    sink: &mut Sink<'_>,
) -> Option<String> {
    let message = node.text(name, sink)?;
    check_template(&message.value, &message.span, has_spec, sink);
    Some(message.value)
}

/// Reads `[pull_request]`.
pub(super) fn read_pull_request(root: &Node<'_, '_>, sink: &mut Sink<'_>) -> PullRequest {
    let mut found = PullRequest::default();
    let Some(node) = root.table("pull_request", sink) else {
        return found;
    };
    if let Some(remote) = read_git_name(&node, "remote", sink) {
        found.remote = remote;
    }
    let own =
        [("find", &mut found.find), ("create", &mut found.create), ("merged", &mut found.merged)];
    for (name, place) in own {
        if let Some(command) = node.command(name, sink) {
            *place = command.value;
        }
    }
    found
}

/// Reads `[lanes]`.
pub(super) fn read_lanes(root: &Node<'_, '_>, sink: &mut Sink<'_>) -> Lanes {
    let usual = Lanes::default();
    let Some(node) = root.table("lanes", sink) else {
        return usual;
    };
    Lanes {
        base: read_git_name(&node, "base", sink),
        message: read_message(&node, "message", true, sink),
        merge_rounds: node.count32("merge_rounds", sink).unwrap_or(usual.merge_rounds),
        worktrees: read_path(&node, "worktrees", sink).unwrap_or(usual.worktrees),
        task_worktrees: node.choice("task_worktrees", sink).map_or(
            usual.task_worktrees,
            |choice| match choice {
                "on" => TaskWorktrees::On,
                "auto" => TaskWorktrees::Auto,
                _ => TaskWorktrees::Off,
            },
        ),
        views: node.choice("views", sink).map_or(usual.views, |choice| match choice {
            "on" => Views::On,
            "off" => Views::Off,
            _ => Views::Auto,
        }),
        checkpoints: read_path(&node, "checkpoints", sink).unwrap_or(usual.checkpoints),
        run_logs: read_path(&node, "run_logs", sink).unwrap_or(usual.run_logs),
        run_reports: read_path(&node, "run_reports", sink).unwrap_or(usual.run_reports),
        task_prompt: read_path(&node, "task_prompt", sink),
        agents: read_agents(&node, sink),
    }
}

/// Reads `[lanes.agents]`.
fn read_agents(lanes: &Node<'_, '_>, sink: &mut Sink<'_>) -> BTreeMap<String, Vec<String>> {
    let Some(node) = lanes.table("agents", sink) else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    for kind in ["test", "impl", "docs", "verify"] {
        if let Some(names) = node.texts(kind, sink) {
            found.insert(kind.to_owned(), names.into_iter().map(|name| name.value).collect());
        }
    }
    found
}

/// Reads `[snapshots]`.
pub(super) fn read_snapshots(root: &Node<'_, '_>, sink: &mut Sink<'_>) -> Snapshots {
    let usual = Snapshots::default();
    let Some(node) = root.table("snapshots", sink) else {
        return usual;
    };
    Snapshots {
        enabled: node.flag("enabled", sink).unwrap_or(usual.enabled),
        file_max: node.size("file_max", sink).unwrap_or(usual.file_max),
        files_max: node.count("files_max", sink).unwrap_or(usual.files_max),
    }
}

/// A path below the project's root that is not the root itself.
fn read_path(node: &Node<'_, '_>, name: &str, sink: &mut Sink<'_>) -> Option<String> {
    let path = node.text(name, sink)?;
    let plain = check_path(name, &path, sink)?;
    if plain.is_empty() {
        let message = format!("`{name}` names the project's root itself");
        sink.error(code::BAD_PATH, &path.span, message, "name a file or folder below it");
        return None;
    }
    Some(plain)
}

/// The name of a remote or branch, which git must not take for an option.
fn read_git_name(node: &Node<'_, '_>, name: &str, sink: &mut Sink<'_>) -> Option<String> {
    let text = node.text(name, sink)?;
    if text.value.starts_with('-') || text.value.contains(char::is_whitespace) {
        let message = format!("{} is not a valid `{name}`", quoted(&text.value));
        let hint = "use its name as git knows it, without spaces and not starting with `-`";
        sink.error(code::BAD_VALUE, &text.span, message, hint);
        return None;
    }
    Some(text.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::read_settings;

    #[test]
    fn tasks_that_can_run_at_once_get_worktrees_unless_somebody_says_otherwise() {
        assert_eq!(Lanes::default().task_worktrees, TaskWorktrees::Auto);
    }

    #[test]
    fn reads_every_key_of_lanes() {
        let text = r#"
[defaults]
isolation = "worktree"
merge = "pr"
setup = ["make", "deps"]
copy = [".env", "./config/local.toml"]
on_retry = "reset"
commit_message = "{{ lane.id }}"
commit = "phase"
[pull_request]
remote = "upstream"
find = "tea find"
create = ["tea", "create", "{{ not a template }}"]
merged = "tea merged"
[lanes]
agents = { verify = ["reader"] }
base = "trunk"
message = "{{ lane.id }} of {{ spec }}"
merge_rounds = 2
worktrees = "./trees/"
task_worktrees = "auto"
views = "off"
checkpoints = "c.json"
run_logs = "logs"
run_reports = "reports"
task_prompt = "prompts/task.md"
[snapshots]
enabled = false
file_max = "1MiB"
files_max = 7
"#;
        let found = read_settings("piton.toml", text).map_err(|p| format!("{p:#?}"));
        let found = found.unwrap_or_else(|problems| panic!("{problems}"));
        let shell = |line: &str| Command::Shell(line.to_owned());
        let args = |words: &[&str]| Command::Args(words.iter().map(|&w| w.to_owned()).collect());
        assert_eq!(
            found.defaults.lane,
            LaneDefaults {
                isolation: Some(Isolation::Worktree),
                merge: Some(Merge::PullRequest),
                setup: Some(args(&["make", "deps"])),
                copy: Some(vec![".env".to_owned(), "config/local.toml".to_owned()]),
                on_retry: Some(OnRetry::Reset),
                commit_message: Some("{{ lane.id }}".to_owned()),
                commits: Some(true),
            }
        );
        assert_eq!(
            found.pull_request,
            PullRequest {
                remote: "upstream".to_owned(),
                find: shell("tea find"),
                create: args(&["tea", "create", "{{ not a template }}"]),
                merged: shell("tea merged"),
            }
        );
        assert_eq!(
            found.lanes,
            Lanes {
                base: Some("trunk".to_owned()),
                message: Some("{{ lane.id }} of {{ spec }}".to_owned()),
                merge_rounds: 2,
                worktrees: "trees".to_owned(),
                task_worktrees: TaskWorktrees::Auto,
                views: Views::Off,
                checkpoints: "c.json".to_owned(),
                run_logs: "logs".to_owned(),
                run_reports: "reports".to_owned(),
                task_prompt: Some("prompts/task.md".to_owned()),
                agents: BTreeMap::from([("verify".to_owned(), vec!["reader".to_owned()])]),
            }
        );
        assert_eq!(found.snapshots, Snapshots { enabled: false, file_max: 1 << 20, files_max: 7 });
    }

    /// Lost: a default that the reference names and the code does not have.
    #[test]
    fn the_explanations_end_with_the_defaults_of_the_code() {
        let lanes = Lanes::default();
        let snapshots = Snapshots::default();
        for (section, name, value) in [
            (&crate::keys::LANES, "merge_rounds", lanes.merge_rounds.to_string()),
            (&crate::keys::LANES, "worktrees", format!("`{}`", lanes.worktrees)),
            (&crate::keys::LANES, "checkpoints", format!("`{}`", lanes.checkpoints)),
            (&crate::keys::LANES, "run_logs", format!("`{}`", lanes.run_logs)),
            (&crate::keys::LANES, "run_reports", format!("`{}`", lanes.run_reports)),
            (&crate::keys::PULL_REQUEST, "remote", "`origin`".to_owned()),
            (&crate::keys::SNAPSHOTS, "files_max", snapshots.files_max.to_string()),
        ] {
            let doc = section.key(name).map(|key| key.doc).unwrap_or_default();
            assert!(doc.ends_with(&format!("({value})")), "{name}: {doc}");
        }
        assert_eq!(crate::units::parse_size("50MB").ok(), Some(snapshots.file_max));
    }

    #[test]
    fn what_cannot_be_used_is_refused_at_its_place() {
        for (text, code, hint) in [
            ("[lanes]\nbase = \"-f\"", code::BAD_VALUE, "as git knows it"),
            ("[lanes]\nworktrees = \".\"", code::BAD_PATH, "below it"),
            ("[lanes]\ncheckpoints = \"/x\"", code::BAD_PATH, "relative"),
            ("[lanes]\nmessage = \"{{ lain }}\"", code::BAD_TEMPLATE, "lane.id"),
            ("[lanes]\nmerge_rounds = 0", code::BAD_VALUE, "from 1"),
            ("[lanes]\nviews = \"yes\"", code::BAD_VALUE, "views = \"auto\""),
            ("[pull_request]\nremote = \"a b\"", code::BAD_VALUE, "without spaces"),
            ("[pull_request]\nfind = \"\"", code::BAD_VALUE, "make check"),
            ("[snapshots]\nfile_max = \"big\"", code::BAD_SIZE, "64MB"),
            ("[snapshots]\nfiles_max = 0", code::BAD_VALUE, "from 1"),
            ("[defaults]\ncopy = [\".env*\"]", code::BAD_PATH, "by its path"),
            ("[defaults]\ncopy = [\".\"]", code::BAD_PATH, "by its path"),
        ] {
            let found = read_settings("piton.toml", text).err().unwrap_or_default();
            assert_eq!(found.len(), 1, "{text}: {found:#?}");
            assert_eq!((found[0].code, found[0].line), (code, 2), "{text}");
            let said = found[0].hint.clone().unwrap_or_default();
            assert!(said.contains(hint), "{text}: {said}");
        }
    }
}
