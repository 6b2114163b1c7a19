// A server of the Model Context Protocol with one tool, which writes its argument to a file.
const fs = require("node:fs");
const lines = require("node:readline").createInterface({ input: process.stdin });
const tool = {
  name: "write",
  description: "Writes a note.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
};
const answers = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "notes", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": (params) => {
    fs.writeFileSync(process.env.NOTES_FILE, params.arguments.text);
    return { content: [{ type: "text", text: "written" }] };
  },
};
lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const body = answer
    ? { result: answer(params) }
    : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...body }) + "\n");
});
