//! What the end of an output says about a failure, and what follows from it.

use piton_core::budget::Budgets;
use piton_core::event::{Class, Next};
use piton_core::failure::{Classified, Remains, classify, ended_by, next};
use piton_core::state::StepState;
use piton_core::{Millis, Timestamp};
use piton_testkit::plans;

/// 2025-11-15 18:06:40 UTC, a Saturday.
const NOW: Timestamp = Timestamp(1_763_230_000_000);
/// An hour ahead of UTC: 19:06:40 on the wall.
const BERLIN_SECS: i32 = 3600;

fn class_of(text: &str, in_test: bool, is_agent: bool) -> Classified {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let is_told = false;
    classify(Remains { in_test, is_agent, is_told, lines: &lines, offset_secs: BERLIN_SECS }, NOW)
}

/// What a program says of its own failure.
fn told(text: &str) -> Classified {
    let lines = [text.to_owned()];
    let (in_test, is_agent, is_told) = (false, true, true);
    classify(Remains { in_test, is_agent, is_told, lines: &lines, offset_secs: BERLIN_SECS }, NOW)
}

/// Lost: attempts are spent on a limit of a new name, which says when it ends.
#[test]
fn a_failure_that_names_a_reset_parks_whatever_the_limit_is_called() {
    let at = |seconds: i64| Some(Timestamp(seconds * 1000));
    for (text, reset) in [
        ("Your workspace is out of credits. Try again at 10:06 PM.", at(1_763_240_760)),
        ("Fast mode is exhausted · resets 9pm (UTC)", at(1_763_240_400)),
        ("Resets at 9pm (UTC): your allowance is used up", at(1_763_240_400)),
        ("You have hit your monthly cap. It refreshes at 9pm (UTC)", at(1_763_240_400)),
        ("No Sonnet quota · available again at 9pm (UTC)", at(1_763_240_400)),
        ("Your plan renews on Nov 17 at 1pm", at(1_763_380_800)),
        ("Too much at once, try again in 5 minutes", at(NOW.0 / 1000 + 300)),
    ] {
        assert_eq!(told(text), Classified { class: Class::RateLimit, reset }, "{text}");
    }
    for text in ["it was reset 3 times", "the pool resets in 8 seconds", "try again later"] {
        assert_eq!(told(text).class, Class::Agent, "{text}");
    }
}

#[test]
fn output_decides_the_class() {
    for (text, class) in [
        ("curl: (6) Could not resolve host: example.org", Class::Network),
        ("Error: getaddrinfo ENOTFOUND api.example.org", Class::Network),
        ("read: Connection reset by peer", Class::Network),
        ("HTTP/1.1 503 Service Unavailable", Class::Network),
        ("curl: (7) Failed to connect to ::1 port 9: Couldn't connect to server", Class::Network),
        ("curl: (22) The requested URL returned error: 503", Class::Network),
        ("dial tcp: lookup api.example.org: no such host", Class::Network),
        ("TypeError: fetch failed", Class::Network),
        ("error connecting to api.github.com\ncheck your internet connection", Class::Network),
        ("fatal: unable to access 'https://x/': Failed to connect to x port 443", Class::Network),
        ("ssh: Could not resolve hostname github.com: Try again", Class::Network),
        ("dial tcp: lookup api.github.com on 127.0.0.53:53: server misbehaving", Class::Network),
        ("fetch-pack: unexpected disconnect while reading sideband packet", Class::Network),
        ("the test of the connection failed to connect the parts", Class::Command),
        ("API Error: Connection error.", Class::Network),
        ("HTTP 429 from the service", Class::RateLimit),
        ("HTTP/2 429", Class::RateLimit),
        ("HTTP/1.1 503\nstatus: 429", Class::RateLimit),
        ("{\"statusCode\": 429}", Class::RateLimit),
        ("curl: (22) The requested URL returned error: 429", Class::RateLimit),
        ("error at line 503 of 1504, 429 tests ran", Class::Command),
        ("Error: Too Many Requests", Class::RateLimit),
        ("{\"type\":\"overloaded_error\"}", Class::RateLimit),
        ("Claude AI usage limit reached|1763240000", Class::RateLimit),
        ("error[E0308]: mismatched types", Class::Command),
        ("", Class::Command),
    ] {
        assert_eq!(class_of(text, false, false).class, class, "{text}");
    }
    for text in [
        "API Error: 500 Internal server error",
        "API Error: Request timed out.",
        "API Error: Unable to connect to API (ConnectionRefused)",
        "We’re currently experiencing high demand, which may cause temporary errors.",
    ] {
        assert_eq!(class_of(text, false, true).class, Class::Network, "{text}");
        assert_eq!(class_of(text, false, false).class, Class::Command, "{text}");
    }
    assert_eq!(class_of("it went wrong", false, true).class, Class::Agent);
    assert_eq!(class_of("the form resets at 8pm", false, true).class, Class::Agent);
    assert_eq!(class_of("test rate_limit_is_kept ... FAILED", true, true).class, Class::Test);
}

