//! The cluster's records, and the decisions that follow from them: who is alive, what is to be repaired, what is wrong.
//!
//! Relies on `layout`, `placement` and `replication`. Must never perform a transaction or read a clock.
