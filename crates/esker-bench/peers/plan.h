/* What the peers' programs share: reading a plan of `esker bench`, its values, and the order and
 * times of what is done with it.
 *
 *   mpiexec -n RANKS PROGRAM PLAN FILE sync|nosync [PLAN OF READING]
 *
 * Plan files are described in src/plan_file.rs. Memory is allocated, filled and verified outside
 * the times, which are printed as JSON. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int rank, ranks;

/* Ends the job, with a sentence: `what`, and `why` if it is not NULL. The last words of a rank that aborts
 * can be lost with its standard error, so they go to the file that ESKER_BENCH_FAULT names too. */
static void end_job(const char *what, const char *why)
{
    const char *name = getenv("ESKER_BENCH_FAULT");
    FILE *told = name ? fopen(name, "a") : NULL;
    FILE *to[] = {stderr, told};
    for (int i = 0; i < 2; i++)
        if (to[i])
            fprintf(to[i], "rank %d: %s%s%s\n", rank, what, why ? ": " : "", why ? why : "");
    if (told)
        fclose(told);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void fail(const char *what)
{
    end_job(what, NULL);
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        fail("out of memory");
    return memory;
}

/* ---- the plan ---- */

enum { INT = 4, FLOAT = 5, DOUBLE = 6, USHORT = 8, INT64 = 10 };
enum { BLOCKING, QUEUED, INDEPENDENT };

typedef struct { char *name; uint64_t length; } Dim;
/* What values are like, see src/plan.rs, and the shape of chunks, or NULL. */
enum { DISTINCT, TILE, FIELD, COLUMN, SUMS };
typedef struct { char *name; int type, dims, *dim, id, data; uint64_t percent, edge, *chunk; } Var;
typedef struct { int dims; uint64_t slabs, *starts, *counts, elements; } List;
/* `prepared` is for the peer. */
typedef struct { Var *var; List *list; uint64_t record; char *memory; void *prepared; } Request;
typedef struct { int calls, requests; Request *request; } Step;
typedef struct { int dims, vars, lists, steps, transactions; uint64_t records; char *pipeline; Dim *dim; Var *var; List *list; Step *step; } Plan;

static const uint64_t no_record = UINT64_MAX;

static size_t size_of(int type) { return type == DOUBLE || type == INT64 ? 8 : type == USHORT ? 2 : 4; }

/* What a type is in MPI, by the names that PnetCDF knows. */
static inline MPI_Datatype mpi_type(int type)
{
    return type == DOUBLE  ? MPI_DOUBLE
           : type == FLOAT ? MPI_FLOAT
           : type == INT64 ? MPI_LONG_LONG
           : type == USHORT ? MPI_UNSIGNED_SHORT
                            : MPI_INT;
}

static size_t request_bytes(const Request *r) { return (size_t)r->list->elements * size_of(r->var->type); }

static uint64_t *next;

static char *read_name(void)
{
    uint64_t bytes = *next++;
    char *name = allocate(bytes + 1);
    memcpy(name, next, bytes);
    next += (bytes + 7) / 8;
    return name;
}

static Plan *read_plan(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        fail("the plan file cannot be opened");
    long bytes = ftell(file);
    rewind(file);
    uint64_t *numbers = allocate((size_t)bytes);
    if (fread(numbers, 1, (size_t)bytes, file) != (size_t)bytes || memcmp(numbers, "ESKPLAN3", 8))
        fail("the plan file cannot be read");
    fclose(file);
    next = numbers + 1;
    if ((int)*next++ != ranks)
        fail("the plan is for another number of ranks");

    Plan *plan = allocate(sizeof *plan);
    plan->dims = (int)*next++;
    plan->vars = (int)*next++;
    plan->records = *next++;
    plan->steps = (int)*next++;
    plan->transactions = (int)*next++;
    plan->pipeline = read_name();
    plan->dim = allocate((size_t)plan->dims * sizeof(Dim));
    for (int i = 0; i < plan->dims; i++) {
        plan->dim[i].length = *next++;
        plan->dim[i].name = read_name();
    }
    plan->var = allocate((size_t)plan->vars * sizeof(Var));
    for (int i = 0; i < plan->vars; i++) {
        Var *v = &plan->var[i];
        v->type = (int)*next++;
        v->dims = (int)*next++;
        v->dim = allocate((size_t)v->dims * sizeof(int));
        for (int d = 0; d < v->dims; d++)
            v->dim[d] = (int)*next++;
        v->data = (int)*next++;
        v->percent = *next++;
        v->edge = *next++;
        uint64_t chunked = *next++;
        v->chunk = chunked ? next : NULL;
        next += chunked;
        v->name = read_name();
        v->id = i;
    }
    plan->step = allocate((size_t)plan->steps * sizeof(Step));
    for (int i = 0; i < plan->steps; i++)
        plan->step[i].calls = (int)*next++;

    next = numbers + next[rank];
    plan->lists = (int)*next++;
    plan->list = allocate((size_t)plan->lists * sizeof(List));
    for (int i = 0; i < plan->lists; i++) {
        List *l = &plan->list[i];
        l->dims = (int)*next++;
        l->slabs = *next++;
        l->starts = next;
        next += l->slabs * (uint64_t)l->dims;
        l->counts = next;
        next += l->slabs * (uint64_t)l->dims;
        for (uint64_t s = 0; s < l->slabs; s++) {
            uint64_t product = 1;
            for (int d = 0; d < l->dims; d++)
                product *= l->counts[s * (uint64_t)l->dims + (uint64_t)d];
            l->elements += product;
        }
    }
    for (int i = 0; i < plan->steps; i++) {
        Step *step = &plan->step[i];
        step->requests = (int)*next++;
        step->request = allocate((size_t)step->requests * sizeof(Request));
        for (int k = 0; k < step->requests; k++) {
            Request *r = &step->request[k];
            r->var = &plan->var[*next++];
            r->list = &plan->list[*next++];
            r->record = *next++;
            r->memory = allocate(request_bytes(r));
        }
    }
    return plan;
}

#define EACH_REQUEST(plan, r)                                                                     \
    for (Step *step_ = (plan)->step; step_ < (plan)->step + (plan)->steps; step_++)                \
        for (Request *r = step_->request; r < step_->request + step_->requests; r++)

/* ---- values: see src/values.rs ---- */

static uint64_t bits(int variable, uint64_t index)
{
    return (((uint64_t)variable << 40) + index) * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t random_bits(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static int64_t wave(uint64_t variable, uint64_t dim, uint64_t index)
{
    uint64_t step = 200 + 37 * ((variable * 5 + dim * 3) % 11);
    uint64_t at = (index * step + variable * 7919 + dim * 20011) & 0xffff;
    int64_t half = (int64_t)(at & 0x7fff), height = half * (0x8000 - half);
    return at & 0x8000 ? -height : height;
}

static int64_t measurement(uint64_t bits) { return (bits & 7) < 5 ? -5 * 4096 : (int64_t)((bits >> 8) & 0xfff); }

static uint32_t crc32c(const unsigned char *at, size_t bytes)
{
    static uint32_t table[256];
    for (uint32_t i = 0; !table[255] && i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ UINT32_C(0x82F63B78) : c >> 1;
        table[i] = c;
    }
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++)
        sum = sum >> 8 ^ table[(sum ^ at[i]) & 0xff];
    return ~sum;
}

static uint64_t run(const Plan *plan, const Var *v, char *at, uint64_t first, uint64_t n, int verify);

/* The checksum of what one of the even parts of a variable is in memory: element `index` of a matrix of sums. */
static int64_t sum_of(const Plan *plan, const Var *sums, uint64_t index)
{
    uint64_t parts = plan->dim[sums->dim[sums->dims - 1]].length, part = index % parts;
    const Var *v = &plan->var[index / parts];
    uint64_t n = plan->dim[v->dim[0]].length, start = n * part / parts, count = n * (part + 1) / parts - start;
    char *values = allocate(count * size_of(v->type));
    run(plan, v, values, start, count, 0);
    int64_t sum = crc32c((const unsigned char *)values, count * size_of(v->type));
    free(values);
    return sum;
}

/* Fills `n` elements from linear index `first`, or counts those that are wrong. */
static uint64_t run(const Plan *plan, const Var *v, char *at, uint64_t first, uint64_t n, int verify)
{
    uint64_t wrong = 0, left = first, last = 0, row = 0, index[64], id = (uint64_t)v->id;
    uint64_t last_dim = v->dims ? (uint64_t)v->dims - 1 : 0;
    int64_t outer = 0;
    for (int d = v->dims - 1; d >= 0; d--) {
        /* The record dimension comes first and takes what is left. */
        uint64_t length = plan->dim[v->dim[d]].length;
        index[d] = length ? left % length : left;
        left = length ? left / length : 0;
    }
    for (int d = 0; d + 1 < v->dims; d++) {
        outer += wave(id, (uint64_t)d, index[d]);
        row = row * v->edge + (v->edge ? index[d] % v->edge : 0);
    }
    if (v->dims)
        last = index[v->dims - 1];
    row *= v->edge;
#define EACH(type, distinct, noise, number, column)                                                 \
    for (uint64_t i = 0; i < n; i++) {                                                               \
        type value = 0;                                                                              \
        if (v->data == DISTINCT) {                                                                   \
            uint64_t b = bits(v->id, first + i);                                                     \
            value = distinct;                                                                        \
        } else if (v->data == TILE) {                                                                \
            uint64_t place = row + (last + i) % v->edge, b = random_bits(place + 1);                 \
            value = place % 100 < v->percent ? noise : 0;                                            \
        } else if (v->data == FIELD) {                                                               \
            int64_t smooth = (INT64_C(3) << 30) + outer + wave(id, last_dim, last + i);              \
            int64_t m = (smooth >> 8) + (int64_t)(random_bits((id << 40) + first + i) & 0x3f);       \
            value = number;                                                                          \
        } else if (v->data == SUMS) {                                                                \
            int64_t m = sum_of(plan, v, first + i);                                                  \
            value = number;                                                                          \
        } else {                                                                                     \
            uint64_t counter = (first + i) / (1 + 7 * (id % 5));                                     \
            int64_t m = measurement(random_bits((id << 40) + first + i));                            \
            (void)counter, (void)m;                                                                  \
            value = column;                                                                          \
        }                                                                                            \
        if (!verify)                                                                                 \
            ((type *)at)[i] = value;                                                                 \
        else if (((type *)at)[i] != value)                                                           \
            wrong++;                                                                                 \
    }
#define REAL(type, shift) EACH(type, (type)(int64_t)(b >> shift), (type)(int64_t)(b >> shift), (type)m / 4096, (type)m / 4096)
    if (v->type == DOUBLE) {
        REAL(double, 11)
    } else if (v->type == FLOAT) {
        REAL(float, 40)
    } else if (v->type == INT64) {
        EACH(int64_t, (int64_t)(b >> 1), (int64_t)(b >> 1), m, (int64_t)counter)
    } else if (v->type == USHORT) {
        EACH(uint16_t, (uint16_t)(b >> 48), (uint16_t)(b >> 48), (uint16_t)m, (uint16_t)counter)
    } else {
        EACH(int32_t, (int32_t)(b >> 33), (int32_t)(uint32_t)b, (int32_t)m, (int32_t)counter)
    }
    return wrong;
}

static uint64_t values(const Plan *plan, const Request *r, int verify)
{
    const Var *v = r->var;
    const List *l = r->list;
    int extra = v->dims - l->dims;
    uint64_t base = 1, wrong = 0, index[64];
    for (int d = 0; d < l->dims; d++)
        base *= plan->dim[v->dim[d + extra]].length;
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
            /* The record dimension, if it is here, comes first: its length does not matter. */
            uint64_t linear = 0;
            for (int d = 0; d < l->dims; d++) {
                uint64_t i = start[d] + (d + 1 < l->dims ? index[d] : 0);
                linear = linear * plan->dim[v->dim[d + extra]].length + i;
            }
            wrong += run(plan, v, at, base + linear, length, verify);
            at += length * size_of(v->type);
            for (int d = l->dims - 2; d >= 0 && ++index[d] == count[d]; d--)
                index[d] = 0;
        }
    }
    return wrong;
}

