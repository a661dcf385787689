//! Memory whose type is known only when the program runs, and requests that a front end refuses.

use esker::{
    CreateOptions, Dataset, DimLen, Error, ExternalType, MemoryLayout, MemoryType, Selection,
};

#[test]
fn bytes_of_any_type_and_alignment_go_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nc");
    let outcomes = esker::launch(2, |comm| -> esker::Result<()> {
        let rank = comm.rank() as u64;
        let mut def = Dataset::create(&path, CreateOptions::new().comm(comm))?;
        let x = def.add_dim("x", DimLen::Fixed(6))?;
        let v = def.add_var("v", ExternalType::Short, &[x])?;
        let mut ds = def.enddef()?;
        // Doubles that begin at an odd byte.
        let mut bytes = vec![0u8];
        for i in 0..3 {
            bytes.extend((10.0 * rank as f64 + i as f64).to_ne_bytes());
        }
        let mine = Selection::slab(&[3 * rank], &[3]);
        ds.put_bytes_all(v, &mine, (&bytes[1..], MemoryType::F64), MemoryLayout::dense())?;
        let mut back = [0u8; 13];
        let turned = MemoryLayout::strided(2, &[3], &[-1]);
        ds.get_bytes_all(v, &mine, (&mut back[1..], MemoryType::I32), turned.clone())?;
        let expected: Vec<u8> =
            (0..3).rev().flat_map(|i| (10 * rank as i32 + i).to_ne_bytes()).collect();
        assert_eq!(back[1..], expected);
        back.fill(0);
        ds.get_bytes(v, &mine, (&mut back[1..], MemoryType::I32), turned)?;
        assert_eq!(back[1..], expected);
        ds.close()
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}

#[test]
fn what_one_rank_refuses_is_an_error_on_all_and_the_dataset_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.nc");
    let outcomes = esker::launch(3, |comm| -> esker::Result<()> {
        let rank = comm.rank();
        let mut def = Dataset::create(&path, CreateOptions::new().comm(comm))?;
        let x = def.add_dim("x", DimLen::Fixed(3))?;
        let v = def.add_var("v", ExternalType::Int, &[x])?;
        let mut ds = def.enddef()?;
        let own = Selection::element(&[rank as u64]);
        let refused = match rank {
            1 => ds.refuse_all("no such key"),
            _ => ds.put_all(v, &own, &[7]),
        };
        match (rank, refused.unwrap_err()) {
            (1, Error::Refused(why)) => assert_eq!(why, "no such key"),
            (0 | 2, Error::OtherRank { rank: 1, message }) => assert_eq!(message, "no such key"),
            (_, other) => panic!("rank {rank}: {other}"),
        }
        ds.put_all(v, &own, &[rank as i32])?;
        assert_eq!(ds.get_all::<i32>(v, &Selection::all())?, [0, 1, 2]);
        ds.close()
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}
