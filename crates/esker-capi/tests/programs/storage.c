/* What Esker adds to PnetCDF, in C: chunks, filters and layouts of variables, decomposition maps, puts of one rank alone
 * into chunked variables, tokens, and definitions that differ between ranks. Every function of esker_pnetcdf.h is
 * called. Expected values are those of plain arrays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <esker_pnetcdf.h>

enum { Y = 12, X = 10, T = 3 };

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
        double a_ = (a), b_ = (b);                                                             \
        if (a_ != b_) {                                                                        \
            printf("rank %d, line %d: %s is %g, not %g\n", rank, __LINE__, #a, a_, b_);        \
            failures++;                                                                        \
        }                                                                                      \
    } while (0)

static double value(int t, int y, int x) { return 1000 * t + 20 * y + x + 0.25; }

static void chunks(void) {
    int ncid, dims[3], v[3], layout, len;
    char text[200];
    MPI_Offset shape[3] = {1, 5, 4}, got[3], many[3] = {1, 0, 4};
    DO(ncmpi_create(MPI_COMM_WORLD, "chunks.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "y", Y, &dims[1]));
    DO(ncmpi_def_dim(ncid, "x", X, &dims[2]));
    DO(ncmpi_def_var(ncid, "a", NC_DOUBLE, 3, dims, &v[0]));
    DO(ncmpi_def_var(ncid, "b", NC_INT, 2, dims + 1, &v[1]));
    DO(ncmpi_def_var(ncid, "c", NC_FLOAT, 2, dims + 1, &v[2]));
    DO(ncmpi_var_set_chunk(ncid, v[0], shape));
    IS(NC_EINVAL, ncmpi_var_set_chunk(ncid, v[0], many));
    IS(NC_ENOTVAR, ncmpi_var_set_chunk(ncid, 99, shape));
    DO(ncmpi_var_set_filter(ncid, v[0], "shuffle zstd,3"));
    IS(NC_EINVAL, ncmpi_var_set_filter(ncid, v[0], "no such filter"));
    IS(NC_EINVAL, ncmpi_var_set_filter(ncid, v[1], "zfp,accuracy=0.1 sz,abs=1"));
    DO(ncmpi_var_set_layout(ncid, v[1], NC_LAYOUT_CHUNKED));
    DO(ncmpi_var_get_chunk(ncid, v[1], got));
    EQUAL(got[0], Y);
    EQUAL(got[1], X);
    DO(ncmpi_var_set_chunk(ncid, v[2], NULL));
    DO(ncmpi_var_set_layout(ncid, v[2], NC_LAYOUT_CONTIGUOUS));
    DO(ncmpi_var_get_layout(ncid, v[2], &layout));
    EQUAL(layout, NC_LAYOUT_CONTIGUOUS);
    IS(NC_EINVAL, ncmpi_var_set_layout(ncid, v[2], NC_LAYOUT_LOG));
    IS(NC_EINVAL, ncmpi_var_set_layout(ncid, v[2], NC_LAYOUT_DECOMPOSED));
    DO(ncmpi_enddef(ncid));
    IS(NC_ENOTINDEFINE, ncmpi_var_set_chunk(ncid, v[0], shape));
    for (int again = 0; again < 2; again++) {
        DO(ncmpi_var_get_layout(ncid, v[0], &layout));
        EQUAL(layout, NC_LAYOUT_CHUNKED);
        DO(ncmpi_var_get_chunk(ncid, v[0], got));
        for (int d = 0; d < 3; d++) EQUAL(got[d], shape[d]);
        DO(ncmpi_var_get_filter(ncid, v[0], &len, NULL));
        DO(ncmpi_var_get_filter(ncid, v[0], NULL, text));
        EQUAL(len, strlen(text));
        EQUAL(strcmp(text, "shuffle zstd,3"), 0);
        DO(ncmpi_var_get_filter(ncid, v[2], &len, text));
        EQUAL(len, 0);
        DO(ncmpi_var_get_chunk(ncid, v[2], got));
        EQUAL(got[0], 0);
        DO(ncmpi_redef(ncid));
        DO(ncmpi_var_get_chunk(ncid, v[0], got));
        for (int d = 0; d < 3; d++) EQUAL(got[d], shape[d]);
        IS(NC_EINVAL, ncmpi_var_set_chunk(ncid, v[0], shape));
        DO(ncmpi_enddef(ncid));
        if (again == 0) {
            double row[X], all[Y][X];
            MPI_Offset start[3] = {T - 1, rank % Y, 0}, count[3] = {1, 1, X};
            for (int x = 0; x < X; x++) row[x] = value(T - 1, rank % Y, x);
            if (rank >= Y) count[0] = 0;
            DO(ncmpi_put_vara_double_all(ncid, v[0], start, count, row));
            DO(ncmpi_close(ncid));
            DO(ncmpi_open(MPI_COMM_WORLD, "chunks.nc", NC_WRITE, MPI_INFO_NULL, &ncid));
            MPI_Offset whole[3] = {T - 1, 0, 0}, sides[3] = {1, Y, X};
            DO(ncmpi_get_vara_double_all(ncid, v[0], whole, sides, &all[0][0]));
            for (int y = 0; y < Y; y++)
                for (int x = 0; x < X; x++)
                    EQUAL(all[y][x], y < ranks ? value(T - 1, y, x) : NC_FILL_DOUBLE);
        }
    }
    DO(ncmpi_close(ncid));
}

/* Puts of ranks alone: they see their own, later ones win, and all are there for everybody afterwards. */
static void alone(void) {
    int ncid, dims[2], fixed, grown, n = 4 * ranks;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "esker_chunk", "n/3|grown:t/2,n/3");
    MPI_Info_set(info, "esker_filter", "zstd");
    MPI_Info_set(info, "esker_chunk_pending", "4000");
    DO(ncmpi_create(MPI_COMM_WORLD, "alone.nc", NC_CLOBBER, info, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "n", n, &dims[1]));
    DO(ncmpi_def_var(ncid, "fixed", NC_INT, 1, dims + 1, &fixed));
    DO(ncmpi_def_var(ncid, "grown", NC_SHORT, 2, dims, &grown));
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_begin_indep_data(ncid));
    MPI_Offset start[2] = {0, 4 * rank}, count[2] = {1, 4}, len;
    int four[4] = {1, 2, 3, 4}, got[4] = {0}, two[2] = {70, 80};
    short row[4] = {10, 20, 30, 40}, read[4] = {0};
    DO(ncmpi_put_vara_int(ncid, fixed, start + 1, count + 1, four));
    DO(ncmpi_get_vara_int(ncid, fixed, start + 1, count + 1, got));
    for (int i = 0; i < 4; i++) EQUAL(got[i], four[i]);
    MPI_Offset inner = 4 * rank + 1, pair = 2;
    DO(ncmpi_put_vara_int(ncid, fixed, &inner, &pair, two));
    four[1] = 70, four[2] = 80;
    DO(ncmpi_get_vara_int(ncid, fixed, start + 1, count + 1, got));
    for (int i = 0; i < 4; i++) EQUAL(got[i], four[i]);
    start[0] = 2;
    DO(ncmpi_put_vara_short(ncid, grown, start, count, row));
    DO(ncmpi_inq_dimlen(ncid, dims[0], &len));
    EQUAL(len, 3);
    DO(ncmpi_get_vara_short(ncid, grown, start, count, read));
    for (int i = 0; i < 4; i++) EQUAL(read[i], row[i]);
    if (ranks > 1) {
        int *large = calloc(n, sizeof *large);
        MPI_Offset from = 0, most = n;
        for (int i = 0; i < 4000 / (4 * n); i++) ncmpi_put_vara_int(ncid, fixed, &from, &most, large);
        IS(NC_EFILE, ncmpi_put_vara_int(ncid, fixed, &from, &most, large));
        free(large);
        /* What was taken is written; each rank writes its part once more, so that it is what counts. */
        DO(ncmpi_end_indep_data(ncid));
        DO(ncmpi_begin_indep_data(ncid));
        DO(ncmpi_put_vara_int(ncid, fixed, start + 1, count + 1, four));
    }
    DO(ncmpi_end_indep_data(ncid));
    int *all = calloc(n, sizeof *all);
    short *shorts = calloc(3 * n, sizeof *shorts);
    for (int again = 0; again < 2; again++) {
        DO(ncmpi_get_var_int_all(ncid, fixed, all));
        for (int i = 0; i < n; i++) EQUAL(all[i], four[i % 4]);
        DO(ncmpi_get_var_short_all(ncid, grown, shorts));
        for (int i = 0; i < n; i++) EQUAL(shorts[2 * n + i], row[i % 4]);
        DO(ncmpi_close(ncid));
        if (again == 0) DO(ncmpi_open(MPI_COMM_WORLD, "alone.nc", NC_NOWRITE, info, &ncid));
    }
    free(all);
    free(shorts);
    /* Closed in independent mode. */
    DO(ncmpi_open(MPI_COMM_WORLD, "alone.nc", NC_WRITE, info, &ncid));
    DO(ncmpi_begin_indep_data(ncid));
    for (int i = 0; i < 4; i++) four[i] += 1000 * (rank + 1);
    DO(ncmpi_put_vara_int(ncid, fixed, start + 1, count + 1, four));
    DO(ncmpi_close(ncid));
    DO(ncmpi_open(MPI_COMM_WORLD, "alone.nc", NC_NOWRITE, info, &ncid));
    DO(ncmpi_get_vara_int_all(ncid, fixed, start + 1, count + 1, got));
    for (int i = 0; i < 4; i++) EQUAL(got[i], four[i]);
    DO(ncmpi_close(ncid));
    MPI_Info_free(&info);
}

