//! Scenes of pipelines: a feature that waits, changes wanted, what is refused.

use super::pipeline::{FOLDER, Feature, STATE};
use super::screen::Screen;

fn screen() -> Screen {
    Screen::made_by(|| Feature::new().project)
}

/// Lost: what a person reads who starts a feature, asks for changes and looks at what waits.
#[test]
fn a_feature_with_sign_offs() {
    let mut screen = screen();
    screen.piton("waiting").piton(&format!("run {FOLDER} --run-id csv")).is("pipeline-run");
    screen.piton("waiting").piton("waiting --json").is("pipeline-waiting");
    screen.piton("reject architect --changes").piton("reject architect --file nope.md");
    screen.piton("reject architect --changes -m 'say which quotes'").piton("resume csv");
    screen.is("pipeline-changes");
    screen.piton("approve architect").piton("resume csv").is("pipeline-approved");
    let (spec, adr) = (format!("{FOLDER}/feature.spec.md"), format!("{FOLDER}/adr.md"));
    screen.project.write(&spec, "# CSV export\n\nAnd TSV.\n");
    screen.project.write(&adr, &format!("{}More.\n", screen.project.read(&adr)));
    screen.note("the spec and adr.md are changed by hand").piton("resume csv");
    screen.piton("waiting").piton("resume csv --accept-spec --accept-outputs");
    screen.is("pipeline-changed");
}

/// Lost: what a person reads where a feature cannot be continued without them.
#[test]
fn features_that_are_refused() {
    let mut screen = screen();
    let state = |status: &str| format!("# Pipeline State\n\n- current_stage: tdd\n{status}");
    screen.project.write(STATE, &state("- status: PAUSED\n"));
    screen.piton(&format!("run {FOLDER}"));
    screen.project.write(STATE, "A poem.\n");
    screen.piton(&format!("run {FOLDER}")).is("errors-state-unclear");
    for name in ["specs/003-csv", "specs/004-tsv"] {
        let file = format!("{name}/.pipeline-state.md");
        screen.project.write(&file, &state("- status: IN_PROGRESS\n"));
    }
    screen.piton("run").is("errors-several-features");
    let settings = screen.project.read("piton.toml");
    screen.project.write("piton.toml", &format!("{settings}stages = [\"spec\", \"ship\"]\n"));
    screen.piton(&format!("run {FOLDER}")).is("errors-pipeline-settings");
}
