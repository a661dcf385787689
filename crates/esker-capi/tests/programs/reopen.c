/* What programs do with files that they have written: open them again to read, to write, to redefine, alone and
 * together, replace and delete them. Unchanged by how the file is stored, which PNETCDF_HINTS says. The expected
 * values are those of plain arrays. Argument: a file name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { Y = 14, X = 10, RECORDS = 3 };

static int rank, ranks, failures;

static int check(int err, int expected, const char *call, int line) {
    if (err != expected) {
        printf("rank %d, line %d: %s: %s instead of %s\n", rank, line, call, ncmpi_strerrno(err),
               ncmpi_strerrno(expected));
        failures++;
    }
    return err;
}
#define DO(call) check(call, NC_NOERR, #call, __LINE__)
#define IS(expected, call) check(call, expected, #call, __LINE__)
#define EQUAL(a, b)                                                                            \
    do {                                                                                       \
        long long a_ = (a), b_ = (b);                                                          \
        if (a_ != b_) {                                                                        \
            printf("rank %d, line %d: %s is %lld, not %lld\n", rank, __LINE__, #a, a_, b_);    \
            failures++;                                                                        \
        }                                                                                      \
    } while (0)

/* The model. */
static int fixed[Y][X];
static float record[RECORDS + 2][Y][X];
static int records;
static const float FILL = -5.5f;

static void same_int(const int *got, const int *want, int n, int line) {
    for (int i = 0; i < n; i++)
        if (got[i] != want[i]) {
            printf("rank %d, line %d: element %d is %d, not %d\n", rank, line, i, got[i], want[i]);
            failures++;
            return;
        }
}

static void same_float(const float *got, const float *want, int n, int line) {
    for (int i = 0; i < n; i++)
        if (got[i] != want[i]) {
            printf("rank %d, line %d: element %d is %g, not %g\n", rank, line, i, got[i], want[i]);
            failures++;
            return;
        }
}

/* This rank's rows. */
static void rows(MPI_Offset *start, MPI_Offset *count) {
    start[0] = Y * rank / ranks;
    count[0] = Y * (rank + 1) / ranks - start[0];
    start[1] = 0;
    count[1] = X;
}

static void put_record(int ncid, int varid, int number, int base) {
    MPI_Offset start[3] = {number, 0, 0}, count[3] = {1, 0, 0};
    rows(start + 1, count + 1);
    for (int y = 0; y < Y; y++)
        for (int x = 0; x < X; x++) record[number][y][x] = base + 100 * number + y + 0.01f * x;
    DO(ncmpi_put_vara_float_all(ncid, varid, start, count, &record[number][start[1]][0]));
    if (records <= number) records = number + 1;
}

static void put_fixed(int ncid, int varid, int base) {
    MPI_Offset start[2], count[2];
    rows(start, count);
    for (int y = 0; y < Y; y++)
        for (int x = 0; x < X; x++) fixed[y][x] = base + 100 * y + x;
    DO(ncmpi_put_vara_int_all(ncid, varid, start, count, &fixed[start[0]][0]));
}

/* All values, collectively, and a corner of each with strides. */
static void look(int ncid, const char *f, const char *r) {
    int varid, got[Y][X], few[4], want[4];
    float *all = malloc(sizeof(float) * Y * X * (RECORDS + 2));
    DO(ncmpi_inq_varid(ncid, f, &varid));
    memset(got, 0, sizeof got);
    DO(ncmpi_get_var_int_all(ncid, varid, &got[0][0]));
    same_int(&got[0][0], &fixed[0][0], Y * X, __LINE__);
    MPI_Offset start[3] = {1, 2, 0}, count[3] = {2, 2, 0}, stride[3] = {5, 3, 0};
    for (int i = 0; i < 4; i++) want[i] = fixed[1 + 5 * (i / 2)][2 + 3 * (i % 2)];
    DO(ncmpi_get_vars_int_all(ncid, varid, start, count, stride, few));
    same_int(few, want, 4, __LINE__);
    DO(ncmpi_inq_varid(ncid, r, &varid));
    DO(ncmpi_get_var_float_all(ncid, varid, all));
    same_float(all, &record[0][0][0], records * Y * X, __LINE__);
    DO(ncmpi_begin_indep_data(ncid));
    MPI_Offset one[3] = {rank % records, rank % Y, 0}, row[3] = {1, 1, X};
    DO(ncmpi_get_vara_float(ncid, varid, one, row, all));
    same_float(all, record[one[0]][one[1]], X, __LINE__);
    DO(ncmpi_end_indep_data(ncid));
    free(all);
}

