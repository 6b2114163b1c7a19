//! Reads a plan in one pass over its lines, and reports what it does not understand.

use std::collections::HashMap;

use piton_formats::diagnostic::{Diagnostic, Severity, code, quoted};
use piton_formats::markdown::inline::{bullet, plain};
use piton_formats::markdown::{Document, Line, Place};
use piton_formats::sink::Sink;

use super::fields::{self, Label};
use super::heading::{Heading, is_phase_heading};
use super::model::{Complexity, Marker, Phase, PhaseStatus, Plan, Task};
use super::{PLAN_BYTES_MAX, dependencies, waves};

/// Reads a plan to run: the plan and its warnings, or all problems.
pub fn read(file: &str, text: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (plan, problems) = inspect(file, text);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(problems);
    }
    Ok((plan, problems))
}

/// Reads as much of a plan as possible, and all its problems.
pub fn inspect(file: &str, text: &str) -> (Plan, Vec<Diagnostic>) {
    let mut sink = Sink::new(file, text);
    if text.len() > PLAN_BYTES_MAX {
        let message = format!("the plan is larger than {PLAN_BYTES_MAX} bytes");
        sink.error(code::TOO_LARGE, &(0..0), message, "split it, or name the right file");
        return (Plan::default(), sink.finish());
    }
    let document = Document::new(text);
    if let Some(at) = document.unclosed {
        let message = "this is never closed, so the rest of the plan is not read";
        let hint = "close the fence with as many marks, or the comment with `-->`";
        sink.warn(code::UNCLOSED, &document.lines[at].span(), message, hint);
    }
    let mut reader = Reader::new(&document);
    for line in &document.lines {
        reader.line(line, &mut sink);
    }
    let mut plan = reader.finish(text.len());
    if plan.phases.is_empty() {
        let hint = "write the phases as headings, like `### Phase 1: Title`";
        sink.error(code::MISSING, &(0..0), "the plan has no phases", hint);
    }
    resolve(&mut plan, &mut sink);
    if let Err(cycle) = waves::waves(&plan) {
        let span = sink.line_span(cycle.line);
        let message = format!("phases depend on each other in a cycle: {cycle}");
        sink.error(code::CYCLE, &span, message, "remove one of these dependencies");
    }
    (plan, sink.finish())
}

/// Tells whether a text is a plan, by its headings.
pub fn is_plan(text: &str) -> bool {
    Document::new(text).lines.iter().any(is_phase_heading)
}

/// All boxes of a text, such as the file of an expanded phase.
pub fn tasks_of(text: &str) -> Vec<Task> {
    let mut tasks: Vec<Task> = Document::new(text).lines.iter().filter_map(task).collect();
    number(&mut tasks);
    tasks
}

/// Tells tasks with the same text apart.
fn number(tasks: &mut [Task]) {
    let mut counts: HashMap<&str, usize> = HashMap::with_capacity(tasks.len());
    let mut numbers = Vec::with_capacity(tasks.len());
    for task in &*tasks {
        let count = counts.entry(&task.text).or_default();
        numbers.push(*count);
        *count += 1;
    }
    for (task, nth) in tasks.iter_mut().zip(numbers) {
        task.nth = nth;
    }
}

fn task(line: &Line<'_>) -> Option<Task> {
    let (found, _) = line.checkbox()?;
    let (text, done) = (found.rest.trim().to_owned(), found.is_ticked());
    Some(Task { text, done, nth: 0, line: line.number })
}