/* Rows y with y mod ranks == rank, in blocks of one row, written as blobs, read as an array. */
static void maps(const char *path, MPI_Info info) {
    int ncid, dims[3], map, other, v, w, n, ids[8], ndims, dimids[3], procs, layout, own = 0, request, status;
    MPI_Offset starts[Y][2], counts[Y][2], *s[Y], *c[Y], blocks, elements;
    double *blob = malloc(sizeof(double) * T * Y * X), *back = malloc(sizeof(double) * T * Y * X);
    for (int y = rank; y < Y; y += ranks, own++) {
        starts[own][0] = y, starts[own][1] = 0, counts[own][0] = 1, counts[own][1] = X;
        s[own] = starts[own], c[own] = counts[own];
    }
    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, info, &ncid));
    DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]));
    DO(ncmpi_def_dim(ncid, "y", Y, &dims[1]));
    DO(ncmpi_def_dim(ncid, "x", X, &dims[2]));
    DO(ncmpi_def_decom(ncid, 2, dims + 1, own, s, c, &map));
    IS(NC_EINVAL, ncmpi_def_decom(ncid, 2, dims, own, s, c, &other)); /* the unlimited dimension */
    DO(ncmpi_def_decom_var(ncid, "v", NC_DOUBLE, 1, dims, map, &v));
    DO(ncmpi_def_decom_var(ncid, "w", NC_INT, 0, NULL, map, &w));
    IS(NC_EINVAL, ncmpi_def_decom_var(ncid, "z", NC_INT, 0, NULL, map + 7, &other));
    IS(NC_ENAMEINUSE, ncmpi_def_decom_var(ncid, "v", NC_INT, 0, NULL, map, &other));
    DO(ncmpi_inq_varndims(ncid, v, &ndims));
    EQUAL(ndims, 3);
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_inq_var_decom_size(ncid, v, &elements));
    EQUAL(elements, own * X);
    for (int t = 0; t < T; t++)
        for (int k = 0; k < own; k++)
            for (int x = 0; x < X; x++) blob[(t * own + k) * X + x] = value(t, rank + k * ranks, x);
    MPI_Offset start = 0, count = 2, all = own * X;
    DO(ncmpi_put_decom_all(ncid, v, &start, &count, blob, 2 * all, MPI_DOUBLE));
    start = 2, count = 1;
    DO(ncmpi_iput_decom(ncid, v, &start, &count, blob + 2 * all, all, MPI_DOUBLE, &request));
    DO(ncmpi_wait_all(ncid, 1, &request, &status));
    DO(status);
    IS(NC_EIOMISMATCH, ncmpi_put_decom_all(ncid, w, NULL, NULL, blob, all + 1, MPI_DOUBLE));
    DO(ncmpi_put_decom_all(ncid, w, NULL, NULL, blob, all, MPI_DOUBLE)); /* converted */
    DO(ncmpi_begin_indep_data(ncid));
    DO(ncmpi_put_decom(ncid, w, NULL, NULL, blob, all, MPI_DOUBLE));
    DO(ncmpi_get_decom(ncid, v, &start, &count, back, all, MPI_DOUBLE));
    for (int i = 0; i < all; i++) EQUAL(back[i], blob[2 * all + i]);
    DO(ncmpi_end_indep_data(ncid));
    DO(ncmpi_buffer_attach(ncid, 8 * Y * X));
    DO(ncmpi_bput_decom(ncid, v, &start, &count, blob + 2 * all, all, MPI_DOUBLE, &request));
    DO(ncmpi_wait_all(ncid, 1, &request, &status));
    DO(ncmpi_buffer_detach(ncid));
    for (int again = 0; again < 2; again++) {
        DO(ncmpi_inq_decoms(ncid, &n, NULL));
        EQUAL(n, 1);
        DO(ncmpi_inq_decoms(ncid, &n, ids));
        EQUAL(ids[0], map);
        DO(ncmpi_inq_decom(ncid, map, &ndims, dimids, &procs, &blocks, &elements));
        EQUAL(ndims, 2);
        EQUAL(dimids[0], dims[1]);
        EQUAL(dimids[1], dims[2]);
        EQUAL(procs, ranks);
        EQUAL(blocks, Y);
        EQUAL(elements, Y * X);
        IS(NC_EINVAL, ncmpi_inq_decom(ncid, 5, &ndims, NULL, NULL, NULL, NULL));
        DO(ncmpi_inq_varid(ncid, "v", &v));
        DO(ncmpi_inq_varid(ncid, "w", &w));
        DO(ncmpi_inq_var_decom(ncid, v, &n));
        EQUAL(n, map);
        DO(ncmpi_inq_varid(ncid, "D1.nreqs", &n));
        DO(ncmpi_inq_var_decom(ncid, n, &n));
        EQUAL(n, NC_NO_DECOM);
        DO(ncmpi_var_get_layout(ncid, v, &layout));
        EQUAL(layout, NC_LAYOUT_DECOMPOSED);
        /* As an array, which programs that know nothing of maps see. */
        DO(ncmpi_inq_varndims(ncid, v, &ndims));
        EQUAL(ndims, 3);
        DO(ncmpi_inq_vardimid(ncid, v, dimids));
        for (int d = 0; d < 3; d++) EQUAL(dimids[d], dims[d]);
        memset(back, 0, sizeof(double) * T * Y * X);
        DO(ncmpi_get_var_double_all(ncid, v, back));
        for (int t = 0; t < T; t++)
            for (int y = 0; y < Y; y++)
                for (int x = 0; x < X; x++) EQUAL(back[(t * Y + y) * X + x], value(t, y, x));
        int ints[Y][X];
        DO(ncmpi_get_var_int_all(ncid, w, &ints[0][0]));
        EQUAL(ints[Y - 1][X - 1], (int)value(0, Y - 1, X - 1));
        DO(ncmpi_get_decom_all(ncid, v, NULL, NULL, back, T * all, MPI_DOUBLE));
        for (int i = 0; i < T * all; i++) EQUAL(back[i], blob[i]);
        memset(back, 0, sizeof(double) * all);
        DO(ncmpi_iget_decom(ncid, v, &start, &count, back, all, MPI_DOUBLE, &request));
        DO(ncmpi_wait_all(ncid, 1, &request, &status));
        for (int i = 0; i < all; i++) EQUAL(back[i], blob[2 * all + i]);
        DO(ncmpi_close(ncid));
        if (again == 0) DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    }
    /* Written again, with another name for a dimension, where that is possible. */
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_rename_dim(ncid, dims[1], "j"));
    for (int i = 0; i < all; i++) blob[i] = -blob[i];
    start = 0, count = 1;
    DO(ncmpi_put_decom_all(ncid, v, &start, &count, blob, all, MPI_DOUBLE));
    DO(ncmpi_close(ncid));
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_inq_decom(ncid, map, &ndims, dimids, NULL, NULL, NULL));
    EQUAL(dimids[0], dims[1]);
    DO(ncmpi_get_decom_all(ncid, v, &start, &count, back, all, MPI_DOUBLE));
    for (int i = 0; i < all; i++) EQUAL(back[i], blob[i]);
    DO(ncmpi_close(ncid));
    /* What other tools see. */
    MPI_Info raw;
    MPI_Info_create(&raw);
    MPI_Info_set(raw, "esker_raw", "1");
    DO(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, raw, &ncid));
    DO(ncmpi_inq_varid(ncid, "v", &v));
    DO(ncmpi_inq_varndims(ncid, v, &ndims));
    EQUAL(ndims, 2); /* blobs one behind the other; of sub-files, those of all */
    DO(ncmpi_close(ncid));
    MPI_Info_free(&raw);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) DO(ncmpi_delete(path, MPI_INFO_NULL));
    free(blob);
    free(back);
}

