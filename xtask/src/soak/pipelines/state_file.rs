//! What a state file looks like at every moment: all its sections, known words, whole rows.
//!
//! Read here in a few lines of their own, so that a mistake of the program's reader is not shared.

/// The sections, in their order, and the columns of those that are tables.
const SECTIONS: [(&str, Option<usize>); 6] = [
    ("Completed Stages", Some(4)),
    ("Current Stage Detail", None),
    ("Iteration Counts", Some(4)),
    ("Failure Clusters", Some(5)),
    ("Human Checkpoints Cleared", None),
    ("Notes", None),
];
/// Fields of the header.
const FIELDS: [&str; 6] =
    ["run_id", "feature", "started_at", "last_updated_at", "current_stage", "status"];
/// Fields of the current stage.
const DETAIL: [&str; 5] =
    ["stage", "dispatched_at", "job_status", "retry_count", "last_output_summary"];
/// Statuses of a run.
const STATUSES: [&str; 6] =
    ["IN_PROGRESS", "WAITING_FOR_HUMAN", "COMPLETE", "FAILED", "CANCELLED", "ABORTED"];
/// Boxes of people.
const BOXES: usize = 4;

/// A state file in its sections.
pub(super) struct Sections<'t>(Vec<(&'t str, Vec<&'t str>)>);

impl<'t> Sections<'t> {
    /// Takes a text apart.
    pub(super) fn of(text: &'t str) -> Self {
        let mut all = vec![("", Vec::new())];
        for line in text.lines() {
            match (line.strip_prefix("## "), all.last_mut()) {
                (Some(heading), _) => all.push((heading, Vec::new())),
                (None, Some((_, lines))) => lines.push(line),
                (None, None) => {}
            }
        }
        Self(all)
    }

    fn lines(&self, heading: &str) -> &[&'t str] {
        let found = self.0.iter().find(|(name, _)| *name == heading);
        found.map_or(&[], |(_, lines)| lines)
    }

    /// A field of the header.
    pub(super) fn field(&self, key: &str) -> Option<&'t str> {
        value(self.lines(""), key)
    }

    /// A field of the current stage.
    pub(super) fn detail(&self, key: &str) -> Option<&'t str> {
        value(self.lines(SECTIONS[1].0), key)
    }

    /// The completed stages, each with its artifact.
    pub(super) fn completed(&self) -> Vec<(&'t str, &'t str)> {
        let rows = rows(self.lines(SECTIONS[0].0));
        rows.into_iter().map(|row| (row[0], row.get(2).copied().unwrap_or_default())).collect()
    }

    /// The boxes that are ticked.
    pub(super) fn ticked(&self) -> Vec<&'t str> {
        self.lines(SECTIONS[4].0).iter().filter_map(|line| line.strip_prefix("- [x] ")).collect()
    }
}

fn value<'t>(lines: &[&'t str], key: &str) -> Option<&'t str> {
    lines.iter().find_map(|line| line.strip_prefix("- ")?.strip_prefix(key)?.strip_prefix(": "))
}

/// The rows of a table, without its head.
fn rows<'t>(lines: &[&'t str]) -> Vec<Vec<&'t str>> {
    let rows = lines.iter().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim().trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// Tells what is wrong with a state file.
pub(in super::super) fn well_formed(text: &str) -> Result<(), String> {
    if !text.starts_with("# Pipeline State\n") || !text.ends_with('\n') {
        return Err("it does not begin with its heading, or ends within a line".to_owned());
    }
    let sections = Sections::of(text);
    let headings: Vec<&str> = sections.0.iter().skip(1).map(|(heading, _)| *heading).collect();
    if headings != SECTIONS.map(|(heading, _)| heading) {
        return Err(format!("it has the sections {headings:?}"));
    }
    if let Some(key) = FIELDS.iter().find(|key| sections.field(key).is_none()) {
        return Err(format!("it has no {key}"));
    }
    if let Some(key) = DETAIL.iter().find(|key| sections.detail(key).is_none()) {
        return Err(format!("the current stage has no {key}"));
    }
    let status = sections.field("status").unwrap_or_default();
    if !STATUSES.contains(&status) {
        return Err(format!("its status is {status}"));
    }
    for (heading, columns) in SECTIONS {
        let Some(columns) = columns else { continue };
        // The last column has what people may leave empty.
        let is_cut = |row: &Vec<&str>| {
            row.len() != columns || row[..columns - 1].iter().any(|cell| cell.is_empty())
        };
        if let Some(row) = rows(sections.lines(heading)).iter().find(|row| is_cut(row)) {
            return Err(format!("{heading} has the row {row:?}"));
        }
    }
    let is_box = |line: &&&str| line.starts_with("- [x] ") || line.starts_with("- [ ] ");
    let boxes = sections.lines(SECTIONS[4].0).iter().filter(is_box).count();
    if boxes == BOXES { Ok(()) } else { Err(format!("it has {boxes} boxes")) }
}

#[cfg(test)]
mod tests {
    use super::super::project;
    use super::*;

    /// Lost, the loop would pass whatever the file says.
    #[test]
    fn a_torn_file_is_seen_wherever_it_is_cut() {
        let whole = project::foreign(1);
        assert_eq!(well_formed(&whole), Ok(()));
        let notes = whole.find("## Notes\n").expect("it has notes") + "## Notes\n".len();
        for end in (0..notes).filter(|end| whole.is_char_boundary(*end)) {
            assert!(well_formed(&whole[..end]).is_err(), "{}", &whole[..end]);
        }
        for (from, to) in
            [("IN_PROGRESS", "DONE"), ("| spec ", ""), ("- [x]", "-"), ("- run_id", "")]
        {
            assert!(well_formed(&whole.replacen(from, to, 1)).is_err(), "{from}");
        }
    }

    #[test]
    fn values_are_read() {
        let text = project::foreign(1);
        let sections = Sections::of(&text);
        assert_eq!(sections.field("current_stage"), Some("architect"));
        assert_eq!(sections.detail("retry_count"), Some("1"));
        assert_eq!(sections.ticked(), ["Spec approval"]);
        let spec = format!("{}/feature.spec.md", project::FOLDER);
        assert_eq!(sections.completed(), [("spec", spec.as_str()), ("clarify", &spec)]);
    }
}
