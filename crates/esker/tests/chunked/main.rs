//! Chunked variables under attack: failing disks, dying processes, wrong arguments, odd sizes.

#[path = "../bounded/mod.rs"]
mod bounded;
mod failing;
mod limits;
mod lists;
mod owners;
mod room;