static void tokens(const char *path, const char *hint, const char *hint_value) {
    int ncid, dim, v, token, second, done, n = 8 * ranks;
    MPI_Info info;
    MPI_Offset start = 8 * rank, count = 8;
    float mine[8], got[8] = {0};
    double doubles[8] = {0};
    MPI_Info_create(&info);
    if (hint) MPI_Info_set(info, hint, hint_value);
    DO(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, info, &ncid));
    DO(ncmpi_def_dim(ncid, "n", n, &dim));
    DO(ncmpi_def_var(ncid, "v", NC_FLOAT, 1, &dim, &v));
    IS(NC_EINDEFINE, ncmpi_flush_start(ncid, &token));
    DO(ncmpi_enddef(ncid));
    for (int i = 0; i < 8; i++) mine[i] = 100 * rank + i;
    DO(ncmpi_put_vara_float_all(ncid, v, &start, &count, mine));
    DO(ncmpi_flush_start(ncid, &token));
    DO(ncmpi_token_test(ncid, token, &done));
    EQUAL(done == 0 || done == 1, 1);
    DO(ncmpi_token_wait(ncid, token));
    IS(NC_EINVAL_REQUEST, ncmpi_token_wait(ncid, token));
    IS(NC_EINVAL_REQUEST, ncmpi_token_test(ncid, 77, &done));
    DO(ncmpi_sync_start(ncid, &token));
    DO(ncmpi_token_wait(ncid, token));
    DO(ncmpi_get_vara_start(ncid, v, &start, &count, got, 8, MPI_FLOAT, &token));
    DO(ncmpi_get_vara_start(ncid, v, &start, &count, doubles, NC_COUNT_IGNORE, MPI_DOUBLE, &second));
    DO(ncmpi_token_wait(ncid, second));
    DO(ncmpi_token_wait(ncid, token));
    for (int i = 0; i < 8; i++) {
        EQUAL(got[i], mine[i]);
        EQUAL(doubles[i], mine[i]);
    }
    MPI_Offset beyond = n;
    IS(NC_EINVALCOORDS, ncmpi_get_vara_start(ncid, v, &beyond, &count, got, 8, MPI_FLOAT, &token));
    DO(ncmpi_close(ncid));
    MPI_Info_free(&info);
}

