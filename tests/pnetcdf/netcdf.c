/* netCDF-C's own interface over PnetCDF's: writes a classic file in parallel, reads it back.
 * Returns 0 if what was read is what was written. */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status, const char *what)
{
    if (status == NC_NOERR)
        return;
    fprintf(stderr, "%s: %s\n", what, nc_strerror(status));
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

int main(int argc, char **argv)
{
    int rank, ranks, file, dims[2], var, wrong = 0, row[8];
    size_t start[2], count[2] = {1, 8}, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *path = argc > 1 ? argv[1] : "netcdf.nc";
    check(nc_create_par(path, NC_CLOBBER | NC_PNETCDF | NC_64BIT_DATA, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "create");
    check(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]), "def_dim");
    check(nc_def_dim(file, "x", 8, &dims[1]), "def_dim");
    check(nc_def_var(file, "v", NC_INT, 2, dims, &var), "def_var");
    check(nc_put_att_text(file, var, "units", 1, "m"), "put_att");
    check(nc_enddef(file), "enddef");
    check(nc_var_par_access(file, var, NC_COLLECTIVE), "var_par_access");
    start[0] = (size_t)rank, start[1] = 0;
    for (int i = 0; i < 8; i++)
        row[i] = 100 * rank + i;
    check(nc_put_vara_int(file, var, start, count, row), "put_vara");
    check(nc_close(file), "close");
    check(nc_open_par(path, NC_NOWRITE | NC_PNETCDF, MPI_COMM_WORLD, MPI_INFO_NULL, &file), "open");
    check(nc_inq_dimlen(file, dims[0], &length), "inq_dimlen");
    wrong += length != (size_t)ranks;
    int other = (rank + 1) % ranks;
    start[0] = (size_t)other;
    check(nc_var_par_access(file, var, NC_COLLECTIVE), "var_par_access");
    check(nc_get_vara_int(file, var, start, count, row), "get_vara");
    for (int i = 0; i < 8; i++)
        wrong += row[i] != 100 * other + i;
    check(nc_close(file), "close");
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %d wrong\n", ranks, wrong);
    MPI_Finalize();
    return wrong != 0;
}
