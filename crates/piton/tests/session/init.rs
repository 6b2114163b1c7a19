//! `piton init` for agent programs: merged into what is there, and taken back exactly.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::common::{Output, PITON};
use super::scene::Scene;

/// All files and folders below a folder.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if entry.file_name() != ".git" {
                    open.push(path.clone());
                    all.insert(path, None);
                }
            } else {
                let bytes = fs::read(&path).ok();
                all.insert(path, bytes);
            }
        }
    }
    all
}

#[track_caller]
fn init(scene: &Scene, home: &Path, args: &[&str]) -> Output {
    let mut command = scene.project.command(PITON);
    command.arg("init").args(args).env("HOME", home);
    command.env_remove("CODEX_HOME").env_remove("XDG_CONFIG_HOME");
    scene.project.finish(&mut command)
}

/// A home with settings of its own.
fn home(scene: &Scene) -> PathBuf {
    let home = scene.project.outside().join("a home");
    fs::create_dir_all(home.join(".codex")).expect("a home");
    let config = "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"other\"";
    fs::write(home.join(".codex/config.toml"), config).expect("settings");
    let settings = "\u{feff}{\r\n\t\"model\" : \"x\",\r\n\t\"hooks\": {\"Stop\": [{\"hooks\": []}]},\r\n\t\"statusLine\": {\"type\": \"command\", \"command\": \"mine\"}\r\n}";
    scene.project.write(".claude/settings.json", settings);
    scene.project.write("opencode.json", "{\n  // mine\n  \"mcp\": {}, /* none */\n}\n");
    home
}

