//! Bytes of the stat cache: fixed-width numbers, little endian, and byte strings with a length.
//!
//! Reading never panics: what does not fit gives `None`, and the cache is then made again.

use super::stat::Stat;
use crate::objects::{LEN, Oid};

/// Appends values.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn oid(&mut self, value: Oid) {
        self.0.extend_from_slice(&value.0);
    }

    /// Counts and lengths; nothing here comes near four thousand million.
    pub(crate) fn len(&mut self, value: usize) {
        self.u32(u32::try_from(value).unwrap_or(u32::MAX));
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.len(value.len());
        self.0.extend_from_slice(value);
    }

    pub(crate) fn stat(&mut self, stat: &Stat) {
        self.u64(stat.size);
        self.i64(stat.mtime);
        self.i64(stat.ctime);
        self.u64(stat.ino);
        self.u32(stat.mode);
    }

    pub(crate) fn stamp(&mut self, stat: Option<&Stat>) {
        self.u8(u8::from(stat.is_some()));
        if let Some(stat) = stat {
            self.stat(stat);
        }
    }
}

/// Takes values off the front.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(data: &'a [u8], at: usize) -> Self {
        Self { data, at }
    }

    /// How far it has read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.data.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|b| b[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn oid(&mut self) -> Option<Oid> {
        self.array::<LEN>().map(Oid)
    }

    pub(crate) fn len(&mut self) -> Option<usize> {
        self.u32().map(|n| n as usize)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        self.take(len)
    }

    pub(crate) fn stat(&mut self) -> Option<Stat> {
        Some(Stat {
            size: self.u64()?,
            mtime: self.i64()?,
            ctime: self.i64()?,
            ino: self.u64()?,
            mode: self.u32()?,
        })
    }

    #[expect(clippy::option_option, reason = "no bytes left, no file then, a file then")]
    pub(crate) fn stamp(&mut self) -> Option<Option<Stat>> {
        match self.u8()? {
            0 => Some(None),
            _ => Some(Some(self.stat()?)),
        }
    }
}
