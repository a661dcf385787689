//! What a chunk table was made for: the head of a table.
//!
//! Entries are numbers of chunks, and mean something only together with the shape that was cut into them. A
//! header in which one length has changed would find other chunks than it looks for, and take them.

use super::Seal;
use crate::types::ExternalType;

/// A dimension of a chunked variable, as its table knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// The number of the dimension.
    pub dim: u64,
    /// Its length; 0 for the unlimited one.
    pub len: u64,
    /// The length of a chunk in it.
    pub chunk: u64,
}

/// The variable that a table was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFor {
    /// Its type.
    pub ty: ExternalType,
    /// Its dimensions, slowest first.
    pub axes: Vec<Axis>,
    /// Its filters, as numbers.
    pub filters: Vec<u64>,
    /// Its fill value, in external form: of what was never written nothing is stored.
    pub fill: Vec<u8>,
}

impl MadeFor {
    /// What differs from what a header says of the variable now, as a sentence; `None` if nothing does.
    pub fn difference(&self, header: &MadeFor) -> Option<String> {
        let what = |of: &MadeFor| {
            let list = |number: fn(&Axis) -> String| {
                of.axes.iter().map(number).collect::<Vec<_>>().join(", ")
            };
            let (dims, shape) = (list(|axis| axis.dim.to_string()), list(length));
            let chunks = list(|axis| axis.chunk.to_string());
            let same_dims =
                self.axes.iter().map(|a| a.dim).eq(header.axes.iter().map(|axis| axis.dim));
            let dims = if same_dims { String::new() } else { format!(" of dimensions {dims}") };
            format!("{} ({shape}){dims} in chunks of ({chunks})", of.ty)
        };
        let why = if self.ty != header.ty || self.axes != header.axes {
            format!("made for {}, but the header says {}", what(self), what(header))
        } else if self.filters != header.filters {
            let (made, says) = (&self.filters, &header.filters);
            format!("made for other filters than the header has (words {made:x?}, not {says:x?})")
        } else if self.fill != header.fill {
            let (made, says) = (&self.fill, &header.fill);
            format!("made for the fill value with bytes {made:x?}, but the header says {says:x?}")
        } else {
            return None;
        };
        Some(format!("its chunk table was {why}: the header is damaged, or was changed"))
    }
}

fn length(axis: &Axis) -> String {
    if axis.len == 0 { "unlimited".to_string() } else { axis.len.to_string() }
}

/// The head of a variable's chunk table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableHead {
    /// Where the first block is in the heap.
    pub first: u64,
    /// What it was made for.
    pub made_for: MadeFor,
}

/// Why bytes are not the head of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadFault {
    /// So many bytes are needed.
    NeedMore(usize),
    /// They are damaged, or those of another variable, file or place.
    Damaged,
}

impl TableHead {
    /// Bytes before dimensions and filters.
    pub const FIXED: usize = 40;

    const MAGIC: [u8; 4] = *b"EskV";
    const FORM: u16 = 1;
    /// No head is longer: 1,024 dimensions and more filters than a pipeline has.
    const MOST: usize = 64 << 10;

    /// Bytes of the head of a table for this.
    pub fn bytes(made_for: &MadeFor) -> u64 {
        (TableHead::FIXED + 24 * made_for.axes.len() + 8 * made_for.filters.len()) as u64
    }

    /// As it is stored at this place of the heap.
    pub fn encode(&self, seal: Seal, at: u64) -> Vec<u8> {
        let MadeFor { ty, axes, filters, fill } = &self.made_for;
        let len = TableHead::bytes(&self.made_for);
        let mut out = Vec::with_capacity(len as usize);
        out.extend(TableHead::MAGIC);
        out.extend([0; 4]);
        out.extend((len as u32).to_be_bytes());
        out.extend(TableHead::FORM.to_be_bytes());
        out.extend((axes.len() as u16).to_be_bytes());
        out.extend(ty.code().to_be_bytes());
        out.extend((filters.len() as u32).to_be_bytes());
        out.extend(self.first.to_be_bytes());
        let mut value = [0; 8];
        value.iter_mut().zip(fill).for_each(|(to, from)| *to = *from);
        out.extend(value);
        let axes = axes.iter().flat_map(|axis| [axis.dim, axis.len, axis.chunk]);
        out.extend(axes.chain(filters.iter().copied()).flat_map(u64::to_be_bytes));
        let sum = seal.sum(at, &out[8..]);
        out[4..8].copy_from_slice(&sum.to_be_bytes());
        out
    }

