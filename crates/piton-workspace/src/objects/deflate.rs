//! Bytes as git stores them: zlib streams, made without paying for a compressor each time.
//!
//! A compressor's state is a third of a megabyte that has to be cleared, which costs more than most
//! objects of a snapshot: each thread keeps one, and what is so small that a pack's other bytes
//! outweigh it is stored as it is.

use std::cell::RefCell;
use std::io;

use flate2::{Compress, Compression, FlushCompress, Status};

/// Up to here bytes are stored as they are: commits and trees of a few lines, which are mostly ids
/// that no compressor makes smaller.
const STORED_BYTES_MAX: usize = 512;
/// What a stream begins with that was made in a hurry, as ours are.
const HEADER: [u8; 2] = [0x78, 0x01];
/// The first byte of a block that is the last one and stored as it is.
const LAST_STORED: u8 = 1;
/// The largest prime below 2^16, which the checksum counts to.
const ADLER_BASE: u32 = 65_521;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compress>> = const { RefCell::new(None) };
}

/// Appends a zlib stream of `data` to `out`.
pub(crate) fn append(data: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    match u16::try_from(data.len()) {
        Ok(len) if data.len() <= STORED_BYTES_MAX => {
            store(data, len, out);
            Ok(())
        }
        _ => COMPRESSOR.with_borrow_mut(|kept| {
            let compressor = match kept {
                Some(compressor) => {
                    compressor.reset();
                    compressor
                }
                None => kept.insert(Compress::new(Compression::fast(), true)),
            };
            compress(compressor, data, out)
        }),
    }
}

fn store(data: &[u8], len: u16, out: &mut Vec<u8>) {
    out.reserve(data.len() + 11);
    out.extend_from_slice(&HEADER);
    out.push(LAST_STORED);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&(!len).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&adler(data).to_be_bytes());
}

/// The checksum at the end of a stream; what is stored is short enough for the sums not to overflow.
fn adler(data: &[u8]) -> u32 {
    let (a, b) = data.iter().fold((1, 0), |(a, b), byte| {
        let a = a + u32::from(*byte);
        (a, b + a)
    });
    (b % ADLER_BASE) << 16 | (a % ADLER_BASE)
}

fn compress(compressor: &mut Compress, data: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let read = usize::try_from(compressor.total_in()).unwrap_or(usize::MAX);
        out.reserve(data.len() / 2 + 64);
        let rest = data.get(read..).unwrap_or_default();
        let status = compressor.compress_vec(rest, out, FlushCompress::Finish);
        match status.map_err(io::Error::other)? {
            Status::StreamEnd => return Ok(()),
            Status::Ok | Status::BufError => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn what_went_in_comes_out_whatever_the_size() -> io::Result<()> {
        let noise = |n: usize| u8::try_from(n.wrapping_mul(2_654_435_761) >> 7 & 0xff);
        for len in [0, 1, 2, 511, 512, 513, 10_000, 70_000, 300_000, 3] {
            for highest in [true, false] {
                let byte = |n| if highest { 0xff } else { noise(n).unwrap_or_default() };
                let data: Vec<u8> = (0..len).map(byte).collect();
                let mut out = b"before".to_vec();
                append(&data, &mut out)?;
                let stream = out.strip_prefix(b"before").unwrap_or_default();
                let mut back = Vec::new();
                ZlibDecoder::new(stream).read_to_end(&mut back)?;
                assert!(back == data, "{len} bytes");
                assert!(stream.len() <= len + len / 1000 + 64, "{len} became {}", stream.len());
            }
        }
        Ok(())
    }
}
