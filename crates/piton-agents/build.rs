//! Prepares the table of tokens: the program finds it ready and loads nothing.

#[path = "src/tokens/hash.rs"]
mod hash;

use std::path::PathBuf;
use std::{env, fs, io};

/// Places of the hash table: a power of two, so that about three quarters of it are used.
const PLACES: usize = 1 << 18;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokens/hash.rs");
    let encoding = toktok::Tokenizer::builtin("o200k_base").map_err(io::Error::other)?;
    let (mut bytes, mut starts, mut places) = (Vec::new(), vec![0_u32], vec![0_u32; PLACES]);
    for (rank, token) in (0..).map_while(|id| encoding.token_bytes(id)).enumerate() {
        bytes.extend_from_slice(token);
        starts.push(u32::try_from(bytes.len()).map_err(io::Error::other)?);
        let mut place = hash::hash(token) % PLACES;
        while places[place] != 0 {
            place = (place + 1) % PLACES;
        }
        places[place] = u32::try_from(rank + 1).map_err(io::Error::other)?;
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let numbers = |list: &[u32]| -> Vec<u8> { list.iter().flat_map(|n| n.to_le_bytes()).collect() };
    fs::write(folder.join("token_bytes"), &bytes)?;
    fs::write(folder.join("token_starts"), numbers(&starts))?;
    fs::write(folder.join("token_places"), numbers(&places))
}
