//! How much a log says about what it holds, on real decompositions.

use std::sync::Arc;

use esker::{
    CreateOptions, Dataset, DimId, DimLen, ExternalType, Layout, Requests, Selection, VarId,
};
use esker_bench::kernels::{Kernel, Scale};
use esker_bench::plan::{Element, Plan};
use esker_comm::CommunicatorExt;
use esker_testkit::skip;

/// Data, metadata and what the paper's plain encoding takes, of each step.
struct Step {
    data: u64,
    metadata: u64,
    plain: u64,
}

fn write(plan: &Plan, ranks: usize) -> Vec<Step> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.esk");
    let mut all = esker::launch(ranks, |comm| {
        let options = CreateOptions::new().layout(Layout::Log).comm(Arc::clone(&comm));
        let mut define = Dataset::create(&path, options).unwrap();
        let dims: Vec<DimId> = plan
            .dims
            .iter()
            .map(|d| {
                define.add_dim(&d.name, d.len.map_or(DimLen::Unlimited, DimLen::Fixed)).unwrap()
            })
            .collect();
        for var in &plan.vars {
            let over: Vec<DimId> = var.dims.iter().map(|d| dims[*d]).collect();
            let ty = match var.element {
                Element::I32 => ExternalType::Int,
                Element::F32 => ExternalType::Float,
                Element::F64 => ExternalType::Double,
                Element::I64 => ExternalType::Int64,
                Element::U16 => ExternalType::UShort,
            };
            define.add_var(&var.name, ty, &over).unwrap();
        }
        let mut dataset = define.enddef().unwrap();
        let rank = &plan.ranks[comm.rank()];
        let mut steps = Vec::new();
        for step in &rank.steps {
            let mut queue = Requests::new();
            dataset.reset_report();
            let (mut data, mut plain) = (0, 0);
            for request in step {
                // A new selection for every request, as a program in C makes them.
                let slabs = rank.lists[request.list].of_record(request.record);
                let size = plan.vars[request.var].element.size();
                let bytes = vec![7u8; (slabs.elements() * size) as usize];
                data += bytes.len() as u64;
                // A header of 40 bytes, a start and a count in each dimension for each block.
                plain += 40 + slabs.len as u64 * slabs.rank as u64 * 16;
                let selection = Selection::list(slabs.rank, slabs.starts, slabs.counts);
                let memory = match plan.vars[request.var].element {
                    Element::I32 => esker::MemoryType::I32,
                    Element::F32 => esker::MemoryType::F32,
                    Element::F64 => esker::MemoryType::F64,
                    Element::I64 => esker::MemoryType::I64,
                    Element::U16 => esker::MemoryType::U16,
                };
                let bytes: &'static [u8] = bytes.leak();
                let dense = esker::MemoryLayout::dense();
                dataset
                    .iput_bytes(&mut queue, VarId(request.var), &selection, (bytes, memory), dense)
                    .unwrap();
            }
            dataset.wait_all(&mut queue).unwrap();
            dataset.sync().unwrap();
            let metadata = dataset.report().log_metadata;
            let sum = |n| comm.sum_u64(n).unwrap();
            steps.push(Step { data: sum(data), metadata: sum(metadata), plain: sum(plain) });
        }
        dataset.close().unwrap();
        steps
    });
    all.swap_remove(0)
}

fn require(kernel: Kernel) {
    let Some(maps) = esker_bench::maps_folder(None) else {
        skip!("there are no decomposition maps");
        return;
    };
    let map = kernel.recorded(&maps).unwrap();
    for ranks in [4, 16] {
        let scale = Scale { records: Some(3), ..Scale::default() };
        let plan = kernel.plan(ranks, &scale, map.as_ref()).unwrap();
        let steps = write(&plan, ranks);
        let first = &steps[0];
        println!(
            "{} on {ranks} ranks, first step: {} bytes of data, {} of metadata, {} plainly",
            kernel.name(),
            first.data,
            first.metadata,
            first.plain
        );
        assert!(first.metadata * 10 < first.plain);
        for step in &steps[1..] {
            let share = step.metadata as f64 / step.data as f64;
            println!("then {:.3} % metadata", 100.0 * share);
            assert!(share < 0.01);
        }
    }
}

#[test]
fn the_atmosphere_takes_a_hundredth_of_its_data() {
    require(Kernel::E3smF);
}

#[test]
fn the_ocean_takes_a_hundredth_of_its_data() {
    require(Kernel::E3smG);
}