/// Lost: a night would end because the network was away for a minute while a branch was pushed or a pull
/// request opened.
#[test]
fn what_gh_and_git_say_without_a_network_is_a_network_failure() {
    for text in [
        // gh
        "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com",
        "Post \"https://api.github.com/graphql\": dial tcp: lookup api.github.com: no such host",
        "Post \"https://api.github.com/graphql\": dial tcp 140.82.121.6:443: i/o timeout",
        "Get \"https://api.github.com/user\": net/http: TLS handshake timeout",
        "Get \"https://api.github.com/user\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
        "Post \"https://api.github.com/graphql\": dial tcp 140.82.121.6:443: connect: network is unreachable",
        // git over HTTPS
        "fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com",
        "fatal: unable to access 'https://github.com/a/b.git/': Failed to connect to github.com port 443 after 130 ms: Couldn't connect to server",
        "fatal: unable to access 'https://github.com/a/b.git/': OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to github.com:443",
        "fatal: unable to access 'https://github.com/a/b.git/': gnutls_handshake() failed: The TLS connection was non-properly terminated.",
        "error: RPC failed; curl 56 Recv failure: Connection reset by peer\nfatal: expected flush after ref listing",
        "error: RPC failed; curl 28 Operation timed out after 300 seconds\nfatal: the remote end hung up unexpectedly",
        // git over SSH
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution\nfatal: Could not read from remote repository.",
        "ssh: connect to host github.com port 22: Network is unreachable\nfatal: Could not read from remote repository.",
        "kex_exchange_identification: Connection closed by remote host\nfatal: Could not read from remote repository.",
        // git's own protocol
        "fatal: unable to connect to github.com:\ngithub.com[0: 140.82.121.4]: errno=Connection timed out",
    ] {
        assert_eq!(class_of(text, false, false).class, Class::Network, "{text}");
    }
    for text in [
        "fatal: unable to access 'https://github.com/a/b.git/': The requested URL returned error: 403",
        "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
        "gh: To use GitHub CLI in automation, set the GH_TOKEN environment variable.",
    ] {
        assert_eq!(class_of(text, false, false).class, Class::Command, "{text}");
    }
}

