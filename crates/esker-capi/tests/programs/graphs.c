/* Graphs of variables: each rank defines its own level, and all have the same graph. */
#include <mpi.h>
#include <pnetcdf.h>
#include <esker_pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DO(call)                                                                            \
    do {                                                                                    \
        int code = (call);                                                                  \
        if (code != NC_NOERR) {                                                             \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, ncmpi_strerror(code));    \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                   \
        }                                                                                   \
    } while (0)

#define IS(condition)                                                                       \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                 \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                   \
        }                                                                                   \
    } while (0)

int main(int argc, char **argv)
{
    int rank, ranks, ncid, dim, var, graph, edge, beside, base, level, found;
    int graphs, vertices, edges, count, varids[8], edgeids[8], to[8], ids[64], direction, nvars, nedges;
    char name[NC_MAX_NAME + 1], own[32];
    double weight;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    DO(ncmpi_create(MPI_COMM_WORLD, "graphs.nc", NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &ncid));
    DO(ncmpi_def_dim(ncid, "x", 4, &dim));
    DO(ncmpi_def_var(ncid, "rho", NC_INT, 1, &dim, &var));
    DO(ncmpi_def_graph(ncid, "amr", &graph));
    DO(ncmpi_def_edge(ncid, "refines", 2.0, NC_DIRECTED, &edge));
    DO(ncmpi_def_edge(ncid, "beside", -0.5, NC_UNDIRECTED, &beside));
    IS(ncmpi_def_edge(ncid, "wrong", 1.0, 7, &found) == NC_EINVAL);
    IS(ncmpi_def_graph(ncid, "amr", &found) == NC_ENAMEINUSE);
    IS(ncmpi_def_graph(ncid, "rho", &found) == NC_ENAMEINUSE);
    DO(ncmpi_def_vertex(ncid, "base", &base));
    DO(ncmpi_add_vertex(ncid, graph, base));
    DO(ncmpi_add_var(ncid, base, var));
    IS(ncmpi_add_var(ncid, base, 77) == NC_ENOTVAR);
    IS(ncmpi_add_vertex(ncid, 9, base) == NC_EINVAL);
    /* What only this rank knows of. */
    sprintf(own, "level of %d", rank);
    DO(ncmpi_def_vertex(ncid, own, &level));
    DO(ncmpi_add_vertex(ncid, graph, level));
    DO(ncmpi_add_edge(ncid, level, edge, base));
    /* Attributes: values of the type that is named. */
    double times[2] = {0.5, -1.5}, got[2] = {0, 0};
    int natts, number = 0;
    nc_type type;
    MPI_Offset length;
    DO(ncmpi_put_graph_att(ncid, graph, "times", NC_DOUBLE, 2, times));
    DO(ncmpi_put_graph_att(ncid, graph, "made by", NC_CHAR, 4, "test"));
    DO(ncmpi_put_vertex_att(ncid, level, "rank", NC_INT, 1, &rank));
    IS(ncmpi_put_graph_att(ncid, 9, "times", NC_DOUBLE, 2, times) == NC_EINVAL);
    IS(ncmpi_put_vertex_att(ncid, level, "rank", 99, 1, &rank) == NC_EBADTYPE);
    IS(ncmpi_put_vertex_att(ncid, level, "rank", NC_INT, -1, &rank) == NC_EINVAL);
    IS(ncmpi_put_vertex_att(ncid, level, "rank", NC_INT, 1, NULL) == NC_EINVAL);
    DO(ncmpi_put_vertex_att(ncid, base, "gone", NC_INT, 1, &ranks));
    DO(ncmpi_del_vertex_att(ncid, base, "gone"));
    IS(ncmpi_del_vertex_att(ncid, base, "gone") == NC_ENOTATT);
    DO(ncmpi_enddef(ncid));

    DO(ncmpi_inq_graph_natts(ncid, graph, &natts));
    IS(natts == 2);
    DO(ncmpi_inq_graph_attname(ncid, graph, 1, name));
    IS(strcmp(name, "made by") == 0);
    IS(ncmpi_inq_graph_attname(ncid, graph, 2, name) == NC_ENOTATT);
    IS(ncmpi_inq_graph_attname(ncid, graph, -1, name) == NC_ENOTATT);
    DO(ncmpi_inq_graph_att(ncid, graph, "times", &type, &length));
    IS(type == NC_DOUBLE && length == 2);
    DO(ncmpi_get_graph_att(ncid, graph, "times", got));
    IS(got[0] == 0.5 && got[1] == -1.5);
    IS(ncmpi_get_graph_att(ncid, graph, "nothing", got) == NC_ENOTATT);
    IS(ncmpi_get_graph_att(ncid, graph, "times", NULL) == NC_EINVAL);
    DO(ncmpi_inq_vertex_natts(ncid, level, &natts));
    IS(natts == 1);
    DO(ncmpi_inq_vertex_natts(ncid, base, &natts));
    IS(natts == 0);
    DO(ncmpi_inq_vertex_attname(ncid, level, 0, name));
    IS(strcmp(name, "rank") == 0);
    DO(ncmpi_inq_vertex_att(ncid, level, "rank", &type, NULL));
    IS(type == NC_INT);
    DO(ncmpi_get_vertex_att(ncid, level, "rank", &number));
    IS(number == rank);
    IS(ncmpi_put_graph_att(ncid, graph, "times", NC_DOUBLE, 1, times) == NC_ENOTINDEFINE);
    IS(ncmpi_del_graph_att(ncid, graph, "times") == NC_ENOTINDEFINE);

    /* Numbers that were given stay. */
    DO(ncmpi_inq_vertex(ncid, level, name, &nvars, varids, &nedges, edgeids, to));
    IS(strcmp(name, own) == 0 && nvars == 0 && nedges == 1 && edgeids[0] == edge && to[0] == base);
    DO(ncmpi_inq_graphs(ncid, &graphs, &vertices, &edges));
    IS(graphs == 1 && vertices == ranks + 1 && edges == 2);
    DO(ncmpi_inq_graph(ncid, graph, name, &count, ids));
    IS(strcmp(name, "amr") == 0 && count == ranks + 1);
    DO(ncmpi_inq_edge(ncid, edge, name, &weight, &direction));
    IS(strcmp(name, "refines") == 0 && weight == 2.0 && direction == NC_DIRECTED);
    IS(ncmpi_add_vertex(ncid, graph, base) == NC_ENOTINDEFINE);

    DO(ncmpi_redef(ncid));
    DO(ncmpi_add_edge(ncid, level, beside, base));
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_close(ncid));

    DO(ncmpi_open(MPI_COMM_WORLD, "graphs.nc", NC_WRITE, MPI_INFO_NULL, &ncid));
    DO(ncmpi_inq_vertexid(ncid, own, &level));
    DO(ncmpi_inq_graphid(ncid, "amr", &graph));
    DO(ncmpi_inq_edgeid(ncid, "beside", &beside));
    DO(ncmpi_inq_edgeid(ncid, "refines", &edge));
    DO(ncmpi_inq_vertexid(ncid, "base", &base));
    IS(ncmpi_inq_vertexid(ncid, "nobody", &found) == NC_EINVAL);
    DO(ncmpi_inq_vertex(ncid, base, NULL, &nvars, varids, &nedges, NULL, NULL));
    IS(nvars == 1 && varids[0] == var);
    DO(ncmpi_inq_vertex(ncid, level, NULL, NULL, NULL, &nedges, edgeids, to));
    IS(nedges == 2 && edgeids[0] == edge && edgeids[1] == beside && to[1] == base);
    DO(ncmpi_inq_graphids(ncid, ids));
    IS(ids[0] == graph);
    DO(ncmpi_inq_vertexids(ncid, ids));
    IS(ids[0] == base);
    DO(ncmpi_inq_edgeids(ncid, ids));
    IS(ids[0] == edge || ids[0] == beside);

    /* What the file has is changed by all alike. */
    DO(ncmpi_redef(ncid));
    for (int r = 0; r < ranks; r++) {
        sprintf(own, "level of %d", r);
        DO(ncmpi_inq_vertexid(ncid, own, &level));
        DO(ncmpi_get_vertex_att(ncid, level, "rank", &number));
        IS(number == r);
        if (r == 0) {
            DO(ncmpi_del_edge_in_vertex(ncid, level, beside, base));
            DO(ncmpi_rename_vertex(ncid, level, "fine"));
        } else
            DO(ncmpi_del_vertex(ncid, level));
    }
    DO(ncmpi_del_graph_att(ncid, graph, "made by"));
    DO(ncmpi_del_edge(ncid, beside));
    DO(ncmpi_rename_edge(ncid, edge, "is finer than"));
    DO(ncmpi_rename_graph(ncid, graph, "levels"));
    DO(ncmpi_del_var_in_vertex(ncid, base, var));
    DO(ncmpi_def_vertex(ncid, "other", &found));
    DO(ncmpi_add_vertex(ncid, graph, found));
    DO(ncmpi_del_vertex_in_graph(ncid, graph, found));
    IS(ncmpi_del_vertex_in_graph(ncid, graph, found) == NC_EINVAL);
    DO(ncmpi_del_vertex(ncid, found));
    IS(ncmpi_add_vertex(ncid, graph, found) == NC_EINVAL);
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_inq_graphs(ncid, &graphs, &vertices, &edges));
    IS(graphs == 1 && vertices == 2 && edges == 1);
    DO(ncmpi_inq_graph_natts(ncid, graph, &natts));
    IS(natts == 1);
    DO(ncmpi_inq_edge(ncid, edge, name, NULL, NULL));
    IS(strcmp(name, "is finer than") == 0);
    DO(ncmpi_inq_vertex(ncid, base, name, &nvars, NULL, NULL, NULL, NULL));
    IS(strcmp(name, "base") == 0 && nvars == 0);
    DO(ncmpi_redef(ncid));
    DO(ncmpi_inq_vertexid(ncid, "fine", &level));
    DO(ncmpi_del_vertex(ncid, level));
    DO(ncmpi_del_vertex(ncid, base));
    DO(ncmpi_del_edge(ncid, edge));
    DO(ncmpi_del_graph(ncid, graph));
    DO(ncmpi_enddef(ncid));
    DO(ncmpi_inq_graphs(ncid, &graphs, &vertices, &edges));
    IS(graphs == 0 && vertices == 0 && edges == 0);
    DO(ncmpi_close(ncid));

    /* Two definitions of one edge are an error of everyone. */
    if (ranks > 1) {
        DO(ncmpi_create(MPI_COMM_WORLD, "graphs.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid));
        DO(ncmpi_def_graph(ncid, "g", &graph));
        DO(ncmpi_def_edge(ncid, "e", rank, NC_DIRECTED, &edge));
        IS(ncmpi_enddef(ncid) == NC_EMULTIDEFINE);
        DO(ncmpi_abort(ncid));
        /* So are two values of one attribute. */
        DO(ncmpi_create(MPI_COMM_WORLD, "graphs.nc", NC_CLOBBER, MPI_INFO_NULL, &ncid));
        DO(ncmpi_def_graph(ncid, "g", &graph));
        DO(ncmpi_put_graph_att(ncid, graph, "a", NC_INT, 1, &rank));
        IS(ncmpi_enddef(ncid) == NC_EMULTIDEFINE);
        DO(ncmpi_abort(ncid));
    }
    MPI_Finalize();
    return 0;
}
