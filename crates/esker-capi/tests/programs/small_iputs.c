/* Posts puts, changes their memory, and waits. The argument is the value of the hint
 * nc_in_place_swap; what is in the file afterwards says when the memory was looked at. Under `auto`
 * (the default) that is at the post for requests of at most 4,096 bytes, under `disable` for all
 * and under `enable` for none but single elements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { SMALL = 1024, LARGE = SMALL + 1, MOST = 4 * SMALL + 1 };

static int rank, ranks, ncid, vars[2], failures;
static const char *hint;

static void check(int err, const char *call) {
    if (err != NC_NOERR) {
        printf("rank %d: %s: %s\n", rank, call, ncmpi_strerrno(err));
        failures++;
    }
}
#define DO(call) check(call, #call)

/* Variable 0 has ints, 4 bytes each, variable 1 bytes. */
static void look(const char *what, int bytes, MPI_Offset start, MPI_Offset count, MPI_Offset step, int posted) {
    int *now = calloc(count, sizeof *now);
    DO(ncmpi_get_vars_int_all(ncid, vars[bytes], &start, &count, &step, now));
    for (MPI_Offset k = 0; k < count; k++)
        if (now[k] != (posted ? 1 + k % 100 : -7)) {
            printf("rank %d: %s, hint %s: element %lld of %lld is %d\n", rank, what, hint, (long long)k,
                   (long long)count, now[k]);
            failures++;
            break;
        }
    free(now);
}

#define ROUND(WHAT, BYTES, TYPE, COUNT, STEP, CALL)                                   \
    do {                                                                              \
        MPI_Offset n = (COUNT), size = n * (BYTES ? 1 : 4);                           \
        TYPE *out = malloc(MOST * sizeof *out);                               \
        int r, status, v = vars[BYTES];                                               \
        int posted = n == 1 || !strcmp(hint, "disable") || (strcmp(hint, "enable") && size <= 4096); \
        (void)v;                                                                      \
        for (MPI_Offset k = 0; k < MOST; k++) out[k] = 1 + k % 100;                   \
        check(CALL, WHAT);                                                            \
        for (MPI_Offset k = 0; k < MOST; k++) out[k] = -7;                            \
        check(ncmpi_wait_all(ncid, 1, &r, &status), "wait_all");                      \
        check(status, "status");                                                      \
        look(WHAT, BYTES, start, n, STEP, posted);                                    \
        free(out);                                                                    \
    } while (0)

int main(int argc, char **argv) {
    int dim;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hint = argc > 1 ? argv[1] : "auto";
    MPI_Info_create(&info);
    if (argc > 1) MPI_Info_set(info, "nc_in_place_swap", hint);
    DO(ncmpi_create(MPI_COMM_WORLD, "small.nc", NC_CLOBBER | NC_64BIT_DATA, info, &ncid));
    MPI_Info_free(&info);
    DO(ncmpi_def_dim(ncid, "x", 8 * MOST * ranks, &dim));
    DO(ncmpi_def_var(ncid, "numbers", NC_INT, 1, &dim, &vars[0]));
    DO(ncmpi_def_var(ncid, "bytes", NC_BYTE, 1, &dim, &vars[1]));
    DO(ncmpi_enddef(ncid));
    MPI_Offset start = 8 * MOST * rank, one = 1, two = 2;
    for (int large = 0; large < 2; large++) {
        MPI_Offset few = large ? LARGE : SMALL, many = 4 * SMALL + large;
        MPI_Offset half[2] = {few - 5, 5}, other = start + half[0];
        MPI_Offset *starts[2] = {&start, &other}, *counts[2] = {&half[0], &half[1]};
        ROUND("vara", 0, int, few, 1, ncmpi_iput_vara_int(ncid, v, &start, &few, out, &r));
        ROUND("vars", 0, int, few, 2, ncmpi_iput_vars_int(ncid, v, &start, &few, &two, out, &r));
        ROUND("varm", 0, int, few, 1, ncmpi_iput_varm_int(ncid, v, &start, &few, &one, &one, out, &r));
        ROUND("varn", 0, int, few, 1, ncmpi_iput_varn_int(ncid, v, 2, starts, counts, out, &r));
        ROUND("flexible", 0, int, few, 1, ncmpi_iput_vara(ncid, v, &start, &few, out, few, MPI_INT, &r));
        ROUND("bytes", 1, signed char, many, 1, ncmpi_iput_vara_schar(ncid, v, &start, &many, out, &r));
    }
    ROUND("var1", 0, int, 1, 1, ncmpi_iput_var1_int(ncid, vars[0], &start, out, &r));
    DO(ncmpi_close(ncid));
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
