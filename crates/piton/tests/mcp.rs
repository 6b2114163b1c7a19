//! The server for agents: the real program over its standard input and output, in both revisions.

mod common;

#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/confined.rs"]
mod confined;
#[path = "mcp/kills.rs"]
mod kills;
#[path = "mcp/revisions.rs"]
mod revisions;
#[path = "session/scene.rs"]
#[allow(dead_code, reason = "the bench of the tests of sessions, used in part")]
mod scene;
#[path = "mcp/steps.rs"]
mod steps;
#[path = "mcp/tools.rs"]
mod tools;
