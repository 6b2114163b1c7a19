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
}

impl AtBoot {
    /// For a run in a project, with this program.
    pub fn new(run_id: &str, root: &Path, program: &Path) -> Self {
        let (folder, program) = (root.display().to_string(), program.display().to_string());
        let unit = format!(
            "[Unit]\nDescription=Piton run {run_id}\nAfter=network-online.target\n\n\
             [Service]\nType=exec\nWorkingDirectory={}\nExecStart=\"{}\" resume {run_id}\n\n\
             [Install]\nWantedBy=default.target\n",
            escaped(&folder),
            escaped(&program)
        );
        let (folder, program) = (quoted(&folder), quoted(&program));
        let cron = format!("@reboot cd {folder} && {program} resume {run_id}");
        // In a crontab an unescaped percent sign ends the command.
        let cron = cron.replace('%', "\\%");
        let unit_name = format!("piton-{run_id}.service");
        Self { run_id: run_id.to_owned(), unit_name, unit, cron }
    }

    /// The two ways, for a person.
    pub fn text(&self) -> String {
        let Self { unit_name, unit, cron, .. } = self;
        format!(
            "# With systemd: save this as ~/.config/systemd/user/{unit_name}, then run\n\
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
        let boot = AtBoot::new("r-1", Path::new("/srv/a b/50%"), Path::new("/opt/piton"));
        assert!(boot.unit.contains("WorkingDirectory=/srv/a b/50%%\n"), "{}", boot.unit);
        assert!(boot.unit.contains("ExecStart=\"/opt/piton\" resume r-1\n"), "{}", boot.unit);
        assert_eq!(boot.cron, "@reboot cd '/srv/a b/50\\%' && /opt/piton resume r-1");
        assert!(boot.text().contains("piton-r-1.service"));
    }
}
