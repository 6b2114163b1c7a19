//! A run at a glance, for `status --watch`: all of it where the screen has the room, else its header
//! and the lines that matter most.
//!
//! Pure. The choice of lines is that of the live tree ([`super::frame`]).

use std::collections::BTreeMap;

use piton_core::Timestamp;
use piton_engine::Loaded;

use super::frame::{Scene, below, frame};
use super::look::Look;
use super::picture::Line;
use super::text::{columns, sanitize};
use super::tree;

/// Fewest rows in which a tree below the header says more than a picture without the header.
const TREE_ROWS_MIN: usize = 8;

/// The lines to show; `full` is all there is to say, in the same look.
pub fn glance(
    full: &str,
    loaded: &Loaded,
    driver_lives: bool,
    now: Timestamp,
    look: &Look,
) -> Vec<Line> {
    let all = lines(full);
    if rows(&all, look) <= look.height {
        return all;
    }
    let mut header = lines(&tree::header(loaded, driver_lives, now, look));
    header.push((String::new(), 0));
    let left = look.height.saturating_sub(rows(&header, look));
    let retries = BTreeMap::new();
    let state = &loaded.state;
    if left < TREE_ROWS_MIN {
        return frame(&Scene { state, now, look, tail: &|_| None, retries: &retries });
    }
    let look = Look { height: left, ..look.clone() };
    header.extend(below(&Scene { state, now, look: &look, tail: &|_| None, retries: &retries }));
    header
}

fn lines(text: &str) -> Vec<Line> {
    let columns = |line: &str| columns(&sanitize(line));
    text.lines().map(|line| (line.to_owned(), columns(line))).collect()
}

/// Rows that lines take: commands are not wrapped, so that they can be copied.
fn rows(lines: &[Line], look: &Look) -> usize {
    lines.iter().map(|(_, columns)| columns.div_ceil(look.width.max(1)).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{done, failed, lane, loaded, phase, running, step};
    use super::*;

    fn seen(loaded: &Loaded, height: usize) -> Vec<String> {
        let (now, look) = (Timestamp(17_000), Look { height, ..Look::plain(79) });
        let full = tree::render(loaded, true, &[], now, &look);
        let shown = glance(&full, loaded, true, now, &look);
        assert!(rows(&shown, &look) <= height, "{shown:?}");
        shown.into_iter().map(|(line, _)| line).collect()
    }

    /// Lost: of a run with many lanes only the last would be seen, which wait.
    #[test]
    fn a_tree_that_is_too_high_shows_header_running_and_failed_steps() {
        let mut loaded = loaded();
        let mut lanes: Vec<_> =
            (0..30).map(|n| lane(&format!("over{n}"), vec![done("work")])).collect();
        lanes.push(lane("busy", vec![done("one"), running("two")]));
        lanes.push(lane("bad", vec![failed("work")]));
        lanes.extend((0..30).map(|n| lane(&format!("next{n}"), vec![step("work")])));
        loaded.state.phases[0] = phase("P1", lanes);
        for height in [22, 10] {
            let shown = seen(&loaded, height).join("\n");
            for word in ["Authentication", "r-1", "31/64", "busy", "bad", "failed", "P1", " more"] {
                assert!(shown.contains(word), "{word}: {shown}");
            }
        }
        assert!(seen(&loaded, 22)[3].starts_with("driver"));
    }

    #[test]
    fn what_fits_is_shown_in_full() {
        let shown = seen(&loaded(), 22);
        assert!(shown.contains(&"    ○ pack pending".to_owned()), "{shown:?}");
    }
}
