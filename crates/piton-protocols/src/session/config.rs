//! The front matter of the protocol file: what is switched on, and what happens at a session's start.

use piton_core::agent::{Thresholds, Window};
use piton_core::event::Reason;
use piton_formats::Diagnostic;
use piton_formats::diagnostic::code;
use piton_formats::sink::Sink;
use piton_formats::yaml::{Document, Problem};
use serde_json::{Map, Value, json};

use super::settings::per_mille;

/// Where the file says how full a window may be.
const THRESHOLDS: &str = "thresholds";
/// The one recovery mode of the protocol.
const MINIMAL: &str = "minimal";
/// The names of the triggers in the file.
const TRIGGERS: [(&str, Reason); 5] = [
    ("tokenWarning", Reason::TokenWarning),
    ("tokenCritical", Reason::TokenCritical),
    ("sessionEnd", Reason::SessionEnd),
    ("taskCompletion", Reason::TaskCompletion),
    ("manual", Reason::Manual),
];

/// The switches of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The version of the protocol, as the file says it.
    pub version: String,
    /// Whether anything is read or written.
    pub enabled: bool,
    /// The triggers that are off.
    pub off: Vec<Reason>,
    /// Whether a session goes on from a checkpoint without a question.
    pub auto_resume: bool,
    /// How much a fresh agent is told.
    pub recovery_mode: String,
    /// How many tokens fit, and at which shares of that something is done.
    pub window: Window,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            version: "1.0".to_owned(),
            enabled: true,
            off: vec![Reason::TaskCompletion],
            auto_resume: true,
            recovery_mode: MINIMAL.to_owned(),
            window: Window::default(),
        }
    }
}

impl Config {
    /// Tells whether a trigger makes a checkpoint.
    pub fn has(&self, reason: Reason) -> bool {
        self.enabled && !self.off.contains(&reason)
    }

    /// Reads the protocol file. What it does not say is as in the protocol.
    pub fn read(file: &str, text: &str) -> Result<(Self, Vec<Diagnostic>), Problem> {
        let document = Document::new(file, text)?;
        let mut config = Self::default();
        let mut sink = Sink::new(file, text);
        let mut flag = |path: &[&str], otherwise: bool| match document.get(path) {
            None | Some(Value::Null) => otherwise,
            Some(Value::Bool(flag)) => flag,
            Some(_) => {
                let span = sink.line_span(document.line(path));
                let words = format!("`{}` is neither true nor false", path.join("."));
                sink.warn(code::BAD_VALUE, &span, words, "write `true` or `false`");
                otherwise
            }
        };
        config.enabled = flag(&["enabled"], true);
        config.auto_resume = flag(&["autoResume"], true);
        let off = |(name, reason): &(&str, Reason), flag: &mut dyn FnMut(&[&str], bool) -> bool| {
            let usual = *reason != Reason::TaskCompletion;
            (!flag(&["checkpointTriggers", name], usual)).then_some(*reason)
        };
        config.off = TRIGGERS.iter().filter_map(|trigger| off(trigger, &mut flag)).collect();
        let word = |path: &[&str]| document.get(path).and_then(|v| v.as_str().map(str::to_owned));
        config.version = word(&["version"]).unwrap_or(config.version);
        config.recovery_mode = word(&["recoveryMode"]).unwrap_or(config.recovery_mode);
        if config.recovery_mode != MINIMAL {
            let span = sink.line_span(document.line(&["recoveryMode"]));
            let words = format!("unknown recoveryMode `{}`", config.recovery_mode);
            sink.warn(code::BAD_VALUE, &span, words, "Piton knows `minimal`, and uses it");
        }
        config.window = read_window(&document, &mut sink);
        Ok((config, sink.finish()))
    }

    /// The same for `piton inspect`.
    pub fn to_json(&self) -> Value {
        let triggers: Map<String, Value> = TRIGGERS
            .iter()
            .map(|(name, reason)| ((*name).to_owned(), (!self.off.contains(reason)).into()))
            .collect();
        let mut read = json!({
            "version": self.version,
            "enabled": self.enabled,
            "checkpointTriggers": triggers,
            "autoResume": self.auto_resume,
            "recoveryMode": self.recovery_mode,
        });
        if self.window != Window::default() {
            let Thresholds { warning, critical, halt } = self.window.thresholds();
            let percent = |share: u32| f64::from(share) / 10.0;
            read["window"] = self.window.tokens.into();
            read[THRESHOLDS] = json!({
                "warning": percent(warning), "critical": percent(critical), "halt": percent(halt),
            });
        }
        read
    }
}

/// `window` and `thresholds`, which are additions of ours; what cannot be used is reported and left out.
fn read_window(document: &Document, sink: &mut Sink<'_>) -> Window {
    let mut bad = |path: &[&str], words: String, hint: &str| {
        let span = sink.line_span(document.line(path));
        sink.warn(code::BAD_VALUE, &span, words, hint);
    };
    let mut window = Window::default();
    if let Some(tokens) = document.get(&["window"]).filter(|value| !value.is_null()) {
        window.tokens = tokens.as_u64().filter(|tokens| *tokens > 0);
        if window.tokens.is_none() {
            bad(&["window"], "`window` is not a number of tokens".to_owned(), "write `200000`");
        }
    }
    let shares = [
        ("warning", &mut window.warning),
        ("critical", &mut window.critical),
        ("halt", &mut window.halt),
    ];
    for (name, share) in shares {
        let path = [THRESHOLDS, name];
        let Some(value) = document.get(&path).filter(|value| !value.is_null()) else { continue };
        *share = per_mille(&value);
        if share.is_none() {
            bad(&path, format!("`{}` is not a number", path.join(".")), "write percent: `90`");
        }
    }
    if !window.thresholds().rise() {
        let words = "`warning`, `critical` and `halt` must rise, and be at most 100".to_owned();
        bad(&[THRESHOLDS], words, "the defaults are 75, 90 and 97.5, and are used");
        window = Window { tokens: window.tokens, ..Window::default() };
    }
    window
}
