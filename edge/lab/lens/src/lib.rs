//! What disks did: histograms over time from captures and traces, and what they tell.
