//! Which variables of a plan can be decomposed, and by what maps.

use esker::{Define, DimId, Selection};

use crate::plan::{Plan, RankPlan, Slabs};
use crate::worker::WorkerError;

/// The maps of a plan.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    maps: Vec<Cut>,
    /// The map of each variable that has one.
    of_var: Vec<Option<usize>>,
}

/// How variables are cut: their dimensions without the record's, and the list of each rank.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    dims: Vec<usize>,
    lists: Vec<Option<usize>>,
}

impl Maps {
    /// Variables that several ranks write, each always the same part, are decomposed; those
    /// that are cut alike share a map.
    pub(crate) fn of(plan: &Plan) -> Maps {
        let lists: Vec<Vec<Option<Vec<usize>>>> =
            plan.ranks.iter().map(|rank| lists_of(rank, plan.vars.len())).collect();
        let mut maps = Maps::default();
        for (number, var) in plan.vars.iter().enumerate() {
            let has_len = |d: &usize| plan.dims[*d].len.is_some();
            let dims: Vec<usize> = var.dims.iter().copied().filter(has_len).collect();
            let one = |of: &Option<Vec<usize>>| match of.as_deref() {
                None => Some(None),
                Some([list]) => Some(Some(*list)),
                Some(_) => None,
            };
            let cut: Option<Vec<Option<usize>>> = lists.iter().map(|of| one(&of[number])).collect();
            let cut = cut.filter(|cut| cut.iter().flatten().count() > 1 && !dims.is_empty());
            let map = cut.map(|lists| maps.number(Cut { dims, lists }));
            maps.of_var.push(map);
        }
        maps
    }

    fn number(&mut self, cut: Cut) -> usize {
        let known = self.maps.iter().position(|known| *known == cut);
        known.unwrap_or_else(|| {
            self.maps.push(cut);
            self.maps.len() - 1
        })
    }

    /// Defines the maps; gives their numbers in the file. Collective.
    pub(crate) fn define(
        &self,
        define: &mut Define,
        dims: &[DimId],
        plan: &Plan,
        rank: usize,
    ) -> Result<Vec<esker::DecompositionId>, WorkerError> {
        let mut ids = Vec::new();
        for Cut { dims: own, lists } in &self.maps {
            let over: Vec<DimId> = own.iter().map(|d| dims[*d]).collect();
            let mine = match lists[rank].map(|list| &plan.ranks[rank].lists[list]) {
                None => Selection::none(),
                Some(Slabs { rank, starts, counts, .. }) => {
                    Selection::list(*rank, starts.clone(), counts.clone())
                }
            };
            ids.push(define.add_decomposition(&over, &mine)?);
        }
        Ok(ids)
    }

    /// The map of a variable.
    pub(crate) fn of_var(&self, var: usize) -> Option<usize> {
        self.of_var.get(var).copied().flatten()
    }
}

/// The lists by which a rank writes each variable, `None` if it does not.
fn lists_of(rank: &RankPlan, vars: usize) -> Vec<Option<Vec<usize>>> {
    let mut lists: Vec<Option<Vec<usize>>> = vec![None; vars];
    for request in rank.steps.iter().flatten() {
        let of_var = lists[request.var].get_or_insert_default();
        if !of_var.contains(&request.list) {
            of_var.push(request.list);
        }
    }
    lists
}
