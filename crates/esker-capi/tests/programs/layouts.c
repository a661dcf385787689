/* Writes and reads every type, fixed-size and record variables, by collective, posted, buffered and independent calls, with a
 * redefinition in between: the same program in every layout that PNETCDF_HINTS chooses. Its argument is the name of the
 * dataset; with a second one ("open") it reads back before it closes, and does not open the dataset again.
 * Returns 0 if all that it reads is what it wrote. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { ROWS = 3, EACH_RANK = 5, RECORDS = 4, TYPES = 11 };
static int rank, ranks, columns, failures;

static void check(int code, const char *what, int line) {
    if (code != NC_NOERR && failures++ < 20) printf("rank %d, line %d: %s: %s\n", rank, line, what, ncmpi_strerror(code));
}
#define DO(call) check((call), #call, __LINE__)

/* Fits every type; `version` counts how often it was written. */
static int expected(int type, int record, int row, int column, int version) {
    return (7 * type + 31 * record + 13 * row + 3 * column + 41 * version) % 100;
}

/* Ranks have columns in turn, so that pieces interleave. */
static int column_of(int i, int of) { return i * ranks + of; }

#define EVERY(X) \
    X(0, NC_BYTE, schar, signed char) X(1, NC_CHAR, text, char) X(2, NC_SHORT, short, short) X(3, NC_INT, int, int) \
    X(4, NC_FLOAT, float, float) X(5, NC_DOUBLE, double, double) X(6, NC_UBYTE, uchar, unsigned char) \
    X(7, NC_USHORT, ushort, unsigned short) X(8, NC_UINT, uint, unsigned int) X(9, NC_INT64, longlong, long long) \
    X(10, NC_UINT64, ulonglong, unsigned long long)

static int fixed[TYPES], record[TYPES];

#define FUNCTIONS(N, XTYPE, NAME, TYPE) \
    static void put_##NAME(int ncid) { \
        TYPE rows[ROWS * EACH_RANK], line[2][EACH_RANK], late; \
        MPI_Offset start[2] = {0, rank}, count[2] = {ROWS, EACH_RANK}, stride[2] = {1, ranks}; \
        int request[2], status[2]; \
        for (int y = 0; y < ROWS; y++) \
            for (int i = 0; i < EACH_RANK; i++) rows[y * EACH_RANK + i] = (TYPE)expected(N, 0, y, column_of(i, rank), 0); \
        DO(ncmpi_put_vars_##NAME##_all(ncid, fixed[N], start, count, stride, rows)); \
        count[0] = 1; \
        for (int t = 0; t < RECORDS; t++) { \
            start[0] = t; \
            for (int v = 0; v < 2; v++) \
                for (int i = 0; i < EACH_RANK; i++) line[v][i] = (TYPE)expected(N, t, 0, column_of(i, rank), v); \
            /* The later one counts. */ \
            DO(ncmpi_iput_vars_##NAME(ncid, record[N], start, count, stride, line[0], &request[0])); \
            DO(ncmpi_wait_all(ncid, 1, request, status)), DO(status[0]); \
            DO(ncmpi_bput_vars_##NAME(ncid, record[N], start, count, stride, line[1], &request[1])); \
            DO(ncmpi_wait_all(ncid, 1, request + 1, status)), DO(status[0]); \
        } \
        DO(ncmpi_begin_indep_data(ncid)); \
        start[0] = ROWS - 1, start[1] = column_of(1, rank); \
        late = (TYPE)expected(N, 0, ROWS - 1, column_of(1, rank), 2); \
        DO(ncmpi_put_var1_##NAME(ncid, fixed[N], start, &late)); \
        DO(ncmpi_end_indep_data(ncid)); \
    } \
    static void get_##NAME(int ncid) { \
        TYPE *row = malloc(sizeof(TYPE) * (size_t)columns); \
        MPI_Offset start[2] = {0, 0}, count[2] = {1, columns}; \
        for (int y = 0; y < ROWS; y++) { \
            start[0] = y; \
            DO(ncmpi_get_vara_##NAME##_all(ncid, fixed[N], start, count, row)); \
            for (int x = 0; x < columns; x++) { \
                int version = y == ROWS - 1 && x / ranks == 1 ? 2 : 0; \
                if (row[x] != (TYPE)expected(N, 0, y, x, version)) check(NC_ERANGE, "fixed " #NAME, __LINE__); \
            } \
        } \
        for (int t = 0; t < RECORDS; t++) { \
            start[0] = t; \
            DO(ncmpi_get_vara_##NAME##_all(ncid, record[N], start, count, row)); \
            for (int x = 0; x < columns; x++) \
                if (row[x] != (TYPE)expected(N, t, 0, x, 1)) check(NC_ERANGE, "record " #NAME, __LINE__); \
        } \
        free(row); \
    }
EVERY(FUNCTIONS)

#define DEFINE(N, XTYPE, NAME, TYPE) \
    DO(ncmpi_def_var(ncid, "f_" #NAME, XTYPE, 2, dims, &fixed[N])); \
    DO(ncmpi_def_var(ncid, "r_" #NAME, XTYPE, 2, record_dims, &record[N]));
#define PUT(N, XTYPE, NAME, TYPE) put_##NAME(ncid);
#define GET(N, XTYPE, NAME, TYPE) get_##NAME(ncid);

static void look(int ncid) {
    int late, value;
    char text[30] = "";
    MPI_Offset length;
    EVERY(GET)
    DO(ncmpi_inq_varid(ncid, "late", &late));
    DO(ncmpi_get_var_int_all(ncid, late, &value));
    if (value != 42) check(NC_ERANGE, "late", __LINE__);
    DO(ncmpi_get_att_text(ncid, NC_GLOBAL, "title", text));
    if (strcmp(text, "every type") != 0) check(NC_ERANGE, text, __LINE__);
    DO(ncmpi_inq_dimlen(ncid, 2, &length));
    if (length != RECORDS) check(NC_ERANGE, "records", __LINE__);
}

int main(int argc, char **argv) {
    int ncid, dims[2], record_dims[2], late, value = 42;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    columns = EACH_RANK * ranks;
    DO(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "y", ROWS, &dims[0]));
    DO(ncmpi_def_dim(ncid, "x", columns, &dims[1]));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &record_dims[0]));
    record_dims[1] = dims[1];
    EVERY(DEFINE)
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_buffer_attach(ncid, 1 << 16));
    EVERY(PUT)
    DO(ncmpi_buffer_detach(ncid));
    DO(ncmpi_redef(ncid));
    DO(ncmpi_def_var(ncid, "late", NC_INT, 0, NULL, &late));
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 11, "every type"));
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_put_var_int_all(ncid, late, &value));
    look(ncid);
    DO(ncmpi_sync(ncid));
    DO(ncmpi_close(ncid));
    if (argc < 3) {
        DO(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &ncid));
        look(ncid);
        DO(ncmpi_close(ncid));
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
