! What Esker adds to PnetCDF, in Fortran 90: chunks, filters, layouts, decomposition maps and tokens. Expected values are
! those of plain arrays: v(x,y,t) has 1000 t + 20 y + x.
program storage
  use mpi
  use pnetcdf
  implicit none
  integer, parameter :: nx = 6, ny = 8
  integer :: err, rank, ranks, ncid, dims(3), v, w, c, map, n, ids(9), ndims, back(3), procs
  integer :: layout, token, done, req(1), st(1), own, y, x, i, bad, total
  integer(8) :: got(3), blocks, elems
  integer(8), allocatable :: start(:,:), count(:,:)
  real(8), allocatable :: blob(:,:), again(:,:)
  real(8) :: all(nx, ny, 1)
  integer, allocatable :: whole(:)
  character(len=60) :: text
  bad = 0
  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, err)
  call ok(nf90mpi_create(MPI_COMM_WORLD, 'storage_f90.nc', ior(nf90_clobber, nf90_64bit_data), MPI_INFO_NULL, ncid), 1)
  call ok(nf90mpi_def_dim(ncid, 't', nf90mpi_unlimited, dims(3)), 2)
  call ok(nf90mpi_def_dim(ncid, 'x', int(nx, 8), dims(1)), 3)
  call ok(nf90mpi_def_dim(ncid, 'y', int(ny, 8), dims(2)), 4)
  call ok(nf90mpi_def_var(ncid, 'c', nf90_double, dims, c), 5)
  call ok(nf90mpi_var_set_chunk(ncid, c, [4_8, 3_8, 1_8]), 6)
  call ok(nf90mpi_var_set_filter(ncid, c, 'shuffle deflate,2  '), 7)
  call ok(nf90mpi_var_set_layout(ncid, c, nf90_layout_chunked), 8)
  call ok(nf90mpi_var_get_layout(ncid, c, layout), 9)
  call same(layout, nf90_layout_chunked, 10)
  own = count_of(rank)
  allocate (start(2, own), count(2, own), blob(nx, own), again(nx, own))
  i = 0
  do y = rank + 1, ny, ranks
    i = i + 1
    start(:, i) = [1_8, int(y, 8)]
    count(:, i) = [int(nx, 8), 1_8]
    blob(:, i) = [(2000 + 20 * y + x, x = 1, nx)]
  end do
  call ok(nf90mpi_def_decom(ncid, dims(1:2), start, count, map), 11)
  call ok(nf90mpi_def_decom_var(ncid, 'v', nf90_double, dims(3:3), map, v), 12)
  call ok(nf90mpi_def_decom_var(ncid, 'w', nf90_int, dims(1:0), map, w), 13)
  call ok(nf90mpi_enddef(ncid), 14)
  call ok(nf90mpi_var_get_chunk(ncid, c, got), 15)
  if (any(got /= [4, 3, 1])) bad = bad + 1
  call ok(nf90mpi_var_get_filter(ncid, c, n, text), 16)
  call same(n, 17, 17)
  if (text /= 'shuffle deflate,2') bad = bad + 1
  call ok(nf90mpi_inq_decoms(ncid, n, ids), 18)
  call same(n, 1, 19)
  call same(ids(1), map, 20)
  call ok(nf90mpi_inq_decom(ncid, map, ndims, back, procs, blocks, elems), 21)
  call same(ndims, 2, 22)
  if (any(back(1:2) /= dims(1:2))) bad = bad + 1
  call same(procs, ranks, 23)
  call same(int(blocks), ny, 24)
  call same(int(elems), nx * ny, 25)
  call ok(nf90mpi_inq_var_decom(ncid, v, n), 26)
  call same(n, map, 27)
  call ok(nf90mpi_inq_var_decom_size(ncid, v, elems), 28)
  call same(int(elems), nx * own, 29)
  call ok(nf90mpi_put_decom_all(ncid, v, blob, [2_8], [1_8]), 30)
  call ok(nf90mpi_iput_decom(ncid, v, blob, req(1), [2_8], [1_8]), 31)
  call ok(nf90mpi_wait_all(ncid, 1, req, st), 32)
  allocate (whole(nx * own))
  whole = int(reshape(blob, [nx * own]))
  call ok(nf90mpi_put_decom_all(ncid, w, whole), 33)
  call ok(nf90mpi_begin_indep_data(ncid), 34)
  call ok(nf90mpi_put_decom(ncid, v, blob, [2_8], [1_8]), 35)
  again = 0
  call ok(nf90mpi_get_decom(ncid, v, again, [2_8], [1_8]), 36)
  if (any(again /= blob)) bad = bad + 1
  call ok(nf90mpi_end_indep_data(ncid), 37)
  call ok(nf90mpi_buffer_attach(ncid, int(8 * nx * ny, 8)), 38)
  call ok(nf90mpi_bput_decom(ncid, v, blob, req(1), [2_8], [1_8]), 39)
  call ok(nf90mpi_wait_all(ncid, 1, req, st), 40)
  call ok(nf90mpi_buffer_detach(ncid), 41)
  again = 0
  call ok(nf90mpi_get_decom_all(ncid, v, again, [2_8], [1_8]), 42)
  if (any(again /= blob)) bad = bad + 1
  again = 0
  call ok(nf90mpi_iget_decom(ncid, v, again, req(1), [2_8], [1_8]), 43)
  call ok(nf90mpi_wait_all(ncid, 1, req, st), 44)
  if (any(again /= blob)) bad = bad + 1
  whole = 0
  call ok(nf90mpi_get_decom_all(ncid, w, whole), 45)
  if (any(whole /= int(reshape(blob, [nx * own])))) bad = bad + 1
  call ok(nf90mpi_flush_start(ncid, token), 46)
  call ok(nf90mpi_token_test(ncid, token, done), 47)
  call ok(nf90mpi_token_wait(ncid, token), 48)
  call ok(nf90mpi_sync_start(ncid, token), 49)
  call ok(nf90mpi_token_wait(ncid, token), 50)
  all = 0
  call ok(nf90mpi_get_var_start(ncid, v, all, token, [1_8, 1_8, 2_8]), 51)
  call ok(nf90mpi_token_wait(ncid, token), 52)
  do y = 1, ny
    do x = 1, nx
      if (all(x, y, 1) /= 2000 + 20 * y + x) bad = bad + 1
    end do
  end do
  call ok(nf90mpi_close(ncid), 53)
  call MPI_Allreduce(bad, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, err)
  call MPI_Finalize(err)
  if (total /= 0) stop 1
contains
  integer function count_of(rank)
    integer, intent(in) :: rank
    count_of = 0
    if (rank < ny) count_of = (ny - rank - 1) / ranks + 1
  end function

  subroutine ok(err, place)
    integer, intent(in) :: err, place
    if (err /= nf90_noerr) then
      print *, 'place', place, nf90mpi_strerrno(err)
      bad = bad + 1
    end if
  end subroutine

  subroutine same(a, b, place)
    integer, intent(in) :: a, b, place
    if (a /= b) then
      print *, 'place', place, a, ' is not ', b
      bad = bad + 1
    end if
  end subroutine
end program
