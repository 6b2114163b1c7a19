//! Questions to the person at the terminal.
//!
//! A question does not hold the program: while it stands, `until` is asked now and then whether it
//! still matters (another process may have answered, or Ctrl-C was noticed). What is decided with
//! the answer is not known here.

use std::io::Write as _;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

use piton_view::look::{self, Look};

use super::terminal;

/// How often `until` is asked: soon enough for a person, rare enough for an idle machine.
const POLL_NS: i64 = 300_000_000;
/// Longest answer that is read; all choices are one letter or one word.
const ANSWER_BYTES_MAX: usize = 256;

/// Asks on the terminal and reads a line: one of `choices` (letter and what it means).
///
/// An empty line takes `default`; anything else asks again. Nothing comes back when `until` says
/// that the question is over, or when there is no more input.
pub fn ask(
    question: &str,
    choices: &[(char, &str)],
    default: Option<char>,
    until: &mut dyn FnMut() -> bool,
) -> Option<char> {
    let look = terminal::stderr();
    let prompt = prompt(question, choices, default, &look);
    loop {
        write(&prompt);
        let Some(line) = read_line(until) else {
            // What was typed for this question is no answer to the next.
            let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
            write("\n");
            return None;
        };
        if let Some(choice) = choice(&line, choices, default) {
            return Some(choice);
        }
        write(&format!("{}\n", help(choices)));
    }
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// `Resume from checkpoint? (Y/n) `: the default in upper case, unless the question names the letters.
fn prompt(question: &str, choices: &[(char, &str)], default: Option<char>, look: &Look) -> String {
    if question.ends_with(')') {
        return format!("{} ", look.paint(look::STRONG, question));
    }
    let letters: Vec<String> = choices
        .iter()
        .map(|(c, _)| if Some(*c) == default { c.to_ascii_uppercase() } else { *c }.to_string())
        .collect();
    format!("{} ({}) ", look.paint(look::STRONG, question), letters.join("/"))
}

fn help(choices: &[(char, &str)]) -> String {
    let lines: Vec<String> =
        choices.iter().map(|(c, meaning)| format!("  {c}  {meaning}")).collect();
    lines.join("\n")
}

/// What a line means: the letter, a beginning of its meaning, or the default.
fn choice(line: &str, choices: &[(char, &str)], default: Option<char>) -> Option<char> {
    let line = line.trim().to_lowercase();
    if line.is_empty() {
        return default;
    }
    let letter = choices.iter().find(|(c, _)| line.chars().eq([c.to_ascii_lowercase()]));
    let word = || choices.iter().find(|(_, meaning)| meaning.to_lowercase().starts_with(&line));
    letter.or_else(word).map(|(c, _)| *c)
}

/// Reads a line byte by byte: nothing beyond it is taken from whoever reads stdin next.
fn read_line(until: &mut dyn FnMut() -> bool) -> Option<String> {
    let stdin = std::io::stdin();
    let mut line = Vec::new();
    let wait = Timespec { tv_sec: 0, tv_nsec: POLL_NS };
    let mut look = true;
    loop {
        // Not for every byte: `until` may read the ledger.
        if look && until() {
            return None;
        }
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        look = match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => true,
            Ok(_) => false,
            Err(_) => return None,
        };
        if look {
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

    const YES_NO: [(char, &str); 2] = [('y', "yes, go on"), ('n', "no, start anew")];

    #[test]
    fn the_default_is_the_upper_case_letter() {
        let text = prompt("Resume from checkpoint?", &YES_NO, Some('y'), &Look::plain(80));
        assert_eq!(text, "Resume from checkpoint? (Y/n) ");
        let named = prompt("Resume? (Y/n)", &YES_NO, Some('y'), &Look::plain(80));
        assert_eq!(named, "Resume? (Y/n) ");
    }

    #[test]
    fn letters_words_and_nothing_are_understood() {
        let said = |line| choice(line, &YES_NO, Some('y'));
        assert_eq!(said("N\n"), Some('n'));
        assert_eq!(said("yes"), Some('y'));
        assert_eq!(said("  "), Some('y'));
        assert_eq!(said("what"), None);
        assert_eq!(choice("", &YES_NO, None), None);
    }

    #[test]
    fn a_question_answered_elsewhere_ends() {
        assert_eq!(read_line(&mut || true), None);
    }
}
