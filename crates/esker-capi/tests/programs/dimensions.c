/* The longest dimensions of each format: NC_MAX_INT in CDF-1 and 2, NC_MAX_INT64 in CDF-5. */
#include <stdio.h>
#include <pnetcdf.h>

static int failures;
static void is(long long is, long long should, const char *what) {
    if (is != should) printf("%s is %lld, not %lld\n", what, is, should), failures++;
}
#define IS(what, value) is((long long)(what), (long long)(value), #what)

int main(int argc, char **argv) {
    const int modes[3] = {0, NC_64BIT_OFFSET, NC_64BIT_DATA};
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        int ncid, dim, var;
        MPI_Offset most = i < 2 ? NC_MAX_INT : NC_MAX_INT64, len;
        IS(ncmpi_create(MPI_COMM_WORLD, "dimensions.nc", NC_CLOBBER | modes[i], MPI_INFO_NULL, &ncid), 0);
        IS(ncmpi_def_dim(ncid, "most", most, &dim), 0);
        IS(ncmpi_def_dim(ncid, "negative", -1, &dim), NC_EDIMSIZE);
        if (i < 2) IS(ncmpi_def_dim(ncid, "more", most + 1, &dim), NC_EDIMSIZE);
        /* The last fixed-size variable may be as long. */
        if (i < 2) IS(ncmpi_def_var(ncid, "last", NC_BYTE, 1, (int[]){0}, &var), 0);
        IS(ncmpi_enddef(ncid), 0);
        IS(ncmpi_close(ncid), 0);
        IS(ncmpi_open(MPI_COMM_WORLD, "dimensions.nc", NC_NOWRITE, MPI_INFO_NULL, &ncid), 0);
        IS(ncmpi_inq_dimlen(ncid, 0, &len), 0);
        IS(len, most);
        IS(ncmpi_close(ncid), 0);
    }
    MPI_Finalize();
    return failures > 0;
}
