//! The Packferry worker.
