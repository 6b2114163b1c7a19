//! What people read: help, runs, states, refusals and errors, as a terminal of 100 columns shows them.
//!
//! A snapshot is a transcript of a scene. It is there to be read: a sentence that changes is seen in
//! review, and one that reads badly is seen at all. What the program does is tested elsewhere.
//! `INSTA_UPDATE=always cargo nextest run -p piton --test snapshots` accepts what has changed.

#![expect(clippy::unwrap_used, reason = "a scene that can't be set up is a failed test")]

mod common;

#[path = "snapshots/documents.rs"]
mod documents;
#[path = "snapshots/errors.rs"]
mod errors;
#[path = "snapshots/help.rs"]
mod help;
#[path = "snapshots/lanes.rs"]
mod lanes;
#[allow(dead_code, reason = "the bench of the tests of pipelines, used in part")]
#[path = "pipeline/scene.rs"]
mod pipeline;
#[path = "snapshots/pipelines.rs"]
mod pipelines;
#[path = "snapshots/runs.rs"]
mod runs;
#[allow(dead_code, reason = "the bench of the tests of lanes, used in part")]
#[path = "lanes/scene.rs"]
mod scene;
#[path = "snapshots/screen.rs"]
mod screen;
#[allow(dead_code, reason = "the bench of the tests of sessions, used in part")]
#[path = "session/scene.rs"]
mod session;
#[path = "snapshots/sessions.rs"]
mod sessions;
#[path = "snapshots/states.rs"]
mod states;
#[allow(dead_code, reason = "the bench of the tests of workflows, used in part")]
#[path = "workflow/scene.rs"]
mod workflow;
#[path = "snapshots/workflows.rs"]
mod workflows;
