//! The values that kernels write.
//!
//! A value is a cheap function of the variable and of the element's place in it, the same in the
//! peers' programs, and exact in each type. So every reader can verify what it read, and files
//! of different libraries can be compared. What is to be compressed is like what programs write
//! ([`Data`]): deflate makes a field of 8-byte numbers half as large, as it did with the
//! paper's recorded ones (ratios of 2.0 to 2.7), and columns of events a quarter (4.9).

use crate::kernels::part;
use crate::plan::{Data, Element, Plan, RankPlan, Request, Var};

/// 64 well mixed bits of an element: Knuth's multiplicative hash (2^64 divided by the golden
/// ratio) of its index in its variable.
pub fn bits(var: usize, index: u64) -> u64 {
    ((var as u64) << 40).wrapping_add(index).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// 64 random bits of a number: the finalizer of splitmix64, in which neighbours have nothing in
/// common that a predictor could find.
fn random(number: u64) -> u64 {
    let x = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Parabolas in turn up and down, of a hundred to three hundred elements, within 2^28: a wave
/// without the rounding in which two machines' sines differ.
fn wave(var: u64, dim: u64, index: u64) -> i64 {
    let step = 200 + 37 * ((var * 5 + dim * 3) % 11);
    let at = index.wrapping_mul(step).wrapping_add(var * 7919 + dim * 20011) & 0xffff;
    let half = (at & 0x7fff) as i64;
    let height = half * (0x8000 - half);
    if at & 0x8000 != 0 { -height } else { height }
}

/// Where a row of elements is in a variable.
struct Row<'a> {
    var: u64,
    /// The index along each dimension of its first element.
    first: &'a [u64],
    /// The first element's index in the variable.
    linear: u64,
}

impl Row<'_> {
    fn last(&self) -> u64 {
        self.first.last().copied().unwrap_or(0)
    }

    /// The elements' numbers for [`Value::number`], or their bits for [`Value::of`].
    fn each<T: Value>(&self, data: Data, len: u64, mut value: impl FnMut(T)) {
        let seed = self.var << 40;
        match data {
            Data::Distinct => {
                let linear = self.linear..self.linear + len;
                linear.for_each(|i| value(T::of(bits(self.var as usize, i))));
            }
            Data::Tile { percent, edge } => {
                let outer = self.first.iter().rev().skip(1).rev();
                let row = outer.fold(0, |row: u64, i| row * edge + i % edge) * edge;
                for i in self.last()..self.last() + len {
                    let place = row + i % edge;
                    let is_random = place % 100 < percent;
                    value(if is_random { T::noise(random(place + 1)) } else { T::default() });
                }
            }
            Data::Field => {
                let last = (self.first.len() as u64).saturating_sub(1);
                let outer = self.first.iter().zip(0..last);
                let outer: i64 = outer.map(|(i, d)| wave(self.var, d, *i)).sum();
                for i in 0..len {
                    let smooth = (3 << 30) + outer + wave(self.var, last, self.last() + i);
                    let noise = random(seed + self.linear + i) & 0x3f;
                    value(T::number((smooth >> 8) + noise as i64));
                }
            }
            Data::Column => {
                let events = 1 + 7 * (self.var % 5);
                for i in self.linear..self.linear + len {
                    value(T::column(random(seed + i), i / events));
                }
            }
            // Those of the plan, which a row does not know.
            Data::Sums => {}
        }
    }
}

/// A type that kernels use.
pub trait Value: Copy + PartialEq + Default + Send + Sync + bytemuck::Pod {
    /// The value made of an element's bits.
    fn of(bits: u64) -> Self;
    /// The value made of random bits, all of them if the type allows any.
    fn noise(bits: u64) -> Self {
        Self::of(bits)
    }
    /// The value of a field, given in units of 2^-12, 24 bits of them.
    fn number(number: i64) -> Self;
    /// The value of an event's attribute: a counter in integers, else a measurement.
    fn column(bits: u64, counter: u64) -> Self;
}