/// Lost: a failing test of code that deals with limits would wait for hours, and its retries be unused.
#[test]
fn names_are_no_signs() {
    for text in [
        "test rate_limit_works ... FAILED",
        "test rate_limit ... FAILED",
        "test api::rate_limited_user ... FAILED",
        "test src/api.rs - rate_limit (line 3) ... FAILED",
        "---- rate_limit::tests::works stdout ----",
        "---- rate_limit_exceeded stdout ----",
        "thread 'rate_limit_exceeded' panicked at src/rate_limit.rs:5:9:\nleft: 1",
        "failures:\n    rate_limit_exceeded\n    api::econnrefused\ntest result: FAILED. 0 passed",
        "        FAIL [   0.005s] api tests::rate_limited",
        "FAILED tests/test_ratelimit.py::test_rate_limit - assert 1 == 2",
        "FAILED tests/test_api.py::test_codes[rate_limit_error] - assert 1 == 2",
        "tests/rate_limit.py:12: AssertionError",
        "____________ rate_limit_error ____________",
        "FAIL: rate_limit (tests.rate_limit.Works)",
        "--- FAIL: TestRateLimit (0.00s)",
        "--- FAIL: TestAnswers/too_many_requests (0.00s)",
        "FAIL src/ratelimit/index.test.ts > rate limit exceeded",
        "  ✓ answers 429 Too Many Requests (5 ms)",
        "  ✕ says connection refused (5 ms)",
        "  ● limits › says too many requests",
        "not ok 3 - rate limit exceeded",
        "    at checkRateLimit (/app/rateLimit.ts:4:3)",
        "at com.example.RateLimiter.check(RateLimiter.java:12)",
        "error[E0425]: cannot find function `rate_limit_error` in this scope",
        "NameError: name 'rate_limit' is not defined",
        "make: *** [Makefile:3: test-ratelimit] Error 1",
        "the corporate limit is 5",
        "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"allowed\"}}",
        "test network_unreachable_is_reported ... FAILED",
        "FAILED tests/test_net.py::test_connection_refused - assert 1 == 2",
        "test net::econnreset_is_seen ... FAILED",
        "test eai_again ... FAILED",
        "AssertionError: expected connection refused message to equal foo",
        "  expected 'rate limit exceeded' to be 'ok'",
        "    src/enotfound.rs:3:5",
    ] {
        assert_eq!(class_of(text, false, false).class, Class::Command, "{text}");
    }
    for (text, class) in [
        ("{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"no\"}}", Class::RateLimit),
        ("{'error': {'code': 'rate_limit_exceeded'}}", Class::RateLimit),
        ("{\"error\":\"rate_limit\"}", Class::RateLimit),
        ("openai.RateLimitError: slow down", Class::RateLimit),
        ("OpenAI::RateLimitError (slow down)", Class::RateLimit),
        ("ErrorKind::RateLimited", Class::RateLimit),
        ("code:rate_limit_exceeded", Class::RateLimit),
        ("ERR_RATE_LIMITED", Class::RateLimit),
        ("\"reason\": \"userRateLimitExceeded\"", Class::RateLimit),
        ("StatusCode.RESOURCE_EXHAUSTED", Class::RateLimit),
        ("x-ratelimit-reset: 1763240000", Class::RateLimit),
        ("API rate limit exceeded for user ID 1.", Class::RateLimit),
        ("429 Too Many Requests", Class::RateLimit),
        ("You've hit your usage limit.", Class::RateLimit),
        ("✗ rate limit exceeded", Class::RateLimit),
        ("thread 'main' panicked at src/main.rs:5:9:\nrate limit exceeded", Class::RateLimit),
        ("Errno::ECONNREFUSED: Failed to open TCP connection", Class::Network),
        ("FAILED tests/test_x.py::test_y - OSError: Network is unreachable", Class::Network),
        ("test net::works ... Connection refused (os error 111)", Class::Network),
        ("{ errno: -111, code: 'ECONNREFUSED' }", Class::Network),
    ] {
        assert_eq!(class_of(text, false, false).class, class, "{text}");
    }
}

#[test]
fn only_the_end_of_the_output_is_looked_at() {
    let mut text = "connection refused\n".to_owned();
    text.push_str(&"fine\n".repeat(30));
    assert_eq!(class_of(&text, false, false).class, Class::Command);
}

