//! Whether git still has the snapshots that the records of runs name.
//!
//! They last as long as their refs. Git is asked once, for those of all runs together; whether each is
//! whole is not looked at: a rollback does that before it changes anything.

use std::collections::BTreeSet;

use piton_core::Status;
use piton_core::remedy;
use piton_core::shell::git;
use piton_engine::{Loaded, Store};
use piton_view::answers::Finding;
use piton_view::text;
use piton_workspace::{refs, snapshot};

use crate::commands::rewind;
use crate::context::Context;

/// The snapshots on record, run by run.
#[derive(Debug, Default)]
pub struct Snapshots(Vec<Named>);

/// Those of one run.
#[derive(Debug)]
struct Named {
    run_id: String,
    /// Whether a person ended it for good: then nothing of it is taken back any more.
    is_final: bool,
    commits: BTreeSet<String>,
}

impl Snapshots {
    /// Notes what the records of a run name; a history that can't be read is told elsewhere.
    pub fn note(&mut self, store: &mut Store, loaded: &Loaded) {
        let points = rewind::points(store, loaded).unwrap_or_default();
        let commits: BTreeSet<String> = points.into_iter().map(|point| point.commit).collect();
        let is_final = loaded.state.ended.is_some_and(Status::is_final);
        if !commits.is_empty() {
            self.0.push(Named { run_id: loaded.row.run_id.clone(), is_final, commits });
        }
    }

    /// What is to be said of those that are gone.
    pub fn gone(&self, context: &Context) -> Vec<Finding> {
        let all: BTreeSet<&str> =
            self.0.iter().flat_map(|run| run.commits.iter().map(String::as_str)).collect();
        if all.is_empty() || context.project.git_dir.is_none() {
            return Vec::new();
        }
        let all: Vec<&str> = all.into_iter().collect();
        let gone = match snapshot::gone(&context.project.root, &all) {
            Ok(gone) => gone.into_iter().collect::<BTreeSet<&str>>(),
            Err(error) => {
                let what = format!("the snapshots of runs cannot be checked: {error}");
                return vec![Finding::warning(what).next("do what git says, then run it again")];
            }
        };
        self.0.iter().filter_map(|run| run.finding(&gone)).collect()
    }
}

impl Named {
    fn finding(&self, gone: &BTreeSet<&str>) -> Option<Finding> {
        let run = &self.run_id;
        let missing = self.commits.iter().filter(|commit| gone.contains(commit.as_str())).count();
        let all = text::count(self.commits.len(), "snapshot");
        let lost = match missing {
            0 => return None,
            all if all == self.commits.len() => "has none".to_owned(),
            some => format!("does not have {some}"),
        };
        let prefix = refs::run_prefix(run);
        let what = format!(
            "run {run}: git {lost} of the {all} on record; it collects them once their refs below \
             {prefix} are deleted"
        );
        if self.is_final {
            return Some(Finding::ok(what));
        }
        let fetch = git(None, &["fetch", "COPY", &format!("{prefix}*:{prefix}*")]);
        Some(Finding::warning(what).next(remedy![Words "if another copy of the repository has them, `{fetch}`; without, nothing can be taken back to these checkpoints, and ", Piton "checkpoint", Words " and the next steps make new ones"]))
    }
}
