//! Messages on standard input and output, one a line.
//!
//! Only requests are passed on. A server that asks nothing gets no answers, and what it is notified of
//! changes nothing; passed on before the first request, they would end the connection.

use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::{StdioReader, StdioWriter, stdio_pipes};
use tokio::sync::Semaphore;

/// Longest message: arguments are names and remarks. A longer line is dropped.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Answers that may wait to be written before the next message is read.
const UNREAD_MAX: usize = 16;

/// The messages.
pub struct Stdio {
    inner: AsyncRwTransport<RoleServer, StdioReader, StdioWriter>,
    unread: Arc<Semaphore>,
}

impl Stdio {
    /// Takes standard input and output; within a runtime.
    pub fn new() -> Self {
        let (read, write) = stdio_pipes();
        let inner = AsyncRwTransport::new_server(read, write).with_max_line_length(LINE_BYTES_MAX);
        Self { inner, unread: Arc::new(Semaphore::new(UNREAD_MAX)) }
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let permit = Arc::clone(&self.unread).try_acquire_owned();
        let sent = self.inner.send(item);
        async move {
            let done = sent.await;
            drop(permit);
            done
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // A client that does not read its answers is not read either.
            drop(self.unread.acquire().await);
            let message = self.inner.receive().await?;
            if matches!(message, JsonRpcMessage::Request(_)) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
