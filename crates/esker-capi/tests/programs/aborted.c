/* What is not committed to a container when a program aborts is gone. Its arguments are the name of the dataset and, to read it only, a
 * tag that the version with all values has. */
#include <stdio.h>
#include <string.h>
#include <pnetcdf.h>

enum { EACH = 3 };
static int failures, rank, ranks;

static void check(int code, int wanted, const char *what, int line) {
    if (code != wanted) failures++, printf("line %d: %s: %s\n", line, what, ncmpi_strerror(code)), fflush(stdout);
}
#define IS(code, call) check((call), (code), #call, __LINE__)
#define DO(call) IS(NC_NOERR, call)

static void put(int ncid, int value) {
    int values[EACH];
    MPI_Offset start = rank * EACH, count = EACH;
    for (int i = 0; i < EACH; i++) values[i] = value;
    DO(ncmpi_put_vara_int_all(ncid, 0, &start, &count, values));
}

static void expect(const char *name, int value) {
    int ncid, values[EACH];
    MPI_Offset start = (ranks - 1 - rank) * EACH, count = EACH;
    DO(ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_get_vara_int_all(ncid, 0, &start, &count, values));
    for (int i = 0; i < EACH; i++)
        if (values[i] != value) failures++, printf("%s: %d instead of %d\n", name, values[i], value);
    DO(ncmpi_close(ncid));
}

int main(int argc, char **argv) {
    int ncid, dim, var, request, format;
    char name[1000];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 2) {
        snprintf(name, sizeof name, "%s@%s", argv[1], argv[2]);
        expect(name, 7);
        DO(ncmpi_inq_file_format(name, &format));
        snprintf(name, sizeof name, "%s@nothing", argv[1]);
        if (ncmpi_open(MPI_COMM_WORLD, name, NC_NOWRITE, MPI_INFO_NULL, &ncid) == NC_NOERR) failures++, puts("a name that nobody gave");
    } else {
        DO(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &ncid));
        DO(ncmpi_def_dim(ncid, "x", ranks * EACH, &dim));
        DO(ncmpi_def_var(ncid, "v", NC_INT, 1, &dim, &var));
        DO(ncmpi_enddef(ncid));
        put(ncid, 7);
        DO(ncmpi_sync(ncid));
        put(ncid, 8);
        int lent = 9;
        MPI_Offset at = rank * EACH;
        DO(ncmpi_iput_var1_int(ncid, var, &at, &lent, &request));
        DO(ncmpi_abort(ncid));
        IS(NC_EBADID, ncmpi_close(ncid));
        expect(argv[1], 7);
        /* In define mode, too. */
        DO(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_WRITE, MPI_INFO_NULL, &ncid));
        put(ncid, 8);
        DO(ncmpi_redef(ncid));
        DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 3, "new"));
        DO(ncmpi_abort(ncid));
        expect(argv[1], 7);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
