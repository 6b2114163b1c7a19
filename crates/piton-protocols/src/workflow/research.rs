//! The reports that a plan is based on, as the lines before its first phase name them.

use piton_formats::markdown::inline::{bullet, plain};

use super::plan::is_phase_heading;
use piton_formats::markdown::Document;

/// Most reports that are named: more are a list of everything.
const REPORTS_MAX: usize = 50;

/// The names of the files, each once.
pub(super) fn reports(plan: &str) -> Vec<String> {
    let document = Document::new(plan);
    let mut found: Vec<String> = Vec::new();
    let mut is_below = false;
    for line in document.lines.iter().take_while(|line| !is_phase_heading(line)) {
        let text = bullet(line.text).unwrap_or(line.text.trim());
        let label = plain(text.split(':').next().unwrap_or_default()).to_ascii_lowercase();
        let is_label =
            label.contains("research") && (text.contains(':') || line.heading().is_some());
        is_below = is_label || is_below && line.indent() > 0 && bullet(line.text).is_some();
        if !is_below {
            continue;
        }
        for word in text.split(|c: char| c.is_whitespace() || "()[]`,*\"".contains(c)) {
            let name = word.rsplit('/').next().unwrap_or(word);
            let is_report = name.len() > ".md".len() && name.to_ascii_lowercase().ends_with(".md");
            if is_report && !found.iter().any(|known| known == name) && found.len() < REPORTS_MAX {
                found.push(name.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_named_before_the_phases() {
        let plan = "# Auth\n\n- **Research Reports**: [OAuth](../reports/001_oauth.md)\n  - `../reports/002_security.md`\n\
                    - **Scope**: see notes.md\n\n## Phase 1: A\n**Research**: late.md\n";
        assert_eq!(reports(plan), ["001_oauth.md", "002_security.md"]);
        assert_eq!(reports("# A\nNothing.\n"), [""; 0]);
    }
}
