//! `piton diff`: what differs between two checkpoints, or one and the files of now.

use std::collections::BTreeSet;

use piton_core::LanePath;
use piton_core::remedy;
use piton_engine::store::Loaded;
use piton_view::answers;
use piton_view::show::Point;
use piton_workspace::history;
use piton_workspace::restore::{self, Change};

use super::rewind;
use crate::cli::DiffArgs;
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// One side of a comparison.
enum Side {
    /// A snapshot.
    Snapshot(Option<LanePath>, String),
    /// A commit of the project.
    Commit(String),
}

impl Side {
    fn commit(&self) -> &str {
        match self {
            Self::Snapshot(_, commit) | Self::Commit(commit) => commit,
        }
    }
}

/// Two commits, and what differs between them.
pub struct Compared {
    /// The run.
    pub run_id: String,
    /// The first.
    pub from: String,
    /// The second.
    pub to: String,
    /// Every path that differs.
    pub changes: Vec<answers::Change>,
    /// What git shows of it, without secrets; none if it was not asked for.
    pub text: String,
    /// Differences that git does not show.
    pub unseen: usize,
}

/// How much of the text of a comparison is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// None.
    No,
    /// Which files differ and by how much.
    Stat,
    /// All of it.
    Full,
}

/// Shows the differences.
pub fn run(context: &Context, args: &DiffArgs) -> Result<()> {
    let text = match (context.json, args.stat) {
        (true, _) => Text::No,
        (false, true) => Text::Stat,
        (false, false) => Text::Full,
    };
    let compared = between(context, args, text)?;
    let Compared { from, to, changes, text, unseen, .. } = compared;
    if context.json {
        ui::data_json(&answers::Diff { from: &from, to: &to, changes });
        return Ok(());
    }
    if !text.is_empty() {
        ui::data(&text);
    }
    if changes.is_empty() {
        ui::say("no differences");
    } else if unseen > 0 {
        let unseen = piton_view::text::count(unseen, "difference");
        ui::say(format!("git does not show {unseen}, such as empty folders; `--json` lists all"));
    }
    Ok(())
}

/// Compares what the command line names.
pub fn between(context: &Context, args: &DiffArgs, text: Text) -> Result<Compared> {
    let mut store = super::request::open(context)?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let loaded = store.load_row(row)?;
    let elsewhere = context.for_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    let second = args.b.as_deref().unwrap_or("now");
    super::current_files::refuse_without_snapshots(context, &loaded)?;
    let all = rewind::points(&mut store, &loaded)?;
    let sides = Sides { context, loaded: &loaded, all: &all, lane: args.lane.as_deref() };
    let first = sides.side(&args.a, None)?;
    let second = sides.side(second, Some(&first))?;
    let root = &context.project.root;
    let failed = |e: String| CommandError::failed("snapshot", e);
    let (from, to) = (first.commit().to_owned(), second.commit().to_owned());
    let found = restore::diff(root, &from, &to).map_err(|e| failed(e.to_string()))?;
    let change = |c: &Change| answers::Change {
        path: String::from_utf8_lossy(&c.path).into_owned(),
        kind: format!("{:?}", c.kind).to_lowercase(),
    };
    let changes = found.iter().map(change).collect();
    let run_id = loaded.row.run_id.clone();
    let mut compared = Compared { run_id, from, to, changes, text: String::new(), unseen: 0 };
    if text == Text::No {
        return Ok(compared);
    }
    let tree = |side: &Side| match side {
        Side::Snapshot(_, commit) => format!("{commit}:tree"),
        Side::Commit(commit) => format!("{commit}^{{tree}}"),
    };
    let (old, new) = (tree(&first), tree(&second));
    let shown = history::diff(root, &old, &new, text == Text::Stat);
    let shown = shown.map_err(|e| failed(e.to_string()))?;
    compared.text = piton_view::text::sanitize_lines(&context.redactor.redact(&shown));
    if !found.is_empty() {
        let named = history::changed(root, &old, &new).map_err(|e| failed(e.to_string()))?;
        let named: BTreeSet<Vec<u8>> = named.into_iter().collect();
        compared.unseen = found.iter().filter(|c| !named.contains(&c.path)).count();
    }
    Ok(compared)
}

/// What the names of a command line are looked up in.
struct Sides<'a> {
    context: &'a Context,
    loaded: &'a Loaded,
    all: &'a [Point],
    /// The lane that was named.
    lane: Option<&'a str>,
}

impl Sides<'_> {
    /// One side; the other one, where it is known, says what workspace is meant.
    fn side(&self, name: &str, other: Option<&Side>) -> Result<Side> {
        match name {
            "now" => self.now(other),
            "base" => self.base(other),
            _ => {
                let near = match other {
                    Some(Side::Snapshot(lane, _)) => Some(lane),
                    _ => None,
                };
                let state = &self.loaded.state;
                let one = rewind::one(self.all, state, name, self.lane, near)?;
                Ok(Side::Snapshot(one.lane, one.commit))
            }
        }
    }

    fn fits(&self, path: &LanePath) -> bool {
        self.lane.is_none_or(|l| rewind::is_lane(path, l))
    }

    fn now(&self, other: Option<&Side>) -> Result<Side> {
        let own = || {
            let lanes = self.loaded.state.lanes();
            let mut lanes = lanes.filter(|(p, l)| self.fits(p) && !l.isolation.is_in_place());
            lanes.find(|(_, l)| l.work.as_ref().is_some_and(|w| w.has_workspace())).map(|(p, _)| p)
        };
        let lane = match other {
            Some(Side::Snapshot(lane, _)) => lane.clone(),
            _ => own().filter(|_| self.lane.is_some()),
        };
        let gone = lane.as_ref().filter(|l| !super::current_files::is_there(self.loaded, l));
        if let Some(lane) = gone {
            ui::say(format!("the worktree of {lane} is gone, so `now` means the project"));
            let commit = super::current_files::now_of(self.context, self.loaded, None)?;
            return Ok(Side::Snapshot(None, commit));
        }
        let commit = super::current_files::now_of(self.context, self.loaded, lane.as_ref())?;
        Ok(Side::Snapshot(lane, commit))
    }

    fn base(&self, other: Option<&Side>) -> Result<Side> {
        let near = |path: &LanePath| match (self.lane, other) {
            (None, Some(Side::Snapshot(Some(lane), _))) => lane == path,
            _ => self.fits(path),
        };
        let mut works = self.loaded.state.lanes().filter(|(p, _)| near(p));
        let base = works.find_map(|(_, l)| l.work.as_ref()?.base_sha.clone());
        base.map(Side::Commit).ok_or_else(|| {
            CommandError::usage("no-checkpoint", "no selected lane has a base yet")
                .hint(remedy![Piton "status", Words " shows which lanes have started"])
        })
    }
}
