//! The contract of `Ledger`, written against the trait alone.
//!
//! Every store must pass it; a new one adds one more `mod` at the end. What only an embedded file
//! can suffer (damage, killed processes) is tested elsewhere.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use piton_ledger::{
    Acquire, Append, Error, HEARTBEAT_EVERY_MS, LEASE_MS, Ledger, Liveness, NewEvent, NewRequest,
    NewRun, Owner, RunKey, RunRow,
};

/// Opens further connections to one and the same new ledger.
type Connect<'a> = &'a dyn Fn() -> Box<dyn Ledger>;

const NOW: i64 = 1_700_000_000_000;

fn owner(pid: u32) -> Owner {
    Owner {
        host: "machine".into(),
        pid,
        process_start: 7,
        boot_id: "boot".into(),
        pid_namespace: 1,
    }
}

fn create(ledger: &mut dyn Ledger, run_id: &str) -> RunRow {
    let new = NewRun { run_id, plan: "plan.toml", title: "A title", root: "/work", at: NOW };
    ledger.create_run(&new, &owner(1)).unwrap()
}

fn event(body: &[u8]) -> NewEvent<'_> {
    NewEvent { at: NOW, tag: "step-done", version: 3, body }
}

fn request<'a>(key: &'a str, body: &'a [u8]) -> NewRequest<'a> {
    NewRequest { key, at: NOW, from: "someone", tag: "approve", version: 1, body }
}

fn alive(_: &Owner) -> Liveness {
    Liveness::Alive
}

fn dead(_: &Owner) -> Liveness {
    Liveness::Dead
}

fn unknown(_: &Owner) -> Liveness {
    Liveness::Unknown
}

fn a_new_run_is_listed_with_its_lease(connect: Connect<'_>) {
    let mut ledger = connect();
    assert_eq!(ledger.runs().unwrap(), []);
    let first = create(&mut *ledger, "first");
    let second = create(&mut *ledger, "second");
    assert_eq!((first.epoch, first.seq, first.created_at), (1, 0, NOW));
    let lease = first.owner.clone().unwrap();
    assert_eq!((lease.owner, lease.epoch, lease.expires_at), (owner(1), 1, NOW + LEASE_MS));
    const { assert!(HEARTBEAT_EVERY_MS * 3 < LEASE_MS) };

    let mut other = connect();
    assert_eq!(other.runs().unwrap(), [second, first.clone()]);
    assert_eq!(other.run("first").unwrap(), Some(first));
    assert_eq!(other.run("third").unwrap(), None);
    let again = NewRun { run_id: "first", plan: "", title: "", root: "", at: NOW };
    let refused = other.create_run(&again, &owner(2)).unwrap_err();
    assert!(matches!(refused, Error::RunExists { run_id } if run_id == "first"));
}

fn what_was_appended_is_read_back_in_order(connect: Connect<'_>) {
    let mut ledger = connect();
    let run = create(&mut *ledger, "run").run;
    let other = create(&mut *ledger, "other").run;
    let events = [event(b"one"), event(b""), event(&[0, 255])];
    assert_eq!(ledger.append(&Append::new(run, 1, 0, NOW, &events)).unwrap(), 3);
    let events = [NewEvent { at: NOW + 4, ..event(b"four") }];
    let more = Append { status: Some("running"), ..Append::new(run, 1, 3, NOW + 5, &events) };
    assert_eq!(ledger.append(&more).unwrap(), 4);

    let mut reader = connect();
    let stored = reader.events(run, 0, 100).unwrap();
    assert_eq!(stored.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let bodies: Vec<&[u8]> = stored.iter().map(|event| &event.body[..]).collect();
    assert_eq!(bodies, [&b"one"[..], b"", &[0, 255], b"four"]);
    assert_eq!((stored[3].at, &*stored[3].tag, stored[3].version), (NOW + 4, "step-done", 3));
    assert_eq!(reader.events(run, 1, 2).unwrap(), stored[1..3]);
    assert_eq!(reader.events(run, 4, 100).unwrap(), []);
    assert_eq!(reader.events(other, 0, 100).unwrap(), []);
    let row = reader.run("run").unwrap().unwrap();
    assert_eq!((row.seq, &*row.status, row.updated_at), (4, "running", NOW + 5));
    assert_eq!(row.owner.unwrap().expires_at, NOW + 5 + LEASE_MS);
}

fn a_wrong_sequence_appends_nothing(connect: Connect<'_>) {
    let mut ledger = connect();
    let run = create(&mut *ledger, "run").run;
    ledger.append(&Append::new(run, 1, 0, NOW, &[event(b"one")])).unwrap();
    for expected in [0, 2] {
        let refused = ledger.append(&Append::new(run, 1, expected, NOW, &[event(b"two")]));
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::Conflict { expected: e, found: 1 } if e == expected));
    }
    assert_eq!(ledger.events(run, 0, 100).unwrap().len(), 1);
    // The refusal leaves the connection usable.
    ledger.append(&Append::new(run, 1, 1, NOW, &[event(b"two")])).unwrap();
}

