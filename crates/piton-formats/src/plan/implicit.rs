//! The steps that Piton adds to a lane in a worktree: setup, tests, pull request.
//!
//! They are recorded, retried, limited and shown like all other steps. Where a lane works is
//! decided elsewhere; a lane in place gets none of them.

use piton_core::lane::{Isolation, Merge, PULL_REQUEST_STEP, Role, SETUP_STEP, TESTS_STEP};
use piton_core::plan::{Command, Lane, Step, Work};

use crate::settings::PullRequest;
use crate::template::{escape, quote_for_shell};

/// The ids that other steps of a lane in a worktree cannot have.
pub const RESERVED: [&str; 3] = [SETUP_STEP, TESTS_STEP, PULL_REQUEST_STEP];

/// What the added steps of a lane are made from.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// A step with the lane's limits, folder and variables; its work does not matter.
    pub pattern: Step,
    /// Prepares a new worktree.
    pub setup: Option<Command>,
    /// How a pull request is opened.
    pub pull_request: &'a PullRequest,
}

/// Fills in the tests of a lane and adds its implicit steps; returns how many it added.
pub fn complete(lane: &mut Lane, frame: &Frame<'_>) -> usize {
    if lane.rules.isolation != Isolation::Worktree {
        return 0;
    }
    let before = lane.steps.len();
    let step = |id: &str, role: Role, work: Work| Step {
        id: id.to_owned(),
        work,
        test: None,
        inputs: Vec::new(),
        artifacts: Vec::new(),
        role,
        ..frame.pattern.clone()
    };
    let (dir, found) = tests(lane);
    if lane.rules.tests.is_empty() {
        lane.rules.tests = found;
    }
    let tests = (!lane.rules.tests.is_empty() && lane.rules.merge != Merge::None).then(|| {
        let mut env = frame.pattern.env.clone();
        env.extend(tested(lane).flat_map(|(s, _)| s.env.clone()));
        let work = Work::Tests(lane.rules.tests.clone());
        Step { dir, env, ..step(TESTS_STEP, Role::Tests, work) }
    });
    if let Some(setup) = &frame.setup {
        lane.steps.insert(0, step(SETUP_STEP, Role::Setup, Work::Run(setup.clone())));
    }
    lane.steps.extend(tests);
    if lane.rules.merge == Merge::PullRequest {
        let work = Work::Run(Command::Shell(script(frame.pull_request)));
        let step = step(PULL_REQUEST_STEP, Role::PullRequest, work);
        // The commands run at the top of the repository, wherever the lane's own work is.
        lane.steps.push(Step { dir: String::new(), ..step });
    }
    lane.steps.len() - before
}

fn tested(lane: &Lane) -> impl Iterator<Item = (&Step, &Command)> {
    lane.steps.iter().filter_map(|step| step.test.as_ref().map(|test| (step, test)))
}

/// A variable to which two steps with a test give different values: their tests run as one step.
pub(super) fn clash(lane: &Lane) -> Option<&str> {
    let mut seen = std::collections::BTreeMap::new();
    let mut variables = tested(lane).flat_map(|(step, _)| &step.env);
    variables
        .find(|(name, value)| seen.insert(*name, *value).is_some_and(|v| v != *value))
        .map(|(name, _)| name.as_str())
}

