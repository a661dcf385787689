! Writes and reads every type that Fortran has, fixed-size and record variables, in the layout that PNETCDF_HINTS chooses.
! Arguments: the dataset; with a second one it is not opened again. Stops with 1 if something is not what was written.
program layouts
  use mpi
  use pnetcdf
  implicit none
  integer, parameter :: rows = 3, each = 5, records = 4
  integer, parameter :: i1 = selected_int_kind(2), i2 = selected_int_kind(4), i8 = selected_int_kind(18)
  integer, parameter :: r8 = selected_real_kind(13)
  integer, parameter :: kinds(11) = [nf90_byte, nf90_char, nf90_short, nf90_int, nf90_float, nf90_double, &
       nf90_ubyte, nf90_ushort, nf90_uint, nf90_int64, nf90_uint64]
  integer :: ierr, rank, ranks, columns, failures = 0, ncid, x, y, t, fixed(11), record(11), k, late, value
  character(256) :: path, word
  character(12) :: name

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  columns = each * ranks
  call get_command_argument(1, path)
  call ok(nf90mpi_create(MPI_COMM_WORLD, trim(path), ior(nf90_clobber, nf90_64bit_data), MPI_INFO_NULL, ncid), 'create')
  call ok(nf90mpi_def_dim(ncid, 'x', int(columns, MPI_OFFSET_KIND), x), 'x')
  call ok(nf90mpi_def_dim(ncid, 'y', int(rows, MPI_OFFSET_KIND), y), 'y')
  call ok(nf90mpi_def_dim(ncid, 't', int(nf90_unlimited, MPI_OFFSET_KIND), t), 't')
  do k = 1, 11
     write (name, '(a,i0)') 'f', k
     call ok(nf90mpi_def_var(ncid, trim(name), kinds(k), [x, y], fixed(k)), name)
     write (name, '(a,i0)') 'r', k
     call ok(nf90mpi_def_var(ncid, trim(name), kinds(k), [x, t], record(k)), name)
  end do
  call ok(nf90mpi_enddef(ncid), 'enddef')
  do k = 1, 11
     call put(k)
  end do
  call ok(nf90mpi_redef(ncid), 'redef')
  call ok(nf90mpi_def_var(ncid, 'late', nf90_int, late), 'late')
  call ok(nf90mpi_put_att(ncid, nf90_global, 'title', 'every type'), 'title')
  call ok(nf90mpi_enddef(ncid), 'enddef again')
  value = 42
  call ok(nf90mpi_put_var_all(ncid, late, value), 'put late')
  call look
  call ok(nf90mpi_close(ncid), 'close')
  if (command_argument_count() < 2) then
     call ok(nf90mpi_open(MPI_COMM_WORLD, trim(path), nf90_nowrite, MPI_INFO_NULL, ncid), 'open')
     call look
     call ok(nf90mpi_close(ncid), 'close again')
  end if
  call MPI_Allreduce(MPI_IN_PLACE, failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
  if (failures > 0) stop 1

contains

  subroutine ok(code, what)
    integer, intent(in) :: code
    character(*), intent(in) :: what
    if (code /= nf90_noerr) then
       failures = failures + 1
       if (failures < 20) print *, 'rank', rank, trim(what), ': ', trim(nf90mpi_strerror(code))
    end if
  end subroutine

  integer function expected(kind, rec, row, column)
    integer, intent(in) :: kind, rec, row, column
    expected = mod(7 * kind + 31 * rec + 13 * row + 3 * column, 100) + 1
  end function

  ! This rank's columns are those in turn: rank, rank + ranks, ...
  subroutine put(k)
    integer, intent(in) :: k
    integer :: values(each, rows), i, j, request(1), status(1)
    integer(MPI_OFFSET_KIND) :: start(2), count(2), stride(2)
    do j = 1, rows
       do i = 1, each
          values(i, j) = expected(k, 0, j, (i - 1) * ranks + rank)
       end do
    end do
    start = [rank + 1, 1]
    count = [each, rows]
    stride = [ranks, 1]
    call put_as(k, fixed(k), values, start, count, stride)
    count(2) = 1
    do j = 1, records
       start(2) = j
       do i = 1, each
          values(i, 1) = expected(k, j, 0, (i - 1) * ranks + rank)
       end do
       if (k == 4) then
          call ok(nf90mpi_iput_var(ncid, record(k), values(:, 1:1), request(1), start, count, stride), 'iput')
          call ok(nf90mpi_wait_all(ncid, 1, request, status), 'wait')
          call ok(status(1), 'status')
       else
          call put_as(k, record(k), values(:, 1:1), start, count, stride)
       end if
    end do
  end subroutine

  subroutine put_as(k, id, values, start, count, stride)
    integer, intent(in) :: k, id, values(:, :)
    integer(MPI_OFFSET_KIND), intent(in) :: start(2), count(2), stride(2)
    character(size(values)) :: letters
    integer :: i, j
    select case (k)
    case (1, 7)
       call ok(nf90mpi_put_var_all(ncid, id, int(values, i1), start, count, stride), 'put int1')
    case (2)
       do j = 1, size(values, 2)
          do i = 1, size(values, 1)
             letters((j - 1) * size(values, 1) + i:(j - 1) * size(values, 1) + i) = achar(values(i, j))
          end do
       end do
       call ok(nfmpi_put_vars_text_all(ncid, id, start, count, stride, letters), 'put text')
    case (3, 8)
       call ok(nf90mpi_put_var_all(ncid, id, int(values, i2), start, count, stride), 'put int2')
    case (5)
       call ok(nf90mpi_put_var_all(ncid, id, real(values), start, count, stride), 'put real')
    case (6)
       call ok(nf90mpi_put_var_all(ncid, id, real(values, r8), start, count, stride), 'put double')
    case (10, 11)
       call ok(nf90mpi_put_var_all(ncid, id, int(values, i8), start, count, stride), 'put int8')
    case default
       call ok(nf90mpi_put_var_all(ncid, id, values, start, count, stride), 'put int')
    end select
  end subroutine

  subroutine get_as(k, id, values, start, count)
    integer, intent(in) :: k, id
    integer, intent(out) :: values(:)
    integer(MPI_OFFSET_KIND), intent(in) :: start(2), count(2)
    character(size(values)) :: letters
    integer :: i
    integer(i8) :: longs(size(values))
    real(r8) :: doubles(size(values))
    select case (k)
    case (2)
       call ok(nfmpi_get_vara_text_all(ncid, id, start, count, letters), 'get text')
       do i = 1, size(values)
          values(i) = iachar(letters(i:i))
       end do
    case (5, 6)
       call ok(nf90mpi_get_var_all(ncid, id, doubles, start, count), 'get double')
       values = nint(doubles)
    case (10, 11)
       call ok(nf90mpi_get_var_all(ncid, id, longs, start, count), 'get int8')
       values = int(longs)
    case default
       call ok(nf90mpi_get_var_all(ncid, id, values, start, count), 'get int')
    end select
  end subroutine

  subroutine look
    integer :: k, i, j, values(columns), found, length
    integer(MPI_OFFSET_KIND) :: start(2), count(2), many
    character(30) :: text
    count = [columns, 1]
    do k = 1, 11
       do j = 1, rows
          start = [1, j]
          call get_as(k, fixed(k), values, start, count)
          do i = 1, columns
             if (values(i) /= expected(k, 0, j, i - 1)) failures = failures + 1
          end do
       end do
       do j = 1, records
          start = [1, j]
          call get_as(k, record(k), values, start, count)
          do i = 1, columns
             if (values(i) /= expected(k, j, 0, i - 1)) failures = failures + 1
          end do
       end do
    end do
    call ok(nf90mpi_inq_varid(ncid, 'late', found), 'inq late')
    call ok(nf90mpi_get_var_all(ncid, found, length), 'get late')
    if (length /= 42) failures = failures + 1
    text = ''
    call ok(nf90mpi_get_att(ncid, nf90_global, 'title', text), 'get title')
    if (text /= 'every type') failures = failures + 1
    call ok(nf90mpi_inquire_dimension(ncid, t, len=many), 'records')
    if (many /= records) failures = failures + 1
  end subroutine
end program
