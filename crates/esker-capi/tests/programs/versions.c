/* Old versions of a container by their names, FILE@N: each has what had been written when it was made. */
#include <stdio.h>
#include <string.h>
#include <pnetcdf.h>

static int rank, failures;

#define DO(call)                                                                               \
    do {                                                                                       \
        int err_ = (call);                                                                     \
        if (err_ != NC_NOERR) {                                                                \
            printf("rank %d, line %d: %s: %s\n", rank, __LINE__, #call, ncmpi_strerrno(err_)); \
            failures++;                                                                        \
        }                                                                                      \
    } while (0)

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *path = argc > 1 ? argv[1] : "versions.esk";
    char name[512];
    int ncid, dim, var, format, values[3];
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "esker_layout", "log");
    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, info, &ncid));
    DO(ncmpi_def_dim(ncid, "x", 3, &dim));
    DO(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
    DO(ncmpi_enddef(ncid));
    for (int step = 1; step <= 3; step++) {
        const int all[3] = {step, step, step};
        DO(ncmpi_put_var_int_all(ncid, var, all));
        DO(ncmpi_sync(ncid));
    }
    DO(ncmpi_close(ncid));
    /* Versions that had no value yet are there, too: what is asked for is that values come in order, each of them once at least. */
    int seen[4] = {0}, last = 0, found = 0;
    for (int version = 1; version < 20; version++) {
        snprintf(name, sizeof name, "%s@%d", path, version);
        int opened = ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &ncid);
        if (opened != NC_NOERR) {
            printf("rank %d: %s: %s\n", rank, name, ncmpi_strerrno(opened));
            break;
        }
        found++;
        DO(ncmpi_inq_file_format(name, &format));
        if (format != NC_FORMAT_CDF5) failures++, printf("line %d: format %d\n", __LINE__, format);
        DO(ncmpi_inq_varid(ncid, "v", &var));
        DO(ncmpi_get_var_int_all(ncid, var, values));
        int now = values[0] >= 1 && values[0] <= 3 ? values[0] : 0;
        if (now < last) failures++, printf("rank %d: version %d has %d after %d\n", rank, version, now, last);
        last = now;
        seen[now]++;
        DO(ncmpi_close(ncid));
    }
    if (found < 3 || !seen[1] || !seen[2] || !seen[3]) {
        failures++;
        printf("rank %d: %d versions, values %d %d %d\n", rank, found, seen[1], seen[2], seen[3]);
    }
    snprintf(name, sizeof name, "%s@1", path);
    if (ncmpi_open(MPI_COMM_WORLD, name, NC_WRITE, MPI_INFO_NULL, &ncid) == NC_NOERR) {
        failures++;
        printf("rank %d: an old version was opened for writing\n", rank);
    }
    MPI_Info_free(&info);
    MPI_Finalize();
    return failures > 0;
}
