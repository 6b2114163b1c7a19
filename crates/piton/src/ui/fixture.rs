//! A terminal for the tests of what draws on one.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// A writer whose text can be read by its clones.
#[derive(Clone, Default)]
pub(super) struct Shared(Rc<RefCell<Vec<u8>>>);

impl Shared {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A terminal as tmux is one: what is erased from the top left corner down goes into its history, as
/// does what is scrolled off.
pub(super) struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    width: usize,
    pub(super) history: Vec<String>,
}

impl Screen {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let rows = vec![Vec::new(); height];
        Self { rows, row: 0, column: 0, width, history: Vec::new() }
    }

    /// The rows without the blanks at their ends.
    pub(super) fn shown(&self) -> Vec<String> {
        self.rows.iter().map(|row| words(row)).collect()
    }

    /// Takes output of a program; a newline also goes to the first column.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\u{1b}' => {
                    let mut sequence: String = chars.by_ref().take(1).collect();
                    assert_eq!(sequence, "[", "an unknown sequence");
                    sequence.clear();
                    let end = chars.by_ref().find(|c| {
                        let ends = c.is_ascii_alphabetic();
                        sequence.extend((!ends).then_some(*c));
                        ends
                    });
                    self.obey(end.unwrap_or_default(), &sequence);
                }
                '\n' => self.line_feed(),
                _ => self.put(c),
            }
        }
    }

    fn put(&mut self, c: char) {
        if self.column == self.width {
            self.line_feed();
        }
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), ' ');
        row[self.column] = c;
        self.column += 1;
    }

    fn line_feed(&mut self) {
        self.column = 0;
        self.row += 1;
        if self.row == self.rows.len() {
            self.row -= 1;
            self.history.push(words(&self.rows.remove(0)));
            self.rows.push(Vec::new());
        }
    }

    fn obey(&mut self, end: char, sequence: &str) {
        let count: usize = sequence.parse().unwrap_or(1).max(1);
        match (end, sequence) {
            ('A', _) => self.row = self.row.saturating_sub(count),
            ('G', _) => self.column = count - 1,
            ('K', "") => self.rows[self.row].truncate(self.column),
            ('K', "2") => self.rows[self.row].clear(),
            ('J', "" | "2") => {
                if (self.row, self.column) == (0, 0) || sequence == "2" {
                    self.history.extend(self.rows.iter().map(|row| words(row)));
                    self.rows.iter_mut().for_each(Vec::clear);
                }
                self.rows[self.row].truncate(self.column);
                self.rows[self.row + 1..].iter_mut().for_each(Vec::clear);
            }
            ('m', _) | ('h' | 'l', "?2026") => {}
            other => panic!("an unknown sequence: {other:?}"),
        }
    }
}

fn words(row: &[char]) -> String {
    row.iter().collect::<String>().trim_end().to_owned()
}
