//! Secrets that are known by their shape alone: well-known tokens, and private keys.
//!
//! A private key is found by its first and last line. Either may be missing from a text that was cut,
//! so a key without an end is one up to [`KEY_BYTES_MAX`], and before an end that has no beginning
//! goes what looks like a key's lines.

use std::ops::Range;

use crate::pattern::pattern;

/// Longest private key that is known as one: the largest in use take a quarter of it. Bounded, so
/// that a text which only speaks of the beginning of a key is not lost from there on.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// Shortest line that looks like one of a private key by itself: all but the last of a key are
/// longer, and few words are.
pub const KEY_LINE_BYTES_MIN: usize = 48;
/// Shorter ones that a key may end with: its last line, and a checksum.
const KEY_SHORT_LINES_MAX: usize = 2;

/// What the lines around private keys hold, and next to nothing else does.
const KEY_HINT: &str = "PRIVATE KEY";

/// What every place of a token holds, one or the other.
const PLACE_HINTS: &[&str] = &[
    "://",
    "earer ",
    "EARER ",
    "uthorization",
    "-Key",
    "-key",
    "-Token",
    "-token",
    "api_key=",
    "apikey=",
    "token=",
    "sig=",
    "client_secret=",
    "AccountKey=",
    "AccessKey=",
];

/// Shapes of tokens. Word boundaries are those of ASCII: that is faster, and finds as much.
const TOKENS: &[&str] = &[
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"sk-[A-Za-z0-9_-]{20,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{20,}",
    r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
    r"discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{20,}",
    r"(?:sk|rk|pk|whsec)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"(?:gsk|lin_api|glsa|sntry[su]|dckr_pat|shp(?:at|ca|pa|ss))_[A-Za-z0-9_+/=-]{20,}",
    r"do[opr]_v1_[a-f0-9]{20,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"hv[bs]\.[A-Za-z0-9_-]{20,}",
    r"dp\.[a-z]{2,5}\.[A-Za-z0-9]{30,}",
    r"(?:xai|pplx|NRAK|PMAK)-[A-Za-z0-9-]{24,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{30,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{30,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
];

/// Places where any text is a token: before the host in a URL, or after the name of a header. `TOKEN`
/// and `GIVEN` stand for the two below. A variable of a shell or template is not one.
const PLACES: &[&str] = &[
    r#"://[^\s/:@"']*:([^\s/@$<>{}\[\]*"']{6,})@"#,
    "(?:Bearer|bearer|BEARER) TOKEN",
    "[Aa]uthorizationGIVEN(?:[Bb]asic|[Tt]oken) TOKEN",
    "[Xx]-(?:(?:[Aa]pi|API)-[Kk]ey|[Aa]uth-[Tt]oken)GIVENTOKEN",
    "[?&](?:access_token|api_key|apikey|token|sig|client_secret)=TOKEN",
    "(?:AccountKey|SharedAccessKey)=TOKEN",
];
const TOKEN: &str = "([A-Za-z0-9._~+/=%-]{16,})";
const GIVEN: &str = r#"["']?\s*[:=]\s*["']?"#;

/// Where a private key begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The place of the words that begin it.
    Begin(Range<usize>),
    /// The place of the words that end it.
    End(Range<usize>),
}

/// Where tokens are in a text: by their own shape, or by what is around them.
pub fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    let looks = pattern!(&format!(r"(?-u:\b)(?:{})", TOKENS.join("|")));
    let by_looks = looks.into_iter().flat_map(|shapes| shapes.find_iter(text));
    // Most texts have none of these, and do not pay for compiling the expression.
    let hinted = PLACE_HINTS.iter().any(|hint| text.contains(hint));
    let all = || PLACES.join("|").replace("TOKEN", TOKEN).replace("GIVEN", GIVEN);
    let places = if hinted { pattern!(&all()) } else { None };
    let by_place = places.into_iter().flat_map(|places| places.captures_iter(text));
    let by_place = by_place.filter_map(|found| found.iter().skip(1).flatten().next());
    by_looks.chain(by_place).map(|found| found.range())
}

/// The beginnings and ends of private keys in a text, in order.
pub fn key_marks(text: &str) -> Vec<Mark> {
    if !text.contains(KEY_HINT) {
        return Vec::new();
    }
    let shape = pattern!(r"-----(BEGIN|END) [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----");
    let mark = |c: regex::Captures<'_>| {
        let whole = c.get(0)?.range();
        Some(if c.get(1)?.as_str() == "BEGIN" { Mark::Begin(whole) } else { Mark::End(whole) })
    };
    shape.into_iter().flat_map(|shape| shape.captures_iter(text)).filter_map(mark).collect()
}

