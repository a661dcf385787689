/* Writes and reads back with every data function of the interface, on any number of ranks.
 * Prints what went wrong; returns 0 if nothing did. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { ROWS = 2, COLUMNS = 6, ELEMENTS = ROWS * COLUMNS, LARGEST = ELEMENTS * 64 };

static int rank, ranks, ncid, failures, seed;
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

#define EXPECT(C, what, n)                                                   \
    for (int k = 0; k < (n); k++)                                            \
        if (got[k] != (C)((seed + k) % 100)) {                               \
            printf("rank %d: %s: element %d\n", rank, what, k);              \
            failures++;                                                      \
            break;                                                           \
        }
#define FRESH(C, n)                                                          \
    do {                                                                     \
        seed += 7;                                                           \
        memset(got, 0, sizeof got);                                          \
        for (int k = 0; k < (n); k++) data[k] = (C)((seed + k) % 100);       \
    } while (0)

/* Blocking: ALL is _all or nothing; ARGS are a buffer's further arguments, of a flexible call. */
#define BLOCKING(NAME, C, T, ALL)                                            \
    static void NAME(void) {                                                 \
        C data[LARGEST], got[LARGEST];                                       \
        int whole = ELEMENTS * ranks, v = vars[0];                           \
        MPI_Offset blocks[2][2] = {{start[0], 0}, {start[0] + 1, 0}};        \
        MPI_Offset sizes[2][2] = {{1, COLUMNS}, {1, COLUMNS}};               \
        MPI_Offset *starts[2] = {blocks[0], blocks[1]};                      \
        MPI_Offset *counts[2] = {sizes[0], sizes[1]};                        \
        MPI_Offset *same[2] = {start, start}, *all[2] = {count, count};      \
        MPI_Offset *half[2] = {halves, halves}, *step[2] = {stride, stride}; \
        MPI_Offset *map[2] = {across, across};                               \
        C *puts[2] = {data, data}, *gets[2] = {got, got + ELEMENTS};         \
        FRESH(C, whole);                                                     \
        DO(ncmpi_put_var##T##ALL(ncid, v, data));                            \
        DO(ncmpi_sync(ncid));                                                \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        DO(ncmpi_get_var##T##ALL(ncid, v, got));                             \
        EXPECT(C, "var" #T #ALL, whole);                                     \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        FRESH(C, 1);                                                         \
        DO(ncmpi_put_var1##T##ALL(ncid, v, start, data));                    \
        DO(ncmpi_get_var1##T##ALL(ncid, v, start, got));                     \
        EXPECT(C, "var1" #T #ALL, 1);                                        \
        FRESH(C, ELEMENTS);                                                  \
        DO(ncmpi_put_vara##T##ALL(ncid, v, start, count, data));             \
        DO(ncmpi_get_vara##T##ALL(ncid, v, start, count, got));              \
        EXPECT(C, "vara" #T #ALL, ELEMENTS);                                 \
        FRESH(C, ELEMENTS / 2);                                              \
        DO(ncmpi_put_vars##T##ALL(ncid, v, start, halves, stride, data));    \
        DO(ncmpi_get_vars##T##ALL(ncid, v, start, halves, stride, got));     \
        EXPECT(C, "vars" #T #ALL, ELEMENTS / 2);                             \
        FRESH(C, ELEMENTS);                                                  \
        DO(ncmpi_put_varm##T##ALL(ncid, v, start, count, NULL, across, data)); \
        DO(ncmpi_get_varm##T##ALL(ncid, v, start, count, NULL, across, got)); \
        EXPECT(C, "varm" #T #ALL, ELEMENTS);                                 \
        FRESH(C, ELEMENTS);                                                  \
        DO(ncmpi_put_varn##T##ALL(ncid, v, 2, starts, counts, data));        \
        DO(ncmpi_get_varn##T##ALL(ncid, v, 2, starts, counts, got));         \
        EXPECT(C, "varn" #T #ALL, ELEMENTS);                                 \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        FRESH(C, whole);                                                     \
        gets[1] = got + whole;                                               \
        DO(ncmpi_mput_var##T##ALL(ncid, 2, vars, puts));                     \
        DO(ncmpi_sync(ncid));                                                \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        DO(ncmpi_mget_var##T##ALL(ncid, 2, vars, gets));                     \
        EXPECT(C, "mvar" #T #ALL, whole);                                    \
        MPI_Barrier(MPI_COMM_WORLD);                                         \
        gets[1] = got + ELEMENTS;                                            \
        FRESH(C, 1);                                                         \
        DO(ncmpi_mput_var1##T##ALL(ncid, 2, vars, same, puts));              \
        DO(ncmpi_mget_var1##T##ALL(ncid, 2, vars, same, gets));              \
        EXPECT(C, "mvar1" #T #ALL, 1);                                       \
        FRESH(C, ELEMENTS);                                                  \
        DO(ncmpi_mput_vara##T##ALL(ncid, 2, vars, same, all, puts));         \
        DO(ncmpi_mget_vara##T##ALL(ncid, 2, vars, same, all, gets));         \
        EXPECT(C, "mvara" #T #ALL, ELEMENTS);                                \
        if (memcmp(got, got + ELEMENTS, ELEMENTS * sizeof(C))) failures++;   \
        FRESH(C, ELEMENTS / 2);                                              \
        DO(ncmpi_mput_vars##T##ALL(ncid, 2, vars, same, half, step, puts));  \
        DO(ncmpi_mget_vars##T##ALL(ncid, 2, vars, same, half, step, gets));  \
        EXPECT(C, "mvars" #T #ALL, ELEMENTS / 2);                            \
        FRESH(C, ELEMENTS);                                                  \
        DO(ncmpi_mput_varm##T##ALL(ncid, 2, vars, same, all, NULL, map, puts)); \
        DO(ncmpi_mget_varm##T##ALL(ncid, 2, vars, same, all, NULL, map, gets)); \
        EXPECT(C, "mvarm" #T #ALL, ELEMENTS);                                \
    }

/* Posted: PUT is iput or bput. */
#define POSTED(NAME, C, T, PUT)                                              \
    static void NAME(void) {                                                 \
        C data[LARGEST], got[LARGEST];                                       \
        int v = vars[0], req[6], status[6], n = 0, whole = ELEMENTS * ranks; \
        MPI_Offset blocks[2][2] = {{start[0], 0}, {start[0] + 1, 0}};        \
        MPI_Offset sizes[2][2] = {{1, COLUMNS}, {1, COLUMNS}};               \
        MPI_Offset *starts[2] = {blocks[0], blocks[1]};                      \
        MPI_Offset *counts[2] = {sizes[0], sizes[1]};                        \
        FRESH(C, whole);                                                     \
        DO(ncmpi_##PUT##_var##T(ncid, v, data, &req[0]));                    \
        DO(ncmpi_wait_all(ncid, 1, req, status));                            \
        DO(ncmpi_iget_var##T(ncid, v, got, &req[0]));                        \
        DO(ncmpi_wait_all(ncid, 1, req, status));                            \
        EXPECT(C, #PUT "_var" #T, whole);                                    \
        FRESH(C, ELEMENTS);                                                  \
        DO(ncmpi_##PUT##_vara##T(ncid, v, start, count, data, &req[n++]));   \
        DO(ncmpi_##PUT##_var1##T(ncid, v, start, data, &req[n++]));          \
        DO(ncmpi_##PUT##_varn##T(ncid, v, 2, starts, counts, data, &req[n++])); \
        DO(ncmpi_##PUT##_varm##T(ncid, vars[1], start, count, NULL, across, data, &req[n++])); \
        DO(ncmpi_wait_all(ncid, n, req, status));                            \
        n = 0;                                                               \
        DO(ncmpi_iget_vara##T(ncid, v, start, count, got, &req[n++]));       \
        DO(ncmpi_wait_all(ncid, n, req, status));                            \
        EXPECT(C, #PUT "_vara, var1 and varn" #T, ELEMENTS);                 \
        memset(got, 0, sizeof got), n = 0;                                   \
        DO(ncmpi_iget_varm##T(ncid, vars[1], start, count, NULL, across, got, &req[n++])); \
        DO(ncmpi_wait_all(ncid, n, req, status));                            \
        EXPECT(C, #PUT "_varm" #T, ELEMENTS);                                \
        memset(got, 0, sizeof got), n = 0;                                   \
        DO(ncmpi_iget_varn##T(ncid, v, 2, starts, counts, got, &req[n++]));  \
        DO(ncmpi_iget_var1##T(ncid, v, start, got, &req[n++]));              \
        DO(ncmpi_wait_all(ncid, n, req, status));                            \
        EXPECT(C, "iget_varn and var1" #T, ELEMENTS);                        \
        FRESH(C, ELEMENTS / 2);                                              \
        n = 0;                                                               \
        DO(ncmpi_##PUT##_vars##T(ncid, v, start, halves, stride, data, &req[n++])); \
        DO(ncmpi_wait_all(ncid, n, req, status));                            \
        n = 0;                                                               \
        DO(ncmpi_iget_vars##T(ncid, v, start, halves, stride, got, &req[n++])); \
        DO(ncmpi_wait_all(ncid, NC_REQ_ALL, NULL, NULL));                    \
        EXPECT(C, #PUT "_vars" #T, ELEMENTS / 2);                            \
    }

#define ATTRIBUTE(C, T, XTYPE)                                               \
    static void attribute##T(void) {                                         \
        C data[LARGEST], got[LARGEST];                                       \
        FRESH(C, 5);                                                         \
        DO(ncmpi_put_att##T(ncid, vars[0], "a" #T, XTYPE, 5, data));         \
        DO(ncmpi_get_att##T(ncid, vars[0], "a" #T, got));                    \
        EXPECT(C, "att" #T, 5);                                              \
    }
#define TYPE(C, T, XTYPE)                                                    \
    BLOCKING(together##T, C, T, _all)                                        \
    BLOCKING(alone##T, C, T, )                                          \
    POSTED(iput##T, C, T, iput)                                              \
    POSTED(bput##T, C, T, bput)                                              \
    ATTRIBUTE(C, T, XTYPE)

TYPE(signed char, _schar, NC_BYTE)
TYPE(unsigned char, _uchar, NC_UBYTE)
TYPE(short, _short, NC_SHORT)
TYPE(unsigned short, _ushort, NC_USHORT)
TYPE(int, _int, NC_INT)
TYPE(unsigned int, _uint, NC_UINT)
TYPE(long, _long, NC_INT64)
TYPE(float, _float, NC_FLOAT)
TYPE(double, _double, NC_DOUBLE)
TYPE(long long, _longlong, NC_INT64)
TYPE(unsigned long long, _ulonglong, NC_UINT64)
BLOCKING(together_text, char, _text, _all)
BLOCKING(alone_text, char, _text, )
POSTED(iput_text, char, _text, iput)
POSTED(bput_text, char, _text, bput)
static void attribute_text(void) {
    char got[8] = {0};
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 5, "hello"));
    DO(ncmpi_get_att_text(ncid, NC_GLOBAL, "title", got));
    if (strcmp(got, "hello")) failures++;
}

static void create(nc_type xtype, void (*attribute)(void)) {
    int dims[2];
    DO(ncmpi_create(MPI_COMM_WORLD, "every.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "row", ROWS * ranks, &dims[0]));
    DO(ncmpi_def_dim(ncid, "column", COLUMNS, &dims[1]));
    DO(ncmpi_def_var(ncid, "first", xtype, 2, dims, &vars[0]));
    DO(ncmpi_def_var(ncid, "second", xtype, 2, dims, &vars[1]));
    attribute();
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_buffer_attach(ncid, 1 << 20));
}

#define RUN(T, XTYPE)                                                        \
    create(XTYPE, attribute##T);                                             \
    together##T();                                                           \
    DO(ncmpi_begin_indep_data(ncid));                                        \
    alone##T();                                                              \
    DO(ncmpi_end_indep_data(ncid));                                          \
    iput##T();                                                               \
    bput##T();                                                               \
    DO(ncmpi_buffer_detach(ncid));                                           \
    DO(ncmpi_close(ncid));

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    start[0] = ROWS * rank, start[1] = 0;
    RUN(_text, NC_CHAR)
    RUN(_schar, NC_BYTE)
    RUN(_uchar, NC_UBYTE)
    RUN(_short, NC_SHORT)
    RUN(_ushort, NC_USHORT)
    RUN(_int, NC_INT)
    RUN(_uint, NC_UINT)
    RUN(_long, NC_INT64)
    RUN(_float, NC_FLOAT)
    RUN(_double, NC_DOUBLE)
    RUN(_longlong, NC_INT64)
    RUN(_ulonglong, NC_UINT64)
    /* Conversion both ways. */
    RUN(_int, NC_DOUBLE)
    RUN(_double, NC_SHORT)
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
