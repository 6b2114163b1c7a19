//! What a rewind would change, for people and for programs: files, branches, base.
//!
//! It is worked out once, before anything is asked or done, and foresees what would be refused.

use piton_core::event::{Revert, RewindIntended, RewindKind};
use piton_core::lane::Stage;
use piton_core::lane_state::Act;
use piton_core::{GateRef, LanePath, RunState, approval, request};
use piton_engine::store::Loaded;
use piton_engine::world::{Rewind, RoomTarget};
use piton_workspace::restore::{self, Change, ChangeKind, KeptWhy};
use serde_json::{Value, json};

use super::base::{BaseMove, BasePlan};
use super::head::HeadLeft;
use super::tasks::{self, Leaving};
use crate::commands::look;
use crate::context::Context;
use crate::error::{CommandError, Kind, Result};
use crate::ui;
use piton_core::text::short;
use piton_world::rooms::{GitRooms, Preview};

/// Paths of each kind that are named before a question; the rest is counted.
const PATHS_NAMED_MAX: usize = 20;

/// What a rewind would do.
pub struct Planned {
    run_id: String,
    kind: RewindKind,
    to: String,
    rooms: Vec<RoomPlan>,
    bases: Vec<BasePlan>,
    /// Gates whose approval is taken back.
    pub taken_back: Vec<GateRef>,
    /// Gates whose approval comes back.
    comes_back: Vec<GateRef>,
    /// What gates ask for.
    gates: Vec<(GateRef, String)>,
    /// Lanes whose steps run again.
    again: Vec<LanePath>,
    /// Whether it changes anything at all.
    pub something: bool,
    /// Why it cannot be done as things are.
    refused: Option<String>,
    /// What an act that was cut short left half done: it is finished first.
    cut_short: Option<String>,
    /// HEAD of the project's folder, which stays although it moved since the checkpoint.
    pub head: Option<HeadLeft>,
    /// Who drives the run, and ends first.
    pub driver: Option<String>,
    /// Whether lanes that are merged go to their start although another point was asked for.
    pub to_the_start: bool,
}

/// What happens to one work tree.
struct RoomPlan {
    lane: Option<LanePath>,
    /// Nothing where the worktree is gone, and comes back.
    preview: Option<Preview>,
    /// The lane's branch: its name, where it stands, and where it goes.
    branch: Option<(String, Option<String>, String)>,
    /// What goes altogether.
    leaving: Option<Leaving>,
    /// Why it can't be done.
    refused: Option<String>,
}

impl Planned {
    /// Works out what a rewind would do.
    pub fn of(context: &Context, loaded: &Loaded, rewind: &Rewind) -> Result<Self> {
        let mut whole = rewind.clone();
        whole.with_tasks(&loaded.state);
        let rewind = &whole;
        let present = look::present(context, loaded, &rewind.targets)?;
        let mut planned = Self {
            run_id: loaded.row.run_id.clone(),
            kind: rewind.intent.kind,
            to: rewind.intent.to.clone(),
            rooms: Vec::new(),
            bases: Vec::new(),
            taken_back: taken_back(&loaded.state, rewind),
            comes_back: comes_back(&loaded.state, rewind),
            gates: request::gates(&loaded.state),
            again: tasks::run_again(&loaded.state, rewind),
            something: acts(loaded, rewind),
            refused: None,
            cut_short: ui::lane_words::cut_short(&loaded.state),
            head: None,
            driver: None,
            to_the_start: false,
        };
        if rewind.targets.is_empty() && rewind.merges.is_empty() {
            return Ok(planned);
        }
        let mut rooms = look::rooms(context, loaded)?;
        for (target, present) in rewind.targets.iter().zip(present) {
            let mut room = RoomPlan::of(context, &rooms, target, present.as_deref())?;
            if let Some(preview) = &mut room.preview {
                tasks::told_apart(preview, target, &rewind.targets);
            }
            planned.something |= room.changes();
            planned.refused = planned.refused.or_else(|| room.refused.clone());
            planned.rooms.push(room);
        }
        planned.look_at_bases(context, &mut rooms, loaded, rewind)?;
        Ok(planned)
    }

