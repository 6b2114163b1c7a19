//! Redacts output that comes line by line, and very long lines that come in parts.
//!
//! That a private key has begun is remembered from line to line. If a line comes in parts, the end of
//! each part is kept until the next one arrives, so that a secret across both is found.

use std::borrow::Cow;

use super::plain::Plain;
use super::shapes::{self, KEY_BYTES_MAX, KEY_LINE_BYTES_MIN, Mark};
use super::{REPLACEMENT, Redactor};

/// The least that is kept of a line that continues: as long as a private key.
pub const KEPT_BYTES_MIN: usize = KEY_BYTES_MAX;
/// How many times as much may be kept if a secret has begun; anything longer is data that looks like
/// one.
const KEPT_TIMES_MAX: usize = 4;

/// Where a line stands: in a private key or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Key {
    /// Not in a key.
    #[default]
    Outside,
    /// In a key, so many bytes after its beginning.
    Inside(usize),
    /// Behind something that nobody knows: in a key as long as lines look like it, which short ones
    /// do only behind a long one; whether there was one.
    Unknown(bool),
}

impl Key {
    /// Where the next line stands.
    #[must_use]
    pub fn after(self, line: &str) -> Self {
        let plain = Plain::of(line);
        let seen = plain.as_ref().map_or(line, |plain| &plain.text);
        match (shapes::key_marks(seen).last(), self) {
            (Some(Mark::Begin(place)), _) => Self::Inside(0).grown(seen.len() - place.start),
            (None, Self::Inside(_)) => self.grown(seen.len() + 1),
            (None, Self::Unknown(long)) if shapes::is_key_line(seen) => {
                Self::Unknown(long || seen.len() >= KEY_LINE_BYTES_MIN)
            }
            (Some(Mark::End(_)), _) | (None, Self::Outside | Self::Unknown(_)) => Self::Outside,
        }
    }

    /// Where the next line stands if something between is gone.
    #[must_use]
    pub fn behind_gap(self) -> Self {
        if self == Self::Outside { Self::Unknown(false) } else { self }
    }

    fn grown(self, by: usize) -> Self {
        match self {
            Self::Inside(bytes) if bytes + by <= KEY_BYTES_MAX => Self::Inside(bytes + by),
            _ => Self::Outside,
        }
    }
}

impl Redactor {
    /// The line without its secrets, given where it stands.
    pub fn redact_line<'t>(&self, key: Key, line: &'t str) -> Cow<'t, str> {
        match key {
            Key::Outside => self.redact(line),
            Key::Unknown(_) => match key.after(line) {
                Key::Unknown(true) => Cow::Borrowed(REPLACEMENT),
                _ => self.redact(line),
            },
            Key::Inside(_) => {
                let plain = Plain::of(line);
                let marks = shapes::key_marks(plain.as_ref().map_or(line, |plain| &plain.text));
                let end = marks.into_iter().find_map(|mark| match mark {
                    Mark::End(place) => Some(place),
                    Mark::Begin(_) => None,
                });
                let end = end.map(|end| plain.map_or(end.end, |plain| plain.written(&end).end));
                match end.map(|end| self.redact(&line[end..])) {
                    None => Cow::Borrowed(REPLACEMENT),
                    Some(rest) => Cow::Owned(format!("{REPLACEMENT}{rest}")),
                }
            }
        }
    }

    /// The end of a line, without its secrets, where nobody knows what stands before it; nothing if
    /// all of it may be the rest of one secret.
    pub fn redact_end(&self, line: &str) -> Option<String> {
        let known = shapes::boundary(line, 2 * self.reach());
        let mut parts = Lines::default();
        // The part that is not kept is dropped: it may contain the rest of a secret.
        parts.next(self, &line[..known], true);
        (known < line.len()).then(|| parts.next(self, &line[known..], false).into_owned())
    }

    /// How long a secret can be that is known.
    fn reach(&self) -> usize {
        self.values.first().map_or(0, String::len).max(KEPT_BYTES_MIN)
    }

    /// Where a text that goes on can be cut: nothing before it is part of a secret that only what
    /// follows completes.
    fn safe_cut(&self, text: &str) -> usize {
        let reach = self.reach();
        let cut = shapes::boundary(text, text.len().saturating_sub(reach));
        let across = self.ranges(text).into_iter().find(|r| r.start < cut && cut < r.end);
        match across {
            Some(range) if text.len() - range.start <= reach * KEPT_TIMES_MAX => range.start,
            Some(range) => range.end,
            None => cut,
        }
    }
}

/// Redacts one stream of output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    key: Key,
    kept: String,
}

