//! A feature as a plan, the state file that its run keeps, and files of other tools that are taken
//! over.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use piton_core::event::{
    Class, DriverAttached, Event, FileHash, GateAsked, GateDecided, Next, Outcome, ProtocolRef,
    RunCreated, Shape, StepFinished, StepStarted,
};
use piton_core::hash::Sha;
use piton_core::plan::{OnChange, Work};
use piton_core::state::Progress;
use piton_core::{GateRef, Plan, RunId, RunState, StepPath, Timestamp, apply};
use piton_formats::settings::{Settings, read_settings_with};
use piton_protocols::files::{Around, Files, Run, Wanted};
use piton_protocols::pipeline::Pipeline;
use piton_protocols::pipeline::state;
use piton_protocols::protocol::{Effect, Existing, Protocol as _, Source, Starting, Unreadable};
use piton_protocols::table::{TABLE, sections};

const FOLDER: &str = "specs/003-csv";
const RECORD: &str = "specs/003-csv/.pipeline-state.md";
const AGENT: &str =
    "[agents.claude]\ncommand = [\"claude\", \"-p\"]\n[pipeline]\nagent = \"claude\"\n";
/// 2026-02-22T14:30:00Z.
const START: i64 = 1_771_770_600_000;

/// A project in memory.
struct Project {
    files: RefCell<BTreeMap<String, String>>,
    settings: Settings,
}

impl Project {
    fn new(settings: &str) -> Self {
        let settings = read_settings_with("piton.toml", settings, &sections(TABLE))
            .unwrap_or_else(|problems| panic!("{problems:#?}"));
        let files = [(format!("{FOLDER}/feature.spec.md"), "# CSV\n\nExport.\n".to_owned())];
        Self { files: RefCell::new(files.into()), settings }
    }

    fn put(&self, path: &str, text: &str) {
        self.files.borrow_mut().insert(path.to_owned(), text.to_owned());
    }

