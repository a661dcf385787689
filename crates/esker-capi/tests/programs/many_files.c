/* Opens so many files as its argument says, until there is an error, and closes them again. */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1, opened = 0, code = NC_NOERR, size, i;
    int *ids = malloc(sizeof(int) * (size_t)(count + 1));
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < count && code == NC_NOERR; i++) {
        char name[64];
        int dim, var;
        /* Worlds of one rank would take each other's files away. */
        snprintf(name, sizeof name, "many%d.%d.nc", size == 1 ? (int)getpid() : 0, i);
        code = ncmpi_create(MPI_COMM_WORLD, name, NC_CLOBBER, MPI_INFO_NULL, &ids[i]);
        if (code == NC_NOERR) {
            if (ncmpi_def_dim(ids[i], "x", 2, &dim) || ncmpi_def_var(ids[i], "v", NC_INT, 1, &dim, &var)) return 1;
            /* Other ranks than the first open the file here. */
            code = ncmpi_enddef(ids[i]);
            if (code == NC_NOERR) opened++;
            else if (ncmpi_abort(ids[i])) return 1;
        }
    }
    printf("opened %d, then %s, world of %d\n", opened, ncmpi_strerrno(code), size);
    for (i = 0; i < opened; i++) {
        int value = i, back = -1;
        MPI_Offset at = 0;
        if (ncmpi_put_var1_int_all(ids[i], 0, &at, &value) || ncmpi_get_var1_int_all(ids[i], 0, &at, &back)) return 1;
        if (back != i) return 1;
    }
    /* The odd ones first. */
    for (i = 1; i < opened; i += 2) if (ncmpi_close(ids[i])) return 1;
    for (i = 0; i < opened; i += 2) if (ncmpi_close(ids[i])) return 1;
    free(ids);
    MPI_Finalize();
    return 0;
}
