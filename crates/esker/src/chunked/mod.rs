//! Chunked variables: boxes of elements that went through filters, each with one owner.

pub mod policy;
