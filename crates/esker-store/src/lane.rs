//! One file that several writers append to, each as if it had one of its own.

use std::sync::Arc;

use crate::{File, Result};

/// One of `lanes` lanes of a file: its blocks are dealt out to the lanes in turn.
///
/// A lane is a file of its own to its user. Its length is an upper bound: the end of the last
/// of its blocks that the file reaches, whether this lane or another has lengthened it.
#[derive(Debug)]
pub struct Lane {
    file: Arc<dyn File>,
    lane: u64,
    lanes: u64,
    block: u64,
}

impl Lane {
    /// Lane number `lane` of `lanes`, with blocks of `block` bytes. A file with one lane is
    /// itself.
    pub fn open(file: Arc<dyn File>, lane: u64, lanes: u64, block: u64) -> Arc<dyn File> {
        match lanes {
            0 | 1 => file,
            _ => Arc::new(Lane { file, lane: lane % lanes, lanes, block: block.max(1) }),
        }
    }

    /// The place in the file of byte `offset` of the lane, and how many bytes follow it there.
    fn place(&self, offset: u64) -> (u64, u64) {
        let (number, within) = (offset / self.block, offset % self.block);
        let at = number.saturating_mul(self.lanes).saturating_add(self.lane);
        (at.saturating_mul(self.block).saturating_add(within), self.block - within)
    }

    /// The first byte after the lane's share of a file of this length.
    fn share(&self, len: u64) -> u64 {
        let row = self.block.saturating_mul(self.lanes);
        let (rows, rest) = (len / row, len % row);
        let before = self.lane.saturating_mul(self.block);
        rows.saturating_mul(self.block) + rest.saturating_sub(before).min(self.block)
    }
}

impl File for Lane {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let (at, room) = self.place(offset.saturating_add(done as u64));
            let n = ((buf.len() - done) as u64).min(room) as usize;
            let found = self.file.read_at(at, &mut buf[done..done + n])?;
            done += found;
            if found < n {
                break;
            }
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let (at, room) = self.place(offset + done as u64);
            let n = (bytes.len() - done).min(room as usize);
            self.file.write_at(at, &bytes[done..done + n])?;
            done += n;
        }
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.share(self.file.len()?))
    }

    /// Lengthens the file where need be, and overwrites with zeros what is cut off: the other
    /// lanes keep what they have.
    fn set_len(&self, len: u64) -> Result<()> {
        let zeros = vec![0; 64 * 1024];
        let mut at = len;
        let end = self.len()?;
        while at < end {
            let n = (end - at).min(zeros.len() as u64);
            self.write_at(at, &zeros[..n as usize])?;
            at += n;
        }
        if len > end {
            self.write_at(len - 1, &[0])?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    fn block_size(&self) -> u64 {
        self.file.block_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateMode, MemoryStore, Store};

    #[test]
    fn lanes_do_not_touch_each_other() {
        let store = MemoryStore::default();
        let file = store.create("f".as_ref(), CreateMode::New).unwrap();
        let lanes: Vec<_> = (0..3).map(|i| Lane::open(file.clone(), i, 3, 10)).collect();
        let texts: Vec<Vec<u8>> = (0..3u8).map(|i| vec![i + 1; 25 + i as usize]).collect();
        for (lane, text) in lanes.iter().zip(&texts) {
            for (i, part) in text.chunks(7).enumerate() {
                lane.write_at(7 * i as u64, part).unwrap();
            }
        }
        for (lane, text) in lanes.iter().zip(&texts) {
            let mut bytes = vec![9; text.len()];
            assert_eq!(lane.read_at(0, &mut bytes).unwrap(), text.len());
            assert_eq!(&bytes, text);
            assert!(lane.len().unwrap() >= text.len() as u64);
            assert!(lane.len().unwrap() <= 30);
        }
        lanes[1].set_len(3).unwrap();
        let mut bytes = vec![9; 26];
        lanes[1].read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, [&[2; 3][..], &[0; 23]].concat());
        let mut bytes = vec![9; 27];
        lanes[2].read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes, texts[2]);
    }

    #[test]
    fn one_lane_is_the_file() {
        let store = MemoryStore::default();
        let file = store.create("f".as_ref(), CreateMode::New).unwrap();
        let lane = Lane::open(file.clone(), 0, 1, 10);
        lane.write_at(0, &[1; 100]).unwrap();
        assert_eq!(file.len().unwrap(), 100);
        lane.set_len(5).unwrap();
        assert_eq!(file.len().unwrap(), 5);
    }
}
