//! As much of HTTP/1.1 as agent programs need: one request for each connection, answers whole or as a
//! stream of events.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::family::Event;

/// All headers of a request together.
const HEAD_BYTES_MAX: u64 = 256 << 10;

/// A body: a conversation of a million tokens fits.
const BODY_BYTES_MAX: u64 = 32 << 20;

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// Its method.
    pub(super) method: String,
    /// Its path, with the query.
    pub(super) path: String,
    /// Its body.
    pub(super) body: Vec<u8>,
}

/// Reads a request; nothing if the connection was only opened.
pub(super) fn read(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut head = (&mut reader).take(HEAD_BYTES_MAX);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut is_chunked) = (0, false);
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let body = if is_chunked { chunks(&mut reader)? } else { bytes(&mut reader, length)? };
    Ok(Some(Request { method, path, body }))
}

fn bytes(reader: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    if length > BODY_BYTES_MAX {
        return Err(io::Error::other("the body is too long"));
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.take(HEAD_BYTES_MAX).read_line(&mut line)?;
        let length = line.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(length, 16).map_err(io::Error::other)?;
        let room = BODY_BYTES_MAX.saturating_sub(body.len() as u64);
        if length > room {
            return Err(io::Error::other("the body is too long"));
        }
        body.extend(bytes(reader, length)?);
        line.clear();
        reader.take(HEAD_BYTES_MAX).read_line(&mut line)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// Answers with a JSON text.
pub(super) fn whole(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    let own = format!("content-type: application/json\r\ncontent-length: {length}\r\n");
    let head = head(status, &own, headers);
    stream.write_all(format!("{head}{body}").as_bytes())
}

/// Begins an answer that is a stream of events.
pub(super) fn begin_events(stream: &mut TcpStream, headers: &[(String, String)]) -> io::Result<()> {
    let own = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
    stream.write_all(head(200, own, headers).as_bytes())
}

/// Sends an event.
pub(super) fn event(stream: &mut TcpStream, event: &Event) -> io::Result<()> {
    let name = event.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    let text = format!("{name}data: {}\n\n", event.data);
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

/// Ends a stream of events; without it the stream is cut.
pub(super) fn end_events(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}

fn head(status: u16, own: &str, headers: &[(String, String)]) -> String {
    let added: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let added = added.concat();
    format!("HTTP/1.1 {status} Scripted\r\n{own}{added}connection: close\r\n\r\n")
}