#[test]
fn the_reset_of_a_rate_limit_is_read_in_every_form() {
    let after = |ms: i64| Some(Timestamp(NOW.0 + ms));
    let at = |seconds: i64| Some(Timestamp(seconds * 1000));
    for (text, reset) in [
        ("rate limit: retry after 30s", after(30_000)),
        ("rate limit: Retry-After: 120", after(120_000)),
        ("rate limit, try again in 1.5 seconds", after(1_500)),
        ("rate limit, please try again in 250ms", after(250)),
        ("rate limit, try again in 5 minutes", after(300_000)),
        ("rate limit, resets in 2 hours", after(7_200_000)),
        ("rate limit; resets at 2025-11-15T20:53:20Z", at(1_763_240_000)),
        ("rate limit; resets at 2025-11-15T21:53:20+01:00", at(1_763_240_000)),
        ("Claude AI usage limit reached|1763240000", at(1_763_240_000)),
        ("rate_limit_reset: 1763240000", at(1_763_240_000)),
        ("rate_limit_reset: 1763240000123", at(1_763_240_000)),
        ("rate limit, resets in 1h30m", after(5_400_000)),
        ("rate limit, try again in 2 hours and 5 minutes.", after(7_500_000)),
        ("rate limit: please wait 1m0.5s", after(60_500)),
        ("rate limit, retry-after: 30", after(30_000)),
        ("rate limit, {\"retry_after\": 2.5}", after(2_500)),
        ("5-hour limit reached ∙ resets 8pm", at(1_763_233_200)),
        ("You've hit your limit · resets 8:30pm (Europe/Berlin)", at(1_763_235_000)),
        ("rate limit, resets at 8:00 PM (UTC)", at(1_763_236_800)),
        ("rate limit, try again at 20:53 utc", at(1_763_239_980)),
        ("rate limit, resets 7pm", at(1_763_229_600)),
        ("rate limit, resets 3am", at(1_763_258_400)),
        ("weekly limit reached ∙ resets Nov 17, 1pm", at(1_763_380_800)),
        ("rate limit, resets on January 2nd at 12:00 am", at(1_767_308_400)),
        ("rate limit\nRetry-After: Sat, 15 Nov 2025 20:53:20 GMT", at(1_763_240_000)),
        ("rate limit; resets at 2025-11-15 20:53:20 UTC", at(1_763_240_000)),
        ("rate limit, resets at 2025-11-15T20:53Z", at(1_763_239_980)),
        ("rate limit, reset: 2025-11-15 21:53:20", at(1_763_240_000)),
        ("rate limit, wait 20 more minutes", after(1_200_000)),
        ("rate limit, resets in 1,200 seconds", None),
        ("hit your usage limit, try again at Nov 20th, 2025 3:14 PM.", at(1_763_648_040)),
        ("rate limit, resets Jan 2, 2027 at 9am (UTC)", at(1_798_880_400)),
        ("rate limit, resets at 19:07:30", at(1_763_230_050)),
        ("weekly limit reached, resets Mon 9:00 AM", at(1_763_366_400)),
        ("weekly limit reached, resets on Saturday at 8pm", at(1_763_233_200)),
        ("weekly limit reached, resets Saturday at 6pm", at(1_763_830_800)),
        ("rate limit, retry-after-ms: 900", after(900)),
        ("rate limit, {\"retry_after_seconds\": \"45\"}", after(45_000)),
        ("rate limit, reset: 2025/11/15", None),
        ("rate limit, resets 15.11.2025", None),
        ("rate limit, please wait 20 blinks", None),
        ("rate limit, try again in 20:00", None),
        ("rate limit exceeded", None),
        ("rate limit, try again later (error 42)", None),
        ("rate limit, resets 25:00", None),
        ("You've hit your session limit · resets 9pm (UTC)", at(1_763_240_400)),
        ("You've hit your 5-hour limit · resets 8:00pm (America/New_York)", at(1_763_254_800)),
        ("You've hit your Opus limit · resets Nov 21, 10:26pm (UTC)", at(1_763_763_960)),
        ("You've hit your weekly limit · resets Nov 17, 1pm (Asia/Kolkata)", at(1_763_364_600)),
        ("Limit reached · resets 8pm", at(1_763_233_200)),
        ("You're out of extra usage · resets 8pm (Nowhere/At_All)", None),
        ("rate limit, resets 9am (GMT+2)", at(1_763_276_400)),
        ("rate limit, resets 9pm (UTC-05:30)", at(1_763_260_200)),
        ("rate limit, resets 3am (PST)", at(1_763_290_800)),
        ("rate limit, resets 3am PST", at(1_763_290_800)),
        ("rate limit, resets 9am (CET)", at(1_763_280_000)),
        ("rate limit, resets 3am (Etc/GMT+5)", at(1_763_280_000)),
        ("rate limit, resets 3am (XYZ)", None),
        ("rate limit, resets 8pm (in an hour)", at(1_763_233_200)),
        ("rate limit, resets tomorrow at 9am (UTC)", at(1_763_283_600)),
        ("rate limit, resets today 9pm (UTC)", at(1_763_240_400)),
        ("You have used your plan's new allowance. It resets at 8pm.", at(1_763_233_200)),
        ("Your plan's monthly cap is used up; it resets on Nov 17 at 1pm", at(1_763_380_800)),
        ("No messages left today. They reset in 2 hours.", after(7_200_000)),
        ("[API Error: You have exhausted your daily quota on this model.]", None),
    ] {
        let found = class_of(text, false, true);
        assert_eq!(found, Classified { class: Class::RateLimit, reset }, "{text}");
    }
}

fn classified(class: Class) -> Classified {
    Classified { class, reset: None }
}

fn follows(retries: u32, state: &StepState, failure: Classified) -> Next {
    let step = piton_core::plan::Step { retries, ..plans::step("work") };
    next(&step, &Budgets::default(), state, failure, NOW)
}

#[test]
fn retries_back_off_and_end() {
    let state = |failures| StepState { attempts: failures + 1, failures, ..StepState::default() };
    let at = |ms: i64| Next::Retry { at: Timestamp(NOW.0 + ms) };
    for class in [Class::Command, Class::Test, Class::Agent, Class::Timeout, Class::Artifact] {
        assert_eq!(follows(0, &state(0), classified(class)), Next::Fail);
        assert_eq!(follows(2, &state(0), classified(class)), at(100));
        assert_eq!(follows(2, &state(1), classified(class)), at(200));
        assert_eq!(follows(2, &state(2), classified(class)), Next::Fail);
    }
    let many = StepState { attempts: 15, failures: 14, ..StepState::default() };
    assert_eq!(follows(40, &many, classified(Class::Test)), at(100 << 14));
    assert_eq!(follows(9, &state(0), classified(Class::Input)), Next::Fail, "it would not help");
}

