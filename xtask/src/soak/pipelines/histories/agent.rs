//! The feature of a history, and its agent, which goes wrong as it is told: a file for each stage has a
//! line for each attempt.

use std::fs;
use std::path::Path;

use super::super::super::Broken;
use super::super::project::{FOLDER, RECORD};

/// The spec.
pub(super) const SPEC: &str = "specs/003-csv/feature.spec.md";
/// The folder with what goes wrong, outside of the repository.
pub(super) const WRONG: &str = "wrong";
/// What can go wrong with an attempt.
pub(super) const WAYS: [&str; 6] = ["same", "other", "empty", "open", "meddle", "tick"];
/// Milliseconds that an attempt takes before and after it writes: enough to be killed there.
const SLEEP_MS: u64 = 15;

/// The files of the repository.
pub(super) fn files(outside: &Path) -> Vec<(&'static str, String)> {
    let settings = format!(
        "[defaults]\nbackoff = \"1ms\"\n\n[agents.bot]\ncommand = [\"sh\", \"{}/agent.sh\"]\n\n\
         [pipeline]\nagent = \"bot\"\n",
        outside.display()
    );
    vec![
        ("piton.toml", settings),
        (SPEC, "# CSV\n\nExport rows as CSV.\n".to_owned()),
        ("specs/003-csv/constitution.md", "| I | Small |\n".to_owned()),
    ]
}

/// Makes the agent.
pub(super) fn prepare(outside: &Path) -> Result<(), Broken> {
    fs::create_dir(outside.join(WRONG)).map_err(|e| e.to_string())?;
    let wrong = outside.join(WRONG);
    let agent = format!(
        r#"cat > /dev/null
stage=$PITON_PHASE
how=
list={wrong}/$stage
if [ -s "$list" ]; then how=$(head -n 1 "$list"); sed -i 1d "$list"; fi
put() {{
  case $how in
  empty) : > "{FOLDER}/$1" ;;
  open) printf '[NEEDS CLARIFICATION: what?] <name of it>\n' > "{FOLDER}/$1" ;;
  *) printf "$2\n" > "{FOLDER}/$1" ;;
  esac
}}
sleep 0.0{SLEEP_MS}
case $how in
same) echo "error: rows is None" >&2; exit 1 ;;
other) echo "error: reason of attempt $PITON_ATTEMPT $$" >&2; exit 1 ;;
meddle) echo meddled >> meddled.txt ;;
tick) sed -i 's/- \[ \]/- [x]/' "{RECORD}" ;;
esac
case $stage in
spec | clarify) put feature.spec.md '# CSV\n\nExport all rows.' ;;
architect)
  put research.md 'RFC 4180.'
  put adr.md '# ADR\n\n## Constitution Check\n\n| Article | Status | Notes |\n|---|---|---|\n| I | COMPLIES | yes |' ;;
tasks) put tasks.md 'T001' ;;
tdd) put test-certification.md 'all fail' ;;
programmer) echo code >> code.txt ;;
testrunner) put test-report.md 'all pass' ;;
code-review) put code-review.md 'fine' ;;
security) put security-report.md 'fine' ;;
refactor) put refactor-proposals.md 'none' ;;
esac
sleep 0.0{SLEEP_MS}
"#,
        wrong = wrong.display(),
    );
    fs::write(outside.join("agent.sh"), agent).map_err(|e| e.to_string())
}
