//! The demonstration's file, defined, written and read by all ranks together.

use std::path::Path;
use std::sync::Arc;

use esker::{Communicator, CreateOptions, Dataset, Define, Error, FillMode, OpenOptions};
use esker::{
    DimId, DimLen, ExternalType, Owner, Requests, Result, Selection, Values, VarId, Version,
};

use esker_comm::CommunicatorExt;

use super::sea::{Area, Grid, LAND};
use super::waves::Fields;

/// The file while it is being written.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) dataset: Dataset,
    area: Area,
    time: VarId,
    fields: [VarId; 3],
}

/// Names of the variables that [`Fields`] has, in its order.
const NAMES: [&str; 3] = ["eta", "u", "v"];

impl Output {
    /// Defines the file; an existing one is not replaced. Every rank defines all of it, which
    /// costs one comparison. Collective.
    pub(super) fn create(
        path: &Path,
        comm: &Arc<dyn Communicator>,
        grid: &Grid,
        area: &Area,
        depth: &[f32],
    ) -> Result<Output> {
        // Every element will be written, so nothing needs to be filled first.
        let options = CreateOptions::new()
            .version(Version::Cdf2)
            .clobber(false)
            .fill(FillMode::NoFill)
            .comm(Arc::clone(comm));
        let mut define = Dataset::create(path, options)?;
        let time_dim = define.add_dim("time", DimLen::Unlimited)?;
        let y_dim = define.add_dim("y", DimLen::Fixed(grid.rows as u64))?;
        let x_dim = define.add_dim("x", DimLen::Fixed(grid.columns as u64))?;
        for (name, value) in [
            ("Conventions", "CF-1.8"),
            ("title", "A tsunami in a made-up sea"),
            ("source", "esker demo: linear shallow-water waves"),
        ] {
            define.put_attr(Owner::Global, name, value)?;
        }
        let time = coordinate(&mut define, "time", time_dim, "seconds since 2001-01-01", "T")?;
        define.put_attr(time, "calendar", "standard")?;
        let y = coordinate(&mut define, "y", y_dim, "km", "Y")?;
        define.put_attr(y, "long_name", "distance to the north")?;
        let x = coordinate(&mut define, "x", x_dim, "km", "X")?;
        define.put_attr(x, "long_name", "distance to the east")?;
        let mut field = |name, dims: &[DimId], long: &str, standard: &str, units: &str| {
            let var = define.add_var(name, ExternalType::Float, dims)?;
            define.put_attr(var, "long_name", long)?;
            define.put_attr(var, "standard_name", standard)?;
            define.put_attr(var, "units", units)?;
            define.put_attr(var, "_FillValue", Values::Float(vec![LAND]))?;
            Ok::<_, esker::Error>(var)
        };
        let (level, dims) = ("sea_floor_depth_below_mean_sea_level", [time_dim, y_dim, x_dim]);
        let depth_var = field("depth", &dims[1..], "depth of the sea", level, "m")?;
        let level = "sea_surface_height_above_mean_sea_level";
        let fields = [
            field(NAMES[0], &dims, "height of the sea surface", level, "m")?,
            field(NAMES[1], &dims, "current to the east", "sea_water_x_velocity", "m s-1")?,
            field(NAMES[2], &dims, "current to the north", "sea_water_y_velocity", "m s-1")?,
        ];
        let mut dataset = define.enddef()?;

        // What does not change: coordinates from one rank, the depth from all.
        let root = comm.rank() == 0;
        let (xs, ys) = (grid.x(), grid.y());
        let mut queue = Requests::new();
        let mut queued = dataset.iput(&mut queue, depth_var, &block(area, None), depth);
        for (var, values) in [(y, &ys), (x, &xs)].into_iter().filter(|_| root) {
            queued = queued.and_then(|_| dataset.iput(&mut queue, var, &Selection::all(), values));
        }
        agree(comm, queued)?;
        dataset.wait_all(&mut queue)?;
        drop(queue);
        Ok(Output { dataset, area: area.clone(), time, fields })
    }

    /// Writes one record: everything is queued, and one wait moves it all. Collective.
    pub(super) fn write(&mut self, record: u64, seconds: f64, fields: &Fields) -> Result<()> {
        let (comm, dataset) = (Arc::clone(self.dataset.comm()), &mut self.dataset);
        let (now, block) = (Selection::element(&[record]), block(&self.area, Some(record)));
        let seconds = [seconds];
        let mut queue = Requests::new();
        let mut queued = Ok(());
        for (var, values) in self.fields.into_iter().zip(fields.all()) {
            queued = queued.and_then(|()| dataset.iput(&mut queue, var, &block, values).map(drop));
        }
        if comm.rank() == 0 {
            queued =
                queued.and_then(|()| dataset.iput(&mut queue, self.time, &now, &seconds).map(drop));
        }
        agree(&comm, queued)?;
        dataset.wait_all(&mut queue)
    }
}

/// The file while it is being read back.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) dataset: Dataset,
    fields: [VarId; 3],
}

impl Input {
    /// Opens the file. Collective.
    pub(super) fn open(path: &Path, comm: &Arc<dyn Communicator>) -> Result<Input> {
        let dataset = Dataset::open_with(path, OpenOptions::new().comm(Arc::clone(comm)))?;
        let [eta, u, v] = NAMES.map(|name| dataset.var(name));
        Ok(Input { fields: [eta?, u?, v?], dataset })
    }

    /// Reads this rank's block of one record. Collective.
    pub(super) fn read(&mut self, record: u64, area: &Area) -> Result<Fields> {
        let mut fields = Fields::zeros(area.cells());
        let block = block(area, Some(record));
        let mut queue = Requests::new();
        let mut queued = Ok(());
        for (var, out) in self.fields.into_iter().zip(fields.all_mut()) {
            let dataset = &self.dataset;
            queued = queued.and_then(|()| dataset.iget(&mut queue, var, &block, out).map(drop));
        }
        agree(self.dataset.comm(), queued)?;
        self.dataset.wait_all(&mut queue)?;
        drop(queue);
        Ok(fields)
    }
}

/// A rank's cells, in one record or in a variable without records.
fn block(area: &Area, record: Option<u64>) -> Selection {
    if area.cells() == 0 {
        return Selection::none();
    }
    let ([row, column], [rows, columns]) = area.slab();
    match record {
        Some(record) => Selection::slab(&[record, row, column], &[1, rows, columns]),
        None => Selection::slab(&[row, column], &[rows, columns]),
    }
}

/// A rank that could not queue its part must not leave the others waiting for it. Collective.
fn agree<T>(comm: &Arc<dyn Communicator>, queued: Result<T>) -> Result<T> {
    let other = |rank, message| Error::OtherRank { rank, message };
    comm.agree(queued).map_err(|disagreement| disagreement.into_error(other))
}

fn coordinate(
    define: &mut Define,
    name: &str,
    dim: DimId,
    units: &str,
    axis: &str,
) -> Result<VarId> {
    let var = define.add_var(name, ExternalType::Double, &[dim])?;
    let standard = match axis {
        "T" => "time",
        "Y" => "projection_y_coordinate",
        _ => "projection_x_coordinate",
    };
    for (name, value) in [("standard_name", standard), ("units", units), ("axis", axis)] {
        define.put_attr(var, name, value)?;
    }
    Ok(var)
}
