! A transaction with a number that is committed before the one before it, by functions of Fortran 90 and 77.
program transactions
  use mpi
  use pnetcdf
  implicit none
  integer :: ncid, dim, var, ierr, visible, later
  integer(kind=MPI_OFFSET_KIND) :: number, zero = 0, two = 2, three = 3, one = 1
  integer :: values(2)
  character(len=1000) :: name

  call MPI_Init(ierr)
  call get_command_argument(1, name)
  call ok(nf90mpi_create(MPI_COMM_WORLD, name, NF90_CLOBBER, MPI_INFO_NULL, ncid), 1)
  call ok(nf90mpi_def_dim(ncid, 'x', 2_MPI_OFFSET_KIND, dim), 2)
  call ok(nf90mpi_def_var(ncid, 'v', NF90_INT, [dim], var), 3)
  call ok(nf90mpi_enddef(ncid), 4)
  call ok(nf90mpi_close(ncid), 5)

  call ok(nf90mpi_begin_transaction(MPI_COMM_WORLD, name, MPI_INFO_NULL, three, zero, 'three', later), 6)
  call ok(nf90mpi_put_var_all(later, var, [3], [1_MPI_OFFSET_KIND], [1_MPI_OFFSET_KIND]), 7)
  call ok(nf90mpi_transaction_needs(later, two), 8)
  call ok(nf90mpi_commit_transaction(later, number, visible), 9)
  if (number /= 3 .or. visible /= 0) stop 10
  call ok(nf90mpi_close(later), 11)
  call ok(nfmpi_begin_transaction(MPI_COMM_WORLD, name, MPI_INFO_NULL, two, one, 'two', ncid), 12)
  call ok(nf90mpi_put_var_all(ncid, var, [2, 2]), 13)
  call ok(nfmpi_commit_transaction(ncid, number, visible), 14)
  if (number /= 2 .or. visible /= 1) stop 15
  call ok(nf90mpi_close(ncid), 16)
  call ok(nf90mpi_skip_number(name, 5_MPI_OFFSET_KIND, 'no fifth'), 17)
  call ok(nf90mpi_open_next(MPI_COMM_WORLD, name, MPI_INFO_NULL, two, 5.0d0, ncid), 18)
  call ok(nf90mpi_inq_container_version(ncid, number), 19)
  if (number /= 3) stop 20
  call ok(nf90mpi_get_var_all(ncid, var, values), 21)
  if (any(values /= [3, 2])) stop 22
  call ok(nf90mpi_close(ncid), 23)
  call MPI_Finalize(ierr)
contains
  subroutine ok(code, place)
    integer, intent(in) :: code, place
    if (code == NF90_NOERR) return
    print *, 'at', place, ': ', trim(nf90mpi_strerror(code))
    stop 1
  end subroutine ok
end program transactions
