//! A plan as an `.icf` file.
