//! What to run: the lab's one model of a workload, whichever dialect it was written in.
