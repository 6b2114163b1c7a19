//! `cargo xtask report-check`: the HTML report of a run with 40 lanes, measured in a headless Chromium.
//!
//! The real program runs the lanes and writes the page. A copy of it with a script that measures is
//! shown at the width of a desk and of a phone; the page itself, as it is, is served on the loopback
//! device to count what it asks for. Nothing is installed here, and nothing leaves the machine. Without
//! a Chromium nothing is shown, which is said.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::shell::{answers, capture, piton};
use crate::{Failure, Result};

/// What is said if there is no browser.
pub(crate) const NO_BROWSER: &str = "there is no chromium: the page was not looked at";
/// Names under which a Chromium is found.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Lanes of the run.
const LANES: usize = 40;
/// The width of a desk and of a phone, in pixels.
const WIDTHS: [u32; 2] = [1280, 400];
/// Long enough for a browser on a busy machine.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(120);
/// How the plan of the run begins.
const PLAN: &str = "title = \"Forty lanes\"\n[defaults]\nretries = 1\nbackoff = \"1ms\"\n[[phase]]\nid = \"build\"\n";
/// Runs in a copy of the page.
const MEASURE: &str = include_str!("measure.js");

/// Arguments of `report-check`.
#[derive(clap::Args)]
pub(crate) struct ReportCheckArgs {
    /// The program (default: the release build)
    #[arg(long, value_name = "PROGRAM")]
    piton: Option<PathBuf>,
    /// Also put screenshots into this folder, light and dark, for somebody to look at
    #[arg(long, value_name = "FOLDER")]
    shots: Option<PathBuf>,
}

/// Carries out the check.
pub(crate) fn command(args: ReportCheckArgs) -> Result<()> {
    let Some(browser) = browser() else {
        println!("skipped: {NO_BROWSER}");
        return Ok(());
    };
    let program = piton(args.piton)?;
    let said = check_with(browser, &program, args.shots.as_deref())?;
    println!("{said}");
    Ok(())
}

/// The first browser that answers.
pub(crate) fn browser() -> Option<&'static str> {
    BROWSERS.into_iter().find(|name| answers(name, &["--version"]))
}

/// Checks the page of the release build, or of a program; what was seen, or what is wrong.
pub(crate) fn check(browser: &str, program: Option<PathBuf>) -> Result<String> {
    check_with(browser, &piton(program)?, None)
}

fn check_with(browser: &str, program: &Path, shots: Option<&Path>) -> Result<String> {
    let scratch = tempfile::tempdir()?;
    let page = page(program, scratch.path())?;
    let text = fs::read_to_string(&page)?;
    let mut seen = Vec::new();
    for width in WIDTHS {
        let measured = measured(browser, scratch.path(), &text, width)?;
        judge(&measured, width)?;
        seen.push(format!("{width} px: {} lanes, {} boxes", measured["lanes"], measured["boxes"]));
    }
    let requests = requests(browser, scratch.path(), &text)?;
    if requests != 0 {
        return Err(format!("the page asks for {requests} more files").into());
    }
    if let Some(folder) = shots {
        shoot(browser, scratch.path(), &page, folder)?;
    }
    Ok(format!("{}; no overlap, no overflow, no request", seen.join(", ")))
}

/// Runs a plan of 40 lanes with the real program and writes its report.
fn page(program: &Path, scratch: &Path) -> Result<PathBuf> {
    let root = scratch.join("project");
    fs::create_dir_all(&root)?;
    let lane = |lane: usize| {
        // Every seventh fails once.
        let test = if lane.is_multiple_of(7) { "test $PITON_ATTEMPT -ge 2" } else { "true" };
        format!(
            "[[phase.lane]]\nid = \"SL-{lane:02}-AUTHENTICATION-MIDDLEWARE-AND-MORE\"\n\
             steps = [{{ id = \"impl\", run = \"{test}\" }}, {{ id = \"verify\", run = \"echo {lane}\" }}]\n"
        )
    };
    let plan = PLAN.to_owned() + &(1..=LANES).map(lane).collect::<String>();
    fs::write(root.join("plan.toml"), plan)?;
    let in_project = |words: &[&str]| {
        let (passed, said) = capture(
            Command::new(program)
                .args(words)
                .current_dir(&root)
                .env("HOME", scratch)
                .stdin(Stdio::null()),
        );
        if passed { Ok(()) } else { Err(Failure::Other(said)) }
    };
    in_project(&["run", "plan.toml", "--run-id", "forty", "--jobs", "8"])?;
    let page = scratch.join("report.html");
    in_project(&["report", "forty", "--output", &page.to_string_lossy()])?;
    Ok(page)
}

