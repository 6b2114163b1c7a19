//! A scripted model API on loopback: agent programs work against it without an account.
//!
//! It speaks what the programs speak (see [`family`]), answers from a [`Script`], and keeps every request
//! for the case to look at. It understands no prompt and checks no key.

pub(crate) mod family;
mod http;
pub(crate) mod script;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use self::family::Family;
use self::http::Request;
pub(crate) use self::script::{Answer, Script};

/// Connections at a time. A program holds a handful; more means that it sends requests in a loop.
const CONNECTIONS_MAX: usize = 64;

/// Requests that are kept. A program that sends more does not end by itself.
const REQUESTS_MAX: usize = 500;

/// How long a connection may say nothing: programs keep spare ones open.
const IDLE: Duration = Duration::from_secs(30);

/// What the API counts for any text, where a program asks it to count.
const COUNTED_TOKENS: u64 = 1000;

/// The API, as long as it is held.
pub(crate) struct Api {
    address: SocketAddr,
    state: Arc<State>,
}

/// What all connections share.
struct State {
    inner: Mutex<Inner>,
    /// Wakes answers that wait.
    ended: Condvar,
}

struct Inner {
    script: Script,
    asked: Vec<Asked>,
    connections: usize,
    has_ended: bool,
}

/// A request for an answer of the model, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// What it asked.
    pub(crate) body: Value,
}

impl Api {
    /// Starts it on a port of its own.
    pub(crate) fn start(script: Script) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let inner = Inner { script, asked: Vec::new(), connections: 0, has_ended: false };
        let state = Arc::new(State { inner: Mutex::new(inner), ended: Condvar::new() });
        let shared = Arc::clone(&state);
        thread::spawn(move || accept(&listener, &shared));
        Ok(Self { address, state })
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far for an answer of the model.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.lock().asked.clone()
    }

    /// From now on it answers from this script.
    pub(crate) fn follow(&self, script: Script) {
        self.state.lock().script = script;
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.state.lock().has_ended = true;
        self.state.ended.notify_all();
        // The listener waits for a connection: this one wakes it.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as an answer is to be late, or until the API ends.
    fn wait(&self, delay: Duration) {
        if !delay.is_zero() {
            let _ = self.ended.wait_timeout_while(self.lock(), delay, |inner| !inner.has_ended);
        }
    }
}

fn accept(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming() {
        let mut inner = state.lock();
        if inner.has_ended {
            return;
        }
        let Ok(stream) = stream else { continue };
        if inner.connections >= CONNECTIONS_MAX {
            continue;
        }
        inner.connections += 1;
        drop(inner);
        let state = Arc::clone(state);
        thread::spawn(move || {
            // A program that was killed leaves its connections broken.
            let _ = serve(stream, &state);
            state.lock().connections -= 1;
        });
    }
}

/// Answers one request. Every answer closes its connection, so that none waits for another.
fn serve(mut stream: TcpStream, state: &State) -> std::io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_nodelay(true)?;
    let Some(request) = http::read(&mut stream)? else { return Ok(()) };
    let path = request.path.split('?').next().unwrap_or_default();
    if path.ends_with("/count_tokens") || path.ends_with(":countTokens") {
        let counted = json!({"input_tokens": COUNTED_TOKENS, "totalTokens": COUNTED_TOKENS});
        return http::whole(&mut stream, 200, &[], &counted.to_string());
    }
    match Family::of(path) {
        Some(family) if request.method == "POST" => answer(&mut stream, state, family, &request),
        _ if path.ends_with("/models") => {
            let none = json!({"object": "list", "data": [], "models": [], "has_more": false});
            http::whole(&mut stream, 200, &[], &none.to_string())
        }
        _ if request.method == "HEAD" => http::whole(&mut stream, 200, &[], ""),
        _ => http::whole(&mut stream, 404, &[], r#"{"error":{"message":"no such path"}}"#),
    }
}

fn answer(
    stream: &mut TcpStream,
    state: &State,
    family: Family,
    request: &Request,
) -> std::io::Result<()> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let answer = {
        let mut inner = state.lock();
        if inner.asked.len() >= REQUESTS_MAX {
            return Ok(());
        }
        let answer = inner.script.next(&body);
        inner.asked.push(Asked { body: body.clone() });
        answer
    };
    state.wait(answer.delay);
    if let Some(failure) = &answer.failure {
        let body = family.error(failure);
        return http::whole(stream, failure.status, &answer.headers, &body.to_string());
    }
    if !family.is_stream(&request.path, &body) {
        let whole = family.whole(&body, &answer);
        return http::whole(stream, 200, &answer.headers, &whole.to_string());
    }
    let mut events = family.events(&body, &answer);
    if answer.is_cut {
        events.truncate(events.len() / 2);
    }
    http::begin_events(stream, &answer.headers)?;
    for event in &events {
        http::event(stream, event)?;
    }
    if answer.is_cut { stream.flush() } else { http::end_events(stream) }
}

#[cfg(test)]
mod tests;
