//! Names in a phase document: ids of gates, lanes, phases and tasks, and lists of them.
//!
//! A name is recognized by its form and by what the document defines. Any other name is unknown;
//! nothing is guessed.

use super::model::{Dependency, DependencyKind, Origin};
use super::ranges::written_out;
use piton_formats::markdown::inline::{is_none, plain, split_outside, without_brackets};

/// What begins the id of a gate.
const GATE_PREFIX: &str = "IF-";
/// What begins the id of a lane, nearly always.
const LANE_PREFIX: &str = "SL-";
/// What begins the id of a lane otherwise.
const LANE_WORD_PREFIX: &str = "lane-";
/// Marks between an id and its text; the longer ones first.
const SEPARATORS: [&str; 6] = ["--", "—", "–", "-", ":", "·"];

/// The id a text begins with: letters, digits, `.`, `_` and `-`, without marks at its end.
pub(super) fn id_at_start(text: &str) -> Option<&str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = text.find(|c: char| !allowed(c)).unwrap_or(text.len());
    let id = text[..end].trim_end_matches(['-', '.', '_']);
    id.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(id)
}

/// Tells whether a text begins with a prefix, whatever its case.
fn has_prefix(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// Tells whether an id is a gate's.
pub(super) fn is_gate_id(id: &str) -> bool {
    has_prefix(id, GATE_PREFIX) && id.len() > GATE_PREFIX.len()
}

/// Tells whether an id has the form of a lane's: `SL-…`, `lane-…`, or capitals with a digit or dash.
pub(super) fn is_lane_id(id: &str) -> bool {
    for prefix in [LANE_PREFIX, LANE_WORD_PREFIX] {
        if has_prefix(id, prefix) {
            return id.len() > prefix.len();
        }
    }
    let capital = id.starts_with(|c: char| c.is_ascii_uppercase());
    let marked = id.contains(|c: char| c.is_ascii_digit() || c == '-');
    capital && marked && !is_gate_id(id) && !id.contains(|c: char| c.is_ascii_lowercase())
}

/// Tells whether an id can only be a lane's: `SL-…`.
pub(super) fn is_plain_lane_id(id: &str) -> bool {
    id.len() > LANE_PREFIX.len() && has_prefix(id, LANE_PREFIX)
}

/// Tells whether an id has the shape `P12` or `P6B`.
pub(super) fn is_phase_id(id: &str) -> bool {
    let Some(rest) = id.strip_prefix(['P', 'p']) else { return false };
    let rest = rest.trim_end_matches(|c: char| c.is_ascii_uppercase());
    !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())
}

/// Id and text of `ID -- text`, with any of the marks in between, or none when the id is alone.
///
/// Emphasis and backquotes around the id are removed; `None` if the text does not begin with an id.
pub(super) fn id_and_text(text: &str) -> Option<(String, String)> {
    let plain = plain(text);
    let id = id_at_start(&plain)?;
    let rest = plain[id.len()..].trim_start();
    if rest.is_empty() {
        return Some((id.to_owned(), String::new()));
    }
    let mark = SEPARATORS.iter().find(|mark| rest.starts_with(**mark))?;
    let after = &rest[mark.len()..];
    // `-->` and `->` are arrows of a diagram.
    if after.starts_with(['>', '-']) {
        return None;
    }
    Some((id.to_owned(), after.trim().to_owned()))
}

/// The other names of a lane that its name mentions: `Docs (author-facing alias: SL-docs)`.
pub(super) fn aliases(text: &str) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for word in ["alias", "aliases", "aka", "a.k.a.", "also known as"] {
        for (at, _) in lower.match_indices(word) {
            let rest = &text[at + word.len()..];
            let rest = plain(rest.trim_start_matches([':', ' ', '=', '`', '*']));
            let id = id_at_start(&rest).filter(|id| is_lane_id(id));
            found.extend(id.map(str::to_owned).filter(|id| !found.contains(id)));
        }
    }
    found
}

/// All ids of gates in a text, in order, each once.
pub(super) fn gate_ids(text: &str) -> Vec<String> {
    let plain = written_out(&plain(text));
    let mut found: Vec<String> = Vec::new();
    for word in plain.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')')) {
        if let Some(id) = id_at_start(word).filter(|id| is_gate_id(id))
            && !found.iter().any(|known| known == id)
        {
            found.push(id.to_owned());
        }
    }
    found
}

/// The lanes of a document by id and by alias.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneNames(Vec<(String, String)>);

