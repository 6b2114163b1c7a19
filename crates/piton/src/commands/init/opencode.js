// Written by `piton init opencode`: tells Piton what happens in a session, and stops it when its context
// is full. Whatever goes wrong here leaves the session alone.
import { spawn } from "node:child_process";

export const Piton = async ({ client, directory }) => {
  const sessions = new Map();
  const state = (id) => {
    if (!sessions.has(id)) sessions.set(id, { brief: undefined, used: 0, window: undefined });
    return sessions.get(id);
  };

  const ask = (event, id, more = {}) =>
    new Promise((resolve) => {
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
      if (state(input.sessionID).brief === undefined) await begin(input.sessionID, "startup");
      else await ask("UserPromptSubmit", input.sessionID);
    },
    "experimental.chat.system.transform": async (input, output) => {
      const brief = input.sessionID ? state(input.sessionID).brief : undefined;
      if (brief) output.system.push(brief);
    },
    "experimental.session.compacting": async (input) => {
      await ask("PreCompact", input.sessionID);
    },
    "tool.execute.after": async (input, output) => {
      const answer = await ask("PostToolUse", input.sessionID);
      const more = answer.hookSpecificOutput?.additionalContext;
      if (more && typeof output.output === "string") output.output += `\n\n${more}`;
      if (answer.continue === false) await client.session.abort({ path: { id: input.sessionID } });
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.sessionID;
      if (!id) return;
      if (event.type === "message.updated") {
        const tokens = event.properties.info?.tokens;
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
