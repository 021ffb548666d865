//! Seeded simulation of whole sessions.
