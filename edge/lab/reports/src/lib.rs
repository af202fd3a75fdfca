//! What people see of a measurement: text, one HTML file, CSV, JSON, Parquet, a bundle.