    /// Each merge is taken back on top of the one before.
    fn look_at_bases(
        &mut self,
        context: &Context,
        rooms: &mut GitRooms,
        loaded: &Loaded,
        rewind: &Rewind,
    ) -> Result<()> {
        let mut before: Vec<Revert> = Vec::new();
        let undone = loaded.state.undo.iter().find(|act| Some(act.id) == rewind.intent.undoes);
        // Undoing anything but a merge may bring one to base again.
        let takes_back = undone.is_none_or(|act| act.act == Act::Merge);
        for merge in &rewind.merges {
            let earlier = before.iter().rev().find(|r| r.base_branch == merge.base_branch);
            let from = earlier.map(|r| r.to.clone()).unwrap_or_default();
            let wanted = Revert { from, ..merge.clone() };
            let found = rooms.preview_revert(&wanted, self.kind);
            let (from, how) = match &found {
                Ok((revert, _)) if revert.from == revert.to => (&revert.from, BaseMove::Stays),
                Ok((revert, true)) => (&revert.from, BaseMove::Commit),
                Ok((revert, false)) => (&revert.from, BaseMove::To(revert.to.clone())),
                Err(why) => {
                    self.refused.get_or_insert_with(|| format!("{}: {why}", merge.lane));
                    (&wanted.from, BaseMove::Refused)
                }
            };
            let (lane, branch) = (merge.lane.clone(), merge.base_branch.clone());
            let work = loaded.state.lane(&lane).and_then(|l| l.work.as_ref());
            let begun = work.and_then(|w| w.record(Stage::BeforeLaneStart));
            let seeded = takes_back && begun.is_some_and(|record| record.snapshot.is_some());
            let changes = match &found {
                Ok((revert, _)) => restore::diff(&context.project.root, &revert.from, &revert.to),
                Err(_) => Ok(Vec::new()),
            };
            let changes = changes.map_err(|e| CommandError::failed("snapshot", e.to_string()))?;
            self.bases.push(BasePlan { lane, branch, from: from.clone(), how, changes, seeded });
            before.extend(found.ok().map(|(revert, _)| revert));
        }
        Ok(())
    }

    /// Whether something differs, and stays as it is.
    pub fn keeps(&self) -> bool {
        let previews = self.rooms.iter().filter_map(|room| room.preview.as_ref());
        previews.into_iter().any(|preview| !preview.kept.is_empty())
    }

    /// Paths that stay although the checkpoint says otherwise, and why; those that appeared outside
    /// the run apart, which are recorded.
    pub fn stays(&self) -> Vec<(String, String)> {
        let previews = self.rooms.iter().filter_map(|room| room.preview.as_ref());
        let kept = previews.flat_map(|preview| &preview.kept);
        let kept = kept.filter(|kept| kept.why != KeptWhy::Foreign);
        kept.map(|kept| (plain(&kept.path), why_kept(kept.why, self.kind))).collect()
    }

    /// The files that it changes.
    pub fn paths(&self) -> Vec<String> {
        let previews = self.rooms.iter().filter_map(|room| room.preview.as_ref());
        let changes = previews.flat_map(|preview| &preview.changes);
        changes.map(|change| String::from_utf8_lossy(&change.path).into_owned()).collect()
    }

