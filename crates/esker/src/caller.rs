//! Checksums that begin and end in the caller's memory.
//!
//! A checksum is the crc32c of the values as they lie in memory when they are dense: in this machine's order, in the type
//! of the memory, in the order of the selection. Who has made one where values came into being gives it along with them.

use bytemuck::cast_slice;
use esker_format::{Native, VarId};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::request::{Direction, Expected, Request, RequestId, Requests};
use crate::selection::Selection;

/// The crc32c of values as they lie in memory.
///
/// ```
/// // The check value of CRC-32C: of the nine digits.
/// assert_eq!(esker::crc32c(b"123456789"), 0xe306_9283);
/// assert_eq!(esker::crc32c(&[1i16, -1]), esker::crc32c(&[1u16, 0xffff]));
/// ```
pub fn crc32c<T: Native>(values: &[T]) -> u32 {
    crc32c::crc32c(cast_slice(values))
}

impl<'b> Requests<'b> {
    /// Says what the crc32c of a queued request's values is, in the order of `selection`, which is the one it was queued with.
    ///
    /// What is written is compared when the wait takes it over from the caller's memory, before anything of the wait is
    /// written: all ranks of a collective wait get [`Error::Checksum`]. What is read is compared when it is in the caller's
    /// memory; the error is this rank's.
    ///
    /// ```
    /// # use esker::*;
    /// # fn main() -> Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let mut def = Dataset::create(dir.path().join("x.nc"), CreateOptions::new())?;
    /// # let x = def.add_dim("x", DimLen::Fixed(4))?;
    /// # let t = def.add_var("t", ExternalType::Int, &[x])?;
    /// # let mut ds = def.enddef()?;
    /// let (everything, mut temperature) = (Selection::all(), vec![1, 2, 3, 4]);
    /// let sum = esker::crc32c(&temperature);
    /// temperature[2] ^= 1 << 20; // A cosmic ray.
    /// let mut queue = Requests::new();
    /// let id = ds.iput(&mut queue, t, &everything, &temperature)?;
    /// queue.expect_crc32c(id, &everything, sum)?;
    /// let error = ds.wait_all(&mut queue).unwrap_err().to_string();
    /// assert!(error.contains("variable \"t\", everything: the caller's crc32c"), "{error}");
    /// # Ok(()) }
    /// ```
    pub fn expect_crc32c(&mut self, id: RequestId, selection: &Selection, sum: u32) -> Result<()> {
        let mut queued = self.queue.iter_mut().rev();
        let Some(request) = queued.find(|request| request.id == id) else {
            let why = "a checksum was given for a request that is not queued (any more)";
            return Err(Error::Refused(why.to_string()));
        };
        request.expected = Some(Box::new(Expected { sum, selection: selection.in_words() }));
        Ok(())
    }
}

impl Dataset {
    /// Like [`Dataset::put`], if `sum` is the crc32c of `data`; otherwise nothing is written. Independent.
    pub fn put_checked<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
        sum: u32,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let id = self.iput(&mut queue, var, selection, data)?;
        queue.expect_crc32c(id, selection, sum)?;
        self.wait(&mut queue)
    }

    /// Like [`Dataset::put_all`], if `sum` is the crc32c of `data` on every rank; otherwise nothing is written. Collective.
    ///
    /// ```
    /// # use esker::*;
    /// # fn main() -> Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let mut def = Dataset::create(dir.path().join("x.nc"), CreateOptions::new())?;
    /// # let x = def.add_dim("x", DimLen::Fixed(4))?;
    /// # let t = def.add_var("t", ExternalType::Float, &[x])?;
    /// # let mut ds = def.enddef()?;
    /// let temperature = [280.5f32, 281.0, 279.25, 280.0];
    /// let sum = esker::crc32c(&temperature);
    /// ds.put_all_checked(t, &Selection::all(), &temperature, sum)?;
    /// let (back, same) = ds.get_all_checked::<f32>(t, &Selection::all())?;
    /// assert_eq!((&back[..], same), (&temperature[..], sum));
    /// # Ok(()) }
    /// ```
    pub fn put_all_checked<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
        data: &[T],
        sum: u32,
    ) -> Result<()> {
        let mut queue = Requests::new();
        let queued = self.iput(&mut queue, var, selection, data);
        let queued = queued.and_then(|id| queue.expect_crc32c(id, selection, sum));
        self.all_together(&mut queue, queued)
    }

    /// Like [`Dataset::get`], with the crc32c of what is in the vector. Independent.
    pub fn get_checked<T: Native>(
        &self,
        var: VarId,
        selection: &Selection,
    ) -> Result<(Vec<T>, u32)> {
        let values = self.get(var, selection)?;
        let sum = crc32c(&values);
        Ok((values, sum))
    }

    /// Like [`Dataset::get_all`], with the crc32c of what is in the vector. Collective.
    pub fn get_all_checked<T: Native>(
        &mut self,
        var: VarId,
        selection: &Selection,
    ) -> Result<(Vec<T>, u32)> {
        let values = self.get_all(var, selection)?;
        let sum = crc32c(&values);
        Ok((values, sum))
    }

    /// Fails unless the memory of a request that has a checksum is what that says.
    pub(crate) fn require_expected(&self, request: &Request<'_>) -> Result<()> {
        let Some(Expected { sum, selection }) = request.expected.as_deref() else { return Ok(()) };
        let (expected, found) = (*sum, request.memory.crc32c());
        if expected == found {
            return Ok(());
        }
        let what = match request.direction {
            Direction::Put => "what is to be written has",
            Direction::Get => "what was read has",
        };
        let (path, var) = (self.ground.base.path.clone(), self.ground.name(request.var));
        Err(Error::Checksum { path, var, selection: selection.clone(), expected, found, what })
    }

    /// The same for all that is to be written.
    pub(crate) fn require_all_expected(&self, requests: &[Request<'_>]) -> Result<()> {
        let puts = requests.iter().filter(|request| request.direction == Direction::Put);
        puts.into_iter().try_for_each(|put| self.require_expected(put))
    }
}
