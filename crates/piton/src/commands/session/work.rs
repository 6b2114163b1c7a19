//! What an agent says about its work beside the tasks of the board: the phase that it is in, and files
//! that it made.

use piton_core::event::{SessionArtifact, SessionPhase};
use piton_core::hash::Sha;
use piton_core::session_state::SessionAct;
use piton_view::session::{Artifact, Phase};
use piton_world::read;

use super::here::{Here, leaves};
use super::run::Recording;
use super::save::refuse_without_bank;
use crate::commands::request;
use crate::error::{CommandError, Result};

/// Most bytes of a recorded file: what an agent hands over is a document or a program, not a disk image.
const ARTIFACT_BYTES_MAX: usize = 64 << 20;

/// Starts or finishes a phase of the work; checkpoints name the one that is under way.
pub fn phase(here: Here<'_>, session: Option<&str>, phase: &str, ended: bool) -> Result<Phase> {
    refuse_without_bank(&here)?;
    let mut recording = Recording::of(here.alone()?, session)?;
    let current = |recording: &Recording<'_>| {
        recording.state().session.as_ref().and_then(|session| session.phase.clone())
    };
    let before = current(&recording);
    if ended && before.as_deref() != Some(phase) {
        let message = match &before {
            Some(other) => format!("the phase under way is `{other}`, not `{phase}`"),
            None => format!("no phase is under way, so `{phase}` cannot be finished"),
        };
        return Err(CommandError::usage("no-step", message).hint("start the phase first"));
    }
    if ended || before.as_deref() != Some(phase) {
        let (session, phase) = (recording.session.clone(), phase.to_owned());
        recording.record(vec![SessionAct::Phase(SessionPhase { session, phase, ended })])?;
    }
    let (run_id, session) = (recording.loaded.row.run_id.clone(), recording.session.clone());
    Ok(Phase { run_id, session, phase: phase.to_owned(), ended, current: current(&recording) })
}

/// Records a file of the project with the hash of its bytes. The same file is recorded once.
pub fn record_artifact(
    here: Here<'_>,
    session: Option<&str>,
    path: &str,
    message: &str,
) -> Result<Artifact> {
    refuse_without_bank(&here)?;
    let root = &here.context.project.root;
    let own = here.context.project.state_dir.strip_prefix(root).ok();
    let named = std::path::Path::new(path);
    let relative = named.strip_prefix(root).unwrap_or(named);
    let is_git = relative.components().next().is_some_and(|part| part.as_os_str() == ".git");
    let is_own = own.is_some_and(|own| relative.starts_with(own));
    let Some(relative) = relative.to_str().filter(|path| read::is_within(root, path)) else {
        return Err(leaves(path));
    };
    if is_git || is_own {
        return Err(leaves(path));
    }
    let bytes = read::bytes(&root.join(relative), ARTIFACT_BYTES_MAX).map_err(|error| {
        CommandError::usage("usage", format!("{relative} cannot be recorded: {error}"))
            .hint("write the file first, then record it")
    })?;
    let (sha256, relative) = (Sha::of(&bytes), relative.to_owned());
    let mut recording = Recording::of(here.alone()?, session)?;
    let message = request::message(recording.here.context, &recording.loaded, message)?;
    let known =
        recording.state().session.as_ref().and_then(|session| {
            session.artifacts.iter().find(|known| known.path == relative).cloned()
        });
    let task = recording.state().session.as_ref().and_then(|session| session.task.clone());
    let (session, bytes) = (recording.session.clone(), bytes.len() as u64);
    let new = SessionArtifact { session, path: relative, sha256, bytes, task, message };
    if known.as_ref() != Some(&new) {
        recording.record(vec![SessionAct::Artifact(new.clone())])?;
    }
    let run_id = recording.loaded.row.run_id.clone();
    let SessionArtifact { session, path, sha256, bytes, task, message } = new;
    Ok(Artifact { run_id, session, path, sha256: sha256.0, bytes, task, message })
}
