/* Carries out a plan of `esker bench` with PnetCDF and prints what it took as JSON.
 *
 *   mpiexec -n RANKS pnetcdf PLAN FILE [sync]
 *
 * The plan file is described in src/plan_file.rs. A request with one hyperslab is a vara call,
 * one with several a varn call; blocking or queued as the plan says. Memory is allocated, filled
 * and verified outside the times. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int rank, ranks;

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void check(int status, const char *what)
{
    if (status == NC_NOERR)
        return;
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncmpi_strerror(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        fail("out of memory");
    return memory;
}

/* ---- the plan ---- */

static uint64_t *numbers, *next;

static void read_plan(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail("the plan file cannot be opened");
    long bytes = ftell(file);
    rewind(file);
    numbers = allocate((size_t)bytes);
    if (fread(numbers, 1, (size_t)bytes, file) != (size_t)bytes || memcmp(numbers, "ESKPLAN1", 8))
        fail("the plan file cannot be read");
    fclose(file);
    next = numbers + 1;
}

static char *read_name(void)
{
    uint64_t bytes = *next++;
    char *name = allocate(bytes + 1);
    memcpy(name, next, bytes);
    name[bytes] = 0;
    next += (bytes + 7) / 8;
    return name;
}

typedef struct { char *name; uint64_t length; int id; } Dim;
typedef struct { char *name; nc_type type; int dims, *dim, id; } Var;
typedef struct { int dims; uint64_t slabs, *starts, *counts, elements; } List;
/* A list for one record, or without: what PnetCDF is given. */
typedef struct { MPI_Offset **starts, **counts; } Slabs;
typedef struct { Var *var; List *list; uint64_t record; Slabs *slabs; char *memory; } Request;
typedef struct { int queued, requests; Request *request; } Step;

static Dim *dim;
static Var *var;
static List *list;
static Step *step;
static int dims, vars, lists, steps;
static uint64_t records;

static const uint64_t no_record = UINT64_MAX;

