/* One contiguous blob for each variable and rank, through PnetCDF: what E3SM does itself where the
 * canonical order is too slow. A variable is a vector of all its elements, or one for each record,
 * in which a rank's elements stand together in the order of its memory. The maps that tell which
 * elements those are would be written once; they are left out. */
#include "on_pnetcdf.h"

/* Of each variable: elements before this rank's, and elements of all. */
static uint64_t *first, *total;

static void prepare(Plan *plan)
{
    size_t vars = (size_t)plan->vars;
    uint64_t *mine = allocate(vars * sizeof *mine), *in_record = allocate(vars * sizeof *in_record);
    uint64_t *record = allocate(vars * sizeof *record);
    first = allocate(vars * sizeof *first);
    total = allocate(vars * sizeof *total);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t v = 0; v < vars; v++) {
            in_record[v] = 0;
            record[v] = no_record;
        }
        EACH_REQUEST(plan, r)
        {
            int v = r->var->id;
            if (r->record != record[v]) {
                record[v] = r->record;
                in_record[v] = 0;
            }
            if (pass == 1) {
                int extra = r->record != no_record;
                Slabs *slabs = allocate(sizeof *slabs);
                MPI_Offset *numbers = allocate(4 * sizeof *numbers);
                numbers[0] = (MPI_Offset)r->record;
                numbers[extra] = (MPI_Offset)(first[v] + in_record[v]);
                numbers[2] = 1;
                numbers[2 + extra] = (MPI_Offset)r->list->elements;
                slabs->n = 1;
                slabs->starts = allocate(sizeof *slabs->starts);
                slabs->counts = allocate(sizeof *slabs->counts);
                slabs->starts[0] = numbers;
                slabs->counts[0] = numbers + 2;
                r->prepared = slabs;
            }
            in_record[v] += r->list->elements;
            mine[v] = in_record[v] > mine[v] ? in_record[v] : mine[v];
        }
        if (pass == 0) {
            MPI_Exscan(mine, first, plan->vars, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
            if (rank == 0)
                memset(first, 0, vars * sizeof *first);
            MPI_Allreduce(mine, total, plan->vars, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        }
    }
    free(mine);
    free(in_record);
    free(record);
}

static void define(const Plan *plan)
{
    int time = -1, id, lengths = 0, *length_id = allocate((size_t)plan->vars * sizeof(int));
    uint64_t *length = allocate((size_t)plan->vars * sizeof *length);
    for (int i = 0; i < plan->dims; i++)
        if (!plan->dim[i].length)
            check(ncmpi_def_dim(file, plan->dim[i].name, NC_UNLIMITED, &time), plan->dim[i].name);
    for (int i = 0; i < plan->vars; i++) {
        const Var *v = &plan->var[i];
        int k = 0;
        while (k < lengths && length[k] != total[i])
            k++;
        if (k == lengths) {
            char name[40];
            snprintf(name, sizeof name, "elements_%llu", (unsigned long long)total[i]);
            check(ncmpi_def_dim(file, name, (MPI_Offset)total[i], &length_id[k]), name);
            length[lengths++] = total[i];
        }
        int has_records = v->dims && !plan->dim[v->dim[0]].length;
        int dims[2] = {time, length_id[k]};
        check(ncmpi_def_var(file, v->name, v->type, 1 + has_records, dims + !has_records, &id), v->name);
    }
    check(ncmpi_enddef(file), "enddef");
    free(length);
    free(length_id);
}

int main(int argc, char **argv)
{
    const Peer peer = {library,   prepare,    create_file, define,    write_plan,
                       sync_file, close_file, open_file,   read_back, 1};
    return carry_out(argc, argv, &peer);
}
