//! SIGKILL around the call that opens a pull request: before, during and after it returns.
