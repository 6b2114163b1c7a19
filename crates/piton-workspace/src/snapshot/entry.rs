//! What a folder holds, as the walk found it and as the cache keeps it.

use super::codec::{Reader, Writer};
use super::stat::Stat;
use crate::objects::{self, Oid};

/// Why something was not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Larger than the limit.
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// A socket, FIFO or device.
    Special,
    /// It changed each time it was read.
    Unstable,
    /// A repository within the work tree.
    Nested,
    /// The files of a submodule; which commit it was at is captured.
    Submodule,
    /// Its clean filter failed; the bytes as they are on disk were captured instead.
    Filter,
    /// Git refuses its name.
    Name,
    /// Something a later version wrote.
    Unknown,
}

impl Why {
    /// Every reason with its frozen tag and its words.
    const ALL: [(Self, u8, &'static str, &'static str); 9] = [
        (Self::TooLarge, 1, "too-large", "larger than the limit for one file"),
        (Self::Unreadable, 2, "unreadable", "it cannot be read"),
        (Self::Special, 3, "special", "a socket, FIFO or device"),
        (Self::Unstable, 4, "unstable", "it changed while it was read"),
        (Self::Nested, 5, "nested", "a repository of its own"),
        (Self::Submodule, 6, "submodule", "a submodule: only its commit is kept, not its files"),
        (Self::Filter, 7, "filter", "its clean filter failed: kept as it is on disk"),
        (Self::Name, 8, "name", "git allows no such name"),
        (Self::Unknown, 0, "unknown", "for a reason this version does not know"),
    ];

    fn row(self) -> (Self, u8, &'static str, &'static str) {
        Self::ALL.into_iter().find(|row| row.0 == self).unwrap_or(Self::ALL[8])
    }

    /// Its name in a manifest.
    pub(crate) fn tag(self) -> &'static str {
        self.row().2
    }

    pub(crate) fn from_tag(tag: &str) -> Self {
        Self::ALL.into_iter().find(|row| row.2 == tag).map_or(Self::Unknown, |row| row.0)
    }

    /// Whether nothing of the content was kept.
    pub fn content_is_missing(self) -> bool {
        self != Self::Filter
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().3)
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Exec,
    Link,
    Folder,
    /// Ignored by git's rules or excluded by the caller.
    Ignored,
    Missed(Why),
}

impl Kind {
    /// The mode git gives it, if git can hold it.
    pub(crate) fn git_mode(self) -> Option<u32> {
        match self {
            Self::File => Some(objects::FILE),
            Self::Exec => Some(objects::EXEC),
            Self::Link => Some(objects::LINK),
            Self::Folder | Self::Ignored | Self::Missed(_) => None,
        }
    }

    fn tag(self) -> u8 {
        match self {
            Self::File => 1,
            Self::Exec => 2,
            Self::Link => 3,
            Self::Folder => 4,
            Self::Ignored => 5,
            Self::Missed(why) => 16 + why.row().1,
        }
    }

    fn from_tag(tag: u8) -> Option<Self> {
        Some(match tag {
            1 => Self::File,
            2 => Self::Exec,
            3 => Self::Link,
            4 => Self::Folder,
            5 => Self::Ignored,
            why => Self::Missed(Why::ALL.into_iter().find(|r| r.1 + 16 == why)?.0),
        })
    }
}

/// Captured although the rules ignore it, because it is tracked.
const FORCED: u8 = 1;
const HAS_RAW: u8 = 2;
const FILTER_FAILED: u8 = 4;

/// One name in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) stat: Stat,
    /// What git would commit.
    pub(crate) oid: Oid,
    /// The bytes on disk, where git would convert them.
    pub(crate) raw: Option<Oid>,
    pub(crate) forced: bool,
    pub(crate) filter_failed: bool,
    /// Its content has to be read; never stored.
    pub(crate) dirty: bool,
}

impl Entry {
    pub(crate) fn new(name: &[u8], kind: Kind, stat: Stat) -> Self {
        Self {
            name: name.to_vec(),
            kind,
            stat,
            oid: Oid::NONE,
            raw: None,
            forced: false,
            filter_failed: false,
            dirty: false,
        }
    }

