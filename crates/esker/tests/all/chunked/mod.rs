//! Chunked variables under attack: failing disks, dying processes, wrong arguments, odd sizes.

mod alone;
mod failing;
mod files;
mod foreign;
mod limits;
mod lists;
mod lossy;
mod owners;
mod room;
mod tables;
mod valid;
mod writers;
