/* Calls every function that is not about data: files, definitions, attributes and questions, and
 * looks at what they answer. On any number of ranks; returns 0 if all is as it should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

static int rank, ranks, failures;

static void check(int err, const char *call) {
    if (err != NC_NOERR) {
        printf("rank %d: %s: %s\n", rank, call, ncmpi_strerror(err));
        failures++;
    }
}
#define DO(call) check(call, #call)
static void is(long long is, long long should, const char *what, int line) {
    if (is != should) {
        printf("rank %d: line %d: %s is %lld, not %lld\n", rank, line, what, is, should);
        failures++;
    }
}
#define IS(what, value) is((long long)(what), (long long)(value), #what, __LINE__)

static void says(const char *is, const char *should, const char *what, int line) {
    if (strcmp(is, should)) {
        printf("rank %d: line %d: %s is %s, not %s\n", rank, line, what, is, should);
        failures++;
    }
}
#define SAYS(what, text) says(what, text, #what, __LINE__)

static int file, time_dim, x_dim, fixed, record;

static void define(const char *path) {
    int old, format, dims[2];
    double fill = -1.5;
    unsigned char bytes[3] = {1, 2, 255}, back[3];
    int numbers[4] = {1, -2, 3, -4}, same[4];
    DO(ncmpi_set_default_format(NC_FORMAT_CDF5, &old));
    DO(ncmpi_inq_default_format(&format));
    IS(format, NC_FORMAT_CDF5);
    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file));
    DO(ncmpi_set_default_format(old, NULL));
    DO(ncmpi_set_fill(file, NC_FILL, &old));
    IS(old, NC_NOFILL);
    DO(ncmpi_def_dim(file, "time", NC_UNLIMITED, &time_dim));
    DO(ncmpi_def_dim(file, "ex", 4, &x_dim));
    dims[0] = time_dim, dims[1] = x_dim;
    DO(ncmpi_def_var(file, "still", NC_INT, 1, &x_dim, &fixed));
    DO(ncmpi_def_var(file, "flow", NC_DOUBLE, 2, dims, &record));
    DO(ncmpi_def_var_fill(file, record, 0, &fill));
    DO(ncmpi_put_att_ubyte(file, NC_GLOBAL, "bytes", NC_UBYTE, 3, bytes));
    DO(ncmpi_get_att_ubyte(file, NC_GLOBAL, "bytes", back));
    IS(memcmp(bytes, back, 3), 0);
    DO(ncmpi_put_att(file, fixed, "numbers", NC_INT, 4, numbers));
    DO(ncmpi_get_att(file, fixed, "numbers", same));
    IS(memcmp(numbers, same, sizeof same), 0);
    DO(ncmpi_copy_att(file, fixed, "numbers", file, record));
    DO(ncmpi_rename_att(file, record, "numbers", "copied"));
    DO(ncmpi_put_att_text(file, record, "units", 3, "m/s"));
    DO(ncmpi_del_att(file, record, "units"));
    DO(ncmpi_rename_dim(file, x_dim, "x"));
    DO(ncmpi_rename_var(file, fixed, "fixed"));
    DO(ncmpi_rename_var(file, record, "record"));
    DO(ncmpi__enddef(file, 100, 1024, 0, 64));
}

static void ask(const char *path) {
    int a, b, c, d, ids[4];
    char name[NC_MAX_NAME + 1];
    MPI_Offset n, m;
    nc_type type;
    double fill = 0;
    DO(ncmpi_inq(file, &a, &b, &c, &d));
    IS(a, 2), IS(b, 2), IS(c, 1), IS(d, time_dim);
    DO(ncmpi_inq_ndims(file, &a)), DO(ncmpi_inq_nvars(file, &b)), DO(ncmpi_inq_natts(file, &c));
    DO(ncmpi_inq_unlimdim(file, &d));
    IS(a, 2), IS(b, 2), IS(c, 1), IS(d, time_dim);
    DO(ncmpi_inq_num_rec_vars(file, &a)), DO(ncmpi_inq_num_fix_vars(file, &b));
    IS(a, 1), IS(b, 1);
    DO(ncmpi_inq_format(file, &a)), IS(a, NC_FORMAT_CDF5);
    DO(ncmpi_inq_version(file, &a)), IS(a, NC_64BIT_DATA);
    DO(ncmpi_inq_path(file, &a, NULL)), IS(a, strlen(path));
    DO(ncmpi_inq_path(file, &a, name)), SAYS(name, path);
    DO(ncmpi_inq_dimid(file, "x", &a)), IS(a, x_dim);
    DO(ncmpi_inq_dim(file, x_dim, name, &n)), SAYS(name, "x"), IS(n, 4);
    DO(ncmpi_inq_dimname(file, time_dim, name)), SAYS(name, "time");
    DO(ncmpi_inq_dimlen(file, time_dim, &n)), IS(n, 3);
    DO(ncmpi_inq_varid(file, "record", &a)), IS(a, record);
    DO(ncmpi_inq_var(file, record, name, &type, &a, ids, &b));
    SAYS(name, "record"), IS(type, NC_DOUBLE), IS(a, 2), IS(ids[1], x_dim), IS(b, 2);
    DO(ncmpi_inq_varname(file, fixed, name)), SAYS(name, "fixed");
    DO(ncmpi_inq_vartype(file, fixed, &type)), IS(type, NC_INT);
    DO(ncmpi_inq_varndims(file, record, &a)), IS(a, 2);
    DO(ncmpi_inq_vardimid(file, record, ids)), IS(ids[0], time_dim), IS(ids[1], x_dim);
    DO(ncmpi_inq_varnatts(file, fixed, &a)), IS(a, 1);
    DO(ncmpi_inq_varoffset(file, fixed, &n)), DO(ncmpi_inq_header_extent(file, &m));
    IS(n, m), IS(n % 1024, 0);
    DO(ncmpi_inq_header_size(file, &m)), IS(m > 100 && m < n, 1);
    DO(ncmpi_inq_varoffset(file, record, &m)), IS(m, n + 64);
    DO(ncmpi_inq_recsize(file, &n)), IS(n, 4 * 8);
    DO(ncmpi_inq_var_fill(file, record, &a, &fill)), IS(a, 0), IS(fill * 2, -3);
    DO(ncmpi_inq_att(file, record, "copied", &type, &n)), IS(type, NC_INT), IS(n, 4);
    DO(ncmpi_inq_attid(file, record, "copied", &a));
    DO(ncmpi_inq_attname(file, record, a, name)), SAYS(name, "copied");
    DO(ncmpi_inq_atttype(file, NC_GLOBAL, "bytes", &type)), IS(type, NC_UBYTE);
    DO(ncmpi_inq_attlen(file, NC_GLOBAL, "bytes", &n)), IS(n, 3);
    DO(ncmpi_inq_striping(file, &a, &b));
    DO(ncmpi_inq_files_opened(&a, ids)), IS(a, 1), IS(ids[0], file);
    MPI_Info info;
    DO(ncmpi_inq_file_info(file, &info)), MPI_Info_free(&info);
    DO(ncmpi_get_file_info(file, &info)), MPI_Info_free(&info);
}

static void write(void) {
    MPI_Offset n, before, start[2] = {0, 0}, count[2] = {1, 4}, usage;
    int request, requests[2], statuses[2], numbers[4] = {5, 6, 7, 8};
    double row[4] = {0, 1, 2, 3}, back[4] = {0};
    DO(ncmpi_inq_put_size(file, &before));
    DO(ncmpi_put_vara_int_all(file, fixed, start, &count[1], numbers));
    DO(ncmpi_inq_put_size(file, &n)), IS(n - before, 16);
    DO(ncmpi_fill_var_rec(file, record, 2));
    start[0] = 1;
    DO(ncmpi_iput_vara_double(file, record, start, count, row, &request));
    DO(ncmpi_inq_nreqs(file, &requests[0])), IS(requests[0], 1);
    DO(ncmpi_cancel(file, 1, &request, statuses)), IS(request, NC_REQ_NULL);
    DO(ncmpi_buffer_attach(file, 100));
    DO(ncmpi_inq_buffer_size(file, &n)), IS(n, 100);
    DO(ncmpi_begin_indep_data(file));
    DO(ncmpi_bput_vara_double(file, record, start, count, row, &requests[0]));
    DO(ncmpi_inq_buffer_usage(file, &usage)), IS(usage, 32);
    DO(ncmpi_wait(file, 1, requests, statuses)), IS(statuses[0], NC_NOERR);
    DO(ncmpi_flush(file));
    DO(ncmpi_end_indep_data(file));
    DO(ncmpi_buffer_detach(file));
    DO(ncmpi_sync_numrecs(file));
    DO(ncmpi_sync(file));
    DO(ncmpi_inq_get_size(file, &before));
    DO(ncmpi_get_vara_double_all(file, record, start, count, back));
    DO(ncmpi_inq_get_size(file, &n)), IS(n - before, 32);
    IS(back[3], 3);
    start[0] = 2;
    DO(ncmpi_get_vara_double_all(file, record, start, count, back));
    IS(back[0] * 2, -3);
}

int main(int argc, char **argv) {
    const char *path = "questions.nc";
    MPI_Offset n;
    int a, dim;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    IS(strstr(ncmpi_inq_libvers(), "1.1") != NULL, 1);
    SAYS(ncmpi_strerrno(NC_EBADID), "NC_EBADID");
    define(path), write(), ask(path);
    DO(ncmpi_close(file));
    DO(ncmpi_inq_file_format(path, &a)), IS(a, NC_FORMAT_CDF5);
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file));
    ask(path);
    DO(ncmpi_redef(file));
    DO(ncmpi_def_dim(file, "never", 5, &dim));
    DO(ncmpi_abort(file));
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
    ask(path);
    /* Wrong calls. */
    IS(ncmpi_redef(file), NC_EPERM);
    IS(ncmpi_inq_varid(file, "nothing", &a), NC_ENOTVAR);
    IS(ncmpi_inq_dimlen(file, 7, &n), NC_EBADDIM);
    IS(ncmpi_inq_attlen(file, 0, "nothing", &n), NC_ENOTATT);
    MPI_Offset beyond = 9;
    IS(ncmpi_get_var1_int_all(file, fixed, &beyond, &a), NC_EINVALCOORDS);
    DO(ncmpi_close(file));
    IS(ncmpi_close(file), NC_EBADID);
    /* Debian's build does not count memory, and says so. */
    IS(ncmpi_inq_malloc_size(&n), NC_ENOTENABLED);
    IS(ncmpi_inq_malloc_max_size(&n), NC_ENOTENABLED);
    IS(ncmpi_inq_malloc_list(), NC_ENOTENABLED);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        DO(ncmpi_delete(path, MPI_INFO_NULL));
        FILE *gone = fopen(path, "r");
        IS(gone == NULL, 1);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