impl Lines {
    /// Returns a line without its secrets. If there is `more` of it to come, its end is kept
    /// and returned with the next part.
    pub fn next<'t>(&mut self, redactor: &Redactor, text: &'t str, more: bool) -> Cow<'t, str> {
        if self.kept.is_empty() && !more {
            let clean = redactor.redact_line(self.key, text);
            self.key = self.key.after(text);
            return clean;
        }
        let mut whole = std::mem::take(&mut self.kept);
        whole.push_str(text);
        let cut = if more { redactor.safe_cut(&whole) } else { whole.len() };
        self.kept = whole.split_off(cut);
        let clean = redactor.redact_line(self.key, &whole).into_owned();
        self.key = self.key.after(&whole);
        Cow::Owned(clean)
    }

    /// Whether the end of a line is kept.
    pub fn holds(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Takes note that what comes next does not follow what came: a part in between is gone.
    pub fn skip(&mut self) {
        self.key = self.key.behind_gap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
    const END: &str = "-----END OPENSSH PRIVATE KEY-----";

    fn redactor() -> Redactor {
        Redactor::new([("MY_TOKEN", "hunter2hunter2")], &super::super::Names::default())
    }

    fn lines(lines: &[&str]) -> Vec<String> {
        let mut stream = Lines::default();
        lines.iter().map(|line| stream.next(&redactor(), line, false).into_owned()).collect()
    }

    #[test]
    fn the_lines_of_a_key_go_and_what_is_around_it_stays() {
        let first = format!("key: {BEGIN}");
        let last = format!("bn= {END}, hunter2hunter2!");
        let shown = lines(&["a", &first, "b3Bl", "", &last, "b3Bl"]);
        let expected = ["a", "key: [redacted]", "[redacted]", "[redacted]"];
        assert_eq!(shown[..4], expected);
        assert_eq!(shown[4..], ["[redacted], [redacted]!", "b3Bl"]);
        let coloured = BEGIN.replace("PRIVATE", "\u{1b}[1mPRIVATE\u{1b}[0m");
        assert_eq!(lines(&[&coloured, "b3Bl"])[1], "[redacted]");
    }

    #[test]
    fn a_key_that_never_ends_is_none() {
        let mut key = Key::default().after(BEGIN);
        let line = "x".repeat(1000);
        for _ in 0..=KEY_BYTES_MAX / line.len() {
            assert_ne!(key, Key::Outside);
            key = key.after(&line);
        }
        assert_eq!(key, Key::Outside);
    }

    #[test]
    fn behind_a_gap_lines_that_look_like_a_key_go() {
        let mut stream = Lines::default();
        stream.skip();
        let (long, end) = ("b3BlbnNz".repeat(8), format!("bn= {END} after"));
        let shown = ["done", &long, "a+/b=", &end, "b3Bl"]
            .map(|line| stream.next(&redactor(), line, false).into_owned());
        assert_eq!(shown, ["done", "[redacted]", "[redacted]", "[redacted] after", "b3Bl"]);
        stream.skip();
        let shown = ["two words", &long].map(|l| stream.next(&redactor(), l, false).into_owned());
        assert_eq!(shown, ["two words", &long]);
    }

    /// Lost: half a token at the end of one part, half at the beginning of the next.
    #[test]
    fn a_secret_across_parts_is_seen_whole() {
        let redactor = redactor();
        let key = format!("{BEGIN}\\nb3Bl\\n{END}");
        for secret in ["hunter2hunter2", &format!("ghp_{}", "a1".repeat(18)), &key] {
            let long = format!("{} {secret} {}", "ä".repeat(100_000), "z ".repeat(100_000));
            let at = long.find(secret).unwrap_or_default();
            for cut in [at - 1, at, at + 1, at + secret.len() / 2, at + secret.len(), at + 70_000] {
                let mut stream = Lines::default();
                let first = stream.next(&redactor, &long[..cut], true).into_owned();
                assert!(stream.holds() && stream.kept.len() <= KEPT_BYTES_MIN * 2);
                let rest = stream.next(&redactor, &long[cut..], false);
                assert_eq!(format!("{first}{rest}"), redactor.redact(&long), "{secret} {cut}");
                assert!(!stream.holds());
            }
        }
    }

    /// Lost: the end of a token whose beginning was cut off.
    #[test]
    fn the_end_of_a_line_shows_no_half_secret() {
        let redactor = redactor();
        assert_eq!(redactor.redact_end("unter2hunter2 and more"), None);
        let line = format!("unter2hunter2 {}hunter2hunter2 end", "a ".repeat(KEPT_BYTES_MIN));
        let end = redactor.redact_end(&line).unwrap_or_default();
        assert!(end.ends_with("a [redacted] end") && !end.contains("unter2"), "{end}");
    }

    /// Memory stays bounded by what a line that looks like one endless token makes it keep.
    #[test]
    fn what_is_kept_is_bounded() {
        let mut stream = Lines::default();
        let part = format!("sk-{}", "a".repeat(1 << 20));
        for _ in 0..3 {
            stream.next(&redactor(), &part, true);
            assert!(stream.kept.len() <= KEPT_BYTES_MIN * KEPT_TIMES_MAX, "{}", stream.kept.len());
        }
    }
}
