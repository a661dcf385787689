! Graphs of variables, in Fortran 77: each rank defines its own level,
! and all have the same graph. Identifiers count from one.
      program graphs
      implicit none
      include 'mpif.h'
      include 'pnetcdf.inc'
      integer err, rank, ranks, ncid, dims(1), var, graph, edge, beside
      integer base, level, found, r, bad, total, ngraphs, nvertices
      integer nedges, nvars, n, ids(64), varids(64), edgeids(64), to(64)
      integer direction, natts, xtype, number
      integer*8 length
      double precision times(2), got(2)
      double precision weight
      character*60 name, own
      bad = 0
      call MPI_Init(err)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, err)
      call is(nfmpi_create(MPI_COMM_WORLD, 'graphs_f77.nc',
     +    IOR(nf_clobber, nf_64bit_data), MPI_INFO_NULL, ncid), 0, 1,
     +    bad)
      length = 4
      call is(nfmpi_def_dim(ncid, 'x', length, dims(1)), 0, 2, bad)
      call is(nfmpi_def_var(ncid, 'first', nf_int, 1, dims, var), 0,
     +    3, bad)
      call is(nfmpi_def_var(ncid, 'rho', nf_int, 1, dims, var), 0, 4,
     +    bad)
      call is(nfmpi_def_graph(ncid, 'amr  ', graph), 0, 5, bad)
      call is(nfmpi_def_edge(ncid, 'refines', 2.0d0, nf_directed,
     +    edge), 0, 6, bad)
      call is(nfmpi_def_edge(ncid, 'beside', -0.5d0, nf_undirected,
     +    beside), 0, 7, bad)
      call is(nfmpi_def_edge(ncid, 'wrong', 1.0d0, 7, found),
     +    nf_einval, 8, bad)
      call is(nfmpi_def_graph(ncid, 'rho', found), nf_enameinuse, 9,
     +    bad)
      call is(nfmpi_def_vertex(ncid, 'base', base), 0, 10, bad)
      call is(graph, 1, 11, bad)
      call is(edge, 1, 12, bad)
      call is(beside, 2, 13, bad)
      call is(base, 1, 14, bad)
      call is(nfmpi_add_vertex(ncid, graph, base), 0, 15, bad)
      call is(nfmpi_add_var(ncid, base, var), 0, 16, bad)
      call is(nfmpi_add_var(ncid, base, 77), nf_enotvar, 17, bad)
      call is(nfmpi_add_vertex(ncid, 9, base), nf_einval, 18, bad)
! What only this rank knows of.
      write (own, '(a,i0)') 'level of ', rank
      call is(nfmpi_def_vertex(ncid, own, level), 0, 19, bad)
      call is(nfmpi_add_vertex(ncid, graph, level), 0, 20, bad)
      call is(nfmpi_add_edge(ncid, level, edge, base), 0, 21, bad)
      times(1) = 0.5d0
      times(2) = -1.5d0
      length = 2
      call is(nfmpi_put_graph_att(ncid, graph, 'times ', nf_double,
     +    length, times), 0, 100, bad)
      call is(nfmpi_put_graph_att(ncid, graph, 'gone', nf_double,
     +    length, times), 0, 101, bad)
      call is(nfmpi_del_graph_att(ncid, graph, 'gone'), 0, 102, bad)
      length = 1
      call is(nfmpi_put_vertex_att(ncid, level, 'rank', nf_int,
     +    length, rank), 0, 103, bad)
      call is(nfmpi_put_vertex_att(ncid, level, 'gone', nf_int,
     +    length, rank), 0, 104, bad)
      call is(nfmpi_del_vertex_att(ncid, level, 'gone'), 0, 105, bad)
      call is(nfmpi_enddef(ncid), 0, 22, bad)
      call is(nfmpi_inq_graph_natts(ncid, graph, natts), 0, 106, bad)
      call is(natts, 1, 107, bad)
      call is(nfmpi_inq_graph_attname(ncid, graph, 1, name), 0, 108,
     +    bad)
      if (name .ne. 'times') bad = bad + 1
      call is(nfmpi_inq_graph_attname(ncid, graph, 2, name),
     +    nf_enotatt, 109, bad)
      call is(nfmpi_inq_graph_att(ncid, graph, 'times', xtype,
     +    length), 0, 110, bad)
      call is(xtype, nf_double, 111, bad)
      if (length .ne. 2) bad = bad + 1
      call is(nfmpi_get_graph_att(ncid, graph, 'times', got), 0, 112,
     +    bad)
      if (got(1) .ne. 0.5d0 .or. got(2) .ne. -1.5d0) bad = bad + 1
      call is(nfmpi_inq_vertex_natts(ncid, level, natts), 0, 113, bad)
      call is(natts, 1, 114, bad)
      call is(nfmpi_inq_vertex_attname(ncid, level, 1, name), 0, 115,
     +    bad)
      if (name .ne. 'rank') bad = bad + 1
      call is(nfmpi_inq_vertex_att(ncid, level, 'rank', xtype,
     +    length), 0, 116, bad)
      call is(xtype, nf_int, 117, bad)
      number = -1
      call is(nfmpi_get_vertex_att(ncid, level, 'rank', number), 0,
     +    118, bad)
      call is(number, rank, 119, bad)
      call is(nfmpi_get_vertex_att(ncid, level, 'nothing', number),
     +    nf_enotatt, 120, bad)

      call is(nfmpi_inq_graphs(ncid, ngraphs, nvertices, nedges), 0,
     +    23, bad)
      call is(ngraphs, 1, 24, bad)
      call is(nvertices, ranks + 1, 25, bad)
      call is(nedges, 2, 26, bad)
      call is(nfmpi_inq_vertex(ncid, level, name, nvars, varids,
     +    nedges, edgeids, to), 0, 27, bad)
      if (name .ne. own) bad = bad + 1
      call is(nvars, 0, 28, bad)
      call is(nedges, 1, 29, bad)
      call is(edgeids(1), edge, 30, bad)
      call is(to(1), base, 31, bad)
      call is(nfmpi_inq_vertex(ncid, base, name, nvars, varids,
     +    nedges, edgeids, to), 0, 32, bad)
      call is(nvars, 1, 33, bad)
      call is(varids(1), var, 34, bad)
      do r = 1, 64
          ids(r) = -7
      end do
      call is(nfmpi_inq_graph(ncid, graph, name, n, ids), 0, 35, bad)
      if (name .ne. 'amr') bad = bad + 1
      call is(n, ranks + 1, 36, bad)
      call is(ids(n + 1), -7, 39, bad)
      call is(nfmpi_inq_graphids(ncid, ids), 0, 40, bad)
      call is(ids(1), graph, 41, bad)
      call is(nfmpi_inq_vertexids(ncid, varids), 0, 42, bad)
      call is(varids(1), base, 43, bad)
      call is(nfmpi_inq_edgeids(ncid, ids(2)), 0, 45, bad)
      call is(ids(2) + ids(3), edge + beside, 46, bad)
      call is(nfmpi_inq_edge(ncid, beside, name, weight, direction),
     +    0, 47, bad)
      if (name .ne. 'beside' .or. weight .ne. -0.5d0) bad = bad + 1
      call is(direction, nf_undirected, 48, bad)
      call is(nfmpi_inq_edge(ncid, 99, name, weight, direction),
     +    nf_einval, 49, bad)
      call is(nfmpi_inq_graph(ncid, 99, name, n, ids), nf_einval, 50,
     +    bad)
      call is(nfmpi_add_vertex(ncid, graph, base), nf_enotindefine,
     +    51, bad)
      call is(nfmpi_close(ncid), 0, 52, bad)

      call is(nfmpi_open(MPI_COMM_WORLD, 'graphs_f77.nc', nf_write,
     +    MPI_INFO_NULL, ncid), 0, 53, bad)
      call is(nfmpi_inq_graphid(ncid, 'amr', graph), 0, 54, bad)
      call is(nfmpi_inq_edgeid(ncid, 'refines', edge), 0, 55, bad)
      call is(nfmpi_inq_edgeid(ncid, 'beside', beside), 0, 56, bad)
      call is(nfmpi_inq_vertexid(ncid, 'base', base), 0, 57, bad)
      call is(nfmpi_inq_vertexid(ncid, 'nobody', found), nf_einval,
     +    58, bad)