    /// The head that is stored there.
    pub fn decode(bytes: &[u8], seal: Seal, at: u64) -> Result<TableHead, HeadFault> {
        let damaged = HeadFault::Damaged;
        let fixed = bytes.get(..TableHead::FIXED).ok_or(HeadFault::NeedMore(TableHead::FIXED))?;
        let number = |at: usize, len: usize| {
            fixed[at..at + len].iter().fold(0, |n: u64, b| n << 8 | u64::from(*b))
        };
        let (len, axes, words) = (number(8, 4) as usize, number(14, 2), number(20, 4));
        let expected = TableHead::FIXED as u64 + 24 * axes + 8 * words;
        if fixed[..4] != TableHead::MAGIC || len > TableHead::MOST || len as u64 != expected {
            return Err(damaged);
        }
        let whole = bytes.get(..len).ok_or(HeadFault::NeedMore(len))?;
        let form = number(12, 2) as u16;
        if number(4, 4) != u64::from(seal.sum(at, &whole[8..])) || form != TableHead::FORM {
            return Err(damaged);
        }
        let ty = ExternalType::from_code(number(16, 4) as u32).ok_or(damaged)?;
        let fill = fixed[32..32 + ty.size() as usize].to_vec();
        let (lists, _) = whole[TableHead::FIXED..].as_chunks::<8>();
        let mut lists = lists.iter().map(|bytes| u64::from_be_bytes(*bytes));
        let mut next = || lists.next().ok_or(damaged);
        let axes = (0..axes)
            .map(|_| Ok(Axis { dim: next()?, len: next()?, chunk: next()? }))
            .collect::<Result<_, _>>()?;
        let filters = lists.collect();
        Ok(TableHead { first: number(24, 8), made_for: MadeFor { ty, axes, filters, fill } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::VarId;

    fn made_for() -> MadeFor {
        let axes = vec![Axis { dim: 0, len: 0, chunk: 1 }, Axis { dim: 2, len: 6, chunk: 3 }];
        MadeFor { ty: ExternalType::Float, axes, filters: vec![7, 8], fill: vec![1, 2, 3, 4] }
    }

    #[test]
    fn a_head_comes_back_and_a_flipped_bit_is_seen() {
        let (seal, head) = (Seal::new(9, VarId(1)), TableHead { first: 640, made_for: made_for() });
        let bytes = head.encode(seal, 64);
        assert_eq!(bytes.len() as u64, TableHead::bytes(&head.made_for));
        assert_eq!(TableHead::decode(&bytes, seal, 64), Ok(head));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(TableHead::decode(&damaged, seal, 64).is_err(), "bit {bit}");
        }
        for (seal, at) in [(seal, 128), (Seal::new(9, VarId(2)), 64), (Seal::new(8, VarId(1)), 64)]
        {
            assert_eq!(TableHead::decode(&bytes, seal, at), Err(HeadFault::Damaged));
        }
        for cut in 0..bytes.len() {
            let needed = if cut < TableHead::FIXED { TableHead::FIXED } else { bytes.len() };
            let cut = TableHead::decode(&bytes[..cut], seal, 64);
            assert_eq!(cut, Err(HeadFault::NeedMore(needed)));
        }
    }

    #[test]
    fn a_difference_names_both_shapes() {
        let (made, mut says) = (made_for(), made_for());
        assert_eq!(made.difference(&says), None);
        says.axes[1].len = 12;
        let why = made.difference(&says).unwrap();
        assert!(why.contains("made for float (unlimited, 6) in chunks of (1, 3)"), "{why}");
        assert!(why.contains("says float (unlimited, 12) in chunks of (1, 3)"), "{why}");
        says = made_for();
        says.axes[1].dim = 1;
        let why = made.difference(&says).unwrap();
        assert!(why.contains("of dimensions 0, 2") && why.contains("of dimensions 0, 1"), "{why}");
        for change in [
            |m: &mut MadeFor| m.ty = ExternalType::Int,
            |m: &mut MadeFor| m.axes[1].chunk = 2,
            |m: &mut MadeFor| m.filters.push(1),
            |m: &mut MadeFor| m.fill[3] = 5,
        ] {
            let mut says = made_for();
            change(&mut says);
            assert!(made.difference(&says).is_some());
        }
    }
}
