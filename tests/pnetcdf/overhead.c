/* What a call costs: prints "name nanoseconds" for a few calls, the least of several rounds.
 * crates/esker-capi/examples/overhead.rs makes the same calls in Rust, on a file of the same
 * shape. One rank. */
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

enum { VARS = 100, LENGTH = 1000, ROUNDS = 15, CALLS = 2000 };

static void check(int status, const char *what)
{
    if (status == NC_NOERR)
        return;
    fprintf(stderr, "%s: %s\n", what, ncmpi_strerror(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define TIME(name, call)                                                       \
    do {                                                                       \
        double least = 1e9;                                                    \
        for (int round = 0; round < ROUNDS; round++) {                         \
            double since = MPI_Wtime();                                        \
            for (int i = 0; i < CALLS; i++)                                    \
                check(call, name);                                             \
            double took = MPI_Wtime() - since;                                 \
            least = took < least ? took : least;                               \
        }                                                                      \
        printf("%s %.0f\n", name, least / CALLS * 1e9);                        \
    } while (0)

static int iput_and_cancel(int file, int var, const MPI_Offset *at, const int *value)
{
    int request, status;
    int error = ncmpi_iput_var1_int(file, var, at, value, &request);
    return error != NC_NOERR ? error : ncmpi_cancel(file, 1, &request, &status);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *path = argc > 1 ? argv[1] : "overhead.nc";
    int file, dims[2], vars[VARS], found, data[100] = {0};
    MPI_Offset at[2] = {3, 7}, count[2] = {1, 100}, length;
    check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file), "create");
    check(ncmpi_def_dim(file, "y", 10, &dims[0]), "def_dim");
    check(ncmpi_def_dim(file, "x", LENGTH, &dims[1]), "def_dim");
    for (int i = 0; i < VARS; i++) {
        char name[32];
        snprintf(name, sizeof name, "variable_%d", i);
        check(ncmpi_def_var(file, name, NC_INT, 2, dims, &vars[i]), "def_var");
    }
    check(ncmpi_enddef(file), "enddef");
    TIME("inq_varid", ncmpi_inq_varid(file, "variable_77", &found));
    TIME("inq_dimlen", ncmpi_inq_dimlen(file, dims[1], &length));
    TIME("iput_var1+cancel", iput_and_cancel(file, vars[5], at, data));
    TIME("put_vara_all", ncmpi_put_vara_int_all(file, vars[5], at, count, data));
    TIME("get_vara_all", ncmpi_get_vara_int_all(file, vars[5], at, count, data));
    check(ncmpi_begin_indep_data(file), "begin_indep_data");
    TIME("put_var1", ncmpi_put_var1_int(file, vars[5], at, data));
    TIME("get_var1", ncmpi_get_var1_int(file, vars[5], at, data));
    TIME("put_vara", ncmpi_put_vara_int(file, vars[5], at, count, data));
    TIME("get_vara", ncmpi_get_vara_int(file, vars[5], at, count, data));
    check(ncmpi_end_indep_data(file), "end_indep_data");
    check(ncmpi_close(file), "close");
    MPI_Finalize();
    return 0;
}
