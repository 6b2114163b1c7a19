//! The files of the pipeline protocol for `piton inspect`: state files and ADRs.

use serde_json::json;

use super::adr::{self, Verdict};
use super::decision::decide;
use super::state::{self, Checkpoint};
use crate::format::{Claim, Format, Reading, Source};

/// The formats of the protocol.
pub const FORMATS: &[Format] = &[
    Format { name: "pipeline/state", claim: claim_state, read: read_state },
    Format { name: "pipeline/adr", claim: claim_adr, read: read_adr },
];

fn claim_state(source: &Source<'_>) -> Claim {
    if state::is_state(source.text) {
        return Claim::Content;
    }
    let is_named = source.name().trim_start_matches('.').starts_with("pipeline-state");
    if is_named { Claim::Name } else { Claim::No }
}

fn read_state(source: &Source<'_>) -> Reading {
    let (found, problems) = state::read(source.file, source.text);
    let decision = decide(Some(&found));
    let texts = |checkpoints: Vec<&Checkpoint>| -> Vec<String> {
        checkpoints.into_iter().map(|checkpoint| checkpoint.text.clone()).collect()
    };
    let cleared = texts(found.cleared().collect());
    let pending = texts(found.pending().collect());
    let completed: Vec<String> = found.completed.iter().map(state::Completed::key).collect();
    let status = found.status.known().map(state::Status::as_str);
    let job_status = found.detail.job_status.known().map(state::JobStatus::as_str);
    let data = json!({
        "status": status,
        "raw_status": found.status.raw(),
        "current_stage": found.current_stage,
        "completed": completed,
        "job_status": job_status,
        "retry_count": found.detail.retry_count,
        "cleared": cleared,
        "pending": pending,
        "decision": decision.as_str(),
    });
    let stage = found.current_stage.as_deref().unwrap_or("unknown");
    let none = |names: &[String]| match names.join(", ") {
        names if names.is_empty() => "none".to_owned(),
        names => names,
    };
    let mut summary = vec![
        format!("status: {}", status.or(found.status.raw()).unwrap_or("none")),
        format!("current stage: {stage}"),
    ];
    if let Some(job) = job_status {
        let retries = found.detail.retry_count.unwrap_or_default();
        summary.push(format!("  job: {job}, retry {retries}"));
    }
    summary.push(format!("completed: {}", none(&completed)));
    summary.push(format!(
        "checkpoints: {} of {} cleared",
        cleared.len(),
        cleared.len() + pending.len()
    ));
    for checkpoint in &found.checkpoints {
        let mark = if checkpoint.is_cleared { "x" } else { " " };
        summary.push(format!("  [{mark}] {}", checkpoint.text));
    }
    summary.push(format!("decision: {}", decision.as_str()));
    Reading { problems, data, summary }
}

fn claim_adr(source: &Source<'_>) -> Claim {
    if adr::is_adr(source.text) {
        return Claim::Content;
    }
    let name = source.name();
    let is_named = name.strip_prefix("adr").is_some_and(|rest| rest.starts_with(['.', '-', '_']));
    if is_named && name.rsplit('.').next() == Some("md") { Claim::Name } else { Claim::No }
}

fn read_adr(source: &Source<'_>) -> Reading {
    let (check, problems) = adr::read(source.file, source.text);
    let (complies, exceptions) = (check.count(Verdict::Complies), check.count(Verdict::Exception));
    let data = json!({
        "constitution_check": check.outcome.as_str(),
        "articles": check.articles.len(),
        "complies": complies,
        "exceptions": exceptions,
    });
    let mut summary = vec![format!("Constitution Check: {}", check.outcome.as_str())];
    for article in &check.articles {
        let status = article.verdict.map_or("open", Verdict::as_str);
        summary.push(format!("  {}: {status}", article.name));
    }
    Reading { problems, data, summary }
}

#[cfg(test)]
mod tests {
    const AROUND: crate::format::Around<'_> =
        crate::format::Around { now: piton_core::Timestamp(0), modified: &|_| None };
    use serde_json::{Value, json};

    use crate::TABLE;
    use crate::inspect::inspect;

    const STATE: &str = "# Pipeline State\n\n- current_stage: Programmer\n- status: **IN_PROGRESS** (so far)\n\n\
        ## Completed Stages\n\n| Stage | Completed At |\n|---|---|\n| spec | T |\n\n\
        ## Current Stage Detail\n\n- job_status: RETRYING\n- retry_count: 2\n\n\
        ## Human Checkpoints Cleared\n\n- [x] Spec approval\n- [ ] Security sign-off\n";
    const ADR: &str = "# ADR: x\n\n## Constitution Check\n\n| Article | Status |\n|---|---|\n\
        | I | COMPLIES |\n| II | N/A |\n";

    fn seen(file: &str, text: &str) -> Value {
        inspect(TABLE, file, text.as_bytes(), AROUND).to_json()
    }

    #[test]
    fn a_state_file_has_the_documented_keys() {
        let wanted = json!({
            "format": "pipeline/state", "valid": true, "problems": [],
            "data": {
                "status": "IN_PROGRESS", "raw_status": "**IN_PROGRESS** (so far)",
                "current_stage": "programmer", "completed": ["spec"],
                "job_status": "RETRYING", "retry_count": 2,
                "cleared": ["Spec approval"], "pending": ["Security sign-off"],
                "decision": "resume",
            },
        });
        assert_eq!(seen("any.txt", STATE), wanted);
        let unknown = seen("any.txt", &STATE.replace("**IN_PROGRESS**", "PAUSED"));
        assert_eq!((&unknown["valid"], &unknown["data"]["status"]), (&json!(true), &Value::Null));
        assert_eq!(unknown["data"]["raw_status"], "PAUSED (so far)");
        assert_eq!(unknown["data"]["decision"], "ask_human");
    }

    #[test]
    fn an_adr_has_the_documented_keys() {
        let wanted = json!({
            "format": "pipeline/adr", "valid": true, "problems": [],
            "data": { "constitution_check": "complete", "articles": 2, "complies": 1, "exceptions": 0 },
        });
        assert_eq!(seen("any.txt", ADR), wanted);
    }

    #[test]
    fn files_are_known_by_content_and_others_by_name() {
        for (file, text, format) in [
            ("x", STATE, Some("pipeline/state")),
            ("a/.pipeline-state.md", "", Some("pipeline/state")),
            ("pipeline-state.md", "prose\n", Some("pipeline/state")),
            ("x", ADR, Some("pipeline/adr")),
            ("specs/001-x/adr.md", "# ADR\n", Some("pipeline/adr")),
            ("ADR-001.md", "", Some("pipeline/adr")),
            ("adr.txt", "", None),
            ("address.md", "", None),
            ("plan.md", "## Constitution Check\n\n- [x] Simple\n", None),
        ] {
            let found = inspect(TABLE, file, text.as_bytes(), AROUND);
            assert_eq!(found.format, format, "{file}: {text}");
            assert!(found.is_valid() == (found.problems.is_empty()), "{file}");
        }
    }
}