/// The tests of a lane's steps, each once and in order, and the folder they run in.
///
/// A test that runs in another folder changes to it first. Then it is not the command that its step
/// ran, and only its own success counts as evidence.
fn tests(lane: &Lane) -> (String, Vec<Command>) {
    let first = tested(lane).next().map(|(step, _)| step.dir.clone()).unwrap_or_default();
    let same = tested(lane).all(|(step, _)| step.dir == first);
    let dir = if same { first } else { String::new() };
    let mut tests = Vec::new();
    for (step, test) in tested(lane) {
        let test = if step.dir == dir { test.clone() } else { within(&step.dir, test) };
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    (dir, tests)
}

fn within(dir: &str, command: &Command) -> Command {
    match command {
        Command::Shell(line) => {
            Command::Shell(format!("cd {} || exit\n{line}", quote_for_shell(dir)))
        }
        Command::Args(args) => {
            let words = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", dir];
            Command::Args(words.iter().map(|&w| w.to_owned()).chain(args.clone()).collect())
        }
    }
}

/// Pushes the branch, then finds its pull request or opens one; running it again changes nothing.
/// The push replaces commits of this run that were rolled back, but nobody else's. The URL is the
/// last line. Each command is on its own lines, so that it may end in any way.
fn script(how: &PullRequest) -> String {
    let line = |command: &Command| match command {
        Command::Shell(line) => line.clone(),
        Command::Args(args) => {
            args.iter().map(|arg| quote_for_shell(arg)).collect::<Vec<_>>().join(" ")
        }
    };
    // Reported before each command runs, so that a failure names the command, not this script.
    let says = |command: &str| {
        let fact = serde_json::json!({ "trying": command });
        quote_for_shell(&fact.to_string())
    };
    let remote = quote_for_shell(&how.remote);
    let git = "git -C \"$PITON_ROOT\"";
    let branch = "\"refs/heads/$PITON_BRANCH\"";
    let refspec = "\"$PITON_HEAD:refs/heads/$PITON_BRANCH\"";
    let replace = "--force-with-lease=\"refs/heads/$PITON_BRANCH:$there\"";
    let replacing = says(&format!("{git} push -q {replace} {remote} {refspec}"));
    // The URL of a remote may be relative: git resolves it from its working directory, and the user
    // meant the repository's.
    //
    // A lane that was rolled back and ran again has other commits than those it pushed. They are
    // replaced, but nobody else's. A ref of the run records what a push may bring to the remote
    // before it does, so that it is known after a kill. A lock on those refs is from an attempt
    // that was killed: nobody else moves them, and no other attempt runs. If the remote is on this
    // machine, its side was killed too and may have left a lock on the branch. That lock is removed
    // if it stays for a second.
    let text = format!(
        "tries() {{ printf '%s\\n' \"$1\" >> \"$PITON_OUTPUT\"; }}\n\
         own=\"refs/piton/$PITON_RUN_ID\"\n\
         pushed=\"$own/pushed/$PITON_BRANCH\" pushing=\"$own/pushing/$PITON_BRANCH\"\n\
         home=$(git rev-parse --path-format=absolute --git-common-dir)\n\
         case \"$home\" in */.git) home=${{home%/.git}} ;; *) home=$PITON_ROOT ;; esac\n\
         rm -f \"$(git rev-parse --git-path \"$pushed.lock\")\" \"$(git rev-parse --git-path \"$pushing.lock\")\"\n\
         if git rev-parse -q --verify \"$pushing\" > /dev/null; then\n\
         at=$(git -C \"$home\" ls-remote --get-url {remote})\n\
         lock=$(git -C \"$home\" -C \"${{at#file://}}\" rev-parse --path-format=absolute --git-path \"refs/heads/$PITON_BRANCH.lock\" 2> /dev/null)\n\
         held=$(ls -i \"$lock\" 2> /dev/null) && sleep 1 && [ \"$held\" = \"$(ls -i \"$lock\" 2> /dev/null)\" ] && rm -f \"$lock\"\n\
         fi\n\
         tries {looks}\n\
         there=$(git -C \"$home\" ls-remote {remote} \"refs/heads/$PITON_BRANCH\") || exit\n\
         there=${{there%%[!0-9a-f]*}}\n\
         trying={pushes}\n\
         set -- \"$PITON_HEAD:refs/heads/$PITON_BRANCH\"\n\
         if [ -n \"$there\" ] && ! git merge-base --is-ancestor \"$there\" \"$PITON_HEAD\" 2> /dev/null; then\n\
         case \"$there\" in\n\
         \"$(git rev-parse -q --verify \"$pushed\")\" | \"$(git rev-parse -q --verify \"$pushing\")\") ;;\n\
         *) echo \"pull request: $PITON_BRANCH of\" {remote} \"has $there, which this run did not push;\" \\\n\
         'fetch it and look whose it is, then delete it there or rename the lane' >&2; exit 1 ;;\n\
         esac\n\
         git update-ref \"$pushed\" \"$there\" || exit\n\
         trying={replaces}\n\
         set -- \"--force-with-lease=refs/heads/$PITON_BRANCH:$there\" \"$@\"\n\
         fi\n\
         git update-ref \"$pushing\" \"$PITON_HEAD\" || exit\n\
         tries \"$trying\"\n\
         git -C \"$home\" push -q {remote} \"$@\" || exit\n\
         git update-ref \"$pushed\" \"$PITON_HEAD\"\n\
         tries {finds}\n\
         url=$(\n{find}\n) || exit\n\
         if [ -z \"$url\" ]; then\n\
         tries {creates}\n\
         url=$(\n{create}\n) || exit\n\
         fi\n\
         if [ -z \"$url\" ]; then\n\
         echo 'pull request: no address was printed; correct `create` of [pull_request] in piton.toml' >&2\n\
         exit 1\n\
         fi\n\
         printf '%s\\n' \"$url\"",
        find = line(&how.find),
        create = line(&how.create),
        looks = says(&format!("{git} ls-remote {remote} {branch}")),
        pushes = says(&format!("{git} push -q {remote} {refspec}")),
        // A commit id needs no quotes.
        replaces = replacing.replace("$there", "'\"$there\"'"),
        finds = says(&line(&how.find)),
        creates = says(&line(&how.create)),
    );
    escape(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_from_elsewhere_goes_there_and_keeps_its_words() {
        let shell = within("my dir", &Command::Shell("a || b".to_owned()));
        assert_eq!(shell, Command::Shell("cd 'my dir' || exit\na || b".to_owned()));
        let args = Command::Args(vec!["pwd".to_owned(), "{{ x }}".to_owned()]);
        let Command::Args(words) = within("my dir", &args) else { panic!("a list") };
        assert_eq!(words[3..], ["my dir", "pwd", "{{ x }}"]);
    }
}
