/* ADIOS2's BP5: a local array for each variable, a block of it for each request, all puts deferred.
 * Each queued step of the plan is a step of ADIOS2; blocking and independent calls share one, since
 * deferred puts are how its programs write. */
#include <adios2_c.h>

#include "plan.h"

static adios2_adios *adios;
static adios2_io *io;
static adios2_engine *engine;
static adios2_variable **variable;

static void check(adios2_error status, const char *what)
{
    if (status != adios2_error_none)
        fail(what);
}

static void *have(void *handle, const char *what)
{
    if (!handle)
        fail(what);
    return handle;
}

static int begins_step(const Plan *plan, int i) { return i == 0 || plan->step[i].calls == QUEUED; }

/* Finds the number of each request's block: blocks of a variable are counted within a step, rank
 * after rank. */
static void prepare(Plan *plan)
{
    int steps = 0;
    for (int i = 0; i < plan->steps; i++)
        steps += begins_step(plan, i);
    size_t numbers = (size_t)steps * (size_t)plan->vars;
    uint32_t *mine = allocate(numbers * sizeof *mine), *before = allocate(numbers * sizeof *before);
    for (int pass = 0; pass < 2; pass++) {
        size_t step = 0;
        for (int i = 0; i < plan->steps; i++) {
            step += i > 0 && begins_step(plan, i);
            for (int k = 0; k < plan->step[i].requests; k++) {
                Request *r = &plan->step[i].request[k];
                size_t at = step * (size_t)plan->vars + (size_t)r->var->id;
                if (pass == 0)
                    mine[at]++;
                else {
                    size_t *block = allocate(sizeof *block);
                    *block = before[at]++;
                    r->prepared = block;
                }
            }
        }
        if (pass == 0) {
            MPI_Exscan(mine, before, (int)numbers, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
            if (rank == 0)
                memset(before, 0, numbers * sizeof *before);
        }
    }
    free(mine);
    free(before);
    adios = have(adios2_init_mpi(MPI_COMM_WORLD), "ADIOS2 cannot be started");
}

static void create_file(const char *path)
{
    io = have(adios2_declare_io(adios, "write"), "declare_io");
    check(adios2_set_engine(io, "BP5"), "set_engine");
    /* A file for each rank. The default lets ranks of a node wait for each other by spinning, which
     * took twice as long with more to run than cores. */
    check(adios2_set_parameter(io, "AggregationType", "EveryoneWrites"), "set_parameter");
    engine = have(adios2_open(io, path, adios2_mode_write), "open for writing");
}

static void define(const Plan *plan)
{
    variable = allocate((size_t)plan->vars * sizeof *variable);
    for (int i = 0; i < plan->vars; i++) {
        const Var *v = &plan->var[i];
        adios2_type type = v->type == DOUBLE ? adios2_type_double : v->type == FLOAT ? adios2_type_float : v->type == INT64 ? adios2_type_int64_t : v->type == USHORT ? adios2_type_uint16_t : adios2_type_int32_t;
        size_t count = 1;
        variable[i] = have(adios2_define_variable(io, v->name, type, 1, NULL, NULL, &count, adios2_constant_dims_false), v->name);
    }
}

static void write_plan(const Plan *plan)
{
    adios2_step_status status;
    for (int i = 0; i < plan->steps; i++) {
        if (i > 0 && begins_step(plan, i))
            check(adios2_end_step(engine), "end_step");
        if (begins_step(plan, i))
            check(adios2_begin_step(engine, adios2_step_mode_append, -1, &status), "begin_step");
        for (int k = 0; k < plan->step[i].requests; k++) {
            const Request *r = &plan->step[i].request[k];
            size_t count = r->list->elements;
            check(adios2_set_selection(variable[r->var->id], 1, NULL, &count), r->var->name);
            check(adios2_put(engine, variable[r->var->id], r->memory, adios2_mode_deferred), r->var->name);
        }
    }
    check(adios2_end_step(engine), "end_step");
}

/* What waits for the disk is the close, if anything does. */
static void sync_file(void) {}

static void close_file(void) { check(adios2_close(engine), "close"); }

static void open_file(const char *path)
{
    io = have(adios2_declare_io(adios, "read"), "declare_io");
    check(adios2_set_engine(io, "BP5"), "set_engine");
    engine = have(adios2_open(io, path, adios2_mode_read), "open for reading");
}

static void read_back(const Plan *plan)
{
    adios2_step_status status;
    for (int i = 0; i < plan->steps; i++) {
        if (i > 0 && begins_step(plan, i))
            check(adios2_end_step(engine), "end_step");
        if (begins_step(plan, i))
            check(adios2_begin_step(engine, adios2_step_mode_read, -1, &status), "begin_step");
        for (int k = 0; k < plan->step[i].requests; k++) {
            const Request *r = &plan->step[i].request[k];
            adios2_variable *v = have(adios2_inquire_variable(io, r->var->name), r->var->name);
            check(adios2_set_block_selection(v, *(size_t *)r->prepared), r->var->name);
            check(adios2_get(engine, v, r->memory, adios2_mode_deferred), r->var->name);
        }
    }
    check(adios2_end_step(engine), "end_step");
}

static const char *library(void) { return "ADIOS2 " ADIOS2_VERSION_STR " BP5"; }

int main(int argc, char **argv)
{
    const Peer peer = {library,   prepare,    create_file, define,    write_plan,
                       sync_file, close_file, open_file,   read_back, 1};
    return carry_out(argc, argv, &peer);
}
