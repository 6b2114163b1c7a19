//! Requests of other processes, turned into events by the one who may append.

use piton_core::event::RunAborted;
use piton_core::refusal::Refusal;
use piton_core::request::{self, Reply, Request};
use piton_core::{Event, Timestamp};
use piton_formats::codec;

use super::Driver;
use super::stop::Abort;
use crate::error::Result;
use crate::observer::Note;
use crate::store::describe;

impl Driver<'_> {
    /// Takes what is new in the inbox; cheap when nothing is.
    pub(super) fn take_requests(&mut self) -> Result<()> {
        let first = self.clock.inbox_read.replace(self.clock.awake).is_none();
        if !self.run.store.ledger().changed()? && !first {
            return Ok(());
        }
        for asked in self.run.requests()? {
            let abort = &mut self.stop.abort;
            let waiting = abort.as_ref().is_some_and(|abort| abort.request == Some(asked.id));
            if waiting || self.run.answers.iter().any(|(id, _)| *id == asked.id) {
                continue;
            }
            let wish = codec::decode_request(&asked.tag, asked.version, &asked.body);
            if let (Ok(Request::Abort { cancel, .. }), Some(Abort { event, request: id @ None })) =
                (&wish, abort)
                && event.cancel == *cancel
            {
                // The one who asked for it through the inbox drives now to carry it out.
                *id = Some(asked.id);
                continue;
            }
            let answer = match wish {
                Ok(Request::Abort { .. }) if self.stop.abort.is_some() => {
                    refused("the run is already being ended")
                }
                Ok(Request::Abort { cancel, message }) => {
                    let event = RunAborted { by: asked.from.clone(), message, cancel };
                    self.stop.abort = Some(Abort { event, request: Some(asked.id) });
                    self.end_all("the run was aborted")?;
                    continue;
                }
                Ok(Request::Archive) => {
                    refused("the run is driven by this process; abort it first")
                }
                // Whoever killed it asked after that: this waits until the loss is known.
                Ok(request) if approves(&request) && self.world.has_lost_keeper() => {
                    self.clock.inbox_read = None;
                    continue;
                }
                Ok(request) => match self.doubts(&asked, &request) {
                    Some(why) => refused(why),
                    None => self.carry_out(&request, &asked.from, Timestamp(asked.at))?,
                },
                Err(error) => refused(error.to_string()),
            };
            self.observer.note(&Note::Request { answer: answer.clone() });
            self.run.answers.push((asked.id, answer));
        }
        Ok(())
    }

    /// Why a request is not believed to be a person's, as far as that is easily seen.
    fn doubts(&self, asked: &piton_ledger::Request, request: &Request) -> Option<&'static str> {
        let is_key = |seen| asked.key == request.key(self.run.id(), seen);
        if !(0..=self.run.seq).rev().any(is_key) {
            return Some("no piton command made this request");
        }
        (approves(request) && self.run.doubted.contains(&asked.id)).then_some(
            "its keeper was lost while steps ran, and it can't be told whether one of them asked; \
             approve it again",
        )
    }

    /// Takes requests once more; says whether one came that changes or answers something.
    pub(super) fn is_asked(&mut self) -> Result<bool> {
        let aborting = self.stop.abort.is_some();
        self.take_requests()?;
        Ok(!self.run.answers.is_empty() || self.stop.abort.is_some() != aborting)
    }

    fn carry_out(&mut self, request: &Request, by: &str, asked: Timestamp) -> Result<Reply> {
        match request::turn(&self.state, request, by) {
            Ok(events) => {
                let (words, now) = (describe(&events), self.clock.at);
                for mut event in events {
                    match &mut event {
                        // The driver may have been stopped since.
                        Event::GateDecided(e) => e.at = Some(asked).filter(|at| *at < now),
                        Event::StepReset(e) => drop(self.tallies.restarts.remove(&e.step)),
                        Event::StepRetried(e) => drop(self.tallies.restarts.remove(&e.step)),
                        _ => {}
                    }
                    self.record(event)?;
                }
                Ok(Reply::Done(words))
            }
            Err(refused) => Ok(Reply::Refused(refused.into())),
        }
    }
}

/// The reply to a request that is not carried out.
pub(super) fn refused(why: impl Into<String>) -> Reply {
    Reply::Refused(Refusal::new("refused", why))
}

fn approves(request: &Request) -> bool {
    matches!(request, Request::Decide { approved: true, .. })
}
