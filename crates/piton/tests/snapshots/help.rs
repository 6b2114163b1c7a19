//! Help of the program and of every command.

use std::collections::BTreeSet;

use super::screen::{Screen, folder};

/// The commands that the program's own help lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| line.starts_with("  "));
    list.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// Lost: a command could come without anybody having read its help.
#[test]
fn every_command_has_help_that_was_read() {
    let mut screen = Screen::without_git();
    screen.piton("--help").is("help");
    screen.piton("").is("help-without-a-command");
    let all = commands(&screen.project.piton(&["--help"]).exits(0).stdout);
    assert!(all.len() > 20, "{all:?}");
    let commands: Vec<&String> = all.iter().filter(|name| *name != "help").collect();
    for name in &commands {
        screen.piton(&format!("{name} --help")).is(&format!("help-{name}"));
    }
    let known: BTreeSet<String> = commands.iter().map(|name| format!("help-{name}.snap")).collect();
    let kept = std::fs::read_dir(folder()).unwrap().flatten();
    let kept = kept.map(|entry| entry.file_name().into_string().unwrap());
    let kept =
        kept.filter(|name| name.starts_with("help-") && name != "help-without-a-command.snap");
    let gone: Vec<String> = kept.filter(|name| !known.contains(name)).collect();
    assert!(gone.is_empty(), "help of commands that are gone: {gone:?}");
}
