//! Orders of dimensions.

/// So many orders are tried: all of up to four dimensions.
const MOST: usize = 24;

/// Orders of this many dimensions, the natural one first: all of them, or turned ones and their reverses.
pub(super) fn orders(dims: usize) -> Vec<Vec<usize>> {
    if dims <= 4 {
        let mut orders = vec![Vec::new()];
        for _ in 0..dims {
            let longer = |order: &Vec<usize>| {
                let order = order.clone();
                (0..dims)
                    .filter(|dim| !order.contains(dim))
                    .map(|dim| [&order[..], &[dim]].concat())
                    .collect::<Vec<_>>()
            };
            orders = orders.iter().flat_map(longer).collect();
        }
        return orders;
    }
    let turned = (0..dims).flat_map(|by| {
        let forward: Vec<usize> = (0..dims).map(|dim| (dim + by) % dims).collect();
        let backward = forward.iter().rev().copied().collect();
        [forward, backward]
    });
    turned.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_few_dimensions_comes_once() {
        assert_eq!(orders(1), [[0]]);
        assert_eq!(orders(2), [[0, 1], [1, 0]]);
        for (dims, count) in [(3, 6), (4, 24), (5, 10), (40, 24)] {
            let mut all = orders(dims);
            assert_eq!(all[0], (0..dims).collect::<Vec<_>>());
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }
}
