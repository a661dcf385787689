/* What the programs on HDF5 and netCDF-4 share: the filters, and calls that all ranks make together.
 *
 * Both libraries take one request for one variable at a time, and where chunks are compressed all
 * ranks have to make each call. So the requests of a step become rounds, in each of which every rank
 * has a request for the same variable, or none; and a round is as many calls as the rank needs that
 * needs most. */
#include "plan.h"

/* `deflate,N` with or without `shuffle`; level 0 for no deflate. */
typedef struct { int shuffle, level; } Filters;

static Filters filters_of(const Plan *plan)
{
    Filters filters = {0, 0};
    char *text = allocate(strlen(plan->pipeline) + 1), *rest;
    strcpy(text, plan->pipeline);
    for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        if (!strcmp(name, "shuffle") && !filters.level)
            filters.shuffle = 1;
        else if (!strncmp(name, "deflate,", 8) && name[8] >= '1' && name[8] <= '9' && !name[9])
            filters.level = name[8] - '0';
        else
            fail("the filters here are shuffle and deflate,1 to deflate,9, in this order");
    }
    free(text);
    return filters;
}

static int is_filtered(const Plan *plan, const Var *v) { return v->chunk && plan->pipeline[0]; }

/* A request of each rank for the same variable; `mine` is NULL on a rank that has none. `calls` is
 * how many this rank needs, and `most` any rank. */
typedef struct { const Var *var; Request *mine; int kind, ranks; uint64_t calls, most; } Round;
typedef struct { int rounds; Round *round; } Rounds;

/* `calls` tells how many calls of the library a request takes. */
static Rounds rounds_of(const Plan *plan, uint64_t (*calls)(const Plan *, const Request *))
{
    size_t vars = (size_t)plan->vars, numbers = (size_t)plan->steps * vars, all = 0;
    int *mine = allocate(numbers * sizeof *mine), *most = allocate(numbers * sizeof *most);
    for (int i = 0; i < plan->steps; i++)
        for (int k = 0; k < plan->step[i].requests; k++)
            mine[(size_t)i * vars + (size_t)plan->step[i].request[k].var->id]++;
    MPI_Allreduce(mine, most, (int)numbers, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (size_t n = 0; n < numbers; n++)
        all += (size_t)most[n];
    Rounds rounds = {(int)all, allocate(all * sizeof(Round))};
    int *at = allocate(vars * sizeof *at), next_round = 0;
    for (int i = 0; i < plan->steps; i++) {
        const Step *step = &plan->step[i];
        for (size_t v = 0; v < vars; v++) {
            at[v] = next_round;
            next_round += most[(size_t)i * vars + v];
            for (int k = at[v]; k < next_round; k++) {
                rounds.round[k].var = &plan->var[v];
                rounds.round[k].kind = step->calls;
            }
        }
        for (int k = 0; k < step->requests; k++)
            rounds.round[at[step->request[k].var->id]++].mine = &step->request[k];
    }
    uint64_t *needed = allocate(all * sizeof *needed), *by_most = allocate(all * sizeof *by_most);
    int *takes_part = allocate(all * sizeof *takes_part), *ranks_in = allocate(all * sizeof *ranks_in);
    for (size_t n = 0; n < all; n++) {
        takes_part[n] = rounds.round[n].mine != NULL;
        needed[n] = takes_part[n] ? calls(plan, rounds.round[n].mine) : 0;
    }
    MPI_Allreduce(needed, by_most, (int)all, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(takes_part, ranks_in, (int)all, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (size_t n = 0; n < all; n++) {
        rounds.round[n].calls = needed[n];
        rounds.round[n].most = by_most[n];
        rounds.round[n].ranks = ranks_in[n];
    }
    free(mine);
    free(most);
    free(at);
    free(needed);
    free(by_most);
    free(takes_part);
    free(ranks_in);
    return rounds;
}

/* Whether all ranks make a round's calls together: where the library wants it, and where several
 * have something to say. */
static int is_collective(const Plan *plan, const Round *round, int writing)
{
    if (writing && is_filtered(plan, round->var))
        return 1;
    return round->kind != INDEPENDENT && round->ranks > 1;
}

static uint64_t slab_elements(const List *l, uint64_t slab)
{
    uint64_t elements = 1;
    for (int d = 0; d < l->dims; d++)
        elements *= l->counts[slab * (uint64_t)l->dims + (uint64_t)d];
    return elements;
}

/* Start and count of a slab in all dimensions of the variable. */
#define SLAB_OF(r, slab, start, count)                                                             \
    do {                                                                                           \
        const List *l_ = (r)->list;                                                                \
        int extra_ = (r)->var->dims - l_->dims;                                                    \
        if (extra_) {                                                                              \
            (start)[0] = (r)->record;                                                              \
            (count)[0] = 1;                                                                        \
        }                                                                                          \
        for (int d_ = 0; d_ < l_->dims; d_++) {                                                    \
            (start)[d_ + extra_] = l_->starts[(slab) * (uint64_t)l_->dims + (uint64_t)d_];          \
            (count)[d_ + extra_] = l_->counts[(slab) * (uint64_t)l_->dims + (uint64_t)d_];          \
        }                                                                                          \
    } while (0)
