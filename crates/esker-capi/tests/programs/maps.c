/* Writes and reads decomposed variables of every type, fixed-size and with records, through a map (blobs) and as arrays, by
 * collective, posted, buffered and independent calls: the same program with and without sub-files and a burst buffer, as
 * PNETCDF_HINTS says. Its argument is the name of the dataset. Returns 0 if all that it reads is what it wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>
#include <esker_pnetcdf.h>

enum { ROWS = 3, EACH_RANK = 5, RECORDS = 4, TYPES = 11, OWN = ROWS * EACH_RANK };
static int rank, ranks, columns, failures;

static void check(int code, const char *what, int line) {
    if (code != NC_NOERR && failures++ < 20) printf("rank %d, line %d: %s: %s\n", rank, line, what, ncmpi_strerror(code));
}
#define DO(call) check((call), #call, __LINE__)

/* Fits every type; `version` counts how often it was written. */
static int expected(int type, int record, int row, int column, int version) {
    return (7 * type + 31 * record + 13 * row + 3 * column + 41 * version) % 100;
}

/* Ranks have columns in turn: the element k of a blob is in this row and column. */
static int row_of(int k) { return k / EACH_RANK; }
static int column_of(int k, int of) { return k % EACH_RANK * ranks + of; }

#define EVERY(X) \
    X(0, NC_BYTE, schar, signed char, MPI_SIGNED_CHAR) X(1, NC_CHAR, text, char, MPI_CHAR) \
    X(2, NC_SHORT, short, short, MPI_SHORT) X(3, NC_INT, int, int, MPI_INT) X(4, NC_FLOAT, float, float, MPI_FLOAT) \
    X(5, NC_DOUBLE, double, double, MPI_DOUBLE) X(6, NC_UBYTE, uchar, unsigned char, MPI_UNSIGNED_CHAR) \
    X(7, NC_USHORT, ushort, unsigned short, MPI_UNSIGNED_SHORT) X(8, NC_UINT, uint, unsigned int, MPI_UNSIGNED) \
    X(9, NC_INT64, longlong, long long, MPI_LONG_LONG_INT) \
    X(10, NC_UINT64, ulonglong, unsigned long long, MPI_UNSIGNED_LONG_LONG)

static int fixed[TYPES], record[TYPES];

#define FUNCTIONS(N, XTYPE, NAME, TYPE, MPITYPE) \
    static void fill_##NAME(TYPE *blob, int t, int version) { \
        for (int k = 0; k < OWN; k++) blob[k] = (TYPE)expected(N, t, row_of(k), column_of(k, rank), version); \
    } \
    static void put_##NAME(int ncid) { \
        TYPE blob[2][OWN]; \
        MPI_Offset start, count = 1; \
        int request, status; \
        fill_##NAME(blob[0], 0, 0); \
        DO(ncmpi_put_decom_all(ncid, fixed[N], NULL, NULL, blob[0], OWN, MPITYPE)); \
        for (int t = 0; t < RECORDS; t++) { \
            start = t; \
            fill_##NAME(blob[0], t, 0), fill_##NAME(blob[1], t, 1); \
            /* The later one counts. */ \
            DO(ncmpi_iput_decom(ncid, record[N], &start, &count, blob[0], OWN, MPITYPE, &request)); \
            DO(ncmpi_wait_all(ncid, 1, &request, &status)), DO(status); \
            DO(ncmpi_bput_decom(ncid, record[N], &start, &count, blob[1], OWN, MPITYPE, &request)); \
            DO(ncmpi_wait_all(ncid, 1, &request, &status)), DO(status); \
        } \
        fill_##NAME(blob[0], 0, 2); \
        DO(ncmpi_begin_indep_data(ncid)); \
        DO(ncmpi_put_decom(ncid, fixed[N], NULL, NULL, blob[0], OWN, MPITYPE)); \
        DO(ncmpi_end_indep_data(ncid)); \
    } \
    static void get_##NAME(int ncid) { \
        TYPE *all = malloc(sizeof(TYPE) * (size_t)(RECORDS * ROWS * columns)), blob[RECORDS * OWN], wanted[OWN]; \
        DO(ncmpi_get_var_##NAME##_all(ncid, fixed[N], all)); \
        for (int y = 0; y < ROWS; y++) \
            for (int x = 0; x < columns; x++) \
                if (all[y * columns + x] != (TYPE)expected(N, 0, y, x, 2)) check(NC_ERANGE, "fixed " #NAME, __LINE__); \
        DO(ncmpi_get_var_##NAME##_all(ncid, record[N], all)); \
        for (int t = 0; t < RECORDS; t++) \
            for (int y = 0; y < ROWS; y++) \
                for (int x = 0; x < columns; x++) \
                    if (all[(t * ROWS + y) * columns + x] != (TYPE)expected(N, t, y, x, 1)) \
                        check(NC_ERANGE, "record " #NAME, __LINE__); \
        DO(ncmpi_get_decom_all(ncid, record[N], NULL, NULL, blob, RECORDS * OWN, MPITYPE)); \
        for (int t = 0; t < RECORDS; t++) { \
            fill_##NAME(wanted, t, 1); \
            if (memcmp(blob + t * OWN, wanted, sizeof wanted) != 0) check(NC_ERANGE, "blob " #NAME, __LINE__); \
        } \
        free(all); \
    }
EVERY(FUNCTIONS)

#define DEFINE(N, XTYPE, NAME, TYPE, MPITYPE) \
    DO(ncmpi_def_decom_var(ncid, "f_" #NAME, XTYPE, 0, NULL, map, &fixed[N])); \
    DO(ncmpi_def_decom_var(ncid, "r_" #NAME, XTYPE, 1, &time, map, &record[N]));
#define FIND(N, XTYPE, NAME, TYPE, MPITYPE) \
    DO(ncmpi_inq_varid(ncid, "f_" #NAME, &fixed[N])), DO(ncmpi_inq_varid(ncid, "r_" #NAME, &record[N]));
#define PUT(N, XTYPE, NAME, TYPE, MPITYPE) put_##NAME(ncid);
#define GET(N, XTYPE, NAME, TYPE, MPITYPE) get_##NAME(ncid);

int main(int argc, char **argv) {
    int ncid, dims[2], time, map, layout;
    MPI_Offset starts[OWN][2], counts[OWN][2], *s[OWN], *c[OWN];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    columns = EACH_RANK * ranks;
    for (int k = 0; k < OWN; k++) {
        starts[k][0] = row_of(k), starts[k][1] = column_of(k, rank), counts[k][0] = counts[k][1] = 1;
        s[k] = starts[k], c[k] = counts[k];
    }
    DO(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &time));
    DO(ncmpi_def_dim(ncid, "y", ROWS, &dims[0]));
    DO(ncmpi_def_dim(ncid, "x", columns, &dims[1]));
    DO(ncmpi_def_decom(ncid, 2, dims, OWN, s, c, &map));
    EVERY(DEFINE)
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_buffer_attach(ncid, 1 << 16));
    EVERY(PUT)
    DO(ncmpi_buffer_detach(ncid));
    EVERY(GET)
    DO(ncmpi_sync(ncid));
    DO(ncmpi_close(ncid));
    DO(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &ncid));
    EVERY(FIND)
    DO(ncmpi_var_get_layout(ncid, record[3], &layout));
    if (layout != NC_LAYOUT_DECOMPOSED) check(NC_EINVAL, "the layout", __LINE__);
    EVERY(GET)
    DO(ncmpi_close(ncid));
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