/* Some ranks define what has records and nothing else, others what has none: places are the same on all of them. */
static void mixed(const char *how) {
    int ncid, dim, var, value;
    MPI_Info info;
    MPI_Offset at = rank, one = 1, offset, extent, record_size;
    MPI_Info_create(&info);
    MPI_Info_set(info, "esker_definitions", how);
    DO(ncmpi_create(MPI_COMM_WORLD, "mixed.nc", NC_CLOBBER, info, &ncid));
    if (rank == 0) {
        DO(ncmpi_def_dim(ncid, "x", 1, &dim));
        DO(ncmpi_def_var(ncid, "fixed", NC_INT, 1, &dim, &var));
        at = 0;
    } else {
        DO(ncmpi_def_dim(ncid, "t", NC_UNLIMITED, &dim));
        DO(ncmpi_def_var(ncid, "grows", NC_INT, 1, &dim, &var));
    }
    DO(ncmpi_enddef(ncid));
    value = 100 + rank;
    DO(ncmpi_put_vara_int_all(ncid, var, &at, &one, &value));
    DO(ncmpi_inq_varoffset(ncid, var, &offset));
    DO(ncmpi_inq_header_extent(ncid, &extent));
    EQUAL(extent, 512);
    DO(ncmpi_inq_recsize(ncid, &record_size));
    EQUAL(record_size, ranks > 1 ? 4 : 0);
    DO(ncmpi_close(ncid));
    DO(ncmpi_open(MPI_COMM_WORLD, "mixed.nc", NC_NOWRITE, MPI_INFO_NULL, &ncid));
    MPI_Offset stored;
    DO(ncmpi_inq_varid(ncid, rank == 0 ? "fixed" : "grows", &var));
    DO(ncmpi_inq_varoffset(ncid, var, &stored));
    EQUAL(stored, offset);
    value = 0;
    DO(ncmpi_get_vara_int_all(ncid, var, &at, &one, &value));
    EQUAL(value, 100 + rank);
    DO(ncmpi_close(ncid));
    MPI_Info_free(&info);
}

