//! Results that other tools wrote, read into one form, and the audit of what they support.
