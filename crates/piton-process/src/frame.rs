//! Frames: a little-endian `u32` length, then that many bytes of JSON.
//!
//! A decoder takes bytes as they come and gives whole messages; it never blocks and never reads
//! itself. The limit protects both sides from a length that is really something else.

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Error, Result};

/// The largest frame. An environment is at most a few megabytes (the kernel's own limit for
/// arguments and environment is 6 MiB), prompts are smaller; beyond this it is a mistake.
pub(crate) const FRAME_BYTES_MAX: usize = 16 << 20;

/// How much of the buffer may be consumed before it is moved to the front.
const COMPACT_BYTES: usize = 64 << 10;

const HEADER: usize = size_of::<u32>();

/// Appends one message to a buffer.
pub(crate) fn encode<T: Serialize>(message: &T, into: &mut Vec<u8>) -> Result<()> {
    let start = into.len();
    into.extend_from_slice(&[0; HEADER]);
    let written = serde_json::to_writer(&mut *into, message);
    let len = into.len() - start - HEADER;
    if let Err(error) = written {
        into.truncate(start);
        return Err(Error::Protocol(error.to_string()));
    }
    let (true, Ok(header)) = (len <= FRAME_BYTES_MAX, u32::try_from(len)) else {
        into.truncate(start);
        return Err(Error::Protocol(format!(
            "a message of {len} bytes is over the limit of {FRAME_BYTES_MAX}"
        )));
    };
    into[start..start + HEADER].copy_from_slice(&header.to_le_bytes());
    Ok(())
}

/// Collects bytes and gives messages.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    consumed: usize,
}

impl Decoder {
    /// Takes bytes that arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.consumed == self.buffer.len() {
            self.buffer.clear();
            self.consumed = 0;
        } else if self.consumed > COMPACT_BYTES {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Gives the next whole message, if there is one.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let rest = &self.buffer[self.consumed..];
        let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*header) as usize;
        if len > FRAME_BYTES_MAX {
            return Err(Error::Protocol(format!("a frame announces {len} bytes")));
        }
        let Some(body) = rest.get(..len) else {
            return Ok(None);
        };
        let message =
            serde_json::from_slice(body).map_err(|error| Error::Protocol(error.to_string()))?;
        self.consumed += HEADER + len;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that dies in the middle of a frame must not start half a step.
    #[test]
    fn messages_come_whole_or_not_at_all() -> Result<()> {
        let mut bytes = Vec::new();
        encode(&"first", &mut bytes)?;
        encode(&"second", &mut bytes)?;
        let mut decoder = Decoder::default();
        let mut seen: Vec<String> = Vec::new();
        for byte in &bytes[..bytes.len() - 1] {
            decoder.push(&[*byte]);
            while let Some(message) = decoder.next()? {
                seen.push(message);
            }
        }
        assert_eq!(seen, ["first"]);
        decoder.push(&bytes[bytes.len() - 1..]);
        assert_eq!(decoder.next::<String>()?.as_deref(), Some("second"));
        Ok(())
    }

    /// A length that is not one must not make the keeper allocate it.
    #[test]
    fn absurd_lengths_are_refused() {
        let mut decoder = Decoder::default();
        decoder.push(b"GET / HTTP/1.1");
        assert!(decoder.next::<String>().is_err());
    }
}
