//! Named workloads of published tests.
