! NF90_COUNT_IGNORE in the procedures of the module, whole arrays and parts with gaps.
program ignored
  use mpi
  use pnetcdf
  implicit none
  integer :: err, ncid, rank, nprocs, dims(2), v, pair, req(1), st(1)
  integer :: buf(4, 2), back(4, 2), wide(8, 2)
  real(8) :: doubles(4, 2)
  integer(8) :: start(2)

  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, err)
  call is('create', nf90mpi_create(MPI_COMM_WORLD, 'ignored.nc', IOR(NF90_CLOBBER, NF90_64BIT_DATA), &
                                   MPI_INFO_NULL, ncid), 0)
  call is('dim', nf90mpi_def_dim(ncid, 'x', 4_8, dims(1)), 0)
  call is('dim', nf90mpi_def_dim(ncid, 'y', int(2 * nprocs, 8), dims(2)), 0)
  call is('var', nf90mpi_def_var(ncid, 'v', NF90_INT, dims, v), 0)
  call is('enddef', nf90mpi_enddef(ncid), 0)
  start = (/ 1_8, int(2 * rank + 1, 8) /)
  buf = reshape((/ 1, 2, 3, 4, 5, 6, 7, 8 /), (/ 4, 2 /)) + 100 * rank

  call is('put', nf90mpi_put_var_all(ncid, v, buf, start, bufcount=NF90_COUNT_IGNORE, buftype=MPI_INTEGER), 0)
  call is('get', nf90mpi_get_var_all(ncid, v, back, start, bufcount=NF90_COUNT_IGNORE, buftype=MPI_INTEGER), 0)
  call is('put and got', count(back == buf), 8)
  call is('get', nf90mpi_get_var_all(ncid, v, doubles, start, bufcount=NF90_COUNT_IGNORE, &
                                     buftype=MPI_DOUBLE_PRECISION), 0)
  call is('doubles', count(int(doubles) == buf), 8)
  ! A part with gaps, posted: in place.
  wide = -1
  call is('iget', nf90mpi_iget_var(ncid, v, wide(1:8:2, :), req(1), start, bufcount=NF90_COUNT_IGNORE, &
                                   buftype=MPI_INTEGER), 0)
  call is('wait', nf90mpi_wait_all(ncid, 1, req, st), 0)
  call is('gaps', count(wide == -1), 8)
  call is('between gaps', count(wide(1:8:2, :) == buf), 8)
  call is('iput', nf90mpi_iput_var(ncid, v, wide(1:8:2, 2:1:-1), req(1), start, bufcount=NF90_COUNT_IGNORE, &
                                   buftype=MPI_INTEGER), 0)
  call is('wait', nf90mpi_wait_all(ncid, 1, req, st), 0)
  call is('get', nf90mpi_get_var_all(ncid, v, back, start), 0)
  call is('backwards', count(back(:, 2:1:-1) == buf), 8)

  call MPI_Type_contiguous(2, MPI_INTEGER, pair, err)
  call MPI_Type_commit(pair, err)
  call is('derived', nf90mpi_put_var_all(ncid, v, buf, start, bufcount=NF90_COUNT_IGNORE, buftype=pair), &
          NF90_EINVAL)
  call MPI_Type_free(pair, err)
  call is('negative', nf90mpi_put_var_all(ncid, v, buf, start, bufcount=-2_8, buftype=MPI_INTEGER), &
          NF90_EIOMISMATCH)
  call is('close', nf90mpi_close(ncid), 0)
  if (rank == 0) print *, 'ignored: good'
  call MPI_Finalize(err)

contains
  subroutine is(what, number, wanted)
    character(len=*), intent(in) :: what
    integer, intent(in) :: number, wanted
    integer :: code
    if (number /= wanted) then
      print *, what, number, wanted, ' ', nf90mpi_strerror(number)
      call MPI_Abort(MPI_COMM_WORLD, 1, code)
    end if
  end subroutine
end program
