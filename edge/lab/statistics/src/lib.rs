//! What can be concluded from measurements: histograms, steady state, comparison, knees, scale-out, Little's law.
