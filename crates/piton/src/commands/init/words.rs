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
        about: "Save progress: record a checkpoint of this session with Piton",
        body: "Run `piton session checkpoint` and report the checkpoint that it names. If the environment \
has CLAUDE_CODE_SESSION_ID, add `--session \"$CLAUDE_CODE_SESSION_ID\"`. Change no file for it.\n",
    },
    Text {
        name: "resume",
        about: "Resume from the last checkpoint with Piton",
        body: "Run `piton session start --resume`. If the environment has CLAUDE_CODE_SESSION_ID, add \
`--session \"$CLAUDE_CODE_SESSION_ID\"`. Read the files that its output names, and continue with the \
current task. When it is finished, run `piton session task finish ID`.\n",
    },
];

/// A slash command in Markdown.
pub(super) fn markdown(text: &Text) -> String {
    let Text { about, body, .. } = text;
    format!("---\ndescription: \"{about}\"\n---\n{body}")
}
