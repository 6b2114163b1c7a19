//! Agents on the simulated machine: what they have said, how they went, and how they are stopped.

use std::collections::BTreeMap;

use piton_core::agent::{Heard, Verdict};
use piton_core::{Millis, Timestamp};
use piton_engine::world::{Attempt, Ended, Happening, Judged};

use super::{Entry, SimMachine, Stale};

/// How much of what each agent says a driver has heard.
pub(crate) type Listened = BTreeMap<Attempt, usize>;

impl SimMachine {
    fn words(&self, attempt: &Attempt) -> Vec<(Millis, Heard)> {
        self.script.of(&attempt.step, attempt.number).says
    }

    /// The running attempts, and since when.
    fn at_work(&self) -> Vec<(Attempt, Timestamp)> {
        let entries = self.journal.iter().flatten();
        entries
            .filter_map(|(attempt, entry)| match entry {
                Entry::Running { since, .. } => Some((attempt.clone(), *since)),
                _ => None,
            })
            .collect()
    }

    /// When an agent says something next that a driver has not heard.
    pub(crate) fn next_word(&self, listened: &Listened) -> Option<Timestamp> {
        let next = |(attempt, since): (Attempt, Timestamp)| {
            let heard = listened.get(&attempt).copied().unwrap_or(0);
            self.words(&attempt).get(heard).map(|(after, _)| since.after(*after))
        };
        self.at_work().into_iter().filter_map(next).min()
    }

    /// What agents have said by now and a driver has not heard: of each all that it has said so far.
    pub(crate) fn listen(&self, listened: &mut Listened) -> Vec<Happening> {
        let mut news = Vec::new();
        for (attempt, since) in self.at_work() {
            let words = self.words(&attempt);
            let said = words.iter().take_while(|(after, _)| since.after(*after) <= self.now);
            let count = said.count();
            let heard = listened.entry(attempt.clone()).or_default();
            if count > *heard {
                *heard = count;
                let heard = Box::new(words[count - 1].1.clone());
                news.push(Happening::Said { attempt, heard });
            }
        }
        news
    }

    /// What an agent whose attempt is over said, and how it went.
    pub(crate) fn judged(&self, ended: &Ended) -> Option<Judged> {
        let attempt = &ended.attempt;
        let behaviour = self.script.of(&attempt.step, attempt.number);
        let said = behaviour.says.iter().take_while(|(after, _)| *after <= ended.duration).last();
        let verdict = match behaviour.verdict {
            Some(_) if self.stopped.contains(attempt) => Some(Verdict::Stopped),
            verdict => verdict,
        };
        let heard = said.map(|(_, heard)| heard.clone());
        let is_agent = heard.is_some() || verdict.is_some();
        is_agent.then(|| Judged { heard: heard.unwrap_or_default(), verdict })
    }

    /// An agent stops after the operation under way, which ends now.
    pub(crate) fn stop_agent(&mut self, epoch: u64, attempt: &Attempt) -> Result<(), Stale> {
        self.fence(epoch)?;
        let now = self.now;
        if self.script.of(&attempt.step, attempt.number).is_deaf {
            return Ok(());
        }
        let entry = self.journal.as_mut().and_then(|journal| journal.get_mut(attempt));
        if let Some(Entry::Running { ends_at, .. }) = entry {
            *ends_at = now;
            self.stopped.insert(attempt.clone());
        }
        Ok(())
    }
}
