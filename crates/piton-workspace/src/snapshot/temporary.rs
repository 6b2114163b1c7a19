//! Names of files that a restore has not finished writing: no snapshot takes them.

/// How the names begin; a process id and a number follow.
pub(crate) const PREFIX: &str = ".piton-restore-";

/// The process that writes, or wrote, a file of that name.
pub(crate) fn writer(name: &[u8]) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX.as_bytes())?;
    let (pid, number) = std::str::from_utf8(rest).ok()?.split_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(pid) && digits(number)).then(|| pid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::writer;

    #[test]
    fn only_names_of_exactly_that_shape_are_ours() {
        assert_eq!(writer(b".piton-restore-12-0"), Some(12));
        for other in [
            "piton-restore-12-0",
            ".piton-restore-12",
            ".piton-restore--0",
            ".piton-restore-12-",
            ".piton-restore-12-0x",
            ".piton-restore-12-0-1",
            ".piton-restore-+1-0",
            ".piton-restore-notes-1",
        ] {
            assert_eq!(writer(other.as_bytes()), None, "{other}");
        }
    }
}
