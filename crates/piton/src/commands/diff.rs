//! `piton diff`: what differs between two checkpoints, or one and the files of now.

use piton_core::LanePath;
use piton_engine::Store;
use piton_engine::store::Loaded;
use piton_workspace::{Git, restore};

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

/// Shows the differences.
pub fn run(context: &Context, args: &DiffArgs) -> Result<()> {
    let mut store = super::request::open(context)?;
    let row = Context::pick(&mut store, args.run.as_deref(), |_| true, "run")?;
    let loaded = store.load_row(row)?;
    let elsewhere = context.of_run(&loaded.state.root)?;
    let context = elsewhere.as_ref().unwrap_or(context);
    let second = args.b.as_deref().unwrap_or("now");
    let first = side(context, &mut store, &loaded, &args.a, args.lane.as_deref(), None)?;
    let lane = match &first {
        Side::Snapshot(lane, _) => lane.as_ref().map(ToString::to_string),
        Side::Commit(_) => None,
    };
    let lane = args.lane.clone().or(lane);
    let second = side(context, &mut store, &loaded, second, lane.as_deref(), Some(&first))?;
    let root = &context.project.root;
    let failed = |e: String| CommandError::failed("snapshot", e);
    if context.json {
        let (a, b) = (first.commit(), second.commit());
        let changes = restore::diff(root, a, b).map_err(|e| failed(e.to_string()))?;
        let rows: Vec<_> = changes
            .iter()
            .map(|c| {
                let path = String::from_utf8_lossy(&c.path).into_owned();
                serde_json::json!({"path": path, "kind": format!("{:?}", c.kind).to_lowercase()})
            })
            .collect();
        ui::data_json(&serde_json::json!({"from": a, "to": b, "changes": rows}));
        return Ok(());
    }
    let tree = |side: &Side| match side {
        Side::Snapshot(_, commit) => format!("{commit}:tree"),
        Side::Commit(commit) => format!("{commit}^{{tree}}"),
    };
    let mut git = Git::at(root).args(["diff", "--no-color", "--no-ext-diff"]);
    if args.stat {
        git = git.arg("--stat");
    }
    let text = git.args([tree(&first), tree(&second)]).text();
    let text = text.map_err(|e| failed(e.to_string()))?;
    ui::data(&ui::text::sanitize_lines(&context.redactor.redact(&text)));
    Ok(())
}

fn side(
    context: &Context,
    store: &mut Store,
    loaded: &Loaded,
    name: &str,
    lane: Option<&str>,
    other: Option<&Side>,
) -> Result<Side> {
    let fits = |path: &LanePath| lane.is_none_or(|l| path.lane == l || path.to_string() == l);
    let own = |state: &piton_core::RunState| {
        let mut lanes = state.lanes().filter(|(p, l)| fits(p) && !l.isolation.is_in_place());
        lanes.find(|(_, l)| l.work.as_ref().is_some_and(|w| w.ready)).map(|(p, _)| p)
    };
    match name {
        "now" => {
            let lane = match other {
                Some(Side::Snapshot(lane, _)) => lane.clone(),
                _ => own(&loaded.state).filter(|_| lane.is_some()),
            };
            let commit = super::look::now_of(context, loaded, lane.as_ref())?;
            Ok(Side::Snapshot(lane, commit))
        }
        "base" => {
            let mut works = loaded.state.lanes().filter(|(p, _)| fits(p));
            let base = works.find_map(|(_, l)| l.work.as_ref()?.base_sha.clone());
            base.map(Side::Commit).ok_or_else(|| {
                CommandError::usage("no-checkpoint", "no lane that is meant has a base yet")
            })
        }
        _ => {
            let all = rewind::points(store, loaded)?;
            match rewind::named(&all, &loaded.state, name, lane).as_slice() {
                [one] => Ok(Side::Snapshot(one.lane.clone(), one.commit.clone())),
                [] => Err(CommandError::usage(
                    "no-checkpoint",
                    format!("there is no checkpoint `{name}`"),
                )
                .hint("`piton show RUN` lists the checkpoints; `now` and `base` are known too")),
                many => {
                    let names: Vec<&str> = many.iter().map(|p| p.name.as_str()).collect();
                    let message = format!("`{name}` could be any of: {}", names.join(", "));
                    Err(CommandError::usage("no-checkpoint", message).hint("name its `--lane`"))
                }
            }
        }
    }
}
