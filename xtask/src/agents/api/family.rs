//! The four ways in which agent programs ask a model: what a request is, and the form of its answer.
//!
//! Pure: from a request and an answer of the script to JSON texts. Only the fields that the programs
//! read are written.

use serde_json::{Map, Value, json};

use super::script::{Answer, Failure};

/// An event of a stream.
#[derive(Debug)]
pub(crate) struct Event {
    /// Its name, where the family has names.
    pub(crate) name: Option<&'static str>,
    /// Its data.
    pub(crate) data: String,
}

impl Event {
    fn named(name: &'static str, mut data: Value) -> Self {
        data["type"] = json!(name);
        Self { name: Some(name), data: data.to_string() }
    }

    fn plain(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }
}

/// How a program asks a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Anthropic Messages.
    Messages,
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat Completions.
    Chat,
    /// Gemini `generateContent`.
    Content,
}

impl Family {
    /// The family of a path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let ends = [
            ("/messages", Self::Messages),
            ("/responses", Self::Responses),
            ("/chat/completions", Self::Chat),
            (":generateContent", Self::Content),
            (":streamGenerateContent", Self::Content),
        ];
        ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, family)| family)
    }

    /// Whether the answer is to come as a stream.
    pub(crate) fn is_stream(self, path: &str, body: &Value) -> bool {
        match self {
            Self::Content => path.contains(":stream"),
            _ => body["stream"] == json!(true),
        }
    }

    /// The body of an error.
    pub(crate) fn error(self, failure: &Failure) -> Value {
        let Failure { status, kind, message, body } = failure;
        if let Some(body) = body {
            return body.clone();
        }
        match self {
            Self::Messages => {
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Self::Responses | Self::Chat => {
                json!({"error": {"type": kind, "code": kind, "message": message}})
            }
            Self::Content => json!({"error": {"code": status, "status": kind, "message": message}}),
        }
    }

    /// The answer as one value.
    pub(crate) fn whole(self, body: &Value, answer: &Answer) -> Value {
        match self {
            Self::Messages => {
                let mut message = message(body, answer);
                message["content"] = Value::Array(blocks(answer));
                message["stop_reason"] = json!(message_stop(answer));
                message
            }
            Self::Responses => response(body, answer, "completed", &items(answer)),
            Self::Chat => {
                let spoken = json!({"role": "assistant", "content": answer.text,
                    "tool_calls": tool_calls(answer)});
                let choice =
                    json!({"index": 0, "message": spoken, "finish_reason": chat_stop(answer)});
                json!({"id": id("chat", answer), "object": "chat.completion", "created": 0,
                    "model": body["model"], "choices": [choice], "usage": chat_usage(answer)})
            }
            Self::Content => content(&parts(answer), Some(answer)),
        }
    }

    /// The answer as a stream.
    pub(crate) fn events(self, body: &Value, answer: &Answer) -> Vec<Event> {
        match self {
            Self::Messages => message_events(body, answer),
            Self::Responses => response_events(body, answer),
            Self::Chat => chat_events(body, answer),
            Self::Content => {
                let parts = parts(answer);
                let each = parts.iter().map(|part| content(std::slice::from_ref(part), None));
                let last = content(&[json!({"text": ""})], Some(answer));
                each.chain([last]).map(|value| Event::plain(&value)).collect()
            }
        }
    }
}

/// An id that no other answer has: programs join what has the same one.
fn id(kind: &str, answer: &Answer) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{kind}_{number:016x}{:04x}", answer.calls.len())
}

// Anthropic Messages.

fn message(body: &Value, answer: &Answer) -> Value {
    let usage = json!({"input_tokens": answer.input, "cache_read_input_tokens": answer.cached,
        "cache_creation_input_tokens": 0, "output_tokens": answer.output});
    json!({"id": id("msg", answer), "type": "message", "role": "assistant", "model": body["model"],
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage})
}

