//! The texts that agents are given as slash commands: what to run, and what to say.

/// What a slash command is for, and what the agent does.
pub(super) struct Text {
    /// Its name.
    pub(super) name: &'static str,
    /// Its first line in lists.
    pub(super) about: &'static str,
    /// What the agent is told.
    pub(super) body: &'static str,
}

/// All of them.
pub(super) const TEXTS: [Text; 2] = [
    Text {
        name: "checkpoint",
        about: "Create checkpoint, save progress: record this session with Piton",
        body: "Call the tool `checkpoint` of the MCP server `piton`. If there is none, run \
`piton session checkpoint`; if the environment has CLAUDE_CODE_SESSION_ID, add \
`--session \"$CLAUDE_CODE_SESSION_ID\"`. Report the checkpoint that the answer names. Change no file for \
it.\n",
    },
    Text {
        name: "resume",
        about: "Resume from last checkpoint: continue the task that Piton recorded",
        body: "Call the tool `resume` of the MCP server `piton`. If there is none, run \
`piton session start --resume`; if the environment has CLAUDE_CODE_SESSION_ID, add \
`--session \"$CLAUDE_CODE_SESSION_ID\"`. Read the files that the answer names, and continue with the \
current task. When it is finished, say so with the tool that finishes tasks, or run \
`piton session task finish ID`.\n",
    },
];

/// A skill: the same, with its name.
pub(super) fn skill(text: &Text) -> String {
    let Text { name, about, body } = text;
    format!("---\nname: piton-{name}\ndescription: \"{about}\"\n---\n{body}")
}

/// A slash command in Markdown.
pub(super) fn markdown(text: &Text) -> String {
    let Text { about, body, .. } = text;
    format!("---\ndescription: \"{about}\"\n---\n{body}")
}
