//! One connection of a driver: bytes in, bytes out, never waiting.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;

use rustix::net::SendFlags;

use crate::error::Result;
use crate::frame::{self, Decoder};
use crate::protocol::{Reply, Request};

/// Bytes read at once; a start is a few hundred bytes.
const READ_BYTES: usize = 16 << 10;

/// A connection that may or may not have introduced itself.
pub(super) struct Connection {
    /// Unique in this keeper's life.
    pub(super) id: u64,
    pub(super) stream: UnixStream,
    decoder: Decoder,
    out: Vec<u8>,
    sent: usize,
    /// Whether nothing more will come from the other side.
    ended: bool,
    /// Whether to close it once everything was sent or failed.
    pub(super) closing: bool,
}

impl Connection {
    pub(super) fn new(id: u64, stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (decoder, out) = (Decoder::default(), Vec::new());
        Ok(Self { id, stream, decoder, out, sent: 0, ended: false, closing: false })
    }

    /// Reads what has arrived.
    pub(super) fn fill(&mut self) {
        let mut chunk = [0; READ_BYTES];
        loop {
            match (&self.stream).read(&mut chunk) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    self.decoder.push(&chunk[..count]);
                    // After a full chunk there may be more; otherwise poll tells.
                    if count == READ_BYTES {
                        continue;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.ended = true,
            }
            return;
        }
    }

    /// Returns the next complete request.
    pub(super) fn next(&mut self) -> Result<Option<Request>> {
        self.decoder.next()
    }

    /// Queues a reply for the end of this turn.
    pub(super) fn say(&mut self, reply: &Reply) -> Result<()> {
        frame::encode(reply, &mut self.out)
    }

    /// Sends what is queued, as far as the socket takes it.
    pub(super) fn flush(&mut self) {
        while self.sent < self.out.len() {
            match rustix::net::send(&self.stream, &self.out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => {
                    self.ended = true;
                    return;
                }
            }
        }
        self.out.clear();
        self.sent = 0;
    }

    /// Whether something waits to be sent.
    pub(super) fn has_output(&self) -> bool {
        self.sent < self.out.len()
    }

    /// Whether the connection is over.
    pub(super) fn is_over(&self) -> bool {
        self.ended || self.closing
    }
}
