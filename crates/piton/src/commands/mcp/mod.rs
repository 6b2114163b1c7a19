//! `piton mcp`: a server of the Model Context Protocol on standard input and output.
//!
//! One connection, one call at a time: while a call is at work nothing is read, so a client that sends
//! faster than it is answered fills its own pipe and not our memory. Nothing is remembered between
//! calls; each finds the project as it is. The server ends with its input.

mod call;
mod read;
mod server;
mod transport;

use piton_protocols::Table;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::ui;

/// The word that calls it.
const COMMAND: &str = "mcp";

/// Serves until the input ends.
pub fn run(table: &'static Table, context: &Context) -> Result<()> {
    ui::read_by_agent();
    let failed = |why: String| CommandError::failed("world", format!("the server failed: {why}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(error.to_string()))?;
    let server = server::Server { table, cwd: context.cwd.clone() };
    let served = runtime.block_on(async {
        match server.serve(transport::Stdio::new()).await {
            Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
            // A client that went away before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
    // A thread may still wait for input that nobody sends.
    runtime.shutdown_background();
    served.map_err(failed)
}
