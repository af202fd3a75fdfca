//! A plan as a parameter file.
