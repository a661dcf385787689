/* PnetCDF as programs use it: a request with one hyperslab is a vara call, one with several a varn
 * call; blocking, independent or queued as the plan says. */
#include "on_pnetcdf.h"

#if defined(NEEDS_BURST_BUFFER) && !PNETCDF_BURST_BUFFERING
#error "this PnetCDF was built without its burst buffer"
#endif

static Slabs *slabs_of(const List *from, uint64_t record)
{
    int extra = record != no_record, width = from->dims + extra;
    Slabs *slabs = allocate(sizeof *slabs);
    uint64_t n = from->slabs;
    MPI_Offset *numbers = allocate(2 * n * (size_t)width * sizeof *numbers);
    slabs->n = (int)n;
    slabs->starts = allocate(n * sizeof *slabs->starts);
    slabs->counts = allocate(n * sizeof *slabs->counts);
    for (uint64_t i = 0; i < n; i++) {
        MPI_Offset *start = numbers + 2 * i * (uint64_t)width, *count = start + width;
        if (extra) {
            start[0] = (MPI_Offset)record;
            count[0] = 1;
        }
        for (int d = 0; d < from->dims; d++) {
            start[d + extra] = (MPI_Offset)from->starts[i * (uint64_t)from->dims + (uint64_t)d];
            count[d + extra] = (MPI_Offset)from->counts[i * (uint64_t)from->dims + (uint64_t)d];
        }
        slabs->starts[i] = start;
        slabs->counts[i] = count;
    }
    return slabs;
}

/* Many requests share a list; each is converted once for each record. */
static void prepare(Plan *plan)
{
    uint64_t width = plan->records + 1;
    Slabs **shared = allocate((size_t)plan->lists * (size_t)width * sizeof *shared);
    EACH_REQUEST(plan, r)
    {
        uint64_t of = (uint64_t)(r->list - plan->list) * width;
        of += r->record == no_record ? plan->records : r->record;
        if (!shared[of])
            shared[of] = slabs_of(r->list, r->record);
        r->prepared = shared[of];
    }
    free(shared);
}

static void define(const Plan *plan)
{
    int id;
    for (int i = 0; i < plan->dims; i++) {
        MPI_Offset length = plan->dim[i].length ? (MPI_Offset)plan->dim[i].length : NC_UNLIMITED;
        check(ncmpi_def_dim(file, plan->dim[i].name, length, &id), plan->dim[i].name);
    }
    for (int i = 0; i < plan->vars; i++) {
        const Var *v = &plan->var[i];
        check(ncmpi_def_var(file, v->name, v->type, v->dims, v->dim, &id), v->name);
    }
    check(ncmpi_enddef(file), "enddef");
}

int main(int argc, char **argv)
{
    const Peer peer = {library,   prepare,    create_file, define,    write_plan,
                       sync_file, close_file, open_file,   read_back, 0};
    return carry_out(argc, argv, &peer);
}
