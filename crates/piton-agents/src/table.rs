//! The table of agent programs: one line for each.

use crate::claude::Claude;
use crate::codex::Codex;
use crate::command::Command;
use crate::gemini::Gemini;
use crate::opencode::Opencode;
use crate::program::Program;

/// The programs that are known by name. Any other agent is a [`Command`] of the user's own.
pub const TABLE: &[&dyn Program] = &[&Claude, &Codex, &Gemini, &Opencode, &Command];

/// The program of a name.
pub fn find(name: &str) -> Option<&'static dyn Program> {
    TABLE.iter().copied().find(|program| program.id() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Ask, Halt};
    use crate::setup::StopPlace;

    /// Lost: a plan names an agent, and another program starts, or none.
    #[test]
    fn each_program_is_found_by_its_name_and_starts_and_continues() {
        let tools = ["Bash".to_owned()];
        let args = ["--extra".to_owned()];
        let ask = Ask { session: "11111111-1111-4111-8111-111111111111", ..Ask::default() };
        let ask = Ask { model: Some("m"), tools: &tools, args: &args, ..ask };
        let ids: Vec<&str> = TABLE.iter().map(|program| program.id()).collect();
        assert_eq!(ids, piton_core::agent::PROGRAMS, "a plan can name every program");
        for program in TABLE {
            assert_eq!(find(program.id()).map(Program::id), Some(program.id()));
            let started = program.start(&ask).command;
            let continued = program.resume("s-1", &ask).map(|invocation| invocation.command);
            let is_named = program.id() != "command";
            assert_eq!(started.first().map(String::as_str), Some(program.binary()));
            assert_eq!(started.contains(&"--extra".to_owned()), is_named, "{started:?}");
            let place = StopPlace { folder: "/x/run", home: "/x/home", file: "/x/run/stop" };
            let stop = program.stop(&place);
            assert_eq!(!stop.files.is_empty(), program.halt() == Halt::Hook, "{stop:?}");
            assert_eq!(
                continued.is_some_and(|command| command.contains(&"s-1".to_owned())),
                is_named
            );
        }
        assert!(find("nobody").is_none());
    }
}
