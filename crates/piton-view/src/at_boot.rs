//! How a run goes on by itself after the machine started: a systemd user unit, and a line for cron.

use std::path::Path;

use piton_core::shell::quoted;
use serde::Serialize;

/// What continues a run at boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtBoot {
    /// The run.
    pub run_id: String,
    /// The name of the unit's file.
    pub unit_name: String,
    /// The text of a systemd user unit.
    pub unit: String,
    /// A line for `crontab`.
    pub cron: String,
    /// Variables that are set here, and that the run's agents need.
    pub variables: Vec<String>,
}

impl AtBoot {
    /// For a run in a project, with this program, which finds others by `path`. `variables` are set here,
    /// and agents need them.
    pub fn new(
        run_id: &str,
        (root, program): (&Path, &Path),
        path: &str,
        variables: Vec<String>,
    ) -> Self {
        let (folder, program) = (root.display().to_string(), program.display().to_string());
        let unit = format!(
            "[Unit]\nDescription=Piton run {run_id}\n\n\
             [Service]\nType=exec\nEnvironment=\"PATH={}\"\nWorkingDirectory={}\n\
             ExecStart=\"{}\" resume {run_id}\n\n\
             [Install]\nWantedBy=default.target\n",
            escaped(path),
            escaped(&folder),
            escaped(&program)
        );
        let (folder, program, path) = (quoted(&folder), quoted(&program), quoted(path));
        let cron = format!("@reboot cd {folder} && PATH={path} {program} resume {run_id}");
        // In a crontab an unescaped percent sign ends the command.
        let cron = cron.replace('%', "\\%");
        let unit_name = format!("piton-{run_id}.service");
        Self { run_id: run_id.to_owned(), unit_name, unit, cron, variables }
    }

    /// The two ways, for a person.
    pub fn text(&self) -> String {
        let Self { unit_name, unit, cron, variables, .. } = self;
        let needs = if variables.is_empty() {
            String::new()
        } else {
            format!(
                "# Its agents need these variables, which are set here and not at boot: {}.\n\
                 # Put them into a file that only you can read, and name it: for systemd with\n\
                 # `EnvironmentFile=` below [Service], for cron with `. FILE &&` before PATH.\n\n",
                variables.join(", ")
            )
        };
        format!(
            "{needs}# With systemd: save this as ~/.config/systemd/user/{unit_name}, then run\n\
             #   systemctl --user enable {unit_name} && loginctl enable-linger\n{unit}\n\
             # With cron: add this line with `crontab -e`\n{cron}\n"
        )
    }
}

/// A text in a unit file, where a percent sign begins a specifier.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lost: a parked night does not go on after a reboot, or begins in another folder.
    #[test]
    fn a_run_is_continued_where_it_was_begun() {
        let place = (Path::new("/srv/a b/50%"), Path::new("/opt/piton"));
        let variables = vec!["KEY".to_owned()];
        let boot = AtBoot::new("r-1", place, "/opt/a b/bin:/usr/bin", variables);
        assert!(boot.unit.contains("WorkingDirectory=/srv/a b/50%%\n"), "{}", boot.unit);
        let path = "Environment=\"PATH=/opt/a b/bin:/usr/bin\"\n";
        assert!(boot.unit.contains(path), "{}", boot.unit);
        assert!(boot.unit.contains("ExecStart=\"/opt/piton\" resume r-1\n"), "{}", boot.unit);
        let cron =
            "@reboot cd '/srv/a b/50\\%' && PATH='/opt/a b/bin:/usr/bin' /opt/piton resume r-1";
        assert_eq!(boot.cron, cron);
        let text = boot.text();
        assert!(text.contains("piton-r-1.service") && text.contains("at boot: KEY."), "{text}");
    }
}