    fn text(&self, path: &str) -> io::Result<String> {
        self.files.borrow().get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn with<T>(&self, take: impl FnOnce(&Source<'_>) -> T) -> T {
        take(&Source {
            file: "003-csv",
            path: FOLDER,
            text: None,
            read: &|path| self.text(path),
            list: &|_| Vec::new(),
            modified: &|_| None,
            settings: &self.settings,
            git: true,
            task_worktrees: None,
        })
    }

    fn plan(&self) -> Plan {
        let read = self.with(|source| Pipeline.read(source));
        read.unwrap_or_else(|why| panic!("{why:?}")).plan
    }

    fn existing(&self) -> Existing {
        let plan = self.plan();
        self.with(|source| Pipeline.existing(source, &plan, Timestamp(START)))
    }
}

/// A run of the feature and the writer of its file.
struct Feature {
    project: Project,
    plan: Plan,
    state: RunState,
    at: i64,
    files: Box<dyn Files>,
}

struct Nothing;

impl Around for Nothing {
    fn text(&self, _path: &str) -> Option<String> {
        None
    }
    fn modified(&self, _path: &str) -> Option<Timestamp> {
        None
    }
    fn memory(&self) -> Vec<u8> {
        Vec::new()
    }
    fn runs(&self) -> Vec<RunState> {
        Vec::new()
    }
}

impl Feature {
    fn new(settings: &str) -> Self {
        let project = Project::new(settings);
        let plan = project.plan();
        let state = RunState::default();
        let run = Run { root: "/project".as_ref(), settings: &project.settings, state: &state };
        let files = Pipeline.files(&run).expect("a pipeline keeps a file");
        let mut feature = Self { plan, state, at: START, files, project };
        let spec = feature.project.text(&format!("{FOLDER}/feature.spec.md")).unwrap_or_default();
        feature.takes(&Event::RunCreated(Box::new(RunCreated {
            run_id: RunId("003-csv-1".to_owned()),
            protocol: ProtocolRef { id: "pipeline".into(), version: 1, reader: "pipeline".into() },
            plan_path: FOLDER.to_owned(),
            plan_hash: feature.plan.hash(),
            title: feature.plan.title.clone(),
            spec: Some(file("feature.spec.md", &spec)),
            root: "/project".to_owned(),
            linked: false,
            mark: "mark".to_owned(),
            head: None,
            previous: None,
            shape: Shape::from(&feature.plan),
        })));
        feature.attaches();
        feature
    }

    fn takes(&mut self, event: &Event) {
        self.at += 1_000;
        apply(&mut self.state, Timestamp(self.at), event).expect("the event is legal here");
        self.files.happened(Timestamp(self.at), event);
    }

    fn attaches(&mut self) {
        self.takes(&Event::DriverAttached(DriverAttached {
            epoch: self.state.epoch + 1,
            pid: 1,
            host: "host".to_owned(),
            head: None,
            takeover: false,
            base: None,
            retries: None,
            seed_dirty: false,
            keep_going: false,
            driven_until: None,
        }));
    }

    fn starts(&mut self, stage: &str) -> (StepPath, u32) {
        let path = StepPath::new(stage, "main", "work");
        let attempt = self.state.step(&path).map_or(1, |step| step.attempts + 1);
        let definition = self.plan.step(&path).expect("a stage").definition();
        self.takes(&Event::StepStarted(StepStarted::new(path.clone(), attempt, definition)));
        (path, attempt)
    }

    fn ends(&mut self, (path, attempt): (StepPath, u32), outcome: Outcome, made: &[&str]) {
        let artifacts = made.iter().map(|name| file(name, name)).collect();
        let finished = StepFinished { artifacts, ..StepFinished::new(path, attempt, outcome) };
        self.takes(&Event::StepFinished(Box::new(finished)));
    }

    fn completes(&mut self, stage: &str, made: &[&str]) {
        let started = self.starts(stage);
        self.ends(started, Outcome::Succeeded, made);
    }

    fn fails(&mut self, stage: &str, next: Next) {
        let started = self.starts(stage);
        let (error, lines) = ("the test failed".to_owned(), vec!["AC-06 fails".to_owned()]);
        let signature = "5a".to_owned();
        let class = Class::Test;
        let outcome = Outcome::Failed { class, error, lines, budget: None, signature, next };
        self.ends(started, outcome, &[]);
    }

    fn asks(&mut self, stage: &str) {
        let gates = self.plan.gates();
        let gate = GateRef(stage.to_owned());
        let name = gates.iter().find(|(g, _)| *g == gate).expect("a gate").1.clone();
        self.takes(&Event::GateAsked(GateAsked { gate, name }));
    }

    fn decides(&mut self, stage: &str, approved: bool) {
        self.takes(&Event::GateDecided(GateDecided {
            gate: GateRef(stage.to_owned()),
            approved,
            by: "ada".to_owned(),
            at: None,
            message: if approved { String::new() } else { "not now".to_owned() },
            plan_hash: self.plan.hash(),
            artifacts: Vec::new(),
        }));
    }

    /// Writes the state file as the writer would.
    fn writes(&mut self) -> String {
        let there = self.project.text(RECORD).ok();
        let Self { files, plan, state, project, .. } = self;
        for mut edit in files.edits(plan, state, &Nothing) {
            match edit.change(there.as_ref().map(String::as_bytes), true) {
                Wanted::Text { text, .. } => {
                    project.put(edit.path(), &String::from_utf8(text).expect("text"));
                }
                Wanted::AsItIs => {}
                other => panic!("{other:?}"),
            }
        }
        self.project.text(RECORD).expect("it was written")
    }

    fn read(&mut self) -> state::State {
        state::read(RECORD, &self.writes()).0
    }
}

fn file(name: &str, text: &str) -> FileHash {
    FileHash { path: format!("{FOLDER}/{name}"), sha256: Sha::of(text.as_bytes()) }
}

#[test]
fn a_feature_is_ten_stages_with_their_boxes_outputs_and_budgets() {
    let plan = Project::new(AGENT).plan();
    let stages: Vec<(&str, Option<&str>)> =
        plan.phases.iter().map(|p| (p.id.as_str(), p.gate.as_deref())).collect();
    assert_eq!(
        stages,
        [
            ("spec", None),
            ("clarify", None),
            ("architect", Some("Spec approval")),
            ("tasks", Some("Architecture sign-off (includes Constitution Check)")),
            ("tdd", None),
            ("programmer", None),
            ("testrunner", None),
            ("code-review", None),
            ("security", None),
            ("refactor", Some("Security sign-off")),
        ]
    );
    assert_eq!((plan.on_change, plan.record.as_deref()), (OnChange::Ask, Some(RECORD)));
    let step = |stage: &str| plan.step(&StepPath::new(stage, "main", "work")).expect("a stage");
    assert_eq!(
        step("architect").artifacts,
        ["research.md", "adr.md"].map(|n| format!("{FOLDER}/{n}"))
    );
    assert_eq!(step("programmer").retries, 5);
    assert_eq!(
        step("programmer").escalation.as_deref(),
        Some("Convergence escalation (if triggered)")
    );
    assert_eq!(step("code-review").writes, Some(Vec::new()));
    assert_eq!(step("programmer").writes, None);
}

#[test]
fn settings_change_stages_boxes_outputs_agents_and_budgets() {
    let settings = "[pipeline]\nstages = [\"spec\", \"build\", \"security\"]\nsame_failure = 4\n\
        [pipeline.stage.spec]\nrun = \"make spec\"\ncheckpoint = \"none\"\n\
        [pipeline.stage.build]\nrun = \"make\"\noutputs = [\"build.md\"]\nretries = 7\n\
        checkpoint = \"Build approval\"\ntimeout = \"5m\"\n\
        [pipeline.stage.security]\nrun = [\"scan\", \"--all\"]\nread_only = false\n";
    let plan = Project::new(settings).plan();
    let ids: Vec<&str> = plan.phases.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, ["spec", "build", "security", "done"], "the last box needs a place");
    assert_eq!(plan.phases[2].gate.as_deref(), Some("Build approval"));
    assert_eq!(plan.phases[3].gate.as_deref(), Some("Security sign-off"));
    let build = &plan.phases[1].lanes[0].steps[0];
    assert_eq!((build.retries, build.timeout.0), (7, 300_000));
    assert_eq!(build.artifacts, [format!("{FOLDER}/build.md")]);
    assert!(matches!(build.work, Work::Run(_)));
    assert_eq!(plan.phases[2].lanes[0].steps[0].writes, None);
    assert_eq!(plan.budgets.same_failure, 4);
}

#[test]
fn wrong_settings_are_refused_with_what_to_do() {
    for (settings, wanted) in [
        ("[pipeline]\nstages = [\"sepc\"]\n", "`sepc` in pipeline.stages is not a known stage"),
        ("[pipeline]\nagent = \"nobody\"\n", "nobody"),
        ("[pipeline.stage.spec]\nprompt = \"{{ oops }}\"\nagent = \"claude\"\n", "oops"),
    ] {
        let agents = "[agents.claude]\ncommand = [\"claude\"]\n";
        let project = Project::new(&format!("{agents}{settings}"));
        let Err(Unreadable::Refused(why)) = project.with(|source| Pipeline.read(source)) else {
            panic!("{settings} was accepted")
        };
        assert!(why.to_string().contains(wanted), "{why}");
    }
    let problems =
        read_settings_with("piton.toml", "[pipeline]\nstage = 1\nsepc = 2\n", &sections(TABLE));
    assert_eq!(problems.err().map(|all| all.len()), Some(2));
}

/// Lost: people and other tools see a state that is not that of the run.
#[test]
fn the_state_file_is_true_at_every_stage() {
    let mut run = Feature::new(AGENT);
    let seen = run.read();
    assert_eq!(seen.current_stage.as_deref(), Some("spec"));
    assert_eq!(seen.status.raw(), Some("IN_PROGRESS"));
    assert_eq!(seen.value("spec_hash").map(str::len), Some(71));

    let started = run.starts("spec");
    assert_eq!(run.read().detail.job_status.raw(), Some("RUNNING"));
    run.ends(started, Outcome::Succeeded, &["feature.spec.md"]);
    run.completes("clarify", &["feature.spec.md"]);
    run.asks("architect");
    let seen = run.read();
    let stages: Vec<&str> = seen.completed.iter().map(|row| row.stage.as_str()).collect();
    assert_eq!(stages, ["spec", "clarify"]);
    assert_eq!(seen.completed[0].hash, Some(format!("sha256:{}", Sha::of(b"feature.spec.md"))));
    // The box belongs to the stage before the one that waits for it.
    assert_eq!(seen.current_stage.as_deref(), Some("clarify"));
    assert_eq!(seen.status.raw(), Some("WAITING_FOR_HUMAN"));
    assert_eq!(seen.detail.job_status.raw(), Some("WAITING_FOR_HUMAN"));

    run.decides("architect", true);
    let seen = run.read();
    let cleared: Vec<&str> = seen.cleared().map(|c| c.text.as_str()).collect();
    assert_eq!(cleared, ["Spec approval"]);
    assert_eq!(seen.current_stage.as_deref(), Some("architect"));
    run.fails("architect", Next::Retry { at: Timestamp(run.at) });
    run.fails("architect", Next::Retry { at: Timestamp(run.at) });
    let seen = run.read();
    assert_eq!(
        (seen.detail.job_status.raw(), seen.detail.retry_count),
        (Some("RETRYING"), Some(1))
    );
    let said = seen.detail.value("last_output_summary");
    assert_eq!(said, Some("the test failed: AC-06 fails"));
    let row = &seen.iterations.iter().find(|row| row.stage == "architect").expect("a row");
    assert_eq!((&*row.cycle_count, &*row.budget, &*row.status), ("2", "2", "WITHIN_BUDGET"));
    assert_eq!(seen.clusters[0].retry_count, "2");
    run.fails("architect", Next::Fail);
    assert_eq!(run.read().status.raw(), Some("WAITING_FOR_HUMAN"), "its budget is used up");
}

#[test]
fn a_rejection_fails_the_run_and_a_resume_is_noted_once() {
    let mut run = Feature::new(AGENT);
    run.completes("spec", &["feature.spec.md"]);
    run.writes();
    run.attaches();
    let text = run.writes();
    let note = "Prior session ended at stage: clarify.";
    assert_eq!(text.matches(note).count(), 1, "{text}");
    assert!(text.contains("Resumed from checkpoint at 2026-02-22T14:30:"), "{text}");
    assert_eq!(run.writes(), text, "nothing happened in between");
    run.completes("clarify", &["feature.spec.md"]);
    run.asks("architect");
    run.decides("architect", false);
    let text = run.writes();
    assert!(
        text.contains("Rejected by ada: not now") && text.contains("- status: FAILED"),
        "{text}"
    );
    assert_eq!(text.matches(note).count(), 1);
}

/// Lost: what a person wrote into the file, or the file when somebody deletes it.
#[test]
fn what_others_wrote_stays_and_a_deleted_file_comes_back() {
    let mut run = Feature::new(AGENT);
    run.completes("spec", &["feature.spec.md"]);
    let text = run.writes();
    let edited = text
        .replace("## Notes", "## Risks\n\nnone yet\n\n## Notes\n\nAC-05 is deferred.")
        .replace("- coordinator_mode: pipeline", "- coordinator_mode: review\n- owner: ann");
    run.project.put(RECORD, &edited);
    run.completes("clarify", &["feature.spec.md"]);
    let text = run.writes();
    for kept in ["## Risks\n\nnone yet\n", "AC-05 is deferred.", "review\n- owner: ann\n"] {
        assert!(text.contains(kept), "{kept}\n{text}");
    }
    run.project.files.borrow_mut().remove(RECORD);
    let anew = run.read();
    assert_eq!(anew.completed.len(), 2);
}

/// Lost: a file that is something else is overwritten.
#[test]
fn what_cannot_be_read_is_never_written() {
    let mut run = Feature::new(AGENT);
    for text in
        ["# My notes\n\nnothing of a pipeline\n", "- current_stage: <stage>\n- status: A | B\n"]
    {
        run.project.put(RECORD, text);
        let Feature { files, plan, state, .. } = &mut run;
        let mut edits = files.edits(plan, state, &Nothing);
        let wanted = edits[0].change(Some(text.as_bytes()), true);
        assert!(
            matches!(&wanted, Wanted::Refused(why) if why.contains("move it away")),
            "{wanted:?}"
        );
    }
}

const FOREIGN: &str = "# Pipeline State\n\n- run_id: x\n- feature: 003-csv\n- spec_hash: HASH\n\
- current_stage: programmer\n- status: IN_PROGRESS\n\n## Completed Stages\n\n\
| Stage | Completed At | Output Artifact | Output Hash |\n|---|---|---|---|\n\
| spec | 2026-02-22T14:32:00Z | specs/003-csv/feature.spec.md | sha256:a3f8... |\n\
| red-team | 2026-02-22T14:55:00Z | specs/003-csv/red-team-findings.md | sha256:b1c4... |\n\
| architect | 2026-02-22T15:30:00Z | specs/003-csv/adr.md | sha256:b9e2... |\n\
| tasks | 2026-02-22T15:32:00Z | specs/003-csv/tasks.md | sha256:c7d3... |\n\
| tdd | 2026-02-22T16:10:00Z | specs/003-csv/test-certification.md | sha256:c1d4... |\n\n\
## Current Stage Detail\n\n- stage: programmer\n- job_status: RETRYING\n- retry_count: 2\n\n\
## Human Checkpoints Cleared\n\n- [x] Spec approval\n\
- [x] Architecture sign-off (includes Constitution Check)\n\
- [ ] Convergence escalation (if triggered)\n- [ ] Security sign-off\n";

fn taken_over(project: &Project) -> RunState {
    let Existing::Midway(midway) = project.existing() else { panic!("{:?}", project.existing()) };
    let plan = project.plan();
    let mut state = RunState::default();
    let created = RunCreated {
        run_id: RunId("r".to_owned()),
        protocol: ProtocolRef::default(),
        plan_path: FOLDER.to_owned(),
        plan_hash: plan.hash(),
        title: plan.title.clone(),
        spec: midway.spec.map(|sha256| FileHash { path: "spec".to_owned(), sha256 }),
        root: String::new(),
        linked: false,
        mark: String::new(),
        head: None,
        previous: None,
        shape: Shape::from(&plan),
    };
    let events = std::iter::once(Event::RunCreated(Box::new(created))).chain(midway.events);
    for event in events {
        apply(&mut state, Timestamp(START), &event).expect("it can be taken over");
    }
    state
}

/// Lost: paid work of another tool is done again, or counted although it is gone.
#[test]
fn a_file_of_another_tool_is_taken_over_in_the_middle() {
    let project = Project::new(AGENT);
    project.put(RECORD, FOREIGN);
    for name in ["adr.md", "tasks.md", "test-certification.md"] {
        project.put(&format!("{FOLDER}/{name}"), "there\n");
    }
    let state = taken_over(&project);
    let progress =
        |stage: &str| state.step(&StepPath::new(stage, "main", "work")).expect("a stage").progress;
    for stage in ["spec", "clarify", "architect", "tasks", "tdd"] {
        assert_eq!(progress(stage), Progress::Done, "{stage}");
    }
    for stage in ["programmer", "testrunner"] {
        assert_eq!(progress(stage), Progress::Pending, "{stage}");
    }
    let programmer = state.step(&StepPath::new("programmer", "main", "work")).expect("a stage");
    assert_eq!((programmer.attempts, programmer.failures), (3, 2), "the next is retry 3");
    assert!(
        state.approved(&GateRef("architect".into())) && state.approved(&GateRef("tasks".into()))
    );
    assert!(!state.approved(&GateRef("refactor".into())));

    project.files.borrow_mut().remove(&format!("{FOLDER}/tasks.md"));
    let state = taken_over(&project);
    let tasks = state.step(&StepPath::new("tasks", "main", "work")).expect("a stage");
    assert_eq!(tasks.progress, Progress::Pending, "its output is missing");
    let tdd = state.step(&StepPath::new("tdd", "main", "work")).expect("a stage");
    assert_eq!(tdd.progress, Progress::Done, "later ones stay");
}

/// Lost: a changed spec goes unnoticed when a run is taken over.
#[test]
fn the_hash_of_the_spec_is_taken_over_as_recorded() {
    let project = Project::new(AGENT);
    let spec = project.text(&format!("{FOLDER}/feature.spec.md")).expect("a spec");
    let own = Sha::of(spec.as_bytes());
    let with = |hash: &str| {
        project.put(RECORD, &FOREIGN.replace("HASH", hash));
        let Existing::Midway(midway) = project.existing() else { panic!("it is in the middle") };
        midway.spec
    };
    assert_eq!(with(&format!("sha256:{own}")), Some(own.clone()));
    assert_eq!(with("sha256:a3f8..."), Some(own), "nobody can compare it");
    let other = Sha::of(b"another");
    assert_eq!(with(&other.0), Some(other), "it differs, and stops the resume");
}

#[test]
fn each_status_of_a_state_file_has_its_meaning() {
    let project = Project::new(AGENT);
    assert!(matches!(project.existing(), Existing::Nothing));
    for (status, wanted) in [
        ("IN_PROGRESS", "midway"),
        ("WAITING_FOR_HUMAN", "midway"),
        ("ABORTED", "midway"),
        ("COMPLETE", "over"),
        ("FAILED", "over, told"),
        ("CANCELLED", "over"),
        ("PAUSED", "unclear"),
        ("", "unclear"),
    ] {
        project.put(RECORD, &FOREIGN.replace("IN_PROGRESS", status));
        let found = match project.existing() {
            Existing::Nothing => "nothing",
            Existing::Midway(_) => "midway",
            Existing::Over { previous: None, .. } => "over",
            Existing::Over { previous: Some(previous), .. } => {
                let aside = Pipeline.aside(&project.plan(), Timestamp(START));
                assert_eq!(aside, [(RECORD.to_owned(), previous.clone())]);
                assert_eq!(previous, "specs/003-csv/.pipeline-state.20260222-143000.md");
                "over, told"
            }
            Existing::Unclear(why) => {
                assert!(why.resume.is_some(), "its stage is known: a person may continue there");
                assert!(why.refusal.to_string().contains(RECORD), "{why:?}");
                "unclear"
            }
        };
        assert_eq!(found, wanted, "{status}");
    }
    project.put(RECORD, &FOREIGN.replace("current_stage: programmer", "current_stage: qa"));
    let unknown = project.existing();
    assert!(matches!(unknown, Existing::Unclear(why) if why.resume.is_none()), "an unknown stage");
}

const ADR: &str = "# ADR\n\n## Constitution Check\n\n| Article | Status | Notes |\n|---|---|---|\n\
| I | COMPLIES | fine |\n";

#[test]
fn the_constitution_check_is_looked_at_before_a_resume_and_after_the_stage() {
    let mut run = Feature::new(AGENT);
    let checks =
        |run: &Feature| Pipeline.checks(&run.plan, &run.state, &|path| run.project.text(path));
    let of = |run: &Feature, name: &str| checks(run).into_iter().find(|found| found.check == name);
    assert_eq!(of(&run, "constitution check"), None, "the architect has not worked yet");
    run.completes("spec", &["feature.spec.md"]);
    run.completes("clarify", &["feature.spec.md"]);
    run.decides("architect", true);
    run.completes("architect", &["research.md", "adr.md"]);
    let adr = format!("{FOLDER}/adr.md");
    run.project.put(&adr, ADR);
    run.project.put(&format!("{FOLDER}/research.md"), "found\n");
    let effect = |run: &Feature| of(run, "constitution check").map(|found| found.effect);
    assert_eq!(effect(&run), Some(Effect::Holds));
    assert_eq!(of(&run, "outputs").map(|found| found.effect), Some(Effect::Holds));
    run.project.put(&adr, &ADR.replace("COMPLIES", "COMPLIES / EXCEPTION / N/A"));
    let again = Effect::RunsAgain(StepPath::new("architect", "main", "work"));
    assert_eq!(effect(&run), Some(again));

    let step = StepPath::new("architect", "main", "work");
    let read = |path: &str| run.project.text(path);
    let ended = Starting {
        plan: &run.plan,
        state: &run.state,
        step: &step,
        attempt: 1,
        read: &read,
        left: &Vec::new,
    };
    let why = Pipeline.rejects(&ended).unwrap_or_default();
    assert!(why.contains("Constitution Check") && why.contains("line 7"), "{why}");
    run.project.put(&adr, ADR);
    assert_eq!(Pipeline.rejects(&ended), None);
    assert!(Pipeline.is_complete(&ended));
    run.project.put(&format!("{FOLDER}/research.md"), "[NEEDS CLARIFICATION: which?]\n");
    assert!(!Pipeline.is_complete(&ended));
}

#[test]
fn each_stage_is_given_what_the_playbook_says() {
    let run = Feature::new(AGENT);
    let given = |stage: &str| {
        let step = StepPath::new(stage, "main", "work");
        let read = |path: &str| run.project.text(path);
        let starting = Starting {
            plan: &run.plan,
            state: &run.state,
            step: &step,
            attempt: 1,
            read: &read,
            left: &Vec::new,
        };
        Pipeline.dispatch(&starting).context
    };
    let spec = format!("{FOLDER}/feature.spec.md");
    run.project.put(&spec, "# CSV\n\n[NEEDS CLARIFICATION: quotes?]\n");
    assert!(given("spec")["existing"].contains(&spec), "an existing spec is continued");
    assert_eq!(given("spec")["markers"], "");
    assert!(given("clarify")["markers"].contains("quotes?"));
    assert!(!given("architect")["existing"].contains("constitution"));
    run.project.put("constitution.md", "# Articles\n");
    run.project.put(&format!("{FOLDER}/research.md"), "papaparse\n");
    let architect = given("architect")["existing"].clone();
    assert!(architect.contains("research.md") && architect.contains("- constitution.md"));
    run.project.put(&format!("{FOLDER}/code-review.md"), "findings\n");
    assert!(given("refactor")["existing"].contains("code-review.md"));
    let programmer = given("programmer")["existing"].clone();
    assert!(programmer.contains("research.md") && programmer.contains("code-review.md"));
    let programmer = run.plan.step(&StepPath::new("programmer", "main", "work")).expect("a stage");
    let Work::Prompt { prompt, .. } = &programmer.work else { panic!("it is a prompt") };
    assert!(prompt.contains("do not start over"), "{prompt}");
}

#[test]
fn boxes_are_read_in_any_wording_and_named_like_the_gates() {
    let project = Project::new(AGENT);
    let plan = project.plan();
    project.put(
        RECORD,
        &FOREIGN.replace(
            "- [x] Architecture sign-off (includes Constitution Check)",
            "- [X] architecture sign-off",
        ),
    );
    let (ticked, _) =
        Pipeline.inputs((FOLDER, &plan), &|path| project.text(path)).expect("the file is there");
    assert_eq!(ticked, ["Spec approval", "Architecture sign-off (includes Constitution Check)"]);
}
