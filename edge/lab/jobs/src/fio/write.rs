//! A plan as a job file.
