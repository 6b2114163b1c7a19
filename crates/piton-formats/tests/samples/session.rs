//! One of everything that is recorded about a session.

use piton_core::Event;
use piton_core::event::{
    Cause, Reason, Resumed, SessionArtifact, SessionChanged, SessionEnded, SessionNotResumed,
    SessionOpened, SessionPhase, SessionSaved, SessionSynced,
};
use piton_core::request::Request;
use piton_core::session_state::SessionAct;

use super::{LANE, lane, sha, snapshot, text, texts};

fn opened() -> SessionOpened {
    let resumed = Resumed {
        timestamp: text("2025-10-30T15:30:00Z"),
        task: Some(text("T005")),
        load_tokens: 300,
        context_tokens: 2_000,
    };
    SessionOpened { session: text("s1"), resumed: Some(resumed), used: Some(5_000) }
}

fn changed(cause: Cause) -> SessionChanged {
    let (session, task) = (text("s1"), Some(text("T005")));
    SessionChanged { session, changes: texts(&["{\"file\":\"taskBoard\"}"]), cause, task }
}

fn saved(reason: Reason) -> SessionSaved {
    SessionSaved {
        session: text("s1"),
        name: text("session-1"),
        reason,
        stamp: text("20251030-153000"),
        document: text("{}"),
        task: Some(text("T005")),
        tokens: Some((182_000, 200_000)),
        cost_tokens: 500,
    }
}

fn not_resumed() -> SessionNotResumed {
    SessionNotResumed {
        session: text("s1"),
        timestamp: text("2025-10-30T15:30:00Z"),
        why: text("task T005 is not on the board any more"),
        stamp: text("20251030-153000"),
        document: text("{}"),
    }
}

fn phase() -> SessionPhase {
    SessionPhase { session: text("s1"), phase: text("testing"), ended: true }
}

fn artifact() -> SessionArtifact {
    SessionArtifact {
        session: text("s1"),
        path: text("docs/adr.md"),
        sha256: sha("docs/adr.md"),
        bytes: 42,
        task: Some(text("T005")),
        message: text("the decision"),
    }
}

fn synced() -> SessionSynced {
    SessionSynced { session: text("s1"), used: Some(20_000), cost_tokens: 40 }
}

/// What happened, in an order in which it can.
pub fn story() -> Vec<Event> {
    let causes =
        [Cause::Resume, Cause::Flush, Cause::TaskStarted, Cause::Decomposed, Cause::TaskFinished];
    let mut story = vec![Event::SessionOpened(opened())];
    story.extend(causes.map(|cause| Event::SessionChanged(changed(cause))));
    story.extend(Reason::ALL.map(|reason| Event::SessionSaved(Box::new(saved(reason)))));
    story.extend([
        Event::SessionPhase(SessionPhase { ended: false, ..phase() }),
        Event::SessionPhase(phase()),
        Event::SessionArtifact(artifact()),
        Event::SessionNotResumed(Box::new(not_resumed())),
        Event::SessionSynced(synced()),
        Event::SessionEnded(SessionEnded { session: text("s1"), task: Some(text("T005")) }),
    ]);
    story
}

/// What is asked to be recorded of a session.
pub fn request() -> Request {
    let acts = vec![
        SessionAct::Open(opened()),
        SessionAct::Change(changed(Cause::Flush)),
        SessionAct::Save {
            saved: saved(Reason::TokenCritical),
            message: text("before lunch"),
            head: Some(text("head")),
            snapshots: vec![(Some(lane(LANE)), snapshot("lane")), (None, snapshot("root"))],
        },
        SessionAct::NotResumed(not_resumed()),
        SessionAct::Phase(phase()),
        SessionAct::Artifact(artifact()),
        SessionAct::Sync(synced()),
        SessionAct::End(SessionEnded { session: text("s1"), task: None }),
    ];
    Request::Session { acts }
}