#[test]
fn waiting_for_the_network_uses_no_retry() {
    let waited = |waits, ms| StepState {
        attempts: waits + 1,
        network_waits: waits,
        network_waited_ms: Millis(ms),
        ..StepState::default()
    };
    let until = |ms: i64| Next::Wait { until: Timestamp(NOW.0 + ms) };
    let network = classified(Class::Network);
    assert_eq!(follows(0, &waited(0, 0), network), until(2_000));
    assert_eq!(follows(0, &waited(3, 14_000), network), until(16_000));
    assert_eq!(follows(0, &waited(9, 100_000), network), until(120_000));
    let budget = Budgets::default().network_wait.0;
    assert_eq!(follows(9, &waited(9, budget), network), Next::Fail, "retries are for others");
    let step = piton_core::plan::Step { retries: 1, ..plans::step("work") };
    let none = Budgets { network_wait: Millis(0), ..Budgets::default() };
    let retried = Next::Retry { at: Timestamp(NOW.0 + 100) };
    assert_eq!(
        next(&step, &none, &waited(0, 0), network, NOW),
        retried,
        "a failure like any other"
    );
}

#[test]
fn a_rate_limit_parks_until_its_reset_within_its_budget() {
    let state = StepState { attempts: 1, ..StepState::default() };
    let with = |ms: i64| Classified { class: Class::RateLimit, reset: Some(Timestamp(NOW.0 + ms)) };
    let until = |ms: i64| Next::Wait { until: Timestamp(NOW.0 + ms) };
    assert_eq!(follows(0, &state, with(3_600_000)), until(3_600_000));
    assert_eq!(follows(0, &state, with(-5_000)), until(0), "a reset in the past is over");
    let again = StepState { attempts: 4, rate_limit_waits: 3, ..StepState::default() };
    assert_eq!(follows(0, &again, with(-5_000)), until(8_000), "it did not help: not so fast");
    assert_eq!(follows(0, &again, with(60_000)), until(60_000));
    assert_eq!(follows(0, &state, with(7 * 24 * 3_600_000)), until(7 * 24 * 3_600_000), "a week");
    assert_eq!(follows(0, &state, with(9 * 24 * 3_600_000)), Next::Fail, "longer than its budget");
    assert_eq!(follows(0, &state, classified(Class::RateLimit)), until(30_000));
}

#[test]
fn no_class_gets_more_attempts_than_the_budget() {
    let state = StepState { attempts: Budgets::default().attempts, ..StepState::default() };
    for class in [Class::Network, Class::RateLimit, Class::Command, Class::Agent] {
        assert_eq!(follows(99, &state, classified(class)), Next::Fail, "{class:?}");
    }
}

/// Lost, a step would end without a word of what a person has to change for it to wait.
#[test]
fn the_budget_that_ends_a_wait_is_named() {
    let said = |budgets: &Budgets, attempts, failure| {
        let state = StepState { attempts, ..StepState::default() };
        ended_by(budgets, &state, failure, NOW).map(|ended| ended.to_string())
    };
    let reset = Some(Timestamp(NOW.0 + 60_000));
    let limited = Classified { class: Class::RateLimit, reset };
    let short = Budgets { rate_limit_wait: Millis(5_000), ..Budgets::default() };
    let words = said(&short, 1, limited).unwrap_or_default();
    assert!(words.contains("rate_limit_wait is 5.0s") && words.contains("1m"), "{words}");
    let network = Classified { class: Class::Network, reset: None };
    let short = Budgets { network_wait: Millis(1), ..Budgets::default() };
    assert!(said(&short, 1, network).is_some_and(|words| words.contains("network_wait")));
    let few = Budgets { attempts: 3, ..Budgets::default() };
    assert_eq!(said(&few, 3, network).as_deref(), Some("the budget attempts is used up (3)"));
    assert_eq!(said(&few, 2, network), None);
    let plain = Classified { class: Class::Command, reset: None };
    assert_eq!(said(&few, 2, plain), None);
    assert!(said(&few, 3, plain).is_some(), "a person can't have it tried again either");
}
