//! Chunked variables under attack: failing disks, dying processes, wrong arguments, odd sizes.

#[path = "../bounded/mod.rs"]
mod bounded;
mod failing;
mod files;
mod foreign;
mod limits;
mod lists;
mod lossy;
mod owners;
#[path = "../peers/mod.rs"]
mod peers;
mod room;
mod tables;
mod valid;
mod writers;
