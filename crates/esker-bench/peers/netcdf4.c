/* netCDF-C on parallel HDF5: a vara call for each slab, since netCDF has no lists, collective where
 * chunks are compressed or several ranks take part. */
#include <netcdf.h>
#include <netcdf_par.h>

#include "chunked.h"

static int file;
static Rounds rounds;

static void check(int status, const char *what)
{
    if (status != NC_NOERR)
        end_job(what, nc_strerror(status));
}

static uint64_t calls_of(const Plan *plan, const Request *r)
{
    (void)plan;
    return r->list->slabs;
}

static void prepare(Plan *plan) { rounds = rounds_of(plan, calls_of); }

static void create_file(const char *path)
{
    check(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "create");
    int before;
    check(nc_set_fill(file, NC_NOFILL, &before), "set_fill");
}

/* A record dimension is as long as it will be: an unlimited one makes netCDF-4 grow all variables
 * together, and gives those without chunks chunks of its own. */
static void define(const Plan *plan)
{
    int id;
    Filters filters = filters_of(plan);
    for (int i = 0; i < plan->dims; i++) {
        uint64_t length = plan->dim[i].length ? plan->dim[i].length : plan->records;
        check(nc_def_dim(file, plan->dim[i].name, length, &id), plan->dim[i].name);
    }
    for (int i = 0; i < plan->vars; i++) {
        const Var *v = &plan->var[i];
        size_t chunk[64];
        check(nc_def_var(file, v->name, v->type, v->dims, v->dim, &id), v->name);
        for (int d = 0; v->chunk && d < v->dims; d++)
            chunk[d] = v->chunk[d];
        if (v->dims)
            check(nc_def_var_chunking(file, id, v->chunk ? NC_CHUNKED : NC_CONTIGUOUS, v->chunk ? chunk : NULL), v->name);
        if (v->chunk && (filters.shuffle || filters.level))
            check(nc_def_var_deflate(file, id, filters.shuffle, filters.level > 0, filters.level), v->name);
    }
    check(nc_enddef(file), "enddef");
}

static void call(const Var *v, const size_t *start, const size_t *count, char *at, int writing)
{
    check(writing ? nc_put_vara(file, v->id, start, count, at) : nc_get_vara(file, v->id, start, count, at), v->name);
}

static void transfer(const Plan *plan, int writing)
{
    int *access = allocate((size_t)plan->vars * sizeof *access);
    for (int i = 0; i < plan->vars; i++)
        access[i] = -1;
    for (int i = 0; i < rounds.rounds; i++) {
        const Round *round = &rounds.round[i];
        const Var *v = round->var;
        int together = is_collective(plan, round, writing);
        int wanted = together ? NC_COLLECTIVE : NC_INDEPENDENT;
        if (access[v->id] != wanted)
            check(nc_var_par_access(file, v->id, wanted), v->name);
        access[v->id] = wanted;
        char nothing[8] = "", *at = round->mine ? round->mine->memory : nothing;
        for (uint64_t k = 0; k < (together ? round->most : round->calls); k++) {
            size_t start[64] = {0}, count[64] = {0};
            if (k < round->calls)
                SLAB_OF(round->mine, k, start, count);
            call(v, start, count, at, writing);
            at += k < round->calls ? size_of(v->type) * slab_elements(round->mine->list, k) : 0;
        }
    }
    free(access);
}

static void write_plan(const Plan *plan) { transfer(plan, 1); }

static void read_back(const Plan *plan) { transfer(plan, 0); }

static void sync_file(void) { check(nc_sync(file), "sync"); }

static void close_file(void) { check(nc_close(file), "close"); }

static void open_file(const char *path)
{
    check(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "open");
}

static const char *library(void)
{
    static char name[80];
    char version[64] = "";
    sscanf(nc_inq_libvers(), "%63s", version);
    snprintf(name, sizeof name, "netCDF %s", version);
    return name;
}

int main(int argc, char **argv)
{
    const Peer peer = {library,   prepare,    create_file, define,    write_plan,
                       sync_file, close_file, open_file,   read_back, 0};
    return carry_out(argc, argv, &peer);
}
