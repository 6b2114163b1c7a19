//! The names under which the checkpoint of a plan is found.

use md5::{Digest as _, Md5};

/// What the ids of our workflows begin with.
const PREFIX: &str = "implement";
/// The folder that holds the plans of a topic.
const PLANS: &str = "plans";
/// Digits of the date and of the time in the name of a versioned checkpoint.
const STAMP: (usize, usize) = (8, 6);

/// The ids of a plan, at least one; the first is the one to write, all of them are looked for.
///
/// `specs/027_auth/plans/001_x.md` is `implement_027_auth`, and any path has the MD5 of itself and a
/// newline as an id.
pub fn workflow_ids(plan_path: &str) -> Vec<String> {
    let mut ids: Vec<String> = topic(plan_path).into_iter().collect();
    let digest = Md5::digest(format!("{plan_path}\n").as_bytes());
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    ids.push(digest.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect());
    ids
}

/// The id from the folder of the plan's topic.
fn topic(plan_path: &str) -> Option<String> {
    let mut folders: Vec<&str> = plan_path.split(['/', '\\']).collect();
    folders.pop();
    // A plan with files for its phases has a folder of its own below the topic's plans.
    let plans = folders.iter().rposition(|folder| *folder == PLANS);
    let above = plans.and_then(|at| numbered(folders.get(at.checked_sub(1)?)?));
    let nearest = || folders.iter().rev().find_map(|folder| numbered(folder));
    let (number, name) = above.or_else(nearest)?;
    Some(format!("{PREFIX}_{number}_{name}"))
}

/// Number and name of a folder like `027_auth` or `027-auth`.
fn numbered(folder: &str) -> Option<(&str, &str)> {
    let (number, name) = folder.split_once(['_', '-'])?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (is_number && !name.is_empty() && name.chars().all(is_plain)).then_some((number, name))
}

/// The name of a versioned checkpoint: `{type}_{project}_{YYYYMMDD_HHMMSS}.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedName {
    /// Such as `implement`.
    pub workflow_type: String,
    /// The project.
    pub project: String,
    /// Date and time, as written; names sort by it.
    pub stamp: String,
}

impl VersionedName {
    /// Reads the name of a file, without its folder.
    pub fn read(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".json")?;
        let at = stem.len().checked_sub(STAMP.0 + STAMP.1 + 1)?;
        let (front, stamp) = (stem.get(..at)?, stem.get(at..)?);
        let (date, time) = stamp.split_once('_')?;
        let is_digits =
            |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
        let (workflow_type, project) = front.strip_suffix('_')?.split_once('_')?;
        (is_digits(date, STAMP.0) && is_digits(time, STAMP.1)).then(|| Self {
            workflow_type: workflow_type.to_owned(),
            project: project.to_owned(),
            stamp: stamp.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_topic_names_the_workflow() {
        for (path, id) in [
            ("specs/027_auth/plans/001_implementation.md", Some("implement_027_auth")),
            ("specs/027_auth/plans/002_big/002_big.md", Some("implement_027_auth")),
            ("./specs/001-user-login/plan.md", Some("implement_001_user-login")),
            ("a/plans/007_x/007_x.md", Some("implement_007_x")),
            ("plan.md", None),
            ("specs/auth/plan.md", None),
        ] {
            let ids = workflow_ids(path);
            assert_eq!(ids.len(), 1 + usize::from(id.is_some()), "{path}");
            assert_eq!(id, id.map(|_| ids[0].as_str()), "{path}");
        }
    }

    /// Lost: checkpoints of shell tools, which hash what `echo` prints, are not found.
    #[test]
    fn any_path_is_found_by_its_hash() {
        let ids = workflow_ids("plan.md");
        assert_eq!(ids, ["8924aedecb6055d1e66a39201667ddad"]);
    }

    #[test]
    fn versioned_names_have_type_project_and_stamp() {
        let name = VersionedName::read("implement_027_auth_20251021_120000.json");
        let wanted = VersionedName {
            workflow_type: "implement".to_owned(),
            project: "027_auth".to_owned(),
            stamp: "20251021_120000".to_owned(),
        };
        assert_eq!(name, Some(wanted));
        for name in ["implement_027_auth.json", "x_20251021_120000.json", "é.json", ""] {
            assert_eq!(VersionedName::read(name), None, "{name}");
        }
    }
}
