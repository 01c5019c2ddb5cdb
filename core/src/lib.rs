//! The pure core of Packferry.