/// Where private keys stand in a text.
pub fn keys(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut begun, mut over) = (Vec::new(), None, 0);
    let bounded = |from: usize, end: usize| from..end.min(boundary(text, from + KEY_BYTES_MAX));
    for mark in key_marks(text) {
        match (mark, begun) {
            (Mark::Begin(place), None) => begun = Some(place.start),
            (Mark::Begin(place), Some(from)) if place.start > from + KEY_BYTES_MAX => {
                found.push(bounded(from, place.start));
                begun = Some(place.start);
            }
            (Mark::Begin(_), Some(_)) => {}
            (Mark::End(place), Some(from)) if place.end <= from + KEY_BYTES_MAX => {
                found.push(from..place.end);
                (begun, over) = (None, place.end);
            }
            (Mark::End(place), from) => {
                found.extend(from.map(|from| bounded(from, place.start)));
                found.push(over + body_start(&text[over..place.start])..place.end);
                (begun, over) = (None, place.end);
            }
        }
    }
    found.extend(begun.map(|from| bounded(from, text.len())));
    found
}

/// Where the lines of a key begin that a text ends with.
fn body_start(text: &str) -> usize {
    let (mut start, mut short) = (text.len(), 0);
    loop {
        let before = text[..start].trim_end();
        let word = before.rfind(char::is_whitespace).map_or(before, |at| before[at..].trim_start());
        short += usize::from(word.len() < KEY_LINE_BYTES_MIN);
        if !is_key_line(word) || short > KEY_SHORT_LINES_MAX {
            return start;
        }
        start = before.len() - word.len();
    }
}

/// Whether a line could be from the middle of a private key.
pub fn is_key_line(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
}

/// The last place up to `at` where a character begins.
pub fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
    const END: &str = "-----END OPENSSH PRIVATE KEY-----";

    fn found(text: &str) -> Vec<&str> {
        keys(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn a_key_is_found_with_one_end_or_both() {
        let whole = format!("{BEGIN}\nb3Bl\n{END}");
        assert_eq!(found(&format!("a\n{whole}\nb {whole} c")), [whole.as_str(), &whole]);
        assert_eq!(found(&format!("a {BEGIN}\nb3Bl")), [format!("{BEGIN}\nb3Bl")]);
        let rest = format!("{}\n{0}\nb3Bl\n=bn\n{END}", "b3BlbnNz".repeat(8));
        assert_eq!(found(&format!("it is\n{rest} b")), [rest.as_str()]);
        assert_eq!(found(&rest), [rest.as_str()]);
        assert_eq!(found(END), [END]);
        assert_eq!(found(&format!("ä ends with {END}")), [format!("ends with {END}")]);
        let pgp =
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOY\n-----END PGP PRIVATE KEY BLOCK-----";
        assert_eq!(found(pgp), [pgp]);
        assert_eq!(found("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"), [""; 0]);
    }

    /// Lost: the tokens of services that many runs speak with would stand in the ledger.
    #[test]
    fn tokens_are_known_by_their_looks_or_their_place() {
        let word = |count: usize| "a1B2c3D4e5".repeat(9)[..count].to_owned();
        let hex = "0123456789abcdef".repeat(4);
        for token in [
            format!("sk_live_{}", word(24)),
            format!("SG.{}.{}", word(22), word(43)),
            format!("xapp-1-{}-1234567890-{hex}", word(11)),
            format!("dop_v1_{hex}"),
            format!("ya29.{}", word(60)),
            format!("hvs.{}", word(60)),
            format!("gsk_{}", word(52)),
            format!("dckr_pat_{}", word(27)),
            format!("hooks.slack.com/services/T0/B0/{}", word(24)),
        ] {
            let text = format!("a {token}, b");
            let all: Vec<&str> = tokens(&text).map(|range| &text[range]).collect();
            assert_eq!(all, [token.as_str()]);
        }
        for place in [
            "https://me:TOKEN@host/x",
            "postgres://:TOKEN@host",
            "Authorization: Bearer TOKEN",
            "-H 'authorization: Basic TOKEN'",
            "{\"x-api-key\": \"TOKEN\"}",
            "https://host/?a=b&access_token=TOKEN&c=d",
        ] {
            let text = place.replace("TOKEN", &word(20));
            let all: Vec<&str> = tokens(&text).map(|range| &text[range]).collect();
            assert_eq!(all, [word(20)], "{text}");
        }
        for none in [
            "https://host:8080/a@b",
            "https://me:$TOKEN_OF_MINE@host",
            "https://me:{{ title }}@host",
            "the bearer of this letter is authorized",
            "sk_test_short",
            "git@github.com:a/b.git",
        ] {
            assert_eq!(tokens(none).count(), 0, "{none}");
        }
    }

    /// A log that quotes the beginning of a key must not be lost from there on.
    #[test]
    fn a_key_has_an_end() {
        let text = format!("{BEGIN}\n{}", "ä\n".repeat(KEY_BYTES_MAX));
        let lengths: Vec<usize> = keys(&text).into_iter().map(|range| range.len()).collect();
        assert!(lengths.len() == 1 && lengths[0] <= KEY_BYTES_MAX, "{lengths:?}");
        let text = format!("{text}\nb3Bl\n{END}\n{text}");
        assert_eq!(keys(&text).len(), 3);
    }
}