fn message_stop(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn blocks(answer: &Answer) -> Vec<Value> {
    let calls = answer.calls.iter().map(|call| {
        json!({"type": "tool_use", "id": id("toolu", answer), "name": call.name,
            "input": call.input})
    });
    [json!({"type": "text", "text": answer.text})].into_iter().chain(calls).collect()
}

fn message_events(body: &Value, answer: &Answer) -> Vec<Event> {
    let message = message(body, answer);
    let usage = message["usage"].clone();
    let mut events = vec![Event::named("message_start", json!({"message": message}))];
    for (index, mut block) in blocks(answer).into_iter().enumerate() {
        let delta = if block["type"] == "text" {
            json!({"type": "text_delta", "text": block["text"].take()})
        } else {
            let input = block["input"].take().to_string();
            json!({"type": "input_json_delta", "partial_json": input})
        };
        let empty = if block["type"] == "text" { "text" } else { "input" };
        block[empty] = if empty == "text" { json!("") } else { Value::Object(Map::new()) };
        let start = json!({"index": index, "content_block": block});
        events.push(Event::named("content_block_start", start));
        let delta = json!({"index": index, "delta": delta});
        events.push(Event::named("content_block_delta", delta));
        events.push(Event::named("content_block_stop", json!({"index": index})));
    }
    let delta = json!({"stop_reason": message_stop(answer), "stop_sequence": null});
    events.push(Event::named("message_delta", json!({"delta": delta, "usage": usage})));
    events.push(Event::named("message_stop", json!({})));
    events
}

// OpenAI Responses.

fn response(body: &Value, answer: &Answer, status: &str, output: &[Value]) -> Value {
    let input = answer.input + answer.cached;
    let usage = json!({"input_tokens": input, "output_tokens": answer.output,
        "total_tokens": input + answer.output,
        "input_tokens_details": {"cached_tokens": answer.cached},
        "output_tokens_details": {"reasoning_tokens": 0}});
    json!({"id": id("resp", answer), "object": "response", "created_at": 0, "status": status,
        "model": body["model"], "output": output, "usage": usage, "error": null})
}

fn items(answer: &Answer) -> Vec<Value> {
    let text = json!({"type": "output_text", "text": answer.text, "annotations": []});
    let message = json!({"type": "message", "id": id("msg", answer), "role": "assistant",
        "status": "completed", "content": [text]});
    let calls = answer.calls.iter().map(|call| {
        let mut item = json!({"type": "function_call", "id": id("fc", answer),
            "call_id": id("call", answer), "name": call.name,
            "arguments": call.input.to_string(), "status": "completed"});
        // Tools of an MCP server are offered as a group, and called by its name and theirs.
        let in_group = call.name.rsplit_once("__").filter(|(group, _)| group.contains("__"));
        if let Some((group, name)) = in_group {
            (item["namespace"], item["name"]) = (group.into(), name.into());
        }
        item
    });
    [message].into_iter().chain(calls).collect()
}

fn response_events(body: &Value, answer: &Answer) -> Vec<Event> {
    let whole = response(body, answer, "completed", &items(answer));
    let mut begun = whole.clone();
    (begun["status"], begun["usage"], begun["output"]) =
        (json!("in_progress"), json!(null), json!([]));
    let mut events = vec![Event::named("response.created", json!({"response": begun}))];
    for (index, item) in whole["output"].as_array().into_iter().flatten().enumerate() {
        let mut added = item.clone();
        if item["type"] == "message" {
            added["content"] = json!([]);
        }
        let at = json!({"output_index": index, "item": added});
        events.push(Event::named("response.output_item.added", at));
        if item["type"] == "message" {
            let delta = json!({"item_id": item["id"], "output_index": index, "content_index": 0,
                "delta": answer.text});
            events.push(Event::named("response.output_text.delta", delta));
        }
        let done = json!({"output_index": index, "item": item});
        events.push(Event::named("response.output_item.done", done));
    }
    events.push(Event::named("response.completed", json!({"response": whole})));
    events
}

// OpenAI Chat Completions.

fn chat_usage(answer: &Answer) -> Value {
    let input = answer.input + answer.cached;
    json!({"prompt_tokens": input, "completion_tokens": answer.output,
        "total_tokens": input + answer.output,
        "prompt_tokens_details": {"cached_tokens": answer.cached}})
}

fn chat_stop(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn tool_calls(answer: &Answer) -> Vec<Value> {
    let calls = answer.calls.iter().enumerate();
    calls
        .map(|(index, call)| {
            let function = json!({"name": call.name, "arguments": call.input.to_string()});
            json!({"index": index, "id": id("call", answer), "type": "function",
                "function": function})
        })
        .collect()
}

fn chat_events(body: &Value, answer: &Answer) -> Vec<Event> {
    let name = id("chat", answer);
    let chunk = |choices: Value, usage: Value| {
        Event::plain(&json!({"id": name, "object": "chat.completion.chunk", "created": 0,
            "model": body["model"], "choices": choices, "usage": usage}))
    };
    let part = |delta: Value, stop: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": stop}]), Value::Null)
    };
    let mut events = vec![part(json!({"role": "assistant", "content": answer.text}), Value::Null)];
    for call in tool_calls(answer) {
        events.push(part(json!({"tool_calls": [call]}), Value::Null));
    }
    events.push(part(json!({}), json!(chat_stop(answer))));
    events.push(chunk(json!([]), chat_usage(answer)));
    events.push(Event { name: None, data: "[DONE]".to_owned() });
    events
}

// Gemini.

fn parts(answer: &Answer) -> Vec<Value> {
    let calls = answer.calls.iter().map(|call| {
        json!({"functionCall": {"id": id("fc", answer), "name": call.name, "args": call.input}})
    });
    [json!({"text": answer.text})].into_iter().chain(calls).collect()
}

fn content(parts: &[Value], ended: Option<&Answer>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    let Some(answer) = ended else { return json!({"candidates": [candidate]}) };
    candidate["finishReason"] = json!("STOP");
    let input = answer.input + answer.cached;
    let usage = json!({"promptTokenCount": input, "candidatesTokenCount": answer.output,
        "cachedContentTokenCount": answer.cached, "totalTokenCount": input + answer.output});
    json!({"candidates": [candidate], "usageMetadata": usage})
}