/// What detectors tell: nothing for most events, else twelve bits.
fn measurement(bits: u64) -> i64 {
    if bits & 7 < 5 { -5 << 12 } else { ((bits >> 8) & 0xfff) as i64 }
}

impl Value for i32 {
    fn of(bits: u64) -> i32 {
        (bits >> 33) as i32
    }

    fn noise(bits: u64) -> i32 {
        bits as i32
    }

    fn number(number: i64) -> i32 {
        number as i32
    }

    fn column(_: u64, counter: u64) -> i32 {
        counter as i32
    }
}

impl Value for f32 {
    fn of(bits: u64) -> f32 {
        (bits >> 40) as f32
    }

    fn number(number: i64) -> f32 {
        number as f32 / 4096.0
    }

    fn column(bits: u64, _: u64) -> f32 {
        Self::number(measurement(bits))
    }
}

impl Value for f64 {
    fn of(bits: u64) -> f64 {
        (bits >> 11) as f64
    }

    fn number(number: i64) -> f64 {
        number as f64 / 4096.0
    }

    fn column(bits: u64, _: u64) -> f64 {
        Self::number(measurement(bits))
    }
}

impl Value for i64 {
    fn of(bits: u64) -> i64 {
        (bits >> 1) as i64
    }

    fn number(number: i64) -> i64 {
        number
    }

    fn column(_: u64, counter: u64) -> i64 {
        counter as i64
    }
}

impl Value for u16 {
    fn of(bits: u64) -> u16 {
        (bits >> 48) as u16
    }

    fn number(number: i64) -> u16 {
        number as u16
    }

    fn column(_: u64, counter: u64) -> u16 {
        counter as u16
    }
}

/// The memory of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Buffer {
    /// 4-byte integers.
    I32(Vec<i32>),
    /// 4-byte floating point.
    F32(Vec<f32>),
    /// 8-byte floating point.
    F64(Vec<f64>),
    /// 8-byte integers.
    I64(Vec<i64>),
    /// 2-byte integers without a sign.
    U16(Vec<u16>),
}

/// Does the same with the list of a buffer, whatever its type.
macro_rules! with_list {
    ($buffer:expr, $list:ident => $act:expr) => {
        match $buffer {
            $crate::values::Buffer::I32($list) => $act,
            $crate::values::Buffer::F32($list) => $act,
            $crate::values::Buffer::F64($list) => $act,
            $crate::values::Buffer::I64($list) => $act,
            $crate::values::Buffer::U16($list) => $act,
        }
    };
}
pub(crate) use with_list;

impl Buffer {
    /// The values that a request writes.
    pub fn filled(plan: &Plan, rank: &RankPlan, request: &Request) -> Buffer {
        match plan.vars[request.var].element {
            Element::I32 => Buffer::I32(values(plan, rank, request)),
            Element::F32 => Buffer::F32(values(plan, rank, request)),
            Element::F64 => Buffer::F64(values(plan, rank, request)),
            Element::I64 => Buffer::I64(values(plan, rank, request)),
            Element::U16 => Buffer::U16(values(plan, rank, request)),
        }
    }

    /// Zeros for the values that a request reads.
    pub fn zeroed(plan: &Plan, rank: &RankPlan, request: &Request) -> Buffer {
        let elements = rank.lists[request.list].elements() as usize;
        match plan.vars[request.var].element {
            Element::I32 => Buffer::I32(vec![0; elements]),
            Element::F32 => Buffer::F32(vec![0.0; elements]),
            Element::F64 => Buffer::F64(vec![0.0; elements]),
            Element::I64 => Buffer::I64(vec![0; elements]),
            Element::U16 => Buffer::U16(vec![0; elements]),
        }
    }