/// Replaces dependencies by the ids of the phases that they name, and reports the others.
fn resolve(plan: &mut Plan, sink: &mut Sink<'_>) {
    let ids: HashMap<String, _> =
        plan.phases.iter().map(|phase| (phase.id.key(), phase.id.clone())).collect();
    for phase in &mut plan.phases {
        let span = sink.line_span(phase.line);
        for outside in &phase.outside {
            let message =
                format!("phase {} depends on {}, which is not a phase", phase.id, quoted(outside));
            let hint = "make sure that it is done before the phase starts";
            sink.warn(code::UNKNOWN_ID, &span, message, hint);
        }
        let Some(named) = &mut phase.depends_on else { continue };
        let mut known = Vec::with_capacity(named.len());
        for id in named.drain(..) {
            match ids.get(&id.key()) {
                Some(id) if known.contains(id) => {}
                Some(id) => known.push(id.clone()),
                None => {
                    let message = format!(
                        "phase {} depends on phase {id}, which the plan does not have",
                        phase.id
                    );
                    sink.error(code::UNKNOWN_ID, &span, message, "correct its dependencies");
                    phase.outside.push(id.to_string());
                }
            }
        }
        *named = known;
    }
}

/// The phase whose section is being read.
struct Open {
    phase: Phase,
    level: usize,
    /// What a `Status` line of its own says.
    stated: Option<Marker>,
    /// The field that the next lines belong to.
    pending: Option<Label>,
    /// The lines of a fence with commands, and its block.
    fence: Option<usize>,
}

struct Reader<'d, 'a> {
    document: &'d Document<'a>,
    plan: Plan,
    open: Option<Open>,
    /// The lines of all known ids.
    lines: HashMap<String, usize>,
    fenced: Vec<(usize, &'a str)>,
}

impl<'d, 'a> Reader<'d, 'a> {
    fn new(document: &'d Document<'a>) -> Self {
        let (plan, lines) = (Plan::default(), HashMap::new());
        Self { document, plan, open: None, lines, fenced: Vec::new() }
    }

    fn line(&mut self, line: &Line<'a>, sink: &mut Sink<'_>) {
        match line.place {
            Place::Text => match line.heading() {
                Some((level, text)) => self.heading(level, text, line, sink),
                None => self.text(line, sink),
            },
            Place::FenceMark => self.fence_mark(),
            Place::Fence(block) => {
                if let Some(open) = self.open.as_mut().filter(|open| open.fence.is_some()) {
                    open.fence = Some(block);
                    self.fenced.push((line.number, line.text));
                }
            }
            Place::Aside => {}
        }
    }

    fn heading(&mut self, level: usize, text: &str, line: &Line<'_>, sink: &mut Sink<'_>) {
        if let Some(heading) = Heading::read(line) {
            self.close(line.start);
            let key = heading.id.key();
            if let Some(first) = self.lines.get(&key) {
                let (id, own) = (&heading.id, line.number);
                let message = format!("phase {id} is on line {first} and on line {own}");
                let hint = "give one of the two another number, or make them one phase";
                sink.error(code::DUPLICATE_ID, &line.span(), message, hint);
                return;
            }
            self.lines.insert(key, line.number);
            if let Some(Marker::Unknown(word)) = &heading.marker {
                let message =
                    format!("unknown marker {}, so the phase is not complete", quoted(word));
                let hint = "write [COMPLETED], [IN PROGRESS], [NOT STARTED] or [SKIPPED]";
                sink.warn(code::BAD_VALUE, &heading.marker_range, message, hint);
            }
            if let Some(stray) = &heading.stray {
                let message = "text follows this marker, so it is read as a part of the title";
                let hint = "move it to the end of the heading if the phase has that status";
                sink.warn(code::BAD_VALUE, stray, message, hint);
            }
            self.open = Some(Open::new(heading, level, line));
            return;
        }
        if self.open.as_ref().is_some_and(|open| level <= open.level) {
            self.close(line.start);
        }
        if level == 1 && self.plan.title.is_empty() {
            self.plan.title = plain(text);
        }
        if let Some(open) = &mut self.open {
            let label = Label::read(text.trim_end_matches(':'));
            open.pending = label.filter(|label| matches!(label, Label::Tests | Label::Files));
        }
    }