static void inquire(int ncid, const char *f, const char *r, int nvars, int natts) {
    int n[4], varid, dimids[3], type, kind;
    char name[NC_MAX_NAME + 1];
    MPI_Offset len, size, extent;
    DO(ncmpi_inq(ncid, &n[0], &n[1], &n[2], &n[3]));
    EQUAL(n[0], 3);
    EQUAL(n[1], nvars);
    EQUAL(n[2], natts);
    EQUAL(n[3], 0);
    DO(ncmpi_inq_format(ncid, &kind));
    EQUAL(kind, NC_FORMAT_CDF5);
    DO(ncmpi_inq_dimlen(ncid, 0, &len));
    EQUAL(len, records);
    DO(ncmpi_inq_dimlen(ncid, 1, &len));
    EQUAL(len, Y);
    DO(ncmpi_inq_varid(ncid, f, &varid));
    DO(ncmpi_inq_var(ncid, varid, name, &type, &n[0], dimids, &n[1]));
    EQUAL(strcmp(name, f), 0);
    EQUAL(type, NC_INT);
    EQUAL(n[0], 2);
    EQUAL(dimids[0], 1);
    EQUAL(dimids[1], 2);
    EQUAL(n[1], 1);
    DO(ncmpi_inq_attname(ncid, varid, 0, name));
    EQUAL(strcmp(name, "units"), 0);
    IS(NC_ENOTATT, ncmpi_inq_attname(ncid, varid, 1, name));
    DO(ncmpi_inq_varid(ncid, r, &varid));
    DO(ncmpi_inq_varndims(ncid, varid, &n[0]));
    EQUAL(n[0], 3);
    DO(ncmpi_inq_vardimid(ncid, varid, dimids));
    EQUAL(dimids[0], 0);
    EQUAL(dimids[2], 2);
    DO(ncmpi_inq_varnatts(ncid, varid, &n[0]));
    EQUAL(n[0], 1);
    DO(ncmpi_inq_num_rec_vars(ncid, &n[0]));
    EQUAL(n[0], 1);
    DO(ncmpi_inq_num_fix_vars(ncid, &n[0]));
    EQUAL(n[0], nvars - 1);
    DO(ncmpi_inq_recsize(ncid, &len));
    EQUAL(len, Y * X * 4);
    DO(ncmpi_inq_header_size(ncid, &size));
    DO(ncmpi_inq_header_extent(ncid, &extent));
    EQUAL(size > 0 && extent >= size, 1);
    int code = ncmpi_inq_varoffset(ncid, varid, &len);
    EQUAL(code == NC_ENOTSUPPORT || (code == NC_NOERR && len >= extent), 1);
}