    /// Whether a path, or one below it, changes or is kept from changing.
    pub fn touches(&self, path: &[u8]) -> bool {
        let is_in = |found: &[u8]| {
            let rest = found.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        self.rooms.iter().filter_map(|room| room.preview.as_ref()).any(|p| {
            p.changes.iter().any(|c| is_in(&c.path)) || p.kept.iter().any(|k| is_in(&k.path))
        })
    }

    /// Tells people.
    pub fn say(&self) {
        if let Some(words) = &self.cut_short {
            ui::say(&format!("{words}, and so does this command, before anything else"));
        }
        if let Some(driver) = &self.driver {
            let run = &self.run_id;
            ui::say(&format!(
                "run {run} is driven by {driver}: it ends first, and so do its steps"
            ));
        }
        for room in &self.rooms {
            room.say(self.kind);
        }
        self.say_head();
        for base in &self.bases {
            if self.to_the_start {
                let (lane, start) = (&base.lane, Stage::BeforeLaneStart);
                ui::say(&format!(
                    "{lane}: it is merged, so it goes back to {start}, and all its steps run again"
                ));
            }
            ui::say(&base.words(self.kind));
            say_changes(&base.changes);
            if base.seeded {
                let (lane, run) = (&base.lane, &self.run_id);
                ui::say(&ui::here::told(&format!(
                    "{lane}: it began with uncommitted changes of yours, which got to base with it \
                     and leave the work tree now; `piton restore {lane}@before_lane_start --run {run} \
                     --to DIR` puts the files with them into a folder"
                )));
            }
        }
        self.say_gates();
        for lane in &self.again {
            ui::say(&format!("{lane}: its steps after that point run again"));
        }
    }

    /// Tells people which approvals go, or come back.
    fn say_gates(&self) {
        for (gate, name) in &self.gates {
            let how = match gate {
                gate if self.taken_back.contains(gate) => "is taken back: you are asked again",
                gate if self.comes_back.contains(gate) => "comes back",
                _ => continue,
            };
            let name = ui::text::sanitize(name);
            ui::say(&format!("gate \"{name}\" ({gate}): its approval {how}"));
        }
    }

    /// Tells people where HEAD stays.
    pub fn say_head(&self) {
        if let Some(head) = &self.head {
            ui::say(&head.words());
        }
    }

    /// Tells, and ends there if nothing is to be done or it cannot be; true if it shall be done.
    pub fn tell(&self, context: &Context, dry_run: bool) -> Result<bool> {
        let only_told = dry_run || !self.something;
        if context.json && only_told {
            ui::data_json(&self.json());
        } else {
            self.say();
        }
        let Some(why) = self.refused.as_ref().filter(|_| self.something) else {
            return Ok(!only_told);
        };
        if context.json && dry_run {
            // The plan says it.
            return Err(CommandError::silent(Kind::Failed));
        }
        Err(super::not_rewound(why, &[]))
    }

    /// As data.
    fn json(&self) -> Value {
        let rooms: Vec<Value> = self.rooms.iter().map(|room| room.json(self.kind)).collect();
        let bases: Vec<Value> = self.bases.iter().map(BasePlan::json).collect();
        let again: Vec<String> = self.again.iter().map(ToString::to_string).collect();
        json!({
            "run_id": self.run_id,
            "plan": Act::from(self.kind).as_str(),
            "to": self.to,
            "something_to_do": self.something,
            "refused": self.refused,
            "cut_short": self.cut_short,
            "driven_by": self.driver,
            "rooms": rooms,
            "head": self.head.as_ref().map(HeadLeft::json),
            "base": bases,
            "runs_again": again,
            "approvals_taken_back": self.taken_back,
            "approvals_that_come_back": self.comes_back,
        })
    }
}

/// The gates whose approval a rewind takes back; so does the undo of an undo.
fn taken_back(state: &RunState, rewind: &Rewind) -> Vec<GateRef> {
    let intent = RewindIntended { reverts: rewind.merges.clone(), ..rewind.intent.clone() };
    let again = undone_gates(state, rewind).filter(|(gate, was)| state.approved(gate) && !was);
    let again = again.map(|(gate, _)| gate.clone());
    approval::taken_back(state, &intent).into_iter().chain(again).collect()
}

/// The gates whose approval comes back with an undo.
fn comes_back(state: &RunState, rewind: &Rewind) -> Vec<GateRef> {
    let back = undone_gates(state, rewind).filter(|(gate, was)| *was && !state.approved(gate));
    back.map(|(gate, _)| gate.clone()).collect()
}

/// The gates that an undo changes, and whether they were approved before what it undoes.
fn undone_gates<'s>(
    state: &'s RunState,
    rewind: &Rewind,
) -> impl Iterator<Item = (&'s GateRef, bool)> {
    let undone = state.undo.iter().find(|act| Some(act.id) == rewind.intent.undoes);
    undone.into_iter().flat_map(|act| &act.gates).map(|(gate, was)| {
        let decision = was.as_ref().and_then(|was| was.decision.as_ref());
        (gate, decision.is_some_and(|decision| decision.approved))
    })
}

