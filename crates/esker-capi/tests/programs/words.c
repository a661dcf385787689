/* Prints what the library says of each number, one a line, and its version. */
#include <stdio.h>
#include <pnetcdf.h>

int main(void) {
    for (int code = 2; code > -300; code--) {
        printf("%d|%s|", code, ncmpi_strerrno(code));
        printf("%s\n", ncmpi_strerror(code));
    }
    printf("header %s, library %s\n", PNETCDF_VERSION, ncmpi_inq_libvers());
    return 0;
}
