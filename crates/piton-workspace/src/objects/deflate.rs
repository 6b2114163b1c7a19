//! Bytes as git stores them: zlib streams, made without paying for a compressor each time.
//!
//! A compressor's state is a third of a megabyte that has to be cleared, which costs more than most
//! objects of a snapshot: each thread keeps one.

use std::cell::RefCell;
use std::io;

use flate2::{Compress, Compression, FlushCompress, Status};

thread_local! {
    static COMPRESSOR: RefCell<Option<Compress>> = const { RefCell::new(None) };
}

/// Appends a zlib stream of `data` to `out`.
pub(crate) fn append(data: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => {
                compressor.reset();
                compressor
            }
            None => kept.insert(Compress::new(Compression::fast(), true)),
        };
        compress(compressor, data, out)
    })
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