static Slabs *slabs_of(const List *from, uint64_t record)
{
    int extra = record != no_record, width = from->dims + extra;
    Slabs *slabs = allocate(sizeof *slabs);
    uint64_t n = from->slabs;
    MPI_Offset *numbers = allocate(2 * n * (size_t)width * sizeof *numbers);
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

static void parse_plan(void)
{
    if ((int)*next++ != ranks)
        fail("the plan is for another number of ranks");
    dims = (int)*next++;
    vars = (int)*next++;
    records = *next++;
    steps = (int)*next++;
    dim = allocate((size_t)dims * sizeof *dim);
    for (int i = 0; i < dims; i++) {
        dim[i].length = *next++;
        dim[i].name = read_name();
    }
    var = allocate((size_t)vars * sizeof *var);
    for (int i = 0; i < vars; i++) {
        var[i].type = (nc_type)*next++;
        var[i].dims = (int)*next++;
        var[i].dim = allocate((size_t)var[i].dims * sizeof(int));
        for (int d = 0; d < var[i].dims; d++)
            var[i].dim[d] = (int)*next++;
        var[i].name = read_name();
        var[i].id = i;
    }
    step = allocate((size_t)steps * sizeof *step);
    for (int i = 0; i < steps; i++)
        step[i].queued = (int)*next++;

    next = numbers + next[rank];
    lists = (int)*next++;
    list = allocate((size_t)lists * sizeof *list);
    for (int i = 0; i < lists; i++) {
        List *l = &list[i];
        l->dims = (int)*next++;
        l->slabs = *next++;
        l->starts = next;
        next += l->slabs * (uint64_t)l->dims;
        l->counts = next;
        next += l->slabs * (uint64_t)l->dims;
        l->elements = 0;
        for (uint64_t s = 0; s < l->slabs; s++) {
            uint64_t product = 1;
            for (int d = 0; d < l->dims; d++)
                product *= l->counts[s * (uint64_t)l->dims + (uint64_t)d];
            l->elements += product;
        }
    }
    /* Many requests share a list; each is converted once for each record. */
    Slabs **shared = allocate((size_t)lists * (size_t)(records + 1) * sizeof *shared);
    memset(shared, 0, (size_t)lists * (size_t)(records + 1) * sizeof *shared);
    for (int i = 0; i < steps; i++) {
        step[i].requests = (int)*next++;
        step[i].request = allocate((size_t)step[i].requests * sizeof(Request));
        for (int k = 0; k < step[i].requests; k++) {
            Request *r = &step[i].request[k];
            r->var = &var[*next++];
            uint64_t l = *next++;
            r->list = &list[l];
            r->record = *next++;
            uint64_t of = l * (records + 1) + (r->record == no_record ? records : r->record);
            if (!shared[of])
                shared[of] = slabs_of(r->list, r->record);
            r->slabs = shared[of];
        }
    }
    free(shared);
}

/* ---- values: see src/values.rs ---- */

static size_t size_of(nc_type type) { return type == NC_DOUBLE ? 8 : 4; }

static MPI_Datatype mpi_type(nc_type type)
{
    return type == NC_DOUBLE ? MPI_DOUBLE : type == NC_FLOAT ? MPI_FLOAT : MPI_INT;
}

static uint64_t bits(int variable, uint64_t index)
{
    return (((uint64_t)variable << 40) + index) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Fills `n` elements from linear index `first`, or counts those that are wrong. */
static uint64_t run(const Var *v, char *at, uint64_t first, uint64_t n, int verify)
{
    uint64_t wrong = 0;
#define EACH(type, shift)                                                       \
    for (uint64_t i = 0; i < n; i++) {                                          \
        type value = (type)(int64_t)(bits(v->id, first + i) >> shift);          \
        if (!verify)                                                            \
            ((type *)at)[i] = value;                                            \
        else if (((type *)at)[i] != value)                                      \
            wrong++;                                                            \
    }
    if (v->type == NC_DOUBLE) {
        EACH(double, 11)
    } else if (v->type == NC_FLOAT) {
        EACH(float, 40)
    } else {
        EACH(int32_t, 33)
    }
    return wrong;
}

static uint64_t values(const Request *r, int verify)
{
    const Var *v = r->var;
    const List *l = r->list;
    int extra = v->dims - l->dims;
    uint64_t base = 1, wrong = 0, index[NC_MAX_VAR_DIMS > 64 ? 64 : NC_MAX_VAR_DIMS];
    for (int d = 0; d < l->dims; d++)
        base *= dim[v->dim[d + extra]].length;
    base *= r->record == no_record ? 0 : r->record;
    char *at = r->memory;
    for (uint64_t s = 0; s < l->slabs; s++) {
        const uint64_t *start = l->starts + s * (uint64_t)l->dims;
        const uint64_t *count = l->counts + s * (uint64_t)l->dims;
        uint64_t length = l->dims ? count[l->dims - 1] : 1, rows = 1;
        for (int d = 0; d + 1 < l->dims; d++) {
            rows *= count[d];
            index[d] = 0;
        }
        for (uint64_t row = 0; length && row < rows; row++) {
            uint64_t linear = 0;
            for (int d = 0; d < l->dims; d++) {
                uint64_t i = start[d] + (d + 1 < l->dims ? index[d] : 0);
                linear = linear * dim[v->dim[d + extra]].length + i;
            }
            wrong += run(v, at, base + linear, length, verify);
            at += length * size_of(v->type);
            for (int d = l->dims - 2; d >= 0 && ++index[d] == count[d]; d--)
                index[d] = 0;
        }
    }
    return wrong;
}

/* ---- carrying it out ---- */

static void transfer(int file, int writing)
{
    int most = 0;
    for (int i = 0; i < steps; i++)
        most = step[i].requests > most ? step[i].requests : most;
    int *id = allocate((size_t)most * sizeof *id), *status = allocate((size_t)most * sizeof *status);
    for (int i = 0; i < steps; i++) {
        for (int k = 0; k < step[i].requests; k++) {
            Request *r = &step[i].request[k];
            int v = r->var->id, n = (int)r->list->slabs, single = n == 1;
            MPI_Offset **starts = r->slabs->starts, **counts = r->slabs->counts;
            MPI_Offset elements = (MPI_Offset)r->list->elements;
            MPI_Datatype type = mpi_type(r->var->type);
            void *m = r->memory;
            int result;
            if (step[i].queued && writing)
                result = single ? ncmpi_iput_vara(file, v, starts[0], counts[0], m, elements, type, &id[k])
                                : ncmpi_iput_varn(file, v, n, starts, counts, m, elements, type, &id[k]);
            else if (step[i].queued)
                result = single ? ncmpi_iget_vara(file, v, starts[0], counts[0], m, elements, type, &id[k])
                                : ncmpi_iget_varn(file, v, n, starts, counts, m, elements, type, &id[k]);
            else if (writing)
                result = single ? ncmpi_put_vara_all(file, v, starts[0], counts[0], m, elements, type)
                                : ncmpi_put_varn_all(file, v, n, starts, counts, m, elements, type);
            else
                result = single ? ncmpi_get_vara_all(file, v, starts[0], counts[0], m, elements, type)
                                : ncmpi_get_varn_all(file, v, n, starts, counts, m, elements, type);
            check(result, r->var->name);
        }
        if (step[i].queued) {
            check(ncmpi_wait_all(file, step[i].requests, id, status), "wait_all");
            for (int k = 0; k < step[i].requests; k++)
                check(status[k], step[i].request[k].var->name);
        }
    }
    free(id);
    free(status);
}

static double since;

/* All ranks start a phase together; it lasts until the last is done. */
static void begin(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    since = MPI_Wtime();
}

static double end(void)
{
    double mine = MPI_Wtime() - since, longest;
    MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3)
        fail("usage: pnetcdf PLAN FILE [sync]");
    int sync = argc > 3 && !strcmp(argv[3], "sync");
    read_plan(argv[1]);
    parse_plan();
    uint64_t bytes = 0, wrong = 0;
    for (int i = 0; i < steps; i++)
        for (int k = 0; k < step[i].requests; k++) {
            Request *r = &step[i].request[k];
            size_t own = (size_t)r->list->elements * size_of(r->var->type);
            r->memory = allocate(own);
            bytes += own;
            values(r, 0);
        }

    int file;
    double w_open, w_define, w_data, w_sync = 0, w_close, r_open, r_data, r_close;
    begin();
    check(ncmpi_create(MPI_COMM_WORLD, argv[2], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
    w_open = end();
    begin();
    for (int i = 0; i < dims; i++) {
        MPI_Offset length = dim[i].length ? (MPI_Offset)dim[i].length : NC_UNLIMITED;
        check(ncmpi_def_dim(file, dim[i].name, length, &dim[i].id), dim[i].name);
    }
    for (int i = 0; i < vars; i++)
        check(ncmpi_def_var(file, var[i].name, var[i].type, var[i].dims, var[i].dim, &var[i].id), var[i].name);
    check(ncmpi_enddef(file), "enddef");
    w_define = end();
    begin();
    transfer(file, 1);
    w_data = end();
    if (sync) {
        begin();
        check(ncmpi_sync(file), "sync");
        w_sync = end();
    }
    begin();
    check(ncmpi_close(file), "close");
    w_close = end();

    for (int i = 0; i < steps; i++)
        for (int k = 0; k < step[i].requests; k++) {
            Request *r = &step[i].request[k];
            memset(r->memory, 0, (size_t)r->list->elements * size_of(r->var->type));
        }
    begin();
    check(ncmpi_open(MPI_COMM_WORLD, argv[2], NC_NOWRITE, MPI_INFO_NULL, &file), "open");
    r_open = end();
    begin();
    transfer(file, 0);
    r_data = end();
    begin();
    check(ncmpi_close(file), "close");
    r_close = end();
    for (int i = 0; i < steps; i++)
        for (int k = 0; k < step[i].requests; k++)
            wrong += values(&step[i].request[k], 1);

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint64_t mine[2] = {(uint64_t)usage.ru_maxrss * 1024, bytes}, most[2], total[2], sums[2] = {wrong, bytes};
    MPI_Reduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(sums, total, 2, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
        int length;
        MPI_Get_library_version(mpi, &length);
        mpi[strcspn(mpi, ",\n\"\\")] = 0;
        char version[64] = "";
        sscanf(ncmpi_inq_libvers(), "%63s", version);
        printf("{\"library\": \"PnetCDF %s, %s\", \"bytes\": %llu, \"wrong\": %llu,\n"
               " \"write\": {\"open\": %.6f, \"define\": %.6f, \"data\": %.6f, \"sync\": %.6f, \"close\": %.6f},\n"
               " \"read\": {\"open\": %.6f, \"define\": 0, \"data\": %.6f, \"sync\": 0, \"close\": %.6f},\n"
               " \"peak_memory\": %llu, \"own_memory\": %llu}\n",
               version, mpi, (unsigned long long)total[1], (unsigned long long)total[0], w_open, w_define,
               w_data, w_sync, w_close, r_open, r_data, r_close, (unsigned long long)most[0],
               (unsigned long long)most[1]);
    }
    MPI_Finalize();
    return 0;
}
