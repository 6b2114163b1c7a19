//! What a pack holds of an object: the bytes themselves, or how they follow from another's.
//!
//! The format is in git's documentation (`gitformat-pack`) and does not change.

use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

use flate2::{Decompress, FlushDecompress, Status};

use super::{Location, Packs};
use crate::objects::{LEN, Oid};

/// The longest chain of differences; git itself makes none longer than 4095.
const CHAIN_MAX: usize = 5_000;
/// What stands before the bytes of an object: kind and size, then the base of a difference.
const HEAD_BYTES_MAX: usize = 64;
/// Bytes of bases that are remembered: files that follow from the same one mostly come together.
const BASES_BYTES_MAX: usize = 16 << 20;

/// What an entry is.
enum Kind {
    Blob,
    /// Commits, trees and tags, which nobody reads here.
    Other,
    /// A difference to the object at this place.
    From(Location),
}

/// Reads objects, one after the other.
pub(crate) struct Reader<'a> {
    packs: &'a Packs,
    inflate: Decompress,
    packed: Vec<u8>,
    bases: HashMap<Location, Rc<Vec<u8>>>,
    bases_bytes: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(packs: &'a Packs) -> Self {
        Self {
            packs,
            inflate: Decompress::new(true),
            packed: Vec::new(),
            bases: HashMap::new(),
            bases_bytes: 0,
        }
    }

    /// Reads a file's content; `None` where it is not a file, or not as it should be.
    pub(crate) fn blob(&mut self, place: Location, content: &mut Vec<u8>) -> Option<()> {
        content.clear();
        let from = match self.entry(place, content)? {
            Kind::Blob => return Some(()),
            Kind::Other => return None,
            Kind::From(base) => base,
        };
        let base = self.base(from)?;
        let difference = std::mem::take(content);
        apply(&base, &difference, content)
    }

    /// Reads what others follow from, and remembers it.
    fn base(&mut self, place: Location) -> Option<Rc<Vec<u8>>> {
        let mut chain = Vec::new();
        let mut at = place;
        let mut base = loop {
            if let Some(known) = self.bases.get(&at) {
                break known.clone();
            }
            let mut content = Vec::new();
            match self.entry(at, &mut content)? {
                Kind::Blob => break self.remember(at, content),
                Kind::Other => return None,
                Kind::From(before) => {
                    chain.push((at, content));
                    at = before;
                }
            }
            if chain.len() > CHAIN_MAX {
                return None;
            }
        };
        while let Some((at, difference)) = chain.pop() {
            let mut content = Vec::new();
            apply(&base, &difference, &mut content)?;
            base = self.remember(at, content);
        }
        Some(base)
    }

    fn remember(&mut self, place: Location, content: Vec<u8>) -> Rc<Vec<u8>> {
        if self.bases_bytes + content.len() > BASES_BYTES_MAX {
            self.bases.clear();
            self.bases_bytes = 0;
        }
        self.bases_bytes += content.len();
        let content = Rc::new(content);
        self.bases.insert(place, content.clone());
        content
    }

    /// Reads what is at a place: the content, or the difference.
    fn entry(&mut self, place: Location, content: &mut Vec<u8>) -> Option<Kind> {
        let file = self.packs.packs.get(place.pack)?.data()?;
        let mut head = [0; HEAD_BYTES_MAX];
        let read = file.read_at(&mut head, place.offset).ok()?;
        let mut head = head.get(..read)?.iter().copied();
        let first = head.next()?;
        let mut size = u64::from(first & 0x0f);
        let (mut byte, mut shift) = (first, 4);
        while byte & 0x80 != 0 {
            byte = head.next()?;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
        }
        let kind = match first >> 4 & 0x07 {
            3 => Kind::Blob,
            1 | 2 | 4 => Kind::Other,
            6 => {
                let mut byte = head.next()?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = head.next()?;
                    back = back.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
                }
                let offset = place.offset.checked_sub(back).filter(|_| back > 0)?;
                Kind::From(Location { offset, ..place })
            }
            7 => {
                let mut id = [0; LEN];
                for byte in &mut id {
                    *byte = head.next()?;
                }
                Kind::From(self.packs.find(Oid(id))?)
            }
            _ => return None,
        };
        let begin = place.offset + (read - head.len()) as u64;
        self.inflate(place.pack, begin, usize::try_from(size).ok()?, content)?;
        Some(kind)
    }

    /// Unpacks so many bytes.
    fn inflate(&mut self, pack: usize, begin: u64, size: usize, out: &mut Vec<u8>) -> Option<()> {
        let file = self.packs.packs.get(pack)?.data()?;
        self.inflate.reset(true);
        // One byte more than there should be shows that there is no more.
        out.try_reserve_exact(size.checked_add(1)?).ok()?;
        // Text takes half of its size at most, and little is lost if it does not.
        let mut next = (size / 2).clamp(512, 1 << 20);
        let mut at = begin;
        loop {
            self.packed.resize(next, 0);
            let read = file.read_at(&mut self.packed, at).ok()?;
            let before = self.inflate.total_in();
            let status =
                self.inflate.decompress_vec(self.packed.get(..read)?, out, FlushDecompress::None);
            match status.ok()? {
                Status::StreamEnd => return (out.len() == size).then_some(()),
                _ if read == 0 || out.len() > size => return None,
                _ => at += self.inflate.total_in() - before,
            }
            next = (next * 2).min(1 << 20);
        }
    }
}

