// Written by `piton init opencode`: tells Piton what happens in a session, and stops it when its context
// is full. Whatever goes wrong here leaves the session alone.
import { spawn } from "node:child_process";

export const Piton = async ({ client, directory }) => {
  const sessions = new Map();
  const state = (id) => {
    if (!sessions.has(id)) sessions.set(id, { brief: undefined, used: 0, window: undefined, acted: false, notice: "", telling: false, child: false });
    return sessions.get(id);
  };

  const ask = (event, id, more = {}) =>
    new Promise((resolve) => {
      // A subagent has a context of its own, and ends without the session.
      if (state(id).child) return resolve({});
      try {
        const child = spawn("piton", ["hook", "opencode"], { cwd: directory, stdio: ["pipe", "pipe", "ignore"] });
        let said = "";
        child.on("error", () => resolve({}));
        child.stdin.on("error", () => {});
        child.stdout.on("data", (data) => (said += data));
        child.on("close", () => {
          try {
            resolve(said ? JSON.parse(said) : {});
          } catch {
            resolve({});
          }
        });
        const { used, window } = state(id);
        const call = { hook_event_name: event, session_id: id, cwd: directory, window, ...more };
        child.stdin.end(JSON.stringify(used > 0 ? { used, ...call } : call));
      } catch {
        resolve({});
      }
    });

  const quietly = async (act) => {
    try {
      await act();
    } catch {}
  };

  // Its output ends with the abort: what a person must know becomes a message of the session.
  const stop = async (id, text) => {
    const session = state(id);
    session.telling = true;
    const body = { noReply: true, parts: [{ type: "text", text }] };
    await quietly(() => client.session.prompt({ path: { id }, body }));
    await quietly(() => client.tui.showToast({ body: { title: "Piton", message: text, variant: "warning" } }));
    session.telling = false;
    await client.session.abort({ path: { id } });
  };

  const begin = async (id, source) => {
    const answer = await ask("SessionStart", id, { source });
    state(id).brief = answer.hookSpecificOutput?.additionalContext ?? "";
  };

  return {
    "chat.params": async (input) => {
      const window = input.model?.limit?.context;
      if (window > 0) state(input.sessionID).window = window;
    },
    "chat.message": async (input) => {
      if (state(input.sessionID).telling) return;
      if (state(input.sessionID).brief === undefined) await begin(input.sessionID, "startup");
      else await ask("UserPromptSubmit", input.sessionID);
    },
    // Before each request: by now it is known how full the one before the operations was.
    "experimental.chat.system.transform": async (input, output) => {
      if (!input.sessionID) return;
      const session = state(input.sessionID);
      if (session.brief) output.system.push(session.brief);
      if (!session.acted) return;
      session.acted = false;
      const answer = await ask("PostToolUse", input.sessionID);
      session.notice = answer.hookSpecificOutput?.additionalContext ?? session.notice;
      if (answer.continue === false) await stop(input.sessionID, answer.stopReason ?? "");
    },
    "experimental.session.compacting": async (input) => {
      await ask("PreCompact", input.sessionID);
    },
    // A notice goes to the end of the conversation: a changed beginning would be read anew, and paid for.
    "tool.execute.after": async (input, output) => {
      const session = state(input.sessionID);
      session.acted = true;
      if (!session.notice || typeof output.output !== "string") return;
      output.output += `\n\n${session.notice}`;
      session.notice = "";
    },
    dispose: async () => {
      const begun = [...sessions].filter(([, session]) => session.brief !== undefined);
      await Promise.all(begun.map(([id]) => ask("SessionEnd", id)));
    },
    event: async ({ event }) => {
      const info = event.properties?.info;
      if (event.type === "session.created" && info?.parentID) state(info.id).child = true;
      const id = event.properties?.sessionID ?? info?.sessionID;
      if (!id) return;
      if (event.type === "message.updated") {
        const tokens = info?.tokens;
        const used = tokens ? tokens.input + tokens.cache.read + tokens.cache.write : 0;
        if (used > 0) state(id).used = used;
      } else if (event.type === "session.compacted") {
        state(id).used = 0;
        await begin(id, "compact");
      } else if (event.type === "session.idle") {
        await ask("Stop", id);
      }
    },
  };
};