/// Whether a rewind is an act although no file changes.
fn acts(loaded: &Loaded, rewind: &Rewind) -> bool {
    let stands = |lane: &LanePath| {
        let work = loaded.state.lane(lane).and_then(|l| l.work.as_ref());
        // Until it goes on, a lane knows where it was last taken back to.
        work.and_then(|w| w.rolled_back.as_ref()) == Some(&rewind.intent.to)
    };
    !rewind.merges.is_empty()
        || rewind.intent.undoes.is_some()
        || !rewind.intent.lanes.iter().all(stands)
}

impl RoomPlan {
    fn of(
        context: &Context,
        rooms: &GitRooms,
        target: &RoomTarget,
        present: Option<&str>,
    ) -> Result<Self> {
        if target.goes.is_some() {
            let (lane, leaving) =
                (target.lane.clone(), Leaving::of(context, rooms, target, present));
            let (preview, refused) = (Some(Preview::default()), leaving.refused.clone());
            return Ok(Self { lane, preview, branch: None, leaving: Some(leaving), refused });
        }
        let failed = |why: String| CommandError::failed("snapshot", why);
        let preview = present.map(|present| rooms.preview(target, present));
        let branch = target.head_to.as_ref().map(|to| {
            let name = format!("refs/heads/{}", target.branch);
            let from = piton_workspace::refs::value(&context.project.root, &name);
            (target.branch.clone(), from, to.clone())
        });
        let preview = preview.transpose().map_err(failed)?;
        let refused = match &preview {
            Some(preview) => preview.refused.clone(),
            None => rooms.preview_coming(target),
        };
        Ok(Self { lane: target.lane.clone(), preview, branch, leaving: None, refused })
    }

    fn changes(&self) -> bool {
        if self.leaving.is_some() {
            return true;
        }
        let moves = |(_, from, to): &(String, Option<String>, String)| from.as_ref() != Some(to);
        let differs =
            |p: &Preview| !p.changes.is_empty() || !p.large.is_empty() || !p.exchanged.is_empty();
        self.preview.as_ref().is_none_or(differs) || self.branch.as_ref().is_some_and(moves)
    }

    fn say(&self, kind: RewindKind) {
        let name = self.lane.as_ref().map_or("the project".to_owned(), ToString::to_string);
        if let Some(leaving) = &self.leaving {
            return leaving.say(&name);
        }
        match &self.preview {
            None => ui::say(&format!("{name}: its worktree comes back")),
            Some(preview) => say_files(&name, preview, kind),
        }
        match &self.branch {
            Some((branch, Some(from), to)) if from == to => {
                ui::say(&format!("  branch  {branch} stays at {}", short(to)));
            }
            Some((branch, from, to)) => {
                let from = from.as_deref().map_or_else(|| "nothing".to_owned(), short);
                ui::say(&format!("  branch  {branch} from {from} to {}", short(to)));
            }
            None => {}
        }
    }