/// Makes an object from another and the difference between them.
fn apply(base: &[u8], difference: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let rest = &mut &*difference;
    let (from, to) = (length(rest)?, length(rest)?);
    if from != base.len() {
        return None;
    }
    out.clear();
    out.try_reserve_exact(to).ok()?;
    while !rest.is_empty() {
        let command = byte(rest)?;
        let part = if command & 0x80 == 0 {
            // So many bytes are new, and follow.
            rest.split_off(..usize::from(command)).filter(|new| !new.is_empty())?
        } else {
            // A part of the base. Which bytes of its beginning and length follow is in the command.
            let begin = number(command & 0x0f, rest)?;
            let length = number(command >> 4 & 0x07, rest)?;
            let length = if length == 0 { 0x1_0000 } else { length };
            base.get(begin..begin + length)?
        };
        if out.len() + part.len() > to {
            return None;
        }
        out.extend_from_slice(part);
    }
    (out.len() == to).then_some(())
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    rest.split_off_first().copied()
}

/// A length in groups of seven bits, the lowest first.
fn length(rest: &mut &[u8]) -> Option<usize> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let next = byte(rest)?;
        value |= usize::from(next & 0x7f).checked_shl(shift)?;
        if next & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}

/// A number of which only the bytes follow whose bits are set, the lowest first.
fn number(given: u8, rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for place in 0..4 {
        if given & 1 << place != 0 {
            value |= usize::from(byte(rest)?) << (place * 8);
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is wrong with it, it is noticed.
    #[test]
    fn a_broken_difference_is_refused() {
        let good: &[u8] = &[4, 6, 0x90, 4, 2, b'a', b'b'];
        let mut out = Vec::new();
        assert_eq!(apply(b"base", good, &mut out), Some(()));
        assert_eq!(apply(b"bas", good, &mut out), None, "another base");
        let broken: [&[u8]; 7] = [
            &[],
            &[4],
            &[4, 6, 0x90, 5, 1, b'a'],
            &[4, 6, 0x90, 4, 2, b'a'],
            &[4, 6, 0x90, 4],
            &[4, 6, 0x90, 4, 0],
            &[4, 5, 0x90, 4, 2, b'a', b'b'],
        ];
        for difference in broken {
            assert_eq!(apply(b"base", difference, &mut out), None, "{difference:?}");
        }
    }
}