int main(int argc, char **argv) {
    int ncid, dims[3], f, r, c, s, g, kind, old, requests[2], statuses[2];
    const char *path = argc > 1 ? argv[1] : "reopen.nc";
    char text[X + 1], other[1024], also[X];
    double pi = 0;
    MPI_Offset start[3], count[3];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(other, sizeof other, "%s.other", path);
    if (rank == 0) IS(NC_ENOENT, ncmpi_delete(path, MPI_INFO_NULL));
    IS(NC_ENOENT, ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));

    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "y", Y, &dims[1]));
    DO(ncmpi_def_dim(ncid, "x", X, &dims[2]));
    DO(ncmpi_def_var(ncid, "fixed", NC_INT, 2, dims + 1, &f));
    DO(ncmpi_def_var(ncid, "record", NC_FLOAT, 3, dims, &r));
    DO(ncmpi_def_var(ncid, "text", NC_CHAR, 1, dims + 2, &c));
    DO(ncmpi_def_var(ncid, "scalar", NC_DOUBLE, 0, NULL, &s));
    DO(ncmpi_put_att_text(ncid, f, "units", 5, "metre"));
    DO(ncmpi_def_var_fill(ncid, r, 0, &FILL));
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 4, "test"));
    DO(ncmpi_enddef(ncid));
    inquire(ncid, "fixed", "record", 4, 1);
    put_fixed(ncid, f, 1000);
    put_record(ncid, r, 0, 7);
    put_record(ncid, r, 1, 7);
    memcpy(text, "abcdefghij", X);
    DO(ncmpi_put_var_text_all(ncid, c, text));
    pi = 3.25;
    DO(ncmpi_put_var_double_all(ncid, s, &pi));
    /* Posted: a part of the fixed variable anew, and a record. */
    rows(start, count);
    for (int y = 0; y < Y; y++) fixed[y][3] = -y;
    start[1] = 3, count[1] = 1;
    int column[Y];
    for (int y = 0; y < Y; y++) column[y] = -y;
    DO(ncmpi_iput_vara_int(ncid, f, start, count, column + start[0], &requests[0]));
    for (int y = 0; y < Y; y++)
        for (int x = 0; x < X; x++) record[2][y][x] = 0.5f * (y * X + x);
    MPI_Offset start3[3] = {2, 0, 0}, count3[3] = {1, 0, X};
    rows(start3 + 1, count3 + 1);
    DO(ncmpi_buffer_attach(ncid, sizeof record));
    DO(ncmpi_bput_vara_float(ncid, r, start3, count3, &record[2][start3[1]][0], &requests[1]));
    DO(ncmpi_wait_all(ncid, 2, requests, statuses));
    DO(statuses[0]);
    DO(statuses[1]);
    DO(ncmpi_buffer_detach(ncid));
    records = 3;
    look(ncid, "fixed", "record");
    DO(ncmpi_close(ncid));

    /* Read. */
    DO(ncmpi_inq_file_format(path, &kind));
    EQUAL(kind, NC_FORMAT_CDF5);
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    inquire(ncid, "fixed", "record", 4, 1);
    look(ncid, "fixed", "record");
    memset(also, 0, X);
    DO(ncmpi_get_var_text_all(ncid, c, also));
    EQUAL(memcmp(text, also, X), 0);
    pi = 0;
    DO(ncmpi_get_var_double_all(ncid, s, &pi));
    EQUAL(pi == 3.25, 1);
    IS(NC_EPERM, ncmpi_put_var_double_all(ncid, s, &pi));
    IS(NC_EPERM, ncmpi_redef(ncid));
    DO(ncmpi_close(ncid));
    IS(NC_EEXIST, ncmpi_create(MPI_COMM_WORLD, path, NC_NOCLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));

    /* Every rank alone. */
    DO(ncmpi_open(MPI_COMM_SELF, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    inquire(ncid, "fixed", "record", 4, 1);
    look(ncid, "fixed", "record");
    DO(ncmpi_close(ncid));
    MPI_Barrier(MPI_COMM_WORLD);

    /* Write again: parts, a record more, attributes, then other definitions. */
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &ncid));
    put_fixed(ncid, f, 5000);
    put_record(ncid, r, 3, 9);
    put_record(ncid, r, 1, 11);
    DO(ncmpi_put_att_text(ncid, f, "units", 4, "inch"));
    DO(ncmpi_rename_var(ncid, f, "fix"));
    DO(ncmpi_sync(ncid));
    look(ncid, "fix", "record");
    DO(ncmpi_redef(ncid));
    DO(ncmpi_rename_var(ncid, r, "a_record_with_a_longer_name"));
    DO(ncmpi_rename_dim(ncid, dims[2], "columns"));
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "history", 300,
                          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
                          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
                          "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
                          "0123456789012345678901234567890123456789"));
    DO(ncmpi_set_fill(ncid, NC_FILL, &old));
    DO(ncmpi_def_var(ncid, "filled", NC_SHORT, 1, dims + 1, &g));
    DO(ncmpi_enddef(ncid));
    put_record(ncid, r, 4, 13);
    start[0] = 0, count[0] = rank == 0 ? 2 : 0;
    short two[2] = {21, 22}, shorts[Y];
    DO(ncmpi_put_vara_short_all(ncid, g, start, count, two));
    look(ncid, "fix", "a_record_with_a_longer_name");
    DO(ncmpi_close(ncid));
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &ncid));
    inquire(ncid, "fix", "a_record_with_a_longer_name", 5, 2);
    look(ncid, "fix", "a_record_with_a_longer_name");
    DO(ncmpi_get_var_short_all(ncid, g, shorts));
    for (int y = 0; y < Y; y++) EQUAL(shorts[y], y < 2 ? two[y] : NC_FILL_SHORT);
    DO(ncmpi_fill_var_rec(ncid, r, 1));
    for (int i = 0; i < Y * X; i++) record[1][0][i] = FILL;
    DO(ncmpi_redef(ncid));
    DO(ncmpi_del_att(ncid, NC_GLOBAL, "history"));
    DO(ncmpi_close(ncid)); /* ends define mode too */
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    inquire(ncid, "fix", "a_record_with_a_longer_name", 5, 1);
    look(ncid, "fix", "a_record_with_a_longer_name");
    DO(ncmpi_close(ncid));

    /* Replaced by a smaller one, of another format; and one that is given up. */
    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "n", 4, &dims[0]));
    DO(ncmpi_def_var(ncid, "only", NC_INT, 1, dims, &g));
    DO(ncmpi_enddef(ncid));
    int four[4] = {1, 2, 3, 4}, read[4] = {0};
    DO(ncmpi_put_var_int_all(ncid, g, four));
    DO(ncmpi_close(ncid));
    DO(ncmpi_inq_file_format(path, &kind));
    EQUAL(kind, NC_FORMAT_CLASSIC);
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_inq_nvars(ncid, &kind));
    EQUAL(kind, 1);
    DO(ncmpi_get_var_int_all(ncid, 0, read));
    same_int(read, four, 4, __LINE__);
    DO(ncmpi_close(ncid));
    DO(ncmpi_create(MPI_COMM_WORLD, other, NC_CLOBBER, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "n", 4, &dims[0]));
    DO(ncmpi_def_var(ncid, "only", NC_INT, 1, dims, &g));
    DO(ncmpi_abort(ncid));
    IS(NC_ENOENT, ncmpi_open(MPI_COMM_WORLD, other, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) DO(ncmpi_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    IS(NC_ENOENT, ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_inq_files_opened(&kind, NULL));
    EQUAL(kind, 0);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures != 0;
}
