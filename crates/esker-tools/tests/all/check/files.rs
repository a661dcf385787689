//! Small classic files, byte by byte, so that anything in them can be wrong.

/// A CDF-1 file.
#[derive(Clone, Default)]
pub(crate) struct Classic {
    pub(crate) numrecs: u32,
    pub(crate) dims: Vec<(&'static str, u32)>,
    pub(crate) vars: Vec<Var>,
}

#[derive(Clone)]
pub(crate) struct Var {
    pub(crate) name: Vec<u8>,
    pub(crate) dims: Vec<u32>,
    /// Name, type code, count, values with their padding.
    pub(crate) attrs: Vec<(&'static str, u32, u32, Vec<u8>)>,
    pub(crate) ty: u32,
    pub(crate) vsize: u32,
    pub(crate) begin: u32,
}

pub(crate) fn var(name: &str, dims: &[u32], ty: u32, vsize: u32, begin: u32) -> Var {
    Var { name: name.into(), dims: dims.to_vec(), attrs: vec![], ty, vsize, begin }
}

impl Classic {
    /// The file, cut or filled with 0x11 to `len` bytes.
    pub(crate) fn bytes(&self, len: usize) -> Vec<u8> {
        let mut out = b"CDF\x01".to_vec();
        let word = |out: &mut Vec<u8>, n: u32| out.extend(n.to_be_bytes());
        let name = |out: &mut Vec<u8>, name: &[u8]| {
            out.extend((name.len() as u32).to_be_bytes());
            out.extend(name);
            out.resize(out.len().next_multiple_of(4), 0);
        };
        let list = |out: &mut Vec<u8>, tag: u32, n: usize| {
            out.extend(if n == 0 { [0; 4] } else { tag.to_be_bytes() });
            out.extend((n as u32).to_be_bytes());
        };
        word(&mut out, self.numrecs);
        list(&mut out, 10, self.dims.len());
        for (dim, len) in &self.dims {
            name(&mut out, dim.as_bytes());
            word(&mut out, *len);
        }
        list(&mut out, 12, 0);
        list(&mut out, 11, self.vars.len());
        for var in &self.vars {
            name(&mut out, &var.name);
            word(&mut out, var.dims.len() as u32);
            var.dims.iter().for_each(|d| word(&mut out, *d));
            list(&mut out, 12, var.attrs.len());
            for (attr, ty, count, values) in &var.attrs {
                name(&mut out, attr.as_bytes());
                word(&mut out, *ty);
                word(&mut out, *count);
                out.extend(values);
            }
            word(&mut out, var.ty);
            word(&mut out, var.vsize);
            word(&mut out, var.begin);
        }
        out.resize(len, 0x11);
        out
    }
}

/// Two int variables `a` and `b` of four elements at 200 and 216; 232 bytes in all.
pub(crate) fn fixed() -> Classic {
    let vars = vec![var("a", &[0], 4, 16, 200), var("b", &[0], 4, 16, 216)];
    Classic { numrecs: 0, dims: vec![("x", 4)], vars }
}

/// Two records of `a` (int) and `b` (three bytes, padded to four) at 200; 216 bytes in all.
pub(crate) fn records() -> Classic {
    let vars = vec![var("a", &[0], 4, 4, 200), var("b", &[0, 1], 1, 4, 204)];
    Classic { numrecs: 2, dims: vec![("t", 0), ("x", 3)], vars }
}