/// Shows a copy of the page in a frame of a width, and gives what its script measured. A window may not
/// be as narrow as a phone, a frame may.
fn measured(browser: &str, scratch: &Path, page: &str, width: u32) -> Result<Value> {
    // The page's own policy forbids scripts.
    let policy = page.lines().find(|line| line.contains("Content-Security-Policy"));
    let policy = policy.ok_or_else(|| "the page has no policy".to_owned())?;
    let script = format!("<script>{MEASURE}</script>\n</body>");
    let copy = page.replace(policy, "").replace("</body>", &script);
    let copy = copy.replace('&', "&amp;").replace('"', "&quot;");
    let style = format!("border: 0; width: {width}px; height: 2000px");
    let around = format!(
        "<!doctype html><body><iframe style=\"{style}\" srcdoc=\"{copy}\"></iframe></body>"
    );
    let file = scratch.join(format!("measured-{width}.html"));
    fs::write(&file, around)?;
    let more = ["--dump-dom".to_owned(), format!("--window-size={},2100", width + 200)];
    let dom = show(browser, scratch, &format!("file://{}", file.display()), &more)?;
    let found =
        dom.rsplit_once("<pre id=\"measured\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (json, _) =
        found.ok_or_else(|| format!("nothing was measured at {width} pixels:\n{dom}"))?;
    // What the page quotes of itself is escaped.
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Ok(serde_json::from_str(&json).map_err(|e| format!("{e}: {json}"))?)
}

fn judge(measured: &Value, width: u32) -> Result<()> {
    let wanted = [
        ("width", u64::from(width)),
        ("lanes", LANES as u64),
        ("overlaps", 0),
        ("overflow", 0),
        ("requests", 0),
        ("scripts", 0),
    ];
    let wrong = wanted.iter().find(|(key, value)| measured[*key] != *value);
    let outside = measured["outside"].as_array().is_none_or(|outside| !outside.is_empty());
    let problem = match wrong {
        Some((key, value)) => format!("{key} is {}, not {value}", measured[*key]),
        None if outside => "something is outside of the page".to_owned(),
        None => return Ok(()),
    };
    Err(format!("at {width} pixels {problem}: {measured}").into())
}

/// How many files the page asks for beside itself, served as it is.
fn requests(browser: &str, scratch: &Path, page: &str) -> Result<usize> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (asked, body) = (Arc::new(AtomicUsize::new(0)), page.to_owned());
    let counter = Arc::clone(&asked);
    // It ends with the program.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if serve(&stream, &body) {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let dom = show(browser, scratch, &format!("http://{address}/"), &["--dump-dom".to_owned()])?;
    if !dom.contains("Forty lanes") {
        return Err(format!("the page was not shown:\n{dom}").into());
    }
    let asked = asked.load(Ordering::SeqCst);
    Ok(asked.checked_sub(1).ok_or_else(|| "the page was never asked for".to_owned())?)
}

/// Answers one request; tells whether there was one.
fn serve(mut stream: &TcpStream, body: &str) -> bool {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(first)) = lines.next() else { return false };
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let found = first.starts_with("GET / ");
    let (status, body) = if found { ("200 OK", body) } else { ("404 Not Found", "") };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    true
}

/// Screenshots at both widths, light and dark.
fn shoot(browser: &str, scratch: &Path, page: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let folder = folder.canonicalize()?;
    for width in WIDTHS {
        for (number, scheme) in ["dark", "light"].into_iter().enumerate() {
            let file = folder.join(format!("report-{width}-{scheme}.png"));
            show(
                browser,
                scratch,
                &format!("file://{}", page.display()),
                &[
                    format!("--screenshot={}", file.display()),
                    format!("--blink-settings=preferredColorScheme={number}"),
                    format!("--window-size={width},2000"),
                    "--hide-scrollbars".to_owned(),
                ],
            )?;
        }
    }
    Ok(())
}

/// Starts the browser with a profile of its own, waits for its end, and gives what it printed.
fn show(browser: &str, scratch: &Path, address: &str, more: &[String]) -> Result<String> {
    let profile = tempfile::tempdir_in(scratch)?;
    let out = profile.path().join("stdout");
    let file = fs::File::create(&out)?;
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{browser}: {e}"))?;
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(format!("{browser} ended with {status}").into()),
            Ok(None) if begun.elapsed() > BROWSER_TIMEOUT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{browser} did not end within {BROWSER_TIMEOUT:?}").into());
            }
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(fs::read_to_string(&out)?)
}
