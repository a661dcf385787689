//! The values that kernels write.
//!
//! A value is a cheap function of the variable and of the element's linear index in it, the
//! same in the peers' programs, and exact in each type. So every reader can verify what it
//! read, and files of different libraries can be compared.

use crate::plan::{Element, Plan, RankPlan, Request};

/// 64 well mixed bits of an element: Knuth's multiplicative hash (2^64 divided by the golden
/// ratio) of its index in its variable.
pub fn bits(var: usize, index: u64) -> u64 {
    ((var as u64) << 40).wrapping_add(index).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// A type that kernels use.
pub trait Value: Copy + PartialEq + Default + Send + Sync + bytemuck::Pod {
    /// The value made of an element's bits.
    fn of(bits: u64) -> Self;
}

impl Value for i32 {
    fn of(bits: u64) -> i32 {
        (bits >> 33) as i32
    }
}

impl Value for f32 {
    fn of(bits: u64) -> f32 {
        (bits >> 40) as f32
    }
}

impl Value for f64 {
    fn of(bits: u64) -> f64 {
        (bits >> 11) as f64
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
}

impl Buffer {
    /// The values that a request writes.
    pub fn filled(plan: &Plan, rank: &RankPlan, request: &Request) -> Buffer {
        match plan.vars[request.var].element {
            Element::I32 => Buffer::I32(values(plan, rank, request)),
            Element::F32 => Buffer::F32(values(plan, rank, request)),
            Element::F64 => Buffer::F64(values(plan, rank, request)),
        }
    }

    /// Zeros for the values that a request reads.
    pub fn zeroed(plan: &Plan, rank: &RankPlan, request: &Request) -> Buffer {
        let elements = rank.lists[request.list].elements() as usize;
        match plan.vars[request.var].element {
            Element::I32 => Buffer::I32(vec![0; elements]),
            Element::F32 => Buffer::F32(vec![0.0; elements]),
            Element::F64 => Buffer::F64(vec![0.0; elements]),
        }
    }

    /// Overwrites every value with zero, so that reading has to bring it back.
    pub fn clear(&mut self) {
        match self {
            Buffer::I32(list) => list.fill(0),
            Buffer::F32(list) => list.fill(0.0),
            Buffer::F64(list) => list.fill(0.0),
        }
    }

    /// How many values are not what the request should read.
    pub fn wrong(&self, plan: &Plan, rank: &RankPlan, request: &Request) -> u64 {
        match self {
            Buffer::I32(list) => differences(list, plan, rank, request),
            Buffer::F32(list) => differences(list, plan, rank, request),
            Buffer::F64(list) => differences(list, plan, rank, request),
        }
    }

    /// The bytes in memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Buffer::I32(list) => bytemuck::cast_slice(list),
            Buffer::F32(list) => bytemuck::cast_slice(list),
            Buffer::F64(list) => bytemuck::cast_slice(list),
        }
    }

    /// The bytes in memory, to be read into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Buffer::I32(list) => bytemuck::cast_slice_mut(list),
            Buffer::F32(list) => bytemuck::cast_slice_mut(list),
            Buffer::F64(list) => bytemuck::cast_slice_mut(list),
        }
    }
}

/// Calls `each` with the linear index of the first element and the length of every run.
fn runs(plan: &Plan, rank: &RankPlan, request: &Request, mut each: impl FnMut(u64, u64)) {
    let var = &plan.vars[request.var];
    let list = &rank.lists[request.list];
    let base = request.record.unwrap_or(0) * plan.inner_elements(var);
    list.for_each_run(&plan.shape(var, list), |first, len| each(base + first, len));
}

fn values<T: Value>(plan: &Plan, rank: &RankPlan, request: &Request) -> Vec<T> {
    let mut list = Vec::with_capacity(rank.lists[request.list].elements() as usize);
    runs(plan, rank, request, |first, len| {
        list.extend((first..first + len).map(|i| T::of(bits(request.var, i))));
    });
    list
}

fn differences<T: Value>(list: &[T], plan: &Plan, rank: &RankPlan, request: &Request) -> u64 {
    let mut given = list.iter();
    let mut wrong = 0;
    runs(plan, rank, request, |first, len| {
        let expected = (first..first + len).map(|i| T::of(bits(request.var, i)));
        wrong += expected.zip(given.by_ref()).filter(|(e, g)| e != *g).count() as u64;
    });
    wrong
}