    /// Lists it as not captured.
    pub(crate) fn miss(&mut self, why: Why, stat: Stat) {
        (self.kind, self.stat, self.oid, self.raw) = (Kind::Missed(why), stat, Oid::NONE, None);
    }

    /// What its bytes on disk were.
    pub(crate) fn content(&self) -> Oid {
        self.raw.unwrap_or(self.oid)
    }

    /// Whether it is in the tree.
    pub(crate) fn captured(&self) -> bool {
        self.kind.git_mode().is_some()
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.u8(self.kind.tag());
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        to.u8(flag(self.forced, FORCED)
            | flag(self.raw.is_some(), HAS_RAW)
            | flag(self.filter_failed, FILTER_FAILED));
        to.stat(&self.stat);
        to.oid(self.oid);
        if let Some(raw) = self.raw {
            to.oid(raw);
        }
        to.bytes(&self.name);
    }

    /// The same, read in place.
    pub(crate) fn view(&self) -> View<'_> {
        let &Self { ref name, kind, stat, oid, raw, forced, filter_failed, .. } = self;
        View { name, kind, stat, oid, raw, forced, filter_failed }
    }

    /// All entries of a block.
    pub(crate) fn all(block: &[u8]) -> Vec<Self> {
        View::all(block).map(|view| view.owned()).collect()
    }
}

/// An entry read in place.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) stat: Stat,
    pub(crate) oid: Oid,
    pub(crate) raw: Option<Oid>,
    pub(crate) forced: bool,
    pub(crate) filter_failed: bool,
}

impl<'a> View<'a> {
    /// The entries of a block; the checksum of the whole file makes a torn one impossible.
    pub(crate) fn all(block: &'a [u8]) -> impl Iterator<Item = Self> {
        let mut from = Reader::new(block, 0);
        std::iter::from_fn(move || Self::read(&mut from))
    }

    fn read(from: &mut Reader<'a>) -> Option<Self> {
        let kind = Kind::from_tag(from.u8()?)?;
        let flags = from.u8()?;
        let stat = from.stat()?;
        let oid = from.oid()?;
        let raw = if flags & HAS_RAW == 0 { None } else { Some(from.oid()?) };
        let (forced, filter_failed) = (flags & FORCED != 0, flags & FILTER_FAILED != 0);
        Some(Self { name: from.bytes()?, kind, stat, oid, raw, forced, filter_failed })
    }

    fn owned(&self) -> Entry {
        let Self { name, kind, stat, oid, raw, forced, filter_failed } = *self;
        Entry { name: name.to_vec(), kind, stat, oid, raw, forced, filter_failed, dirty: false }
    }
}

/// What a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderKind {
    /// One whose files are captured.
    Plain,
    /// A repository of its own.
    Nested,
    /// A submodule at a commit.
    Submodule(Oid),
    /// One that could not be read.
    Unreadable,
    /// Not on disk: a sparse checkout left its files out.
    Absent,
}

impl FolderKind {
    pub(crate) fn write(self, to: &mut Writer) {
        let (tag, oid) = match self {
            Self::Plain => (1, Oid::NONE),
            Self::Nested => (2, Oid::NONE),
            Self::Submodule(oid) => (3, oid),
            Self::Unreadable => (4, Oid::NONE),
            Self::Absent => (5, Oid::NONE),
        };
        to.u8(tag);
        to.oid(oid);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (tag, oid) = (from.u8()?, from.oid()?);
        Some(match tag {
            1 => Self::Plain,
            2 => Self::Nested,
            3 => Self::Submodule(oid),
            4 => Self::Unreadable,
            5 => Self::Absent,
            _ => return None,
        })
    }

    /// Why its files are not captured.
    pub(crate) fn missed(self) -> Option<Why> {
        match self {
            Self::Plain | Self::Absent => None,
            Self::Nested => Some(Why::Nested),
            Self::Submodule(_) => Some(Why::Submodule),
            Self::Unreadable => Some(Why::Unreadable),
        }
    }
}
