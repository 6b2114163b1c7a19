//! Tests of the session protocol.
