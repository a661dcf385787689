/* Writes and reads back with every function that takes an MPI datatype, on any number of ranks,
 * with memory of several shapes: dense, with gaps, backwards, more than one of a type, and dense
 * with a count that is left to the library (NC_COUNT_IGNORE). What lies between the elements must stay as it was. Prints what went wrong; returns 0 if nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { ROWS = 2, COLUMNS = 6, ELEMENTS = ROWS * COLUMNS, ROOM = 64 * ELEMENTS, SHAPES = 5 };
enum { UNTOUCHED = -77 };

static int rank, ranks, ncid, failures, seed;
/* The first holds ints, the second doubles, so that values are converted on their way. */
static int vars[2];
static MPI_Offset start[2], count[2] = {ROWS, COLUMNS}, halves[2] = {ROWS, COLUMNS / 2};
static MPI_Offset stride[2] = {1, 2}, across[2] = {1, ROWS};

static void check(int err, const char *call) {
    if (err != NC_NOERR) {
        printf("rank %d: %s: %s\n", rank, call, ncmpi_strerrno(err));
        failures++;
    }
}
#define DO(call) check(call, #call)

/* Memory of a shape: so many of a datatype. */
typedef struct {
    int elements, memory[ROOM];
    MPI_Offset count;
    MPI_Datatype type;
} Buffer;

static void make(Buffer *b, int shape, int elements) {
    int ones[ROOM], places[ROOM];
    b->elements = elements;
    b->count = 1;
    for (int k = 0; k < elements; k++) ones[k] = 1, places[k] = 2 * (elements - 1 - k);
    switch (shape) {
    case 0: b->count = elements; b->type = MPI_INT; break;
    case 1: MPI_Type_vector(elements, 1, 2, MPI_INT, &b->type); break;
    case 4: b->count = NC_COUNT_IGNORE; b->type = MPI_INT; break;
    case 2: MPI_Type_indexed(elements, ones, places, MPI_INT, &b->type); break;
    default: {
        MPI_Datatype three;
        MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &three);
        b->count = elements;
        b->type = three;
    }
    }
    if (b->type != MPI_INT) MPI_Type_commit(&b->type);
    for (int k = 0; k < ROOM; k++) b->memory[k] = UNTOUCHED;
}

static void done(Buffer *b) {
    if (b->type != MPI_INT) MPI_Type_free(&b->type);
}

/* Where an element of a shape lies. */
static int place(const Buffer *b, int shape, int k) {
    return shape == 0 || shape == 4 ? k : shape == 1 ? 2 * k : shape == 2 ? 2 * (b->elements - 1 - k) : 3 * k;
}

static void fill(Buffer *b, int shape) {
    for (int k = 0; k < b->elements; k++) b->memory[place(b, shape, k)] = seed + k;
}

static void expect(const Buffer *b, int shape, const char *what) {
    int touched = 0;
    for (int k = 0; k < ROOM; k++) touched += b->memory[k] != UNTOUCHED;
    for (int k = 0; k < b->elements; k++)
        if (b->memory[place(b, shape, k)] != seed + k || touched != b->elements) {
            printf("rank %d: %s, shape %d: element %d is %d, not %d; %d of %d touched\n", rank, what,
                   shape, k, b->memory[place(b, shape, k)], seed + k, touched, b->elements);
            failures++;
            return;
        }
}

#define MEMORY(b) (b).memory, (b).count, (b).type

/* A put and a get of N elements, in each pair of shapes. */
#define ROUND(WHAT, N, PUT, GET)                                             \
    for (int shape = 0; shape < SHAPES; shape++) {                           \
        int other = (shape + 1) % SHAPES;                                    \
        Buffer in, out;                                                      \
        seed += 7;                                                           \
        make(&out, shape, N), make(&in, other, N), fill(&out, shape);        \
        PUT;                                                                 \
        DO(ncmpi_sync(ncid));                                                \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        GET;                                                                 \
        expect(&in, other, WHAT);                                            \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        done(&out), done(&in);                                               \
    }

