//! Where a driver falls: before or after the n-th append or action.
//!
//! Everything durable or visible goes through [`CrashPoint::around`], so that a test can count the
//! points of a scenario once and then fall at each of them. A driver that fell does nothing more:
//! every later call fails too.

use std::cell::RefCell;
use std::rc::Rc;

/// On which side of an action the driver falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before it: the action does not happen.
    Before,
    /// After it: the action happened, and the driver never hears of it.
    After,
}

/// The driver fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallen;

type Callback = Box<dyn FnOnce()>;

#[derive(Default)]
struct Counter {
    names: Vec<String>,
    at: Option<(usize, Side)>,
    instead: Option<Callback>,
    fallen: bool,
}

/// Counts what one driver does, and lets it fall at a chosen point.
#[derive(Clone, Default)]
pub struct CrashPoint(Rc<RefCell<Counter>>);

impl CrashPoint {
    /// A driver that does not fall.
    pub fn never() -> Self {
        Self::default()
    }

    /// A driver that falls at its n-th action, counted from 1.
    pub fn at(n: usize, side: Side) -> Self {
        let counter = Counter { at: Some((n, side)), ..Counter::default() };
        Self(Rc::new(RefCell::new(counter)))
    }

    /// At that point something else happens, and the driver goes on.
    #[must_use]
    pub fn instead(self, callback: impl FnOnce() + 'static) -> Self {
        self.0.borrow_mut().instead = Some(Box::new(callback));
        self
    }

    /// Does something that counts, unless the driver fell or falls now.
    pub fn around<T>(&self, name: &str, act: impl FnOnce() -> T) -> Result<T, Fallen> {
        self.check()?;
        self.0.borrow_mut().names.push(name.to_owned());
        self.pass(Side::Before)?;
        let done = act();
        self.pass(Side::After)?;
        Ok(done)
    }

    /// Fails if the driver fell.
    pub fn check(&self) -> Result<(), Fallen> {
        if self.fallen() { Err(Fallen) } else { Ok(()) }
    }

    /// Whether the driver fell.
    pub fn fallen(&self) -> bool {
        self.0.borrow().fallen
    }

    /// What was done so far, in order.
    pub fn names(&self) -> Vec<String> {
        self.0.borrow().names.clone()
    }

    fn pass(&self, side: Side) -> Result<(), Fallen> {
        let mut counter = self.0.borrow_mut();
        if counter.at != Some((counter.names.len(), side)) {
            return Ok(());
        }
        // Once only: what happens instead may come through here again.
        counter.at = None;
        if let Some(callback) = counter.instead.take() {
            drop(counter);
            callback();
            return Ok(());
        }
        counter.fallen = true;
        Err(Fallen)
    }
}

/// The error of a driver that fell.
pub(crate) fn fell(_: Fallen) -> piton_engine::Error {
    piton_engine::Error::world("crash")
}