impl LaneNames {
    /// Names of lanes: each id, and its aliases where no lane has such an id.
    pub(super) fn new<'l>(lanes: impl Iterator<Item = (&'l str, &'l [String])> + Clone) -> Self {
        let ids: Vec<&str> = lanes.clone().map(|(id, _)| id).collect();
        let mut all: Vec<(String, String)> =
            ids.iter().map(|id| ((*id).to_owned(), (*id).to_owned())).collect();
        for (id, aliases) in lanes {
            let free = |a: &&String| !ids.iter().any(|id| id.eq_ignore_ascii_case(a));
            all.extend(aliases.iter().filter(free).map(|a| (a.clone(), id.to_owned())));
        }
        Self(all)
    }

    /// The id of the lane with this name, whatever its case.
    pub(super) fn find(&self, name: &str) -> Option<&str> {
        let same = |known: &&(String, String)| known.0.eq_ignore_ascii_case(name);
        self.0.iter().find(same).map(|(_, id)| id.as_str())
    }

    /// All names, with the id that each stands for.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, id)| (name.as_str(), id.as_str()))
    }
}

/// What the names of a document are known from.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// Its lanes.
    pub(super) lanes: &'a LaneNames,
    /// Ids of its tasks.
    pub(super) tasks: &'a [String],
}

