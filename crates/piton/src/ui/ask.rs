//! Questions to the person at the terminal.
//!
//! A question does not hold the program: while it stands, `until` is asked now and then whether it
//! still matters (another process may have answered, or Ctrl-C was noticed). What is decided with
//! the answer is not known here.

use std::io::Write as _;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

use piton_view::layout::{self, Layout};

use super::terminal;

/// How often `until` is asked: soon enough for a person, rare enough for an idle machine.
const POLL_NS: i64 = 300_000_000;
/// Longest answer that is read; all choices are one letter or one word.
const ANSWER_BYTES_MAX: usize = 256;

/// Asks on the terminal and reads a line: one of `choices`, by its first letter or a beginning of it.
///
/// An empty line takes `default`; anything else asks again. Nothing comes back when `until` says
/// that the question is over, or when there is no more input.
pub fn ask(
    question: &str,
    choices: &[&str],
    default: char,
    until: &mut dyn FnMut() -> bool,
) -> Option<char> {
    let prompt = prompt(question, choices, default, &terminal::stderr());
    asked(&prompt, choices, default, until)
}

fn asked(
    prompt: &str,
    choices: &[&str],
    default: char,
    until: &mut dyn FnMut() -> bool,
) -> Option<char> {
    loop {
        write(prompt);
        let Some(line) = read_line(until) else {
            // What was typed for this question is not an answer to the next.
            let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
            write("\n");
            return None;
        };
        if let Some(choice) = choice(&line, choices, default) {
            return Some(choice);
        }
    }
}

/// The same where a yes and a no mean two of the choices.
pub fn ask_or_confirm(
    question: &str,
    choices: &[&str],
    (yes, no): (char, char),
    until: &mut dyn FnMut() -> bool,
) -> Option<char> {
    let all: Vec<&str> = choices.iter().copied().chain(["yes", "no"]).collect();
    let prompt = prompt(&format!("{question} (Y/n)"), choices, yes, &terminal::stderr());
    asked(&prompt, &all, yes, until).map(|key| match key {
        'y' => yes,
        'n' => no,
        other => other,
    })
}

/// Asks for a yes.
pub fn confirms(question: &str) -> Option<bool> {
    ask(question, &["yes", "no"], 'n', &mut || false).map(|key| key == 'y')
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// `Approve "Spec"? [y]es, [n]o, [L]ater: `, the key of the default in upper case.
fn prompt(question: &str, choices: &[&str], default: char, layout: &Layout) -> String {
    let key = |choice: &&str| {
        let (key, rest) = choice.split_at(1);
        let is_default = key.starts_with(default);
        format!("[{}]{rest}", if is_default { key.to_uppercase() } else { key.to_owned() })
    };
    let keys: Vec<String> = choices.iter().map(key).collect();
    format!("{} {}: ", layout.paint(layout::STRONG, question), keys.join(", "))
}

/// The key of the choice that a line means.
fn choice(line: &str, choices: &[&str], default: char) -> Option<char> {
    let line = line.trim().to_lowercase();
    if line.is_empty() {
        return Some(default);
    }
    choices.iter().find(|choice| choice.starts_with(&line)).and_then(|choice| choice.chars().next())
}

/// Reads a line byte by byte: nothing beyond it is taken from whoever reads stdin next.
fn read_line(until: &mut dyn FnMut() -> bool) -> Option<String> {
    let stdin = std::io::stdin();
    let mut line = Vec::new();
    let wait = Timespec { tv_sec: 0, tv_nsec: POLL_NS };
    let mut layout = true;
    loop {
        // Not for every byte: `until` may read the ledger.
        if layout && until() {
            return None;
        }
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        layout = match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => true,
            Ok(_) => false,
            Err(_) => return None,
        };
        if layout {
            continue;
        }
        let mut byte = [0_u8; 1];
        match rustix::io::read(&stdin, &mut byte) {
            Ok(0) => return None,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() < ANSWER_BYTES_MAX => line.push(byte[0]),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICES: [&str; 3] = ["yes", "no", "later"];

    #[test]
    fn the_default_is_the_upper_case_letter() {
        let text = prompt("Approve \"Spec\"?", &CHOICES, 'l', &Layout::plain(80));
        assert_eq!(text, "Approve \"Spec\"? [y]es, [n]o, [L]ater: ");
    }

    #[test]
    fn letters_words_and_nothing_are_understood() {
        let said = |line| choice(line, &CHOICES, 'l');
        assert_eq!(said("N\n"), Some('n'));
        assert_eq!(said("yes"), Some('y'));
        assert_eq!(said("  "), Some('l'));
        assert_eq!(said("what"), None);
    }

    #[test]
    fn a_question_answered_elsewhere_ends() {
        assert_eq!(read_line(&mut || true), None);
    }
}