/// Lost, this would let a forgotten driver write into a run that another one drives.
fn a_taken_over_driver_is_fenced(connect: Connect<'_>) {
    let (mut old, mut new) = (connect(), connect());
    let run = create(&mut *old, "run").run;
    old.append(&Append::new(run, 1, 0, NOW, &[event(b"one")])).unwrap();
    let refused = new.acquire(run, &owner(2), NOW, Acquire::IfFree, &alive).unwrap_err();
    assert!(matches!(refused, Error::Held { owner: held } if held == owner(1)));
    let lease = new.acquire(run, &owner(2), NOW, Acquire::Takeover, &alive).unwrap();
    assert_eq!((lease.epoch, &lease.owner), (2, &owner(2)));

    let id = new.request(run, &request("key", b"")).unwrap();
    let events = [event(b"late")];
    let fenced = |result| matches!(result, Err(Error::Fenced { ours: 1, current: 2 }));
    for release in [false, true] {
        let late = Append {
            status: Some("late"),
            snapshot: Some((1, b"late")),
            answered: &[(id, "late")],
            release,
            ..Append::new(run, 1, 1, NOW, &events)
        };
        assert!(fenced(old.append(&late).map(|_| ())));
    }
    assert!(fenced(old.heartbeat(run, 1, NOW)));
    assert!(fenced(old.release(run, 1, NOW)));
    assert_eq!(new.events(run, 0, 100).unwrap().len(), 1);
    assert_eq!(new.snapshot(run).unwrap(), None);
    assert_eq!(new.requests(run).unwrap().len(), 1);
    let row = new.run("run").unwrap().unwrap();
    assert_eq!((&*row.status, row.owner.map(|lease| lease.owner)), ("pending", Some(owner(2))));
    new.append(&Append::new(run, 2, 1, NOW, &[event(b"two")])).unwrap();
}

fn a_lease_lapses_by_death_or_by_time(connect: Connect<'_>) {
    let mut ledger = connect();
    let run = create(&mut *ledger, "run").run;
    let late = NOW + 10 * LEASE_MS;
    let free = Acquire::IfFree;
    let held = |result| matches!(result, Err(Error::Held { .. }));
    // A driver that lives keeps its lease, however long the machine was suspended.
    assert!(held(ledger.acquire(run, &owner(2), late, free, &alive)));
    assert!(held(ledger.acquire(run, &owner(2), NOW + LEASE_MS - 1, free, &unknown)));
    ledger.heartbeat(run, 1, NOW + 1).unwrap();
    assert!(held(ledger.acquire(run, &owner(2), NOW + LEASE_MS, free, &unknown)));
    let lease = ledger.acquire(run, &owner(2), NOW + 1 + LEASE_MS, free, &unknown).unwrap();
    assert_eq!(lease.epoch, 2);
    // A dead one loses it at once; its own process is no exception to the rule.
    assert!(held(ledger.acquire(run, &owner(2), NOW, free, &alive)));
    assert_eq!(ledger.acquire(run, &owner(3), NOW, free, &dead).unwrap().epoch, 3);
}

fn a_released_lease_is_free_and_its_epoch_spent(connect: Connect<'_>) {
    let mut ledger = connect();
    let run = create(&mut *ledger, "run").run;
    let events = [event(b"one")];
    let append = Append { release: true, ..Append::new(run, 1, 0, NOW, &events) };
    assert_eq!(ledger.append(&append).unwrap(), 1);
    assert_eq!(ledger.run("run").unwrap().unwrap().owner, None);
    let refused = ledger.append(&Append::new(run, 1, 1, NOW, &[event(b"two")]));
    assert!(matches!(refused, Err(Error::NotHeld)));
    assert!(matches!(ledger.heartbeat(run, 1, NOW), Err(Error::NotHeld)));
    let lease = ledger.acquire(run, &owner(2), NOW, Acquire::IfFree, &alive).unwrap();
    assert_eq!(lease.epoch, 2);
    ledger.release(run, 2, NOW).unwrap();
    assert_eq!(ledger.acquire(run, &owner(2), NOW, Acquire::IfFree, &alive).unwrap().epoch, 3);
}

