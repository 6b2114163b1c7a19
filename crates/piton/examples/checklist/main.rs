//! The program with one protocol more: a protocol is its folder and its line in the table.

mod protocol;

use std::process::ExitCode;

use piton_protocols::lanes::Lanes;
use piton_protocols::plain::Plain;
use piton_protocols::{Protocol, Table};

const TABLE: &Table = &[&Lanes, &Plain, &protocol::Checklist as &dyn Protocol];

fn main() -> ExitCode {
    piton::main_with(TABLE)
}
