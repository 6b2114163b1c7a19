//! A client that writes its lines itself.
#![expect(clippy::needless_pass_by_value, reason = "arguments are written where a tool is called")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::common::{PITON, Project};

/// The two ways to talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// Each request says all about itself.
    Current,
    /// A handshake comes first.
    Before,
}

/// Both.
pub const REVISIONS: [Revision; 2] = [Revision::Current, Revision::Before];

/// A server and the connection to it; ended when dropped.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    revision: Revision,
    last: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client of the current revision says in each request.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A command that becomes a server. As with an agent, what started it starts nothing else here.
pub fn server(project: &Project) -> Command {
    let mut command = project.command("sh");
    command.args(["-c", "\"$0\" mcp; exit $?", PITON]);
    command
}

impl Client {
    /// Starts a server in a project and begins to talk.
    #[track_caller]
    pub fn new(project: &Project, revision: Revision) -> Self {
        let mut client = Self::of(server(project), revision);
        if revision == Revision::Before {
            let hello = json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            });
            let answer = client.ask("initialize", hello);
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            client.line(
                &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            );
        }
        client
    }

    /// Starts a server and says nothing.
    pub fn of(mut command: Command, revision: Revision) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a server");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let input = child.stdin.take();
        Self { child, input, output, revision, last: 0 }
    }

    /// Sends a line as it is.
    pub fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open connection");
        input.write_all(format!("{line}\n").as_bytes()).expect("a server that reads");
        input.flush().expect("a server that reads");
    }

    /// The next line that the server says.
    #[track_caller]
    pub fn heard(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    /// Sends a request; its answer comes later.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if self.revision == Revision::Current {
            let mut all = meta();
            if let Some(own) = params["_meta"].as_object() {
                all.as_object_mut().expect("an object").extend(own.clone());
            }
            params["_meta"] = all;
        }
        let id = self.last;
        self.line(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string(),
        );
        id
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.heard();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool; gives the whole result.
    #[track_caller]
    pub fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that works; gives its data.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.result(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        assert!(result["content"][0]["text"].is_string(), "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that is refused; gives the words.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        for word in
            ["approve", "reject", "rollback", "undo", "abort", "--fresh", "--takeover", "gc`"]
        {
            assert!(!text.contains(&format!("piton {word}")), "names {word}: {text}");
        }
        text
    }

    /// Reads a resource; gives its text.
    #[track_caller]
    pub fn read(&mut self, uri: &str) -> String {
        let answer = self.ask("resources/read", json!({ "uri": uri }));
        let text = answer["result"]["contents"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Ends the input and waits; gives the exit code.
    pub fn end(&mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().expect("an end").code()
    }

    /// Whether the server has said something that was not heard yet.
    pub fn has_answer(&self) -> bool {
        let mut said = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        poll(&mut said, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }

    /// Kills the server, which must have been started without a shell.
    pub fn kill(mut self) {
        self.child.kill().expect("a process");
        self.child.wait().expect("its end");
    }
}