fn loading_starts_at_the_cached_state(connect: Connect<'_>) {
    let mut ledger = connect();
    let run = create(&mut *ledger, "run").run;
    assert_eq!(ledger.load(run).unwrap(), (None, Vec::new()));
    for seq in 0..10 {
        let body = [u8::try_from(seq).unwrap()];
        let cached = [body[0]; 9000];
        let snapshot = matches!(seq, 3 | 7).then_some((5, &cached[..]));
        let events = [event(&body)];
        let append = Append { snapshot, ..Append::new(run, 1, seq, NOW, &events) };
        ledger.append(&append).unwrap();
    }
    let (snapshot, tail) = connect().load(run).unwrap();
    let snapshot = snapshot.unwrap();
    assert_eq!((snapshot.seq, snapshot.apply_version), (8, 5));
    assert_eq!(snapshot.body, [7; 9000]);
    assert_eq!(tail.iter().map(|event| event.seq).collect::<Vec<_>>(), [9, 10]);
    assert_eq!(ledger.snapshot(run).unwrap(), Some(snapshot));
}

/// Lost, a repeated `approve` would be decided twice.
fn the_same_key_is_the_same_request(connect: Connect<'_>) {
    let (mut driver, mut hook) = (connect(), connect());
    let run = create(&mut *driver, "run").run;
    let other = create(&mut *driver, "other").run;
    let first = hook.request(run, &request("a", b"body")).unwrap();
    let second = hook.request(run, &request("b", b"")).unwrap();
    assert_eq!(driver.request(run, &request("a", b"again")).unwrap(), first);
    let elsewhere = hook.request(other, &request("a", b"")).unwrap();
    assert!(first < second && second < elsewhere);

    let waiting = driver.requests(run).unwrap();
    assert_eq!(waiting.iter().map(|request| request.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(
        (&*waiting[0].key, &*waiting[0].from, &*waiting[0].body),
        ("a", "someone", &b"body"[..])
    );
    let stray = Append { answered: &[(elsewhere, "no")], ..Append::new(run, 1, 0, NOW, &[]) };
    assert!(matches!(driver.append(&stray), Err(Error::UnknownRequest { id }) if id == elsewhere));

    let answered = [(first, "yes")];
    let events = [event(b"")];
    let append = Append { answered: &answered, ..Append::new(run, 1, 0, NOW, &events) };
    driver.append(&append).unwrap();
    let twice = [(first, "no")];
    let append = Append { answered: &twice, ..Append::new(run, 1, 1, NOW, &[]) };
    assert_eq!(driver.append(&append).unwrap(), 1);
    assert_eq!(hook.answer_of(first).unwrap().as_deref(), Some("yes"));
    assert_eq!(hook.answer_of(second).unwrap(), None);
    assert!(matches!(hook.answer_of(999), Err(Error::UnknownRequest { id: 999 })));
    assert_eq!(driver.requests(run).unwrap().len(), 1);
    assert_eq!(hook.request(run, &request("a", b"")).unwrap(), first);
}

fn blobs_are_kept_once(connect: Connect<'_>) {
    let (mut ledger, body) = (connect(), vec![7; 100_000]);
    assert_eq!(ledger.blob("hash").unwrap(), None);
    ledger.put_blob("hash", &body).unwrap();
    ledger.put_blob("hash", b"never").unwrap();
    assert_eq!(connect().blob("hash").unwrap(), Some(body));
}

/// Lost, a driver could find the plan gone that it has just kept.
fn blobs_go_when_nobody_can_need_them(connect: Connect<'_>) {
    let mut ledger = connect();
    for hash in ["used", "spare"] {
        ledger.put_blob(hash, b"body").unwrap();
    }
    let run = create(&mut *ledger, "run").run;
    assert_eq!(ledger.sweep_blobs(&["used"], &[(run, 0)], NOW, &dead).unwrap(), 0, "not begun");
    ledger.append(&Append::new(run, 1, 0, NOW, &[event(b"")])).unwrap();
    let mut sweep = |seen: &[(RunKey, u64)], how: &dyn Fn(&Owner) -> Liveness| {
        ledger.sweep_blobs(&["used"], seen, NOW, how).unwrap()
    };
    assert_eq!(sweep(&[(run, 1)], &alive), 0, "somebody drives");
    assert_eq!(sweep(&[(run, 1)], &unknown), 0, "somebody may drive");
    assert_eq!(sweep(&[(run, 2)], &dead), 0, "seen otherwise");
    assert_eq!(sweep(&[], &dead), 0, "a run that was not seen");
    assert_eq!(sweep(&[(run, 1)], &dead), 1);
    assert_eq!(ledger.blob("spare").unwrap(), None);
    assert!(ledger.blob("used").unwrap().is_some());
}

fn a_change_by_others_is_noticed_once(connect: Connect<'_>) {
    let (mut driver, mut hook) = (connect(), connect());
    let run = create(&mut *driver, "run").run;
    assert!(driver.changed().unwrap());
    assert!(!driver.changed().unwrap());
    driver.append(&Append::new(run, 1, 0, NOW, &[event(b"")])).unwrap();
    assert!(!driver.changed().unwrap(), "our own commits are no news");
    hook.request(run, &request("a", b"")).unwrap();
    driver.append(&Append::new(run, 1, 1, NOW, &[event(b"")])).unwrap();
    assert!(driver.changed().unwrap(), "not even our own commit hides it");
    assert!(!driver.changed().unwrap());
}

fn a_deleted_run_is_gone_and_its_key_spent(connect: Connect<'_>) {
    let mut ledger = connect();
    let run = create(&mut *ledger, "run").run;
    let other = create(&mut *ledger, "other").run;
    for run in [run, other] {
        let snapshot = Some((1, &b"state"[..]));
        let events = [event(b"one")];
        let append = Append { snapshot, ..Append::new(run, 1, 0, NOW, &events) };
        ledger.append(&append).unwrap();
        ledger.request(run, &request("a", b"")).unwrap();
    }
    assert!(matches!(ledger.delete_run(run, NOW, &alive), Err(Error::Held { .. })));
    assert!(matches!(ledger.delete_run(run, NOW, &unknown), Err(Error::Held { .. })));
    ledger.delete_run(run, NOW, &dead).unwrap();
    assert!(matches!(ledger.delete_run(run, NOW, &dead), Err(Error::NoRun)));
    assert_eq!(ledger.load(run).unwrap(), (None, Vec::new()));
    assert_eq!(ledger.requests(run).unwrap(), []);
    assert!(matches!(ledger.request(run, &request("b", b"")), Err(Error::NoRun)));
    let refused = ledger.append(&Append::new(run, 1, 1, NOW, &[event(b"")]));
    assert!(matches!(refused, Err(Error::NoRun)));
    assert!(create(&mut *ledger, "run").run > other, "keys are never used twice");
    assert_eq!(ledger.load(other).unwrap().0.unwrap().seq, 1);
    assert_eq!(ledger.requests(other).unwrap().len(), 1);
}

/// One test per clause of the contract for a store, given how to connect to a new one.
macro_rules! contract {
    ($with:path: $($clause:ident),+ $(,)?) => {
        $(#[test]
        fn $clause() {
            $with(&super::$clause);
        })+
    };
}

mod sqlite {
    use super::{Connect, Ledger};
    use piton_ledger::{Open, Sqlite, check};

    fn with_sqlite(clause: &dyn Fn(Connect<'_>)) {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("piton");
        clause(&|| Box::new(Sqlite::open(&dir, Open::ReadWrite).unwrap()) as Box<dyn Ledger>);
        assert_eq!(check(&dir).unwrap(), []);
    }

    contract!(with_sqlite:
        a_new_run_is_listed_with_its_lease,
        what_was_appended_is_read_back_in_order,
        a_wrong_sequence_appends_nothing,
        a_taken_over_driver_is_fenced,
        a_lease_lapses_by_death_or_by_time,
        a_released_lease_is_free_and_its_epoch_spent,
        loading_starts_at_the_cached_state,
        the_same_key_is_the_same_request,
        blobs_are_kept_once,
        blobs_go_when_nobody_can_need_them,
        a_change_by_others_is_noticed_once,
        a_deleted_run_is_gone_and_its_key_spent,
    );
}
