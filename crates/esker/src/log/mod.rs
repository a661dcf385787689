mod sorted;

pub(crate) use sorted::SortedRuns;
