//! A snapshot of the process table, and which process descends from which.
//!
//! Pure queries on what `os` read. A snapshot is stale as soon as it is taken, so code that ends
//! processes takes new ones until nothing is left.

use std::collections::{HashMap, HashSet};

use crate::os::{self, Pid, Process};

/// Most parents that are followed: a real chain has tens, and a snapshot taken while pids were
/// reused could contain a ring.
const ANCESTORS_MAX: usize = 1024;

/// The table at one moment.
#[derive(Debug, Default)]
pub(crate) struct Table {
    list: Vec<Process>,
    children: HashMap<Pid, Vec<usize>>,
}

impl Table {
    /// Takes a snapshot.
    pub(crate) fn now() -> Self {
        Self::of(os::all())
    }

    /// Makes a snapshot of given processes.
    pub(crate) fn of(list: Vec<Process>) -> Self {
        let mut children: HashMap<Pid, Vec<usize>> = HashMap::new();
        for (index, process) in list.iter().enumerate() {
            children.entry(process.parent).or_default().push(index);
        }
        Self { list, children }
    }

    /// All processes, including zombies.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.list.iter()
    }

    /// Finds a process.
    pub(crate) fn get(&self, pid: Pid) -> Option<&Process> {
        self.list.iter().find(|process| process.pid == pid)
    }

    /// The direct children of a process.
    pub(crate) fn children(&self, pid: Pid) -> impl Iterator<Item = &Process> {
        self.children.get(&pid).into_iter().flatten().map(|&index| &self.list[index])
    }

    /// The given processes and everything below them, except what `prune` says with everything
    /// below that.
    pub(crate) fn trees<'a>(
        &'a self,
        roots: impl IntoIterator<Item = &'a Process>,
        mut prune: impl FnMut(&Process) -> bool,
    ) -> Vec<&'a Process> {
        let mut seen: HashSet<Pid> = HashSet::new();
        let mut found = Vec::new();
        let mut open: Vec<&Process> = roots.into_iter().collect();
        while let Some(process) = open.pop() {
            if seen.insert(process.pid) && !prune(process) {
                found.push(process);
                open.extend(self.children(process.pid));
            }
        }
        found
    }
}

/// The ancestors of a process, nearest first, read one by one.
pub(crate) fn ancestors(pid: Pid) -> impl Iterator<Item = Process> {
    let mut next = os::one(pid).map(|process| process.parent);
    std::iter::from_fn(move || {
        let process = os::one(next.take().filter(|&pid| pid > 0)?)?;
        next = Some(process.parent);
        Some(process)
    })
    .take(ANCESTORS_MAX)
}

/// Whether a process is one of the programs named: by the kernel's name, which may be cut, or by
/// the last component of its first argument.
pub(crate) fn is_named<S: AsRef<str>>(
    process: &Process,
    names: impl IntoIterator<Item = S>,
) -> bool {
    let mut argument: Option<Option<String>> = None;
    names.into_iter().any(|name| {
        let name = name.as_ref();
        if cut_name(name) == process.name {
            return true;
        }
        let first =
            argument.get_or_insert_with(|| os::command_line(process.pid).into_iter().next());
        first.as_deref().and_then(|path| path.rsplit('/').next()) == Some(name)
    })
}

/// A program's name as the kernel keeps it: the first 15 bytes.
fn cut_name(name: &str) -> &str {
    const KERNEL_NAME_BYTES: usize = 15;
    let mut end = name.len().min(KERNEL_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// A pid as it is shown and sent.
pub(crate) fn number(pid: Pid) -> u32 {
    pid.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: Pid, parent: Pid) -> Process {
        Process { pid, parent, session: pid, start: 1, zombie: false, name: format!("p{pid}") }
    }

    /// A step's grandchildren must end with it, and the neighbour's children must not.
    #[test]
    fn trees_hold_all_below_and_nothing_else() {
        let table = Table::of(vec![process(2, 1), process(3, 2), process(4, 3), process(5, 1)]);
        let mut pids: Vec<_> = table.trees(table.get(2), |_| false).iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [2, 3, 4]);
        let pruned = table.trees(table.get(2), |process| process.pid == 3);
        assert_eq!(pruned.len(), 1);
    }

    /// A ring in a torn picture must not hang the keeper.
    #[test]
    fn rings_end() {
        let table = Table::of(vec![process(2, 3), process(3, 2)]);
        assert_eq!(table.trees(table.get(2), |_| false).len(), 2);
    }

    /// `keep` lists full names; the kernel cuts them.
    #[test]
    fn long_names_match_cut_ones() {
        let mut long = process(0, 1);
        long.name = "a-very-long-pro".into();
        assert!(is_named(&long, ["a-very-long-program"]));
    }
}