/// Lost: somebody's settings are not as they were.
#[test]
fn init_is_merged_idempotent_and_undone_byte_for_byte() {
    let scene = Scene::new();
    let home = home(&scene);
    let both = || (tree(scene.project.root()), tree(&home));
    let before = both();
    init(&scene, &home, &["all", "--dry-run"]).exits(0).says("changed .claude/settings.json");
    init(&scene, &home, &["all"]).exits(3).says("--yes");
    assert_eq!(both(), before);
    init(&scene, &home, &["all", "--yes"]).exits(0).says("trust the hooks of .codex/hooks.json");
    let settings = scene.project.read(".claude/settings.json");
    let json: Value =
        serde_json::from_str(settings.trim_start_matches('\u{feff}')).expect("it is JSON");
    assert_eq!(json["hooks"]["Stop"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["hooks"]["PostToolBatch"][0]["hooks"][0]["command"], "piton hook claude");
    assert_eq!(json["statusLine"]["command"], "mine");
    let config = fs::read_to_string(home.join(".codex/config.toml")).expect("it is there");
    assert!(config.ends_with("\n\n[mcp_servers.piton]\ncommand = \"piton\"\nargs = [\"mcp\"]\n"));
    let opencode = scene.project.read("opencode.json");
    assert!(opencode.contains("// mine") && opencode.contains("\"enabled\": true"), "{opencode}");
    for command in [
        scene.project.root().join(".claude/commands/piton-checkpoint.md"),
        scene.project.root().join(".agents/skills/piton-checkpoint/SKILL.md"),
        home.join(".gemini/extensions/piton/commands/piton/checkpoint.toml"),
        home.join(".config/opencode/command/piton-checkpoint.md"),
    ] {
        let text = fs::read_to_string(&command).expect("each program has the command");
        assert!(text.contains("Create checkpoint, save progress"), "{text}");
        let resume = command.display().to_string().replace("checkpoint", "resume");
        let text = fs::read_to_string(resume).expect("each program has the other one");
        assert!(text.contains("Resume from last checkpoint"), "{text}");
    }
    // In `.opencode` of a project, opencode would install packages.
    assert!(!scene.project.has(".opencode"));
    let after = both();
    let again = init(&scene, &home, &["all", "--yes", "--json"]).exits(0);
    assert!(again.json()["changes"].as_array().is_some_and(|all| {
        !all.is_empty() && all.iter().all(|change| change["change"] == "unchanged")
    }));
    assert_eq!(both(), after);
    init(&scene, &home, &["--undo", "--yes"]).exits(0);
    assert_eq!(both(), before);
    init(&scene, &home, &["--undo", "--yes"]).exits(0).says("nothing to change");
}

/// Lost: what a person wrote after `init` goes with it.
#[test]
fn undo_keeps_what_was_changed_since() {
    let scene = Scene::new();
    let home = home(&scene);
    init(&scene, &home, &["all", "--yes"]).exits(0);
    let settings = scene.project.read(".claude/settings.json");
    scene.project.write(".claude/settings.json", &settings.replace("\"x\"", "\"y\""));
    scene.project.write(".claude/commands/piton-resume.md", "mine now\n");
    let opencode = scene.project.read("opencode.json");
    scene.project.write("opencode.json", &opencode.replace("// mine", "// yours"));
    let config = home.join(".codex/config.toml");
    let text = fs::read_to_string(&config).expect("it is there");
    fs::write(&config, format!("{text}\n[new]\na = 1\n")).expect("it is written");
    init(&scene, &home, &["all", "--undo", "--yes"])
        .exits(0)
        .says("kept .claude/commands/piton-resume.md");
    let settings = scene.project.read(".claude/settings.json");
    assert!(settings.contains("\"model\" : \"y\"") && !settings.contains("piton"), "{settings}");
    assert!(settings.contains("\"Stop\": [{\"hooks\": []}]"), "{settings}");
    assert_eq!(scene.project.read(".claude/commands/piton-resume.md"), "mine now\n");
    let opencode = scene.project.read("opencode.json");
    assert!(opencode.contains("// yours") && !opencode.contains("piton"), "{opencode}");
    let text = fs::read_to_string(&config).expect("it is there");
    assert!(!text.contains("piton") && text.contains("[new]") && text.contains("# mine"), "{text}");
}

/// Lost: a file that cannot be read is overwritten, or others are changed before it is refused.
#[test]
fn what_cannot_be_edited_is_refused_before_anything_changes() {
    let scene = Scene::new();
    let home = home(&scene);
    scene.project.write(".mcp.json", "{ // remarks\n}");
    let before = tree(scene.project.root());
    init(&scene, &home, &["claude", "--yes"]).exits(4).says(".mcp.json");
    assert_eq!(tree(scene.project.root()), before);
    init(&scene, &home, &["nonsense"])
        .exits(2)
        .says("agent programs: claude, codex, gemini, opencode");
}

/// Lost: the plugin in the repository and what `init` writes differ.
#[test]
fn the_plugin_does_the_same_as_init() {
    let scene = Scene::new();
    let home = scene.project.outside().join("home");
    fs::create_dir_all(&home).expect("a home");
    init(&scene, &home, &["claude", "--yes"]).exits(0);
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
    let of_plugin =
        |name: &str| fs::read_to_string(plugin.join(name)).expect("a file of the plugin");
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
    let settings = json(&scene.project.read(".claude/settings.json"));
    assert_eq!(json(&of_plugin("hooks/hooks.json"))["hooks"], settings["hooks"]);
    assert_eq!(json(&of_plugin(".mcp.json")), json(&scene.project.read(".mcp.json")));
    for name in ["checkpoint", "resume"] {
        let own = scene.project.read(&format!(".claude/commands/piton-{name}.md"));
        assert_eq!(of_plugin(&format!("commands/{name}.md")), own);
    }
}

/// The text of Codex's settings.
fn config(home: &Path) -> String {
    fs::read_to_string(home.join(".codex/config.toml")).expect("it is there")
}

/// Lost: what a person added to our server becomes a setting of another one, or the server stays.
#[test]
fn the_table_of_codex_goes_with_all_that_was_added_to_it() {
    let scene = Scene::new();
    let home = home(&scene);
    let before = config(&home);
    for (from, to) in [
        ("args = [\"mcp\"]\n", "args = [\"mcp\"]\ndefault_tools_approval_mode = \"approve\"\n"),
        ("command = \"piton\"", "command = \"/opt/piton\""),
    ] {
        init(&scene, &home, &["codex", "--yes"]).exits(0);
        let text = config(&home).replace(from, to);
        fs::write(home.join(".codex/config.toml"), text).expect("it is written");
        init(&scene, &home, &["codex", "--undo", "--yes"]).exits(0);
        assert_eq!(config(&home).trim_end(), before.trim_end());
        fs::write(home.join(".codex/config.toml"), &before).expect("it is written");
    }
}

/// Lost: Codex cannot read its settings any more.
#[test]
fn a_server_that_is_there_in_another_form_is_found_and_what_is_broken_is_refused() {
    let scene = Scene::new();
    let home = home(&scene);
    let file = home.join(".codex/config.toml");
    for text in [
        "[mcp_servers.piton]  # mine\ncommand = \"x\"\n",
        "[mcp_servers.\"piton\"]\n",
        "[mcp_servers]\npiton = { command = \"x\" }\n",
    ] {
        fs::write(&file, text).expect("it is written");
        init(&scene, &home, &["codex", "--yes"]).exits(0);
        assert_eq!(config(&home), text);
        init(&scene, &home, &["codex", "--undo", "--yes"]).exits(0);
        assert_eq!(config(&home), text);
    }
    for text in ["model = \n", "mcp_servers = { other = { command = \"x\" } }\n"] {
        fs::write(&file, text).expect("it is written");
        let before = tree(scene.project.root());
        init(&scene, &home, &["codex", "--yes"]).exits(4).says("config.toml");
        assert_eq!(config(&home), text);
        assert_eq!(tree(scene.project.root()), before);
    }
}

/// Lost: a hook that somebody wrote is gone after an undo.
#[test]
fn undo_leaves_the_hooks_that_were_there_before() {
    let scene = Scene::new();
    let home = home(&scene);
    let hooks = "{\"hooks\": [{\"type\": \"command\", \"command\": \"/opt/bin/piton hook claude\"}, {\"type\": \"command\", \"command\": \"mine\"}]}";
    scene
        .project
        .write(".claude/settings.json", &format!("{{\"hooks\": {{\"Stop\": [{hooks}]}}}}\n"));
    init(&scene, &home, &["claude", "--yes"]).exits(0);
    let settings = scene.project.read(".claude/settings.json");
    scene
        .project
        .write(".claude/settings.json", &settings.replacen('{', "{\n\"model\": \"x\",", 1));
    init(&scene, &home, &["claude", "--undo", "--yes"]).exits(0);
    let left: Value =
        serde_json::from_str(&scene.project.read(".claude/settings.json")).expect("JSON");
    let hooks: Value = serde_json::from_str(hooks).expect("JSON");
    assert_eq!(left, serde_json::json!({"model": "x", "hooks": {"Stop": [hooks]}}));
}

/// Lost: somebody's own command is overwritten because it speaks of Piton.
#[test]
fn a_file_of_somebody_else_is_refused_by_its_name() {
    let scene = Scene::new();
    let home = home(&scene);
    let own = ".claude/commands/piton-resume.md";
    scene.project.write(own, "Resume my piton session.\n");
    init(&scene, &home, &["claude", "--yes"]).exits(4).says(own);
    assert_eq!(scene.project.read(own), "Resume my piton session.\n");
    assert!(!scene.project.has(".mcp.json"));
}

/// Lost: another project has no MCP server and no hooks any more.
#[test]
fn what_several_projects_use_goes_with_the_last_one() {
    let (one, other) = (Scene::new(), Scene::new());
    let home = home(&one);
    let before = tree(&home);
    for scene in [&one, &other] {
        init(scene, &home, &["codex", "--yes"]).exits(0);
        init(scene, &home, &["gemini", "--yes"]).exits(0);
    }
    init(&one, &home, &["--undo", "--yes"]).exits(0).says("which other projects use");
    assert!(config(&home).contains("[mcp_servers.piton]"));
    assert!(home.join(".gemini/extensions/piton/gemini-extension.json").exists());
    init(&one, &home, &["--undo", "--yes"]).exits(0).says("nothing to change");
    init(&other, &home, &["--undo", "--yes"]).exits(0);
    assert_eq!(tree(&home), before);
}

/// Lost: something is left in a project that has nothing else of ours.
#[test]
fn undo_leaves_no_folder_behind() {
    let scene = Scene::new();
    fs::remove_dir_all(scene.project.root().join(".git")).expect("it is removed");
    let home = home(&scene);
    let before = tree(scene.project.root());
    init(&scene, &home, &["claude", "--yes"]).exits(0);
    init(&scene, &home, &["--undo", "--yes"]).exits(0);
    assert_eq!(tree(scene.project.root()), before);
}
