/* Tiny buffers, hints that have no effect, and a redefinition that moves data in parts: the data are
 * right, and the program is told the numbers that it gave. Returns 0 if all is as it should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pnetcdf.h>

enum { ROWS = 50, COLUMNS = 40 };

static int rank, ranks, failures;

static void check(int err, const char *call) {
    if (err != NC_NOERR) {
        printf("rank %d: %s: %s\n", rank, call, ncmpi_strerrno(err));
        failures++;
    }
}
#define DO(call) check(call, #call)

static const char *const hints[][2] = {
    {"cb_buffer_size", "500"},          {"ind_rd_buffer_size", "100"},   {"ind_wr_buffer_size", "100"},
    {"nc_data_move_chunk_size", "100"}, {"nc_num_aggrs_per_node", "1"}, {"nc_driver", "gio"},
    {"file_striping", "inherit"},
};
enum { HINTS = sizeof hints / sizeof hints[0] };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int ncid, dims[2], var, flag, values[ROWS * COLUMNS], back[ROWS * COLUMNS];
    char text[2000], value[MPI_MAX_INFO_VAL + 1];
    MPI_Info info, used;
    MPI_Info_create(&info);
    for (int i = 0; i < HINTS; i++) MPI_Info_set(info, hints[i][0], hints[i][1]);
    DO(ncmpi_create(MPI_COMM_WORLD, "hints.nc", NC_CLOBBER, info, &ncid));
    MPI_Info_free(&info);
    DO(ncmpi_def_dim(ncid, "row", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "column", COLUMNS * ranks, &dims[1]));
    DO(ncmpi_def_var(ncid, "v", NC_INT, 2, dims, &var));
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_inq_file_info(ncid, &used));
    for (int i = 0; i < HINTS; i++) {
        MPI_Info_get(used, hints[i][0], MPI_MAX_INFO_VAL, value, &flag);
        if (!flag || strcmp(value, hints[i][1])) printf("%s is told as %s\n", hints[i][0], flag ? value : "nothing"), failures++;
    }
    MPI_Info_free(&used);
    MPI_Offset start[2] = {0, COLUMNS * rank}, count[2] = {ROWS, COLUMNS};
    for (int k = 0; k < ROWS * COLUMNS; k++) values[k] = 10000 * rank + k;
    DO(ncmpi_put_vara_int_all(ncid, var, start, count, values));
    /* Twice: all records at once, and each by itself, since a variable is added to them. */
    for (int round = 0; round < 2; round++) {
        DO(ncmpi_redef(ncid));
        memset(text, 'a', sizeof text);
        DO(ncmpi_put_att_text(ncid, NC_GLOBAL, round ? "more" : "text", sizeof text, text));
        if (round) DO(ncmpi_def_var(ncid, "w", NC_INT, 2, dims, &var));
        DO(ncmpi_enddef(ncid));
        memset(back, 0, sizeof back);
        DO(ncmpi_get_vara_int_all(ncid, 0, start, count, back));
        if (memcmp(values, back, sizeof back)) printf("rank %d: other values after move %d\n", rank, round), failures++;
    }
    DO(ncmpi_close(ncid));
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures > 0;
}
