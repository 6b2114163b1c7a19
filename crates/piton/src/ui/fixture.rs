//! A run in the middle of its work, for the tests of everything that shows one.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use piton_core::event::{Class, FileHash};
use piton_core::hash::Sha;
use piton_core::state::{FailedAttempt, GateState, LaneState, PhaseState, Progress, StepState};
use piton_core::{GateRef, Millis, RunId, RunState, Timestamp};
use piton_engine::Loaded;
use piton_ledger::{Lease, Owner, RunKey, RunRow};

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

/// A pending step.
pub(super) fn step(id: &str) -> StepState {
    StepState { id: id.to_owned(), ..StepState::default() }
}

/// A step that finished in 65 seconds, with one artifact.
pub(super) fn done(id: &str) -> StepState {
    StepState {
        progress: Progress::Done,
        attempts: 1,
        successes: 1,
        exit_code: Some(0),
        duration_ms: Millis(65_000),
        artifacts: vec![FileHash { path: "a.txt".to_owned(), sha256: Sha("aa".to_owned()) }],
        ..step(id)
    }
}

/// A step in its second attempt, running since second 5.
pub(super) fn running(id: &str) -> StepState {
    StepState {
        progress: Progress::Running { since: Timestamp(5_000) },
        attempts: 2,
        failures: 1,
        exit_code: Some(1),
        ..step(id)
    }
}

/// A step that failed for good.
pub(super) fn failed(id: &str) -> StepState {
    StepState {
        progress: Progress::Failed,
        attempts: 2,
        failures: 2,
        exit_code: Some(7),
        duration_ms: Millis(1_500),
        failure_context: vec![FailedAttempt {
            attempt: 2,
            class: Class::Command,
            error: "the linker said no".to_owned(),
            lines: vec!["ld: no".to_owned()],
        }],
        ..step(id)
    }
}

/// A lane.
pub(super) fn lane(id: &str, steps: Vec<StepState>) -> LaneState {
    LaneState { id: id.to_owned(), steps, ..LaneState::default() }
}

/// A phase.
pub(super) fn phase(id: &str, lanes: Vec<LaneState>) -> PhaseState {
    PhaseState { id: id.to_owned(), lanes, ..PhaseState::default() }
}

/// P1: lane A has fetched and builds for the second time, lane B is pending; P2 waits for its gate.
pub(super) fn state() -> RunState {
    let mut state = RunState {
        run_id: Some(RunId("r-1".to_owned())),
        plan_path: "plan.toml".to_owned(),
        title: "Authentication".to_owned(),
        driven: true,
        epoch: 3,
        created_at: Timestamp(0),
        last_at: Timestamp(5_000),
        phases: vec![
            phase(
                "P1",
                vec![
                    lane("A", vec![done("fetch"), running("build"), step("pack")]),
                    lane("B", vec![step("work")]),
                ],
            ),
            phase("P2", vec![lane("main", vec![step("work")])]),
        ],
        ..RunState::default()
    };
    state.phases[1].gate = Some("Spec approval".to_owned());
    let gate =
        GateState { name: "Spec approval".to_owned(), asked_at: Timestamp(2_000), decision: None };
    state.gates.insert(GateRef("P2".to_owned()), gate);
    state
}

/// The same with its row.
pub(super) fn loaded() -> Loaded {
    let owner = Owner {
        host: "box".to_owned(),
        pid: 42,
        process_start: 0,
        boot_id: String::new(),
        pid_namespace: 0,
    };
    Loaded {
        row: RunRow {
            run: RunKey(1),
            run_id: "r-1".to_owned(),
            plan: "plan.toml".to_owned(),
            title: "Authentication".to_owned(),
            root: "/project".to_owned(),
            status: "running".to_owned(),
            epoch: 3,
            seq: 9,
            created_at: 0,
            updated_at: 5_000,
            owner: Some(Lease {
                owner,
                epoch: 3,
                heartbeat_at: 5_000,
                former_heartbeat: None,
                expires_at: 35_000,
            }),
        },
        state: state(),
        seq: 9,
    }
}