impl Known<'_> {
    /// The name as the document defines it, and its kind; `None` if it is not a name.
    fn classify(&self, word: &str, alone: bool) -> Option<(String, DependencyKind)> {
        let word = word.trim_matches(|c: char| matches!(c, '.' | ',' | ';' | ':' | '"' | '\''));
        let same = |known: &&String| known.eq_ignore_ascii_case(word);
        if let Some(task) = self.tasks.iter().find(same) {
            return Some((task.clone(), DependencyKind::Task));
        }
        if let Some(lane) = self.lanes.find(word) {
            return Some((lane.to_owned(), DependencyKind::Lane));
        }
        // `SL-1.T1`: a task with its lane before it.
        let of_lane = |(lane, _): (&str, &str)| {
            let (named, rest) = word.split_at_checked(lane.len())?;
            let task = rest.strip_prefix(['.', '/', '-', ':'])?;
            let known = self.tasks.iter().find(|known| known.eq_ignore_ascii_case(task));
            known.filter(|_| named.eq_ignore_ascii_case(lane))
        };
        if let Some(task) = self.lanes.names().find_map(of_lane) {
            return Some((task.clone(), DependencyKind::Task));
        }
        if id_at_start(word) != Some(word) {
            return None;
        }
        let owned = word.to_owned();
        if is_gate_id(word) {
            return Some((owned, DependencyKind::Gate));
        }
        if has_prefix(word, LANE_PREFIX) {
            return Some((owned, DependencyKind::Unknown));
        }
        let first = word.split(['-', '/', '.']).next().unwrap_or_default();
        let capitals = alone
            && word.len() > 1
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && !word.contains(|c: char| c.is_ascii_lowercase());
        (is_phase_id(first) || capitals).then_some((owned, DependencyKind::Phase))
    }

    /// The dependencies that a value lists.
    pub(super) fn dependencies(&self, value: &str, line: usize) -> Vec<Dependency> {
        let mut found: Vec<Dependency> = Vec::new();
        let mut add = |raw: String, kind| {
            if !found.iter().any(|known| known.raw == raw) {
                found.push(Dependency { raw, kind, origin: Origin::Stated, line });
            }
        };
        if is_none(value) {
            return found;
        }
        let plain = written_out(&plain(&value.replace("<br>", ",").replace("<br/>", ",")));
        // Brackets around the value are removed; brackets within it are remarks.
        let whole = plain.strip_prefix('(').and_then(|p| p.strip_suffix(')'));
        let inner = whole.unwrap_or(&plain);
        for item in split_outside(&inner.replace(" and ", ", "), b",;&+") {
            let item = without_brackets(item);
            if is_none(&item) {
                continue;
            }
            let words: Vec<&str> = item.split_whitespace().collect();
            let mut names = Vec::new();
            for (at, word) in words.iter().enumerate() {
                let number = words.get(at + 1).map(|next| next.trim_matches(['.', ':']));
                if word.eq_ignore_ascii_case("phase")
                    && let Some(number) =
                        number.filter(|n| n.starts_with(|c: char| c.is_ascii_digit()))
                {
                    names.push((format!("{word} {number}"), DependencyKind::Phase));
                } else {
                    names.extend(self.classify(word, words.len() == 1));
                }
            }
            if names.is_empty() {
                add(item, DependencyKind::Unknown);
            }
            for (raw, kind) in names {
                add(raw, kind);
            }
        }
        // `(after the merge; see below)` names nothing: all of it is a remark.
        if whole.is_some() && found.iter().all(|d| d.kind == DependencyKind::Unknown) {
            found.clear();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Vec<(String, DependencyKind)> {
        let aliases = ["SL-notes".to_owned()];
        let named = [("SL-1", &[][..]), ("SL-10", &[][..]), ("SL-docs", &aliases[..])];
        let lanes = LaneNames::new(named.into_iter());
        let tasks = ["SL-1.1".to_owned(), "T7".to_owned()];
        let known = Known { lanes: &lanes, tasks: &tasks };
        known.dependencies(value, 1).into_iter().map(|d| (d.raw, d.kind)).collect()
    }

    #[test]
    fn ids_and_their_text() {
        for (text, id, rest) in [
            ("SL-DB -- Data base", "SL-DB", "Data base"),
            ("**SL-1** — Rewrite - all", "SL-1", "Rewrite - all"),
            ("SL-1 - A", "SL-1", "A"),
            ("IF-0-P1-A: text", "IF-0-P1-A", "text"),
            ("SL-1", "SL-1", ""),
        ] {
            let wanted = Some((id.to_owned(), rest.to_owned()));
            assert_eq!(id_and_text(text), wanted, "{text}");
        }
        for text in ["SL-1 --> SL-2", "SL-1 -> SL-2", "The lanes run", "-> x"] {
            assert_eq!(id_and_text(text), None, "{text}");
        }
    }

    #[test]
    fn shapes_of_ids() {
        assert!(
            is_lane_id("SL-docs")
                && is_lane_id("lane-api-routes")
                && is_lane_id("L1")
                && is_lane_id("LANE-A")
        );
        assert!(!is_lane_id("Note") && !is_lane_id("IF-0-P1") && !is_lane_id("Sub-tasks"));
        assert!(is_phase_id("P1") && is_phase_id("P6B") && !is_phase_id("PB") && !is_phase_id("P"));
    }

    #[test]
    fn dependencies_name_gates_lanes_phases_and_tasks() {
        use DependencyKind::{Gate, Lane, Phase, Task, Unknown};
        for (value, wanted) in [
            (
                "IF-0-P1-A, SL-1 (types) and sl-10",
                vec![("IF-0-P1-A", Gate), ("SL-1", Lane), ("SL-10", Lane)],
            ),
            ("`SL-1.1`; SL-docs complete", vec![("SL-1.1", Task), ("SL-docs", Lane)]),
            ("(Phase 2)", vec![("Phase 2", Phase)]),
            (
                "P2, P2-SL-API, OTHERPHASE",
                vec![("P2", Phase), ("P2-SL-API", Phase), ("OTHERPHASE", Phase)],
            ),
            ("SL-10.T7, sl-docs/t7, SL-1-T7", vec![("T7", Task)]),
            ("SL-1 + sl-notes", vec![("SL-1", Lane), ("SL-docs", Lane)]),
            ("SL-9..SL-10", vec![("SL-9", Unknown), ("SL-10", Lane)]),
            ("SL-1.T8", vec![("SL-1.T8", Unknown)]),
            ("SL-9", vec![("SL-9", Unknown)]),
            ("the API is ready", vec![("the API is ready", Unknown)]),
            ("IF-0-P1-*", vec![("IF-0-P1-*", Unknown)]),
            ("(none - first lane)", vec![]),
            ("(after the merge; see below)", vec![]),
            ("None (Phase 4 depends on this)", vec![]),
        ] {
            let wanted: Vec<_> = wanted.into_iter().map(|(r, k)| (r.to_owned(), k)).collect();
            assert_eq!(read(value), wanted, "{value}");
        }
    }

    #[test]
    fn a_name_may_have_an_alias_within() {
        assert_eq!(aliases("Docs (author-facing alias: SL-docs)"), ["SL-docs"]);
        assert_eq!(aliases("Docs, aka `SL-docs`"), ["SL-docs"]);
        assert!(aliases("alias handling of the shell").is_empty());
    }

    #[test]
    fn gates_are_found_within_a_sentence() {
        assert_eq!(gate_ids("IF-0-P7-1 through IF-0-P7-2"), ["IF-0-P7-1", "IF-0-P7-2"]);
        assert_eq!(gate_ids("`IF-0-P7-1`, (IF-0-P7-2). IF-0-P7-1"), ["IF-0-P7-1", "IF-0-P7-2"]);
    }
}