    fn text(&mut self, line: &Line<'_>, sink: &mut Sink<'_>) {
        let Some(open) = &mut self.open else { return };
        if open.phase.expanded.is_none() && line.text.contains("](") {
            open.phase.expanded = fields::expanded(line.text, open.phase.id.as_str());
        }
        if let Some((found, _)) = line.checkbox() {
            if !found.is_plain() {
                let message = format!("unknown box `[{}]`, so the task is open", found.mark);
                sink.warn(code::BAD_VALUE, &line.span(), message, "write `[ ]` or `[x]`");
            }
            open.phase.tasks.extend(task(line));
            open.pending = None;
            return;
        }
        if line.text.trim().is_empty() {
            return;
        }
        if line.indent() <= 1
            && let Some((label, value)) = fields::field(line.text)
        {
            open.field(label, value, line);
            return;
        }
        match (open.pending, bullet(line.text)) {
            (Some(Label::Files), Some(item)) => open.add_files(item, true),
            (Some(Label::DependsOn), Some(item)) => open.add_dependencies(item),
            _ => open.pending = None,
        }
    }

    fn fence_mark(&mut self) {
        let Some(open) = &mut self.open else { return };
        match open.fence.take() {
            None if open.pending == Some(Label::Tests) => open.fence = Some(usize::MAX),
            None => {}
            Some(block) => {
                let language = self.document.language(block);
                open.phase.tests.extend(fields::fenced_command(&self.fenced, language));
                self.fenced.clear();
            }
        }
        open.pending = None;
    }

    /// Ends the section of the phase at a byte.
    fn close(&mut self, end: usize) {
        self.fenced.clear();
        if let Some(open) = self.open.take() {
            self.plan.phases.push(open.finish(end));
        }
    }

    fn finish(mut self, end: usize) -> Plan {
        self.close(end);
        self.plan
    }
}

impl Open {
    fn new(heading: Heading, level: usize, line: &Line<'_>) -> Self {
        let Heading { id, title, remark, marker, .. } = heading;
        let phase = Phase {
            id,
            title,
            remark,
            marker,
            status: PhaseStatus::NotStarted,
            depends_on: None,
            outside: Vec::new(),
            tasks: Vec::new(),
            complexity: None,
            tests: Vec::new(),
            files: Vec::new(),
            expanded: None,
            line: line.number,
            section: line.start..line.start,
        };
        Self { phase, level, stated: None, pending: None, fence: None }
    }

    fn field(&mut self, label: Label, value: &str, line: &Line<'_>) {
        // A field with a value is complete; without one, a list or fence follows.
        self.pending = value.is_empty().then_some(label);
        match label {
            Label::DependsOn if self.phase.depends_on.is_none() => {
                self.phase.depends_on = Some(Vec::new());
                if !value.is_empty() {
                    self.add_dependencies(value);
                }
            }
            Label::Complexity if self.phase.complexity.is_none() => {
                self.phase.complexity = Some(Complexity::read(value));
            }
            Label::Status if self.stated.is_none() => {
                self.stated = Marker::known(value.trim_matches(['[', ']', '*', ' ']));
            }
            Label::Tests => self.phase.tests.extend(fields::inline_command(value, line.number)),
            Label::Files => self.add_files(value, false),
            Label::DependsOn | Label::Complexity | Label::Status => self.pending = None,
        }
    }

    fn add_files(&mut self, text: &str, only_first: bool) {
        for file in fields::files(text, only_first) {
            if !self.phase.files.contains(&file) {
                self.phase.files.push(file);
            }
        }
    }

    fn add_dependencies(&mut self, text: &str) {
        let named = dependencies::read(text);
        self.phase.outside.extend(named.outside);
        self.phase.depends_on.get_or_insert_default().extend(named.phases);
    }

    fn finish(mut self, end: usize) -> Phase {
        self.phase.section.end = end;
        number(&mut self.phase.tasks);
        let (done, all) = (self.phase.tasks_done(), self.phase.tasks.len());
        self.phase.status = match (&self.phase.marker, &self.stated) {
            (Some(marker), _) => marker.status(),
            (None, Some(stated)) if all == 0 => stated.status(),
            _ if all > 0 && done == all => PhaseStatus::Completed,
            _ if done > 0 => PhaseStatus::InProgress,
            _ => PhaseStatus::NotStarted,
        };
        self.phase
    }
}
