//! A picture on a terminal that is drawn over itself, without the alternate screen.
//!
//! Makes bytes and writes none. Nothing is ever erased from the top left corner of the screen down:
//! some terminals take that for a page to be kept, and would fill what can be scrolled back to with
//! pictures. So lines are written over lines, or erased one by one.

use crossterm::cursor::{MoveToColumn, MoveUp};
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};

use piton_view::Layout;
use piton_view::frame::rows_of;
use piton_view::text::Line;

/// Rows of the screen that a picture leaves free: the cursor needs one below, and the newest line
/// above it should be seen.
const ROWS_FREE: usize = 2;

/// What is on the screen.
#[derive(Debug, Default)]
pub struct Picture {
    drawn: Vec<Line>,
}

impl Picture {
    /// The room that a screen has for a picture: a full last column would wrap on some terminals.
    pub fn workspace(layout: &Layout) -> Layout {
        Layout {
            width: layout.width.saturating_sub(1).max(1),
            height: layout.height.saturating_sub(ROWS_FREE).max(1),
            ..layout.clone()
        }
    }

    /// Draws another picture over this one; no bytes if it is the same.
    pub fn draw(&mut self, lines: Vec<Line>, layout: &Layout) -> Vec<u8> {
        if lines == self.drawn {
            return Vec::new();
        }
        if lines.is_empty() {
            return self.clear(layout);
        }
        let mut bytes = Vec::with_capacity(4096);
        // Writing to memory does not fail.
        let _ = queue!(bytes, BeginSynchronizedUpdate);
        up(&mut bytes, rows(&self.drawn, layout));
        for (line, columns) in &lines {
            bytes.extend_from_slice(line.as_bytes());
            // At the end of a full row there is nothing to erase but its last character.
            if *columns == 0 || !columns.is_multiple_of(layout.width.max(1)) {
                let _ = queue!(bytes, Clear(ClearType::UntilNewLine));
            }
            bytes.push(b'\n');
        }
        // At least one line down: what is left of a higher picture goes.
        let _ = queue!(bytes, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate);
        self.drawn = lines;
        bytes
    }

    /// Puts lines that stay above the picture; each ends in a newline.
    pub fn above(&self, text: &str, layout: &Layout) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        self.erase(&mut bytes, layout);
        bytes.extend_from_slice(text.as_bytes());
        for (line, _) in &self.drawn {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    /// Takes the picture off the screen.
    pub fn clear(&mut self, layout: &Layout) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.erase(&mut bytes, layout);
        self.drawn.clear();
        bytes
    }

    /// Erases row by row, and leaves the cursor where the picture began.
    fn erase(&self, bytes: &mut Vec<u8>, layout: &Layout) {
        let rows = rows(&self.drawn, layout);
        if rows == 0 {
            return;
        }
        up(bytes, rows);
        for _ in 0..rows {
            let _ = queue!(bytes, Clear(ClearType::CurrentLine));
            bytes.push(b'\n');
        }
        // Also what a person typed meanwhile, which stands below.
        let _ = queue!(bytes, Clear(ClearType::FromCursorDown));
        up(bytes, rows);
    }
}

fn up(bytes: &mut Vec<u8>, rows: usize) {
    if rows > 0 {
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        let _ = queue!(bytes, MoveToColumn(0), MoveUp(rows));
    }
}

/// Rows that lines take on the screen as it is now: it may have become narrower or lower since.
fn rows(lines: &[Line], layout: &Layout) -> usize {
    rows_of(lines, layout).min(layout.height.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Screen;
    use super::*;

    fn lines(count: usize, word: &str) -> Vec<Line> {
        let line = |n: usize| format!("{word} {n}");
        (0..count).map(|n| (line(n), line(n).len())).collect()
    }

    fn text(count: usize, word: &str) -> Vec<String> {
        lines(count, word).into_iter().map(|(line, _)| line).collect()
    }

    /// Lost: under tmux each frame of a tree as high as the screen would be kept in its history.
    #[test]
    fn pictures_as_high_as_the_screen_leave_nothing_to_scroll_back_to() {
        let layout = Layout { height: 24, ..Layout::plain(80) };
        let (mut screen, mut picture) = (Screen::new(80, 24), Picture::default());
        let most = Picture::workspace(&layout).height;
        screen.take(&picture.draw(lines(most, "first"), &layout));
        let before = screen.history.len();
        for n in 0..50 {
            let count = if n % 3 == 0 { most / 2 } else { most };
            screen.take(&picture.draw(lines(count, &format!("frame {n}")), &layout));
            assert_eq!(screen.shown()[..count], text(count, &format!("frame {n}")));
            assert!(screen.shown()[count..].iter().all(String::is_empty), "{:?}", screen.shown());
        }
        screen.take(&picture.clear(&layout));
        assert!(screen.shown().iter().all(String::is_empty), "{:?}", screen.shown());
        assert_eq!(screen.history.len(), before);
    }

    /// Lost: what a person must be able to scroll back to, or pictures among it.
    #[test]
    fn only_lines_that_stay_go_into_the_history() {
        let layout = Layout { height: 10, ..Layout::plain(20) };
        let (mut screen, mut picture) = (Screen::new(20, 10), Picture::default());
        let most = Picture::workspace(&layout).height;
        for n in 0..30 {
            screen.take(&picture.draw(lines(most, &format!("{n}")), &layout));
            screen.take(&picture.above(&format!("stays {n}\n"), &layout));
        }
        let mut all = screen.history.clone();
        all.extend(screen.shown());
        let stays: Vec<String> = all.iter().filter(|l| l.starts_with("stays")).cloned().collect();
        assert_eq!(stays, text(30, "stays"));
        assert!(screen.history.iter().all(|l| l.starts_with("stays")), "{:?}", screen.history);
        assert_eq!(screen.shown()[..2], ["stays 29", "29 0"]);
    }

    #[test]
    fn the_same_picture_is_not_drawn_again() {
        let mut picture = Picture::default();
        assert!(!picture.draw(lines(3, "x"), &Layout::plain(80)).is_empty());
        assert!(picture.draw(lines(3, "x"), &Layout::plain(80)).is_empty());
        assert!(!picture.draw(Vec::new(), &Layout::plain(80)).is_empty());
        assert!(picture.clear(&Layout::plain(80)).is_empty());
    }

    #[test]
    fn a_terminal_that_became_narrower_or_lower_is_cleaned_whole() {
        let lines = [("x".repeat(80), 80), (String::new(), 0), ("y".repeat(10), 10)];
        assert_eq!(rows(&lines, &Layout::plain(80)), 3);
        assert_eq!(rows(&lines, &Layout::plain(30)), 5);
        assert_eq!(rows(&lines, &Layout { height: 3, ..Layout::plain(30) }), 2);
        assert_eq!(rows(&lines, &Layout { height: 100, ..Layout::plain(0) }), 91);
    }
}
