/* esker_pnetcdf.h: what Esker's libpnetcdf.so has beyond PnetCDF. Made from the tables in
 * crates/esker-capi; docs/pnetcdf.md of Esker describes each function. */
#ifndef ESKER_PNETCDF_H
#define ESKER_PNETCDF_H

#include <pnetcdf.h>

/* How a variable is stored: ncmpi_var_set_layout takes the first two, ncmpi_var_get_layout tells all. */
#define NC_LAYOUT_CONTIGUOUS 0
#define NC_LAYOUT_CHUNKED    1
#define NC_LAYOUT_LOG        2
#define NC_LAYOUT_DECOMPOSED 3

/* What ncmpi_inq_var_decom tells of a variable that has no decomposition map. */
#define NC_NO_DECOM 0

/* Directions of edges in graphs of variables: docs/models.md of Esker. */
#define NC_DIRECTED   1
#define NC_UNDIRECTED 2

#if defined(__cplusplus)
extern "C" {
#endif

@PROTOTYPES@

#if defined(__cplusplus)
}
#endif

#endif /* ESKER_PNETCDF_H */
