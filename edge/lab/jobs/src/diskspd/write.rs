//! A plan as command lines or an XML profile.
