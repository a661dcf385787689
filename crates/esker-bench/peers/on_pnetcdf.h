/* What the two programs on PnetCDF share. */
#include <pnetcdf.h>

#include "plan.h"

static int file;

static void check(int status, const char *what)
{
    if (status != NC_NOERR)
        end_job(what, ncmpi_strerror(status));
}

static void create_file(const char *path)
{
    check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
}

static void open_file(const char *path)
{
    check(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file), "open");
}

static void sync_file(void) { check(ncmpi_sync(file), "sync"); }

static void close_file(void) { check(ncmpi_close(file), "close"); }

/* One request: `n` hyperslabs, by the kind of call that the step has. */
static int call(const Request *r, int calls, int writing, int n, MPI_Offset **starts, MPI_Offset **counts, int *id)
{
    int v = r->var->id, single = n == 1;
    MPI_Offset elements = (MPI_Offset)r->list->elements;
    MPI_Datatype type = mpi_type(r->var->type);
    void *m = r->memory;
    if (calls == QUEUED && writing)
        return single ? ncmpi_iput_vara(file, v, starts[0], counts[0], m, elements, type, id)
                      : ncmpi_iput_varn(file, v, n, starts, counts, m, elements, type, id);
    if (calls == QUEUED)
        return single ? ncmpi_iget_vara(file, v, starts[0], counts[0], m, elements, type, id)
                      : ncmpi_iget_varn(file, v, n, starts, counts, m, elements, type, id);
    if (calls == INDEPENDENT && writing)
        return single ? ncmpi_put_vara(file, v, starts[0], counts[0], m, elements, type)
                      : ncmpi_put_varn(file, v, n, starts, counts, m, elements, type);
    if (calls == INDEPENDENT)
        return single ? ncmpi_get_vara(file, v, starts[0], counts[0], m, elements, type)
                      : ncmpi_get_varn(file, v, n, starts, counts, m, elements, type);
    if (writing)
        return single ? ncmpi_put_vara_all(file, v, starts[0], counts[0], m, elements, type)
                      : ncmpi_put_varn_all(file, v, n, starts, counts, m, elements, type);
    return single ? ncmpi_get_vara_all(file, v, starts[0], counts[0], m, elements, type)
                  : ncmpi_get_varn_all(file, v, n, starts, counts, m, elements, type);
}

/* What a request gives to PnetCDF. */
typedef struct { int n; MPI_Offset **starts, **counts; } Slabs;

/* Waits for queued requests. */
static void wait_for(int n, int *id, int *status)
{
    check(ncmpi_wait_all(file, n, id, status), "wait_all");
    for (int k = 0; k < n; k++)
        check(status[k], "wait_all");
}

/* With ESKER_BENCH_QUEUE in the environment what the plan does by blocking collective calls, one after the other, is
 * queued, with one wait: the other way to call. */
static void transfer(const Plan *plan, int writing)
{
    int queue = getenv("ESKER_BENCH_QUEUE") != NULL, most = 0, pending = 0;
    for (int i = 0; i < plan->steps; i++)
        most += plan->step[i].requests;
    int *id = allocate((size_t)most * sizeof *id), *status = allocate((size_t)most * sizeof *status);
    for (int i = 0; i < plan->steps; i++) {
        const Step *step = &plan->step[i];
        int later = queue && step->calls == BLOCKING, calls = later ? QUEUED : step->calls;
        if (pending && !later) {
            wait_for(pending, id, status);
            pending = 0;
        }
        if (calls == INDEPENDENT)
            check(ncmpi_begin_indep_data(file), "begin_indep_data");
        for (int k = 0; k < step->requests; k++) {
            const Request *r = &step->request[k];
            const Slabs *slabs = r->prepared;
            check(call(r, calls, writing, slabs->n, slabs->starts, slabs->counts, &id[pending + k]), r->var->name);
        }
        if (later)
            pending += step->requests;
        else if (calls == QUEUED)
            wait_for(step->requests, id, status);
        if (calls == INDEPENDENT)
            check(ncmpi_end_indep_data(file), "end_indep_data");
        if (writing && syncs_steps && !pending)
            check(ncmpi_sync(file), "sync");
    }
    if (pending)
        wait_for(pending, id, status);
    free(id);
    free(status);
}

static void write_plan(const Plan *plan) { transfer(plan, 1); }

static void read_back(const Plan *plan) { transfer(plan, 0); }

static const char *library(void)
{
    static char name[80];
    char version[64] = "";
    sscanf(ncmpi_inq_libvers(), "%63s", version);
    snprintf(name, sizeof name, "PnetCDF %s", version);
    return name;
}
