/* Reads the header of a CDL text, argument 1, and makes a classic file of it, argument 2; then makes
 * every wrong call. Returns 0 if all is as it should be. */
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <pnetcdf.h>

static int failures;

static void is(long long is, long long should, const char *what) {
    if (is != should) {
        printf("%s is %lld, not %lld\n", what, is, should);
        failures++;
    }
}
#define IS(what, value) is((long long)(what), (long long)(value), #what)
#define DO(call) IS(call, NC_NOERR)

static void copy_attributes(int hid, int ncid, int varid) {
    int n;
    DO(cdl_hdr_inq_nattrs(hid, varid, &n));
    for (int i = 0; i < n; i++) {
        char *name;
        nc_type type;
        MPI_Offset len;
        void *value;
        DO(cdl_hdr_inq_attr(hid, varid, i, &name, &type, &len, &value));
        IS((uintptr_t)value % 8, 0);
        if (type == NC_CHAR) IS(((char *)value)[len], 0);
        DO(ncmpi_put_att(ncid, varid, name, type, len, value));
    }
    IS(cdl_hdr_inq_attr(hid, varid, n, NULL, NULL, NULL, NULL), NC_EBADID);
    IS(cdl_hdr_inq_attr(hid, varid, -1, NULL, NULL, NULL, NULL), NC_EBADID);
}

int main(int argc, char **argv) {
    int hid, other, format, n, ncid, id;
    const int modes[6] = {0, 0, NC_64BIT_OFFSET, 0, 0, NC_64BIT_DATA};
    MPI_Init(&argc, &argv);
    DO(cdl_hdr_open(argv[1], &hid));
    DO(cdl_hdr_open(argv[1], &other));
    IS(hid != other, 1);
    DO(cdl_hdr_close(other));
    IS(cdl_hdr_close(other), NC_EBADID);
    DO(cdl_hdr_inq_format(hid, &format));
    printf("format %d\n", format);
    DO(ncmpi_create(MPI_COMM_WORLD, argv[2], modes[format] | NC_CLOBBER, MPI_INFO_NULL, &ncid));
    DO(cdl_hdr_inq_ndims(hid, &n));
    for (int i = 0; i < n; i++) {
        char *name;
        MPI_Offset size;
        DO(cdl_hdr_inq_dim(hid, i, &name, &size));
        DO(ncmpi_def_dim(ncid, name, size, &id));
    }
    IS(cdl_hdr_inq_dim(hid, n, NULL, NULL), NC_EBADID);
    copy_attributes(hid, ncid, NC_GLOBAL);
    DO(cdl_hdr_inq_nvars(hid, &n));
    for (int i = 0; i < n; i++) {
        char *name;
        nc_type type;
        int ndims, *dims;
        DO(cdl_hdr_inq_var(hid, i, &name, &type, &ndims, &dims));
        DO(ncmpi_def_var(ncid, name, type, ndims, dims, &id));
        copy_attributes(hid, ncid, i);
    }
    IS(cdl_hdr_inq_var(hid, n, NULL, NULL, NULL, NULL), NC_EBADID);
    IS(cdl_hdr_inq_nattrs(hid, n, &id), NC_EBADID);
    IS(cdl_hdr_inq_nattrs(hid, -2, &id), NC_EBADID);
    /* What is not wanted is not written. */
    DO(cdl_hdr_inq_format(hid, NULL));
    DO(cdl_hdr_inq_ndims(hid, NULL));
    DO(cdl_hdr_inq_nvars(hid, NULL));
    DO(cdl_hdr_inq_nattrs(hid, NC_GLOBAL, NULL));
    DO(cdl_hdr_close(hid));
    IS(cdl_hdr_inq_format(hid, &format), NC_EBADID);
    IS(cdl_hdr_inq_dim(hid, 0, NULL, NULL), NC_EBADID);
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_close(ncid));
    IS(cdl_hdr_open("nothing.cdl", &hid), NC_ENOENT);
    IS(hid, -1);
    IS(cdl_hdr_open(argv[2], &hid), NC_ENOTNC);
    IS(cdl_hdr_open(".", &hid), NC_EFILE);
    IS(cdl_hdr_open(NULL, &hid), NC_EBAD_FILE);
    /* As many as there may be. */
    int all[NC_MAX_NFILES], most = 0;
    while (most < NC_MAX_NFILES && cdl_hdr_open(argv[1], &all[most]) == NC_NOERR) most++;
    IS(most, NC_MAX_NFILES);
    IS(cdl_hdr_open(argv[1], &hid), NC_ENFILE);
    for (int i = 0; i < most; i++) DO(cdl_hdr_close(all[i]));
    MPI_Finalize();
    return failures > 0;
}
