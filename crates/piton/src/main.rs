//! The `piton` program, with the published protocols.

use std::process::ExitCode;

fn main() -> ExitCode {
    piton::main_with(piton_protocols::TABLE)
}