    fn json(&self, rewind: RewindKind) -> Value {
        let none = Preview::default();
        let preview = self.preview.as_ref().unwrap_or(&none);
        let (restored, deleted) = named(&preview.changes);
        let kept = preview.kept.iter().map(|k| (plain(&k.path), why_kept(k.why, rewind)));
        let missed = preview.missed.iter().map(|m| (plain(&m.path), m.why.to_string()));
        let gone =
            preview.gone.iter().map(|m| json!({"path": plain(&m.path), "why": m.why.to_string()}));
        let gone: Vec<Value> = gone.collect();
        let kept: Vec<Value> =
            kept.chain(missed).map(|(path, why)| json!({"path": path, "why": why})).collect();
        json!({
            "lane": self.lane.as_ref().map(ToString::to_string),
            "worktree_comes_back": self.preview.is_none(),
            "worktree_goes": self.leaving.as_ref().map(|leaving| &leaving.dir),
            "restored": restored,
            "deleted": deleted,
            "kept": kept,
            "lacking": gone,
            "large": preview.large.iter().map(|path| plain(path)).collect::<Vec<String>>(),
            "exchanged": preview.exchanged.iter().map(|(path, comes)| {
                json!({"path": plain(path), "comes_back": comes})
            }).collect::<Vec<Value>>(),
            "branch": self.branch.as_ref().map_or_else(
                || self.leaving.as_ref().map(Leaving::branch_json),
                |(name, from, to)| Some(json!({"name": name, "from": from, "to": to})),
            ),
        })
    }
}

fn say_files(name: &str, preview: &Preview, kind: RewindKind) {
    let changes = &preview.changes;
    let verb = if changes.len() == 1 { "changes" } else { "change" };
    ui::say(&format!("{name}: {} {verb}", ui::text::count(changes.len(), "file")));
    say_changes(changes);
    for kept in preview.kept.iter().take(PATHS_NAMED_MAX) {
        ui::say(&format!("  stays   {} ({})", shown(&kept.path), why_kept(kept.why, kind)));
    }
    more(preview.kept.len());
    for missed in preview.missed.iter().take(PATHS_NAMED_MAX) {
        let (path, why) = (shown(&missed.path), missed.why);
        ui::say(&format!("  stays   {path} (not in the checkpoint: {why})"));
    }
    more(preview.missed.len());
    for gone in preview.gone.iter().take(PATHS_NAMED_MAX) {
        let (path, why) = (shown(&gone.path), gone.why);
        ui::say(&format!("  lacks   {path} (not in the checkpoint: {why}; it stays away)"));
    }
    more(preview.gone.len());
    for path in preview.large.iter().take(PATHS_NAMED_MAX) {
        let (path, aside) = (shown(path), preview.aside.display());
        ui::say(&format!(
            "  large   {path} (becomes what git has of it; what is there goes to {aside})"
        ));
    }
    more(preview.large.len());
    for (path, comes) in preview.exchanged.iter().take(PATHS_NAMED_MAX) {
        let (path, aside) = (shown(path), preview.aside.display());
        let how = if *comes { "comes back from" } else { "goes to" };
        ui::say(&format!("  large   {path} ({how} {aside})"));
    }
    more(preview.exchanged.len());
}

/// Names the files that change.
fn say_changes(changes: &[Change]) {
    let word = |change: &Change| match change.kind {
        ChangeKind::Added => "restore",
        ChangeKind::Deleted => "delete ",
        _ => "change ",
    };
    for change in changes.iter().take(PATHS_NAMED_MAX) {
        ui::say(&format!("  {} {}", word(change), shown(&change.path)));
    }
    more(changes.len());
}

/// The paths that are written, and those that are deleted.
pub(super) fn named(changes: &[Change]) -> (Vec<String>, Vec<String>) {
    let (deleted, restored): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.kind == ChangeKind::Deleted);
    let paths = |all: Vec<&Change>| all.into_iter().map(|change| plain(&change.path)).collect();
    (paths(restored), paths(deleted))
}

/// Why a path stays; a restore does not ask who made it.
fn why_kept(why: KeptWhy, kind: RewindKind) -> String {
    match (why, kind) {
        (KeptWhy::Foreign, RewindKind::Restore) => {
            "the checkpoint does not have it; --exact removes it".to_owned()
        }
        _ => why.to_string(),
    }
}

fn plain(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn shown(path: &[u8]) -> String {
    ui::text::sanitize(&plain(path))
}

fn more(count: usize) {
    if count > PATHS_NAMED_MAX {
        ui::say(&format!("  and {} more", count - PATHS_NAMED_MAX));
    }
}