#define BLOCKING(NAME, ALL)                                                  \
    static void NAME(int v) {                                                \
        MPI_Offset blocks[2][2] = {{start[0], 0}, {start[0] + 1, 0}};        \
        MPI_Offset sizes[2][2] = {{1, COLUMNS}, {1, COLUMNS}};               \
        MPI_Offset *starts[2] = {blocks[0], blocks[1]};                      \
        MPI_Offset *counts[2] = {sizes[0], sizes[1]};                        \
        ROUND("var" #ALL, ELEMENTS * ranks,                                  \
              DO(ncmpi_put_var##ALL(ncid, v, MEMORY(out))),                  \
              DO(ncmpi_get_var##ALL(ncid, v, MEMORY(in))))                   \
        ROUND("var1" #ALL, 1, DO(ncmpi_put_var1##ALL(ncid, v, start, MEMORY(out))), \
              DO(ncmpi_get_var1##ALL(ncid, v, start, MEMORY(in))))           \
        ROUND("vara" #ALL, ELEMENTS,                                         \
              DO(ncmpi_put_vara##ALL(ncid, v, start, count, MEMORY(out))),   \
              DO(ncmpi_get_vara##ALL(ncid, v, start, count, MEMORY(in))))    \
        ROUND("vars" #ALL, ELEMENTS / 2,                                     \
              DO(ncmpi_put_vars##ALL(ncid, v, start, halves, stride, MEMORY(out))), \
              DO(ncmpi_get_vars##ALL(ncid, v, start, halves, stride, MEMORY(in)))) \
        ROUND("varm" #ALL, ELEMENTS,                                         \
              DO(ncmpi_put_varm##ALL(ncid, v, start, count, NULL, across, MEMORY(out))), \
              DO(ncmpi_get_varm##ALL(ncid, v, start, count, NULL, across, MEMORY(in)))) \
        ROUND("varn" #ALL, ELEMENTS,                                         \
              DO(ncmpi_put_varn##ALL(ncid, v, 2, starts, counts, MEMORY(out))), \
              DO(ncmpi_get_varn##ALL(ncid, v, 2, starts, counts, MEMORY(in)))) \
    }
BLOCKING(together, _all)
BLOCKING(alone, )

static void finish(int request) {
    int status = NC_NOERR;
    DO(ncmpi_wait_all(ncid, 1, &request, &status));
    check(status, "status of a request");
}

#define POSTED(NAME, PUT)                                                    \
    static void NAME(int v) {                                                \
        int r;                                                               \
        MPI_Offset blocks[2][2] = {{start[0], 0}, {start[0] + 1, 0}};        \
        MPI_Offset sizes[2][2] = {{1, COLUMNS}, {1, COLUMNS}};               \
        MPI_Offset *starts[2] = {blocks[0], blocks[1]};                      \
        MPI_Offset *counts[2] = {sizes[0], sizes[1]};                        \
        ROUND(#PUT "_var", ELEMENTS * ranks,                                 \
              (check(ncmpi_##PUT##_var(ncid, v, MEMORY(out), &r), #PUT "_var"), finish(r)), \
              (check(ncmpi_iget_var(ncid, v, MEMORY(in), &r), "iget_var"), finish(r))) \
        ROUND(#PUT "_var1", 1,                                               \
              (check(ncmpi_##PUT##_var1(ncid, v, start, MEMORY(out), &r), #PUT "_var1"), finish(r)), \
              (check(ncmpi_iget_var1(ncid, v, start, MEMORY(in), &r), "iget_var1"), finish(r))) \
        ROUND(#PUT "_vara", ELEMENTS,                                        \
              (check(ncmpi_##PUT##_vara(ncid, v, start, count, MEMORY(out), &r), #PUT "_vara"), finish(r)), \
              (check(ncmpi_iget_vara(ncid, v, start, count, MEMORY(in), &r), "iget_vara"), finish(r))) \
        ROUND(#PUT "_vars", ELEMENTS / 2,                                    \
              (check(ncmpi_##PUT##_vars(ncid, v, start, halves, stride, MEMORY(out), &r), #PUT "_vars"), finish(r)), \
              (check(ncmpi_iget_vars(ncid, v, start, halves, stride, MEMORY(in), &r), "iget_vars"), finish(r))) \
        ROUND(#PUT "_varm", ELEMENTS,                                        \
              (check(ncmpi_##PUT##_varm(ncid, v, start, count, NULL, across, MEMORY(out), &r), #PUT "_varm"), finish(r)), \
              (check(ncmpi_iget_varm(ncid, v, start, count, NULL, across, MEMORY(in), &r), "iget_varm"), finish(r))) \
        ROUND(#PUT "_varn", ELEMENTS,                                        \
              (check(ncmpi_##PUT##_varn(ncid, v, 2, starts, counts, MEMORY(out), &r), #PUT "_varn"), finish(r)), \
              (check(ncmpi_iget_varn(ncid, v, 2, starts, counts, MEMORY(in), &r), "iget_varn"), finish(r))) \
    }
POSTED(iput, iput)
POSTED(bput, bput)

/* Both variables in one call, each with a shape of its own. */
#define MANY(WHAT, N, PUT, GET)                                              \
    for (int shape = 0; shape < SHAPES; shape++) {                           \
        int shapes[2] = {shape, (shape + 1) % SHAPES};                       \
        int others[2] = {(shape + 2) % SHAPES, (shape + 3) % SHAPES};        \
        Buffer out[2], in[2];                                                \
        void *puts[2] = {out[0].memory, out[1].memory}, *gets[2] = {in[0].memory, in[1].memory}; \
        seed += 7;                                                           \
        for (int i = 0; i < 2; i++)                                          \
            make(&out[i], shapes[i], N), fill(&out[i], shapes[i]), make(&in[i], others[i], N); \
        MPI_Offset sent[2] = {out[0].count, out[1].count}, wanted[2] = {in[0].count, in[1].count}; \
        MPI_Datatype from[2] = {out[0].type, out[1].type}, to[2] = {in[0].type, in[1].type}; \
        PUT;                                                                 \
        DO(ncmpi_sync(ncid));                                                \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        GET;                                                                 \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        for (int i = 0; i < 2; i++)                                          \
            expect(&in[i], others[i], WHAT), done(&in[i]), done(&out[i]);    \
    }

#define SEVERAL(NAME, ALL)                                                   \
    static void NAME(void) {                                                 \
        MPI_Offset *same[2] = {start, start}, *all[2] = {count, count};      \
        MPI_Offset *half[2] = {halves, halves}, *step[2] = {stride, stride}; \
        MPI_Offset *map[2] = {across, across};                               \
        MANY("mvar" #ALL, ELEMENTS * ranks,                                  \
             DO(ncmpi_mput_var##ALL(ncid, 2, vars, puts, sent, from)),       \
             DO(ncmpi_mget_var##ALL(ncid, 2, vars, gets, wanted, to)))       \
        MANY("mvar1" #ALL, 1,                                                \
             DO(ncmpi_mput_var1##ALL(ncid, 2, vars, same, puts, sent, from)), \
             DO(ncmpi_mget_var1##ALL(ncid, 2, vars, same, gets, wanted, to))) \
        MANY("mvara" #ALL, ELEMENTS,                                         \
             DO(ncmpi_mput_vara##ALL(ncid, 2, vars, same, all, puts, sent, from)), \
             DO(ncmpi_mget_vara##ALL(ncid, 2, vars, same, all, gets, wanted, to))) \
        MANY("mvars" #ALL, ELEMENTS / 2,                                     \
             DO(ncmpi_mput_vars##ALL(ncid, 2, vars, same, half, step, puts, sent, from)), \
             DO(ncmpi_mget_vars##ALL(ncid, 2, vars, same, half, step, gets, wanted, to))) \
        MANY("mvarm" #ALL, ELEMENTS,                                         \
             DO(ncmpi_mput_varm##ALL(ncid, 2, vars, same, all, step1, map, puts, sent, from)), \
             DO(ncmpi_mget_varm##ALL(ncid, 2, vars, same, all, step1, map, gets, wanted, to))) \
    }
static MPI_Offset ones[2] = {1, 1}, *step1[2] = {ones, ones};
SEVERAL(several_together, _all)
SEVERAL(several_alone, )

/* By a datatype of the file: this rank's rows of the first variable. */
#define BY_FILE_TYPE(NAME, ALL)                                              \
    static void NAME(void) {                                                 \
        int sizes[2] = {ROWS * ranks, COLUMNS}, part[2] = {ROWS, COLUMNS};   \
        int from[2] = {ROWS * rank, 0};                                      \
        MPI_Datatype rows;                                                   \
        MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &rows); \
        MPI_Type_commit(&rows);                                              \
        ROUND("vard" #ALL, ELEMENTS, DO(ncmpi_put_vard##ALL(ncid, vars[0], rows, MEMORY(out))), \
              DO(ncmpi_get_vard##ALL(ncid, vars[0], rows, MEMORY(in))))      \
        MPI_Type_free(&rows);                                                \
    }
BY_FILE_TYPE(by_file_type_together, _all)
BY_FILE_TYPE(by_file_type_alone, )

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    start[0] = ROWS * rank, start[1] = 0;
    int dims[2];
    DO(ncmpi_create(MPI_COMM_WORLD, "flexible.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "row", ROWS * ranks, &dims[0]));
    DO(ncmpi_def_dim(ncid, "column", COLUMNS, &dims[1]));
    DO(ncmpi_def_var(ncid, "first", NC_INT, 2, dims, &vars[0]));
    DO(ncmpi_def_var(ncid, "second", NC_DOUBLE, 2, dims, &vars[1]));
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_buffer_attach(ncid, 1 << 20));
    for (int i = 0; i < 2; i++) together(vars[i]), iput(vars[i]), bput(vars[i]);
    several_together();
    by_file_type_together();
    DO(ncmpi_begin_indep_data(ncid));
    for (int i = 0; i < 2; i++) alone(vars[i]);
    several_alone();
    by_file_type_alone();
    DO(ncmpi_end_indep_data(ncid));
    DO(ncmpi_buffer_detach(ncid));
    DO(ncmpi_close(ncid));
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