    /// Overwrites every value with zero, so that reading has to bring it back.
    pub fn clear(&mut self) {
        with_list!(self, list => list.fill(Default::default()));
    }

    /// How many values are not what the request should read.
    pub fn wrong(&self, plan: &Plan, rank: &RankPlan, request: &Request) -> u64 {
        with_list!(self, list => differences(list, plan, rank, request))
    }

    /// The bytes in memory.
    pub fn bytes(&self) -> &[u8] {
        with_list!(self, list => bytemuck::cast_slice(list))
    }

    /// The bytes in memory, to be read into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        with_list!(self, list => bytemuck::cast_slice_mut(list))
    }
}

/// Calls `each` with the place and the length of every row.
fn rows(plan: &Plan, rank: &RankPlan, request: &Request, mut each: impl FnMut(Row, u64)) {
    let var = &plan.vars[request.var];
    let list = &rank.lists[request.list];
    let base = request.record.unwrap_or(0) * plan.inner_elements(var);
    let mut first = vec![0; var.dims.len()];
    list.for_each_run(&plan.shape(var, list), |start, len| {
        let linear = base + start;
        place(plan, var, linear, &mut first);
        each(Row { var: request.var as u64, first: &first, linear }, len);
    });
}

/// The index along each dimension of an element.
fn place(plan: &Plan, var: &Var, linear: u64, index: &mut [u64]) {
    let mut left = linear;
    for (at, dim) in index.iter_mut().zip(&var.dims).rev() {
        // The record dimension comes first and takes what is left.
        let len = plan.dims[*dim].len.unwrap_or(u64::MAX);
        *at = left % len;
        left /= len;
    }
}

/// The values of a row of a request's variable.
fn of_row<T: Value>(plan: &Plan, var: &Var, row: &Row, len: u64, mut value: impl FnMut(T)) {
    if var.data != Data::Sums {
        return row.each(var.data, len, value);
    }
    let parts = var.dims.last().and_then(|d| plan.dims[*d].len).unwrap_or(1);
    let sums = (row.linear..row.linear + len).map(|i| sum(plan, i / parts, parts, i % parts));
    sums.for_each(|sum| value(T::number(sum.into())));
}

/// The checksum of what one of so many even parts of a variable is in memory.
fn sum(plan: &Plan, variable: u64, parts: u64, which: u64) -> u32 {
    fn of<T: Value>(row: &Row, data: Data, len: u64) -> u32 {
        let mut list: Vec<T> = Vec::with_capacity(len as usize);
        row.each(data, len, |value| list.push(value));
        crc32c::crc32c(bytemuck::cast_slice(&list))
    }
    let Some(var) = plan.vars.get(variable as usize) else { return 0 };
    let (start, len) = part(plan.inner_elements(var), parts, which);
    let row = Row { var: variable, first: &[start], linear: start };
    match var.element {
        Element::I32 => of::<i32>(&row, var.data, len),
        Element::F32 => of::<f32>(&row, var.data, len),
        Element::F64 => of::<f64>(&row, var.data, len),
        Element::I64 => of::<i64>(&row, var.data, len),
        Element::U16 => of::<u16>(&row, var.data, len),
    }
}

fn values<T: Value>(plan: &Plan, rank: &RankPlan, request: &Request) -> Vec<T> {
    let var = &plan.vars[request.var];
    let mut list = Vec::with_capacity(rank.lists[request.list].elements() as usize);
    rows(plan, rank, request, |row, len| of_row(plan, var, &row, len, |value| list.push(value)));
    list
}

fn differences<T: Value>(list: &[T], plan: &Plan, rank: &RankPlan, request: &Request) -> u64 {
    let var = &plan.vars[request.var];
    let mut given = list.iter();
    let mut wrong = 0;
    rows(plan, rank, request, |row, len| {
        of_row(plan, var, &row, len, |expected: T| {
            wrong += u64::from(given.next() != Some(&expected));
        });
    });
    wrong
}
