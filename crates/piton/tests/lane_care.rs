//! Looking after lanes: what `gc` takes of them, what `status` tells, phases that follow each other,
//! runs taken over from another tool.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod common;

#[path = "lanes/scene.rs"]
#[expect(dead_code, reason = "other tests use the rest of the scene")]
mod scene;

#[path = "lane_care/gates.rs"]
mod gates;
#[path = "lane_care/gc.rs"]
mod gc;
#[path = "lane_care/import.rs"]
mod import;
#[path = "lane_care/phases.rs"]
mod phases;
#[path = "lane_care/status.rs"]
mod status;