/* ---- carrying it out ---- */

typedef struct {
    /* Its name and version. */
    const char *(*library)(void);
    /* Whatever is done before the times begin. */
    void (*prepare)(Plan *);
    void (*create)(const char *path);
    void (*define)(const Plan *);
    void (*write)(const Plan *);
    void (*sync)(void);
    void (*close)(void);
    void (*open)(const char *path);
    void (*read)(const Plan *);
    /* Whether a rank can read nothing but what it wrote. */
    int reads_own;
} Peer;

static double since;

/* Whether each step of the plan that is written is to be on the disk when it ends. Those whose steps are not apart in the
 * library (HDF5, netCDF-4, ADIOS2) wait for the disk once, at the end. */
static int syncs_steps;

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

static int carry_out(int argc, char **argv, const Peer *peer)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4)
        fail("usage: PROGRAM PLAN FILE sync|nosync [PLAN OF READING]");
    Plan *plan = read_plan(argv[1]), *reading = plan;
    int sync = !strcmp(argv[3], "sync"), other = argc > 4;
    uint64_t sums[3] = {0, 0, 0}; /* wrong, bytes, read bytes */
    EACH_REQUEST(plan, r)
    {
        sums[1] += request_bytes(r);
        values(plan, r, 0);
    }
    peer->prepare(plan);

    double w_open, w_define, w_data, w_sync = 0, w_close, r_open, r_data, r_close;
    begin();
    peer->create(argv[2]);
    w_open = end();
    begin();
    peer->define(plan);
    w_define = end();
    syncs_steps = sync && plan->transactions;
    begin();
    peer->write(plan);
    w_data = end();
    if (sync) {
        begin();
        peer->sync();
        w_sync = end();
    }
    begin();
    peer->close();
    w_close = end();

    if (other && !peer->reads_own) {
        EACH_REQUEST(plan, r) free(r->memory);
        reading = read_plan(argv[4]);
        peer->prepare(reading);
    }
    EACH_REQUEST(reading, r) memset(r->memory, 0, request_bytes(r));
    begin();
    peer->open(argv[2]);
    r_open = end();
    begin();
    peer->read(reading);
    r_data = end();
    begin();
    peer->close();
    r_close = end();
    EACH_REQUEST(reading, r)
    {
        sums[0] += values(reading, r, 1);
        sums[2] += other && peer->reads_own ? 0 : request_bytes(r);
    }

    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint64_t mine[2] = {(uint64_t)usage.ru_maxrss * 1024, sums[1]}, most[2], total[3];
    MPI_Reduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(sums, total, 3, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
        int length;
        MPI_Get_library_version(mpi, &length);
        mpi[strcspn(mpi, ",\n\"\\")] = 0;
        for (char *c = mpi; *c; c++)
            *c = *c < ' ' ? ' ' : *c;
        printf("{\"library\": \"%s, %s\", \"wrong\": %llu, \"bytes\": %llu, \"read_bytes\": %llu,\n"
               " \"write\": {\"open\": %.6f, \"define\": %.6f, \"data\": %.6f, \"sync\": %.6f, \"close\": %.6f},\n"
               " \"read\": {\"open\": %.6f, \"define\": 0, \"data\": %.6f, \"sync\": 0, \"close\": %.6f},\n"
               " \"peak_memory\": %llu, \"own_memory\": %llu}\n",
               peer->library(), mpi, (unsigned long long)total[0], (unsigned long long)total[1],
               (unsigned long long)total[2], w_open, w_define, w_data, w_sync, w_close, r_open, r_data,
               r_close, (unsigned long long)most[0], (unsigned long long)most[1]);
    }
    MPI_Finalize();
    return 0;
}
