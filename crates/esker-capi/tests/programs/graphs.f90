! Graphs of variables, in Fortran 90: each rank defines its own level, and all have the same graph. Identifiers count from one.
program graphs
  use mpi
  use pnetcdf
  implicit none
  integer :: err, rank, ranks, ncid, dims(1), var, graph, edge, beside, base, level, found, r, bad, total
  integer :: ngraphs, nvertices, nedges, nvars, n, ids(64), varids(8), edgeids(8), to(8), direction
  integer :: spaced(64, 2), natts, xtype, number
  integer(8) :: length
  real(8) :: weight, got(3)
  real(4) :: single
  character(len=60) :: name, own
  bad = 0
  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, err)
  call is(nf90mpi_create(MPI_COMM_WORLD, 'graphs_f90.nc', ior(nf90_clobber, nf90_64bit_data), MPI_INFO_NULL, ncid), 0, 1)
  call is(nf90mpi_def_dim(ncid, 'x', 4_8, dims(1)), 0, 2)
  call is(nf90mpi_def_var(ncid, 'first', nf90_int, dims, var), 0, 3)
  call is(nf90mpi_def_var(ncid, 'rho', nf90_int, dims, var), 0, 4)
  call is(nf90mpi_def_graph(ncid, 'amr  ', graph), 0, 5)
  call is(nf90mpi_def_edge(ncid, 'refines', 2.0_8, nf90_directed, edge), 0, 6)
  call is(nf90mpi_def_edge(ncid, 'beside', -0.5_8, nf90_undirected, beside), 0, 7)
  call is(nf90mpi_def_edge(ncid, 'wrong', 1.0_8, 7, found), nf90_einval, 8)
  call is(nf90mpi_def_graph(ncid, 'rho', found), nf90_enameinuse, 9)
  call is(nf90mpi_def_vertex(ncid, 'base', base), 0, 10)
  call is(graph, 1, 11)
  call is(edge, 1, 12)
  call is(beside, 2, 13)
  call is(base, 1, 14)
  call is(nf90mpi_add_vertex(ncid, graph, base), 0, 15)
  call is(nf90mpi_add_var(ncid, base, var), 0, 16)
  call is(nf90mpi_add_var(ncid, base, 77), nf90_enotvar, 17)
  call is(nf90mpi_add_vertex(ncid, 9, base), nf90_einval, 18)
  ! What only this rank knows of.
  write (own, '(a,i0)') 'level of ', rank
  call is(nf90mpi_def_vertex(ncid, own, level), 0, 19)
  call is(nf90mpi_add_vertex(ncid, graph, level), 0, 20)
  call is(nf90mpi_add_edge(ncid, level, edge, base), 0, 21)
  call is(nf90mpi_put_graph_att(ncid, graph, 'times', (/0.5_8, -1.5_8/)), 0, 100)
  call is(nf90mpi_put_graph_att(ncid, graph, 'made by', 'test  '), 0, 101)
  call is(nf90mpi_put_graph_att(ncid, graph, 'gone', 7), 0, 102)
  call is(nf90mpi_del_graph_att(ncid, graph, 'gone'), 0, 103)
  call is(nf90mpi_put_vertex_att(ncid, level, 'rank', rank), 0, 104)
  call is(nf90mpi_put_vertex_att(ncid, level, 'name', own), 0, 105)
  call is(nf90mpi_put_vertex_att(ncid, level, 'gone', 1.5), 0, 106)
  call is(nf90mpi_del_vertex_att(ncid, level, 'gone'), 0, 107)
  call is(nf90mpi_put_vertex_att(ncid, 99, 'rank', rank), nf90_einval, 108)
  call is(nf90mpi_enddef(ncid), 0, 22)

  call is(nf90mpi_inq_graph_natts(ncid, graph, natts), 0, 110)
  call is(natts, 2, 111)
  call is(nf90mpi_inq_graph_attname(ncid, graph, 2, name), 0, 112)
  if (name /= 'made by') bad = bad + 1
  call is(nf90mpi_inq_graph_att(ncid, graph, 'made by', xtype, length), 0, 113)
  call is(xtype, nf90_char, 114)
  call is(int(length), 4, 115)
  call is(nf90mpi_get_graph_att(ncid, graph, 'made by', name), 0, 116)
  if (name /= 'test') bad = bad + 1
  got = 9
  call is(nf90mpi_get_graph_att(ncid, graph, 'times', got), 0, 117)
  if (any(got /= (/0.5_8, -1.5_8, 9.0_8/))) bad = bad + 1
  call is(nf90mpi_inq_vertex_natts(ncid, level, natts), 0, 118)
  call is(natts, 2, 119)
  call is(nf90mpi_inq_vertex_attname(ncid, level, 1, name), 0, 120)
  if (name /= 'rank') bad = bad + 1
  call is(nf90mpi_inq_vertex_att(ncid, level, 'rank', xtype, length), 0, 121)
  call is(xtype, nf90_int, 122)
  ! Of another type than it has.
  call is(nf90mpi_get_vertex_att(ncid, level, 'rank', single), 0, 123)
  call is(int(single), rank, 124)
  call is(nf90mpi_get_vertex_att(ncid, level, 'rank', number), 0, 125)
  call is(number, rank, 126)
  call is(nf90mpi_get_vertex_att(ncid, level, 'name', name), 0, 127)
  if (name /= own) bad = bad + 1
  call is(nf90mpi_get_vertex_att(ncid, level, 'nothing', number), nf90_enotatt, 128)
  call is(nf90mpi_put_graph_att(ncid, graph, 'times', 1), nf90_enotindefine, 129)

  call is(nf90mpi_inq_graphs(ncid, ngraphs, nvertices, nedges), 0, 23)
  call is(ngraphs, 1, 24)
  call is(nvertices, ranks + 1, 25)
  call is(nedges, 2, 26)
  call is(nf90mpi_inq_vertex(ncid, level, name, nvars, varids, nedges, edgeids, to), 0, 27)
  if (name /= own) bad = bad + 1
  call is(nvars, 0, 28)
  call is(nedges, 1, 29)
  call is(edgeids(1), edge, 30)
  call is(to(1), base, 31)
  call is(nf90mpi_inq_vertex(ncid, base, nvars=nvars, varids=varids), 0, 32)
  call is(nvars, 1, 33)
  call is(varids(1), var, 34)
  ids = -7
  call is(nf90mpi_inq_graph(ncid, graph, name, n, ids), 0, 35)
  if (name /= 'amr') bad = bad + 1
  call is(n, ranks + 1, 36)
  call is(minval(ids(1:n)), 1, 37)
  call is(maxval(ids(1:n)), ranks + 1, 38)
  call is(ids(n + 1), -7, 39)
  ! Arrays with gaps.
  spaced = -7
  call is(nf90mpi_inq_graphids(ncid, ids), 0, 40)
  call is(ids(1), graph, 41)
  call is(nf90mpi_inq_vertexids(ncid, spaced(1:63:2, 2)), 0, 42)
  call is(spaced(2, 2), -7, 43)
  call is(count(spaced(:, 2) == base), 1, 44)
  call is(nf90mpi_inq_edgeids(ncid, ids(2:5)), 0, 45)
  call is(ids(2) + ids(3), edge + beside, 46)
  call is(nf90mpi_inq_edge(ncid, beside, name, weight, direction), 0, 47)
  if (name /= 'beside' .or. weight /= -0.5_8) bad = bad + 1
  call is(direction, nf90_undirected, 48)
  call is(nf90mpi_inq_edge(ncid, 99, name, weight, direction), nf90_einval, 49)
  call is(nf90mpi_inq_graph(ncid, 99, name, n, ids), nf90_einval, 50)
  call is(nf90mpi_add_vertex(ncid, graph, base), nf90_enotindefine, 51)
  call is(nf90mpi_close(ncid), 0, 52)

  call is(nf90mpi_open(MPI_COMM_WORLD, 'graphs_f90.nc', nf90_write, MPI_INFO_NULL, ncid), 0, 53)
  call is(nf90mpi_inq_graphid(ncid, 'amr', graph), 0, 54)
  call is(nf90mpi_inq_edgeid(ncid, 'refines', edge), 0, 55)
  call is(nf90mpi_inq_edgeid(ncid, 'beside', beside), 0, 56)
  call is(nf90mpi_inq_vertexid(ncid, 'base', base), 0, 57)
  call is(nf90mpi_inq_vertexid(ncid, 'nobody', found), nf90_einval, 58)
  ! What the file has is changed by all alike.
  call is(nf90mpi_redef(ncid), 0, 59)
  do r = 0, ranks - 1
    write (own, '(a,i0)') 'level of ', r
    call is(nf90mpi_inq_vertexid(ncid, own, level), 0, 60)
    if (r == 0) then
      call is(nf90mpi_add_edge(ncid, level, beside, base), 0, 61)
      call is(nf90mpi_del_edge_in_vertex(ncid, level, beside, base), 0, 62)
      call is(nf90mpi_rename_vertex(ncid, level, 'fine'), 0, 63)
    else
      call is(nf90mpi_del_vertex(ncid, level), 0, 64)
    end if
  end do
  call is(nf90mpi_del_edge(ncid, beside), 0, 65)
  call is(nf90mpi_rename_edge(ncid, edge, 'is finer than'), 0, 66)
  call is(nf90mpi_rename_graph(ncid, graph, 'levels'), 0, 67)
  call is(nf90mpi_del_var_in_vertex(ncid, base, var), 0, 68)
  call is(nf90mpi_def_vertex(ncid, 'other', found), 0, 69)
  call is(nf90mpi_add_vertex(ncid, graph, found), 0, 70)
  call is(nf90mpi_del_vertex_in_graph(ncid, graph, found), 0, 71)
  call is(nf90mpi_del_vertex(ncid, found), 0, 72)
  call is(nf90mpi_enddef(ncid), 0, 73)
  call is(nf90mpi_inq_graphs(ncid, ngraphs, nvertices, nedges), 0, 74)
  call is(ngraphs, 1, 75)
  call is(nvertices, 2, 76)
  call is(nedges, 1, 77)
  call is(nf90mpi_redef(ncid), 0, 78)
  call is(nf90mpi_inq_vertexid(ncid, 'fine', level), 0, 79)
  call is(nf90mpi_del_vertex(ncid, level), 0, 80)
  call is(nf90mpi_del_vertex(ncid, base), 0, 81)
  call is(nf90mpi_del_edge(ncid, edge), 0, 82)
  call is(nf90mpi_del_graph(ncid, graph), 0, 83)
  call is(nf90mpi_enddef(ncid), 0, 84)
  call is(nf90mpi_inq_graphs(ncid, ngraphs, nvertices, nedges), 0, 85)
  call is(ngraphs + nvertices + nedges, 0, 86)
  call is(nf90mpi_close(ncid), 0, 87)
  call MPI_Allreduce(bad, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, err)
  call MPI_Finalize(err)
  if (total /= 0) stop 1
contains
  subroutine is(got, expected, place)
    integer, intent(in) :: got, expected, place
    if (got /= expected) then
      print *, 'place', place, got, ' is not ', expected
      bad = bad + 1
    end if
  end subroutine
end program
