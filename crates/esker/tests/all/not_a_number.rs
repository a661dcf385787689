//! Attributes that are not numbers, which are not equal to themselves.

use esker::{CreateOptions, Dataset, DimLen, ExternalType, OpenOptions, Selection};

#[test]
fn a_file_whose_fill_value_is_not_a_number_is_redefined_and_seen_to_grow() {
    let dir = tempfile::tempdir().unwrap();
    for chunks in [false, true] {
        let path = dir.path().join("run.nc");
        let mut def = Dataset::create(&path, CreateOptions::new()).unwrap();
        let time = def.add_dim("time", DimLen::Unlimited).unwrap();
        let t = def.add_var("t", ExternalType::Float, &[time]).unwrap();
        def.put_attr(t, "_FillValue", f32::NAN).unwrap();
        if chunks {
            def.set_chunks(t, &[2]).unwrap();
        }
        let ds = def.enddef().unwrap();
        ds.close().unwrap();
        let mut reader = Dataset::open(&path).unwrap();
        let mut ds = Dataset::open_with(&path, OpenOptions::new().writable(true)).unwrap();
        ds.put(t, &Selection::slab(&[1], &[1]), &[5f32]).unwrap();
        ds.sync().unwrap();
        reader.sync().unwrap();
        assert_eq!(reader.numrecs(), 2);
        let found = reader.get::<f32>(t, &Selection::all()).unwrap();
        assert!(found[0].is_nan() && found[1] == 5.0, "{found:?}");
        let mut def = ds.redef().unwrap();
        let more = def.add_var("more", ExternalType::Int, &[]).unwrap();
        let mut ds = def.enddef().unwrap();
        ds.put(more, &Selection::all(), &[7]).unwrap();
        ds.close().unwrap();
        let ds = Dataset::open(&path).unwrap();
        assert_eq!(ds.get::<i32>(more, &Selection::all()).unwrap(), [7]);
    }
}
