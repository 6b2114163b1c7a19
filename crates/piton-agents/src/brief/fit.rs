//! Choosing and cutting: as many facts as fit, the most important of every section first.
//!
//! Each line starts with a mark that no line break runs into, so the tokens of lines add up to at least
//! those of the text. The whole text is counted once more at the end all the same: that count decides.

use std::fmt::Write as _;

use piton_core::Timestamp;

use super::{Fact, Section};
use crate::tokens::count;

/// The smallest rest of a limit that is worth a cut line.
const REST_MIN: usize = 16;
/// The largest share of the limit that one fact may take: one in so many.
const SHARE: usize = 6;

/// A brief that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The text.
    pub text: String,
    /// Its tokens, as `o200k_base` counts them.
    pub tokens: usize,
    /// The limit that it was made for.
    pub limit: usize,
    /// What it says, by section.
    pub sections: Vec<Shown>,
}

/// A section of a brief.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Which one.
    pub section: Section,
    /// The facts that it has, the most important first.
    pub facts: Vec<Fact>,
    /// How many facts there are of it.
    pub all: usize,
}

/// Chooses what fits.
pub(super) fn choose(run: &str, facts: Vec<Fact>, now: Timestamp, limit: usize) -> Chosen {
    let mut heading = format!("# Brief of run {run}\n");
    if count(&heading) > limit {
        heading.clear();
    }
    let mut sections: Vec<Shown> = Section::ALL
        .map(|section| Shown { section, facts: Vec::new(), all: 0 })
        .into_iter()
        .collect();
    let mut waiting: Vec<std::collections::VecDeque<Fact>> =
        sections.iter().map(|_| std::collections::VecDeque::new()).collect();
    for fact in facts {
        let index = fact.section as usize;
        sections[index].all += 1;
        waiting[index].push_back(fact);
    }
    let mut left = limit.saturating_sub(count(&heading));
    // In the order of their choice: what came last goes first if the whole text is too long.
    let mut order = Vec::new();
    while waiting.iter().any(|facts| !facts.is_empty()) {
        for (index, section) in sections.iter_mut().enumerate() {
            for _ in 0..section.section.per_turn() {
                let Some(fact) = waiting[index].pop_front() else { break };
                let first = section.facts.is_empty();
                let title = if first { count(&title_line(section, section.all, true)) } else { 0 };
                let room = left.saturating_sub(title);
                let Some((fact, tokens)) = cut(fact, now, room, limit / SHARE) else {
                    // Nothing more of this section fits.
                    waiting[index].clear();
                    break;
                };
                left -= title + tokens;
                section.facts.push(fact);
                order.push(index);
            }
        }
    }
    let mut text = render(&heading, &sections, now);
    let mut tokens = count(&text);
    while tokens > limit {
        let Some(index) = order.pop() else { break };
        sections[index].facts.pop();
        text = render(&heading, &sections, now);
        tokens = count(&text);
    }
    sections.retain(|section| section.all > 0);
    Chosen { text, tokens, limit, sections }
}

/// The fact as it fits into `room`, and its tokens. A long one is cut to the share of one fact, and to
/// the rest of the room where that is worth it.
fn cut(mut fact: Fact, now: Timestamp, room: usize, share: usize) -> Option<(Fact, usize)> {
    let most = share.max(REST_MIN * 2).min(room);
    let tokens = count(&line(&fact, now));
    if tokens <= most {
        return Some((fact, tokens));
    }
    if most < REST_MIN {
        return None;
    }
    let whole = std::mem::take(&mut fact.text);
    let ends: Vec<usize> = whole.char_indices().map(|(at, _)| at).collect();
    // The longest beginning that fits: the number of characters is halved, not counted down.
    let (mut fits, mut exceeds) = (0, ends.len());
    while fits + 1 < exceeds {
        let middle = usize::midpoint(fits, exceeds);
        fact.text = format!("{}…", &whole[..ends[middle]]);
        if count(&line(&fact, now)) <= most { fits = middle } else { exceeds = middle }
    }
    fact.text = format!("{}…", &whole[..*ends.get(fits)?]);
    let tokens = count(&line(&fact, now));
    (fits > 0 && tokens <= most).then_some((fact, tokens))
}

/// The heading of a section. One that is cut says how much there is.
fn title_line(section: &Shown, shown: usize, is_cut: bool) -> String {
    let (title, all) = (section.section.title(), section.all);
    if is_cut { format!("## {title} ({shown} of {all})\n") } else { format!("## {title}\n") }
}

fn line(fact: &Fact, now: Timestamp) -> String {
    let mut line = format!("- {} [{}", fact.text, fact.source);
    if let Some(at) = fact.at {
        let _ = write!(line, ", {} ago", age(now, at));
    }
    line.push_str("]\n");
    line
}

/// How long ago something was, in its largest unit.
fn age(now: Timestamp, at: Timestamp) -> String {
    let secs = now.since(at).0 / 1000;
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m", secs / 60),
        3600..86_400 => format!("{}h", secs / 3600),
        _ => format!("{}d", secs / 86_400),
    }
}

fn render(heading: &str, sections: &[Shown], now: Timestamp) -> String {
    let mut text = heading.to_owned();
    for section in sections.iter().filter(|section| !section.facts.is_empty()) {
        let shown = section.facts.len();
        text.push_str(&title_line(section, shown, shown < section.all));
        text.extend(section.facts.iter().map(|fact| line(fact, now)));
    }
    text
}
