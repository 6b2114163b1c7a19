//! The `piton` program.
fn main() {}