/* Each rank defines what it uses alone, and what all share. */
static void merged(const char *how) {
    int knows_all = strcmp(how, "merge") == 0 || ranks == 1;
    int ncid, dim, own_dim, shared, mine, nvars, also;
    char name[40], dim_name[40];
    MPI_Info info;
    MPI_Offset len;
    MPI_Info_create(&info);
    MPI_Info_set(info, "esker_definitions", how);
    DO(ncmpi_create(MPI_COMM_WORLD, "merged.nc", NC_CLOBBER, info, &ncid));
    sprintf(name, "of_rank_%d", rank);
    sprintf(dim_name, "n%d", rank);
    DO(ncmpi_def_dim(ncid, dim_name, rank + 2, &own_dim));
    DO(ncmpi_def_var(ncid, name, NC_INT, 1, &own_dim, &mine));
    DO(ncmpi_put_att_text(ncid, mine, "owner", strlen(name), name));
    DO(ncmpi_def_dim(ncid, "x", X, &dim));
    DO(ncmpi_def_var(ncid, "shared", NC_INT, 1, &dim, &shared));
    DO(ncmpi_enddef(ncid));
    EQUAL(mine, 0);
    DO(ncmpi_inq_nvars(ncid, &nvars));
    EQUAL(nvars, knows_all ? ranks + 1 : 2);
    DO(ncmpi_inq_varid(ncid, "shared", &also));
    EQUAL(also, shared);
    DO(ncmpi_inq_dimlen(ncid, own_dim, &len));
    EQUAL(len, rank + 2);
    int values[X], *row = malloc(sizeof(int) * (ranks + 2));
    for (int i = 0; i < X; i++) values[i] = 3 * i;
    for (int i = 0; i < rank + 2; i++) row[i] = 50 * rank + i;
    DO(ncmpi_put_var_int_all(ncid, shared, values));
    DO(ncmpi_begin_indep_data(ncid));
    DO(ncmpi_put_var_int(ncid, mine, row));
    DO(ncmpi_end_indep_data(ncid));
    /* A redefinition begins with everything that is in the file, under the same numbers. */
    DO(ncmpi_redef(ncid));
    DO(ncmpi_inq_nvars(ncid, &nvars));
    EQUAL(nvars, ranks + 1);
    DO(ncmpi_put_att_text(ncid, NC_GLOBAL, "title", 3, "all"));
    DO(ncmpi_enddef(ncid));
    memset(row, 0, sizeof(int) * (ranks + 2));
    DO(ncmpi_begin_indep_data(ncid));
    DO(ncmpi_get_var_int(ncid, mine, row));
    for (int i = 0; i < rank + 2; i++) EQUAL(row[i], 50 * rank + i);
    DO(ncmpi_end_indep_data(ncid));
    DO(ncmpi_close(ncid));
    DO(ncmpi_open(MPI_COMM_WORLD, "merged.nc", NC_NOWRITE, MPI_INFO_NULL, &ncid));
    for (int other = 0; other < ranks; other++) {
        sprintf(name, "of_rank_%d", other);
        DO(ncmpi_inq_varid(ncid, name, &mine));
        DO(ncmpi_get_var_int_all(ncid, mine, row));
        for (int i = 0; i < other + 2; i++) EQUAL(row[i], 50 * other + i);
    }
    DO(ncmpi_close(ncid));
    /* What contradicts itself is an error on every rank. */
    if (ranks > 1) {
        DO(ncmpi_create(MPI_COMM_WORLD, "merged.nc", NC_CLOBBER, info, &ncid));
        DO(ncmpi_def_dim(ncid, "x", rank == 0 ? 3 : 4, &dim));
        IS(NC_EMULTIDEFINE, ncmpi_enddef(ncid));
        ncmpi_abort(ncid);
    }
    free(row);
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    MPI_Info info;
    int layout, ncid, dim, v;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    chunks();
    alone();
    maps("maps.nc", MPI_INFO_NULL);
    MPI_Info_create(&info);
    MPI_Info_set(info, "nc_num_subfiles", "2");
    maps("subfiles.nc", ranks > 1 ? info : MPI_INFO_NULL);
    MPI_Info_free(&info);
    tokens("plain.nc", NULL, NULL);
    tokens("burst.nc", "nc_burst_buf", "enable");
    tokens("log.nc", "esker_layout", "log");
    tokens("folder.nc", "esker_chunk_files", "shared");
    merged("merge");
    merged("shares");
    mixed("merge");
    mixed("shares");
    /* In a container every variable is in logs, also one that is put together in chunks. */
    MPI_Info_create(&info);
    MPI_Info_set(info, "esker_layout", "log");
    DO(ncmpi_create(MPI_COMM_WORLD, "all.esk", NC_CLOBBER, info, &ncid));
    DO(ncmpi_def_dim(ncid, "n", 4, &dim));
    DO(ncmpi_def_var(ncid, "v", NC_FLOAT, 1, &dim, &v));
    DO(ncmpi_var_set_layout(ncid, v, NC_LAYOUT_LOG));
    DO(ncmpi_var_get_layout(ncid, v, &layout));
    EQUAL(layout, NC_LAYOUT_LOG);
    DO(ncmpi_var_set_layout(ncid, v, NC_LAYOUT_CHUNKED));
    DO(ncmpi_var_get_layout(ncid, v, &layout));
    EQUAL(layout, NC_LAYOUT_CHUNKED);
    IS(NC_EINVAL, ncmpi_var_set_layout(ncid, v, NC_LAYOUT_LOG));
    DO(ncmpi_var_set_layout(ncid, v, NC_LAYOUT_CONTIGUOUS));
    DO(ncmpi_var_get_layout(ncid, v, &layout));
    EQUAL(layout, NC_LAYOUT_LOG);
    DO(ncmpi_close(ncid));
    MPI_Info_free(&info);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures != 0;
}
