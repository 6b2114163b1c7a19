//! A new state file, in the form of the protocol's template.

use super::layout::Part;
use super::place::head;
use super::words::Status;
use piton_formats::markdown::edit::one_line;

/// What a new state file says.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The feature: the name of its folder.
    pub feature: &'a str,
    /// The version of the spec; empty if it has none.
    pub spec_version: &'a str,
    /// The hash of the spec, with its prefix.
    pub spec_hash: &'a str,
    /// When the run starts.
    pub started_at: &'a str,
    /// The first stage.
    pub stage: &'a str,
    /// The boxes of people, none of them ticked.
    pub boxes: &'a [&'a str],
}

/// Writes a new state file: the run has begun, and its first stage waits to be dispatched.
pub fn fresh(run: &NewRun<'_>) -> String {
    let mut lines = vec!["# Pipeline State".to_owned(), String::new()];
    let mut field = |key: &str, value: &str| {
        lines.push(format!("- {key}: {}", one_line(value)).trim_end().to_owned());
    };
    field("run_id", run.run_id);
    field("feature", run.feature);
    field("coordinator_mode", "pipeline");
    field("debug_mode", "off");
    field("spec_version", run.spec_version);
    field("spec_hash", run.spec_hash);
    field("started_at", run.started_at);
    field("last_updated_at", run.started_at);
    field("current_stage", run.stage);
    field("status", Status::InProgress.as_str());
    let detail = vec![
        format!("- stage: {}", one_line(run.stage)),
        "- dispatched_at: N/A".to_owned(),
        "- job_status: QUEUED".to_owned(),
        "- retry_count: 0".to_owned(),
        "- last_output_summary: N/A".to_owned(),
    ];
    let boxes = run.boxes.iter().map(|text| format!("- [ ] {}", one_line(text))).collect();
    for (part, body) in [
        (Part::Completed, head(Part::Completed)),
        (Part::Detail, detail),
        (Part::Iterations, head(Part::Iterations)),
        (Part::Clusters, head(Part::Clusters)),
        (Part::Checkpoints, boxes),
        (Part::Notes, Vec::new()),
    ] {
        lines.extend([String::new(), format!("## {}", part.heading())]);
        if !body.is_empty() {
            lines.push(String::new());
            lines.extend(body);
        }
    }
    lines.push(String::new());
    lines.join("\n")
}