! What the file has is changed by all alike.
      call is(nfmpi_redef(ncid), 0, 59, bad)
      do r = 0, ranks - 1
        write (own, '(a,i0)') 'level of ', r
        call is(nfmpi_inq_vertexid(ncid, own, level), 0, 60, bad)
        if (r .eq. 0) then
          call is(nfmpi_add_edge(ncid, level, beside, base), 0, 61, bad)
          call is(nfmpi_del_edge_in_vertex(ncid, level, beside, base),
     +    0, 62, bad)
          call is(nfmpi_rename_vertex(ncid, level, 'fine'), 0, 63, bad)
        else
          call is(nfmpi_del_vertex(ncid, level), 0, 64, bad)
        end if
      end do
      call is(nfmpi_del_edge(ncid, beside), 0, 65, bad)
      call is(nfmpi_rename_edge(ncid, edge, 'is finer than'), 0, 66,
     +    bad)
      call is(nfmpi_rename_graph(ncid, graph, 'levels'), 0, 67, bad)
      call is(nfmpi_del_var_in_vertex(ncid, base, var), 0, 68, bad)
      call is(nfmpi_def_vertex(ncid, 'other', found), 0, 69, bad)
      call is(nfmpi_add_vertex(ncid, graph, found), 0, 70, bad)
      call is(nfmpi_del_vertex_in_graph(ncid, graph, found), 0, 71, bad)
      call is(nfmpi_del_vertex(ncid, found), 0, 72, bad)
      call is(nfmpi_enddef(ncid), 0, 73, bad)
      call is(nfmpi_inq_graphs(ncid, ngraphs, nvertices, nedges), 0,
     +    74, bad)
      call is(ngraphs, 1, 75, bad)
      call is(nvertices, 2, 76, bad)
      call is(nedges, 1, 77, bad)
      call is(nfmpi_redef(ncid), 0, 78, bad)
      call is(nfmpi_inq_vertexid(ncid, 'fine', level), 0, 79, bad)
      call is(nfmpi_del_vertex(ncid, level), 0, 80, bad)
      call is(nfmpi_del_vertex(ncid, base), 0, 81, bad)
      call is(nfmpi_del_edge(ncid, edge), 0, 82, bad)
      call is(nfmpi_del_graph(ncid, graph), 0, 83, bad)
      call is(nfmpi_enddef(ncid), 0, 84, bad)
      call is(nfmpi_inq_graphs(ncid, ngraphs, nvertices, nedges), 0,
     +    85, bad)
      call is(ngraphs + nvertices + nedges, 0, 86, bad)
      call is(nfmpi_close(ncid), 0, 87, bad)
      call MPI_Allreduce(bad, total, 1, MPI_INTEGER, MPI_SUM,
     +    MPI_COMM_WORLD, err)
      call MPI_Finalize(err)
      if (total .ne. 0) stop 1
      end

      subroutine is(got, expected, place, bad)
      implicit none
      integer got, expected, place, bad
      if (got .ne. expected) then
        print *, 'place', place, got, ' is not ', expected
        bad = bad + 1
      end if
      end
