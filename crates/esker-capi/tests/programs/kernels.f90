! The access patterns of the kernels BTIO and S3D-IO, as their papers describe them: cells with
! ghosts that are scattered over the diagonals of a cube, posted with derived types of MPI; and
! four fields of a regular decomposition. Runs on a square number of ranks, and checks each value.
program kernels
  use mpi
  use pnetcdf
  implicit none
  integer :: err, me, nprocs

  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, err)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, err)
  call btio(.true.)
  call btio(.false.)
  call s3d()
  call MPI_Finalize(err)
  if (me == 0) print *, 'kernels: good'

contains

  ! What belongs at a place of a record of the cube.
  pure real(8) function expected(component, i, j, k, record)
    integer, intent(in) :: component, i, j, k, record
    expected = component + 10d0 * i + 1d3 * j + 1d5 * k + 1d7 * record
  end function

  subroutine btio(posts)
    logical, intent(in) :: posts
    integer, parameter :: edge = 6, ghost = 2, records = 2
    integer :: side, c, i, j, k, m, r, element, buftype, ncid, cube, dims(5)
    integer, allocatable :: reqs(:), sts(:), low(:, :)
    integer(8) :: start(5), count(5), n
    real(8), allocatable :: u(:, :, :, :, :), back(:, :, :, :, :)

    side = nint(sqrt(real(nprocs)))
    call is('a square number of ranks', side * side == nprocs)
    allocate(reqs(side), sts(side), low(3, side))
    allocate(u(5, 1 - ghost:edge + ghost, 1 - ghost:edge + ghost, 1 - ghost:edge + ghost, side))
    allocate(back, mold=u)
    ! Rank (row, column) has one cell in each slab, shifted along the diagonal.
    do c = 1, side
      low(1, c) = edge * mod(mod(me, side) + c - 1, side)
      low(2, c) = edge * mod(me / side + c - 1, side)
      low(3, c) = edge * (c - 1)
    end do
    call MPI_Type_contiguous(5, MPI_DOUBLE_PRECISION, element, err)
    call MPI_Type_create_subarray(3, (/ (edge + 2 * ghost, i=1, 3) /), (/ (edge, i=1, 3) /), &
                                  (/ (ghost, i=1, 3) /), MPI_ORDER_FORTRAN, element, buftype, err)
    call MPI_Type_commit(buftype, err)
    call MPI_Type_free(element, err)

    call ok('create', nfmpi_create(MPI_COMM_WORLD, 'btio.nc', ior(NF_CLOBBER, NF_64BIT_DATA), &
                                   MPI_INFO_NULL, ncid))
    call ok('five', nfmpi_def_dim(ncid, 'five', 5_8, dims(1)))
    call ok('x', nfmpi_def_dim(ncid, 'x', int(edge * side, 8), dims(2)))
    call ok('y', nfmpi_def_dim(ncid, 'y', int(edge * side, 8), dims(3)))
    call ok('z', nfmpi_def_dim(ncid, 'z', int(edge * side, 8), dims(4)))
    call ok('t', nfmpi_def_dim(ncid, 't', NFMPI_UNLIMITED, dims(5)))
    call ok('cube', nfmpi_def_var(ncid, 'cube', NF_DOUBLE, 5, dims, cube))
    call ok('enddef', nfmpi_enddef(ncid))
    n = 1
    do r = 1, records
      u = -1
      do c = 1, side
        do k = 1, edge
          do j = 1, edge
            do i = 1, edge
              do m = 1, 5
                u(m, i, j, k, c) = expected(m, low(1, c) + i, low(2, c) + j, low(3, c) + k, r)
              end do
            end do
          end do
        end do
      end do
      do c = 1, side
        start = (/ 1_8, low(1, c) + 1_8, low(2, c) + 1_8, low(3, c) + 1_8, int(r, 8) /)
        count = (/ 5_8, int(edge, 8), int(edge, 8), int(edge, 8), 1_8 /)
        if (posts) then
          call ok('iput', nfmpi_iput_vara(ncid, cube, start, count, u(:, :, :, :, c), n, buftype, &
                                          reqs(c)))
        else
          call ok('put', nfmpi_put_vara_all(ncid, cube, start, count, u(:, :, :, :, c), n, buftype))
        end if
      end do
      if (posts) then
        call ok('wait_all', nfmpi_wait_all(ncid, side, reqs, sts))
        call is('statuses', all(sts == NF_NOERR))
      end if
      back = -1
      do c = 1, side
        start = (/ 1_8, low(1, c) + 1_8, low(2, c) + 1_8, low(3, c) + 1_8, int(r, 8) /)
        if (posts) then
          call ok('iget', nfmpi_iget_vara(ncid, cube, start, count, back(:, :, :, :, c), n, &
                                          buftype, reqs(c)))
        else
          call ok('get', nfmpi_get_vara_all(ncid, cube, start, count, back(:, :, :, :, c), n, &
                                            buftype))
        end if
      end do
      if (posts) call ok('wait_all', nfmpi_wait_all(ncid, side, reqs, sts))
      call is('cells, and ghosts untouched', all(u == back))
    end do
    call check_row(ncid, cube, edge * side)
    call ok('close', nfmpi_close(ncid))
    call MPI_Type_free(buftype, err)
  end subroutine

  ! A row through the cells of several ranks, with the procedures of the module.
  subroutine check_row(ncid, cube, length)
    integer, intent(in) :: ncid, cube, length
    real(8) :: row(length)
    integer :: i
    call ok('row', nf90mpi_get_var_all(ncid, cube, row, start=(/ 2_8, 1_8, 3_8, 4_8, 2_8 /), &
                                       count=(/ 1_8, int(length, 8), 1_8, 1_8, 1_8 /)))
    call is('row', all(row == (/ (expected(2, i, 3, 4, 2), i=1, length) /)))
  end subroutine

  subroutine s3d()
    integer, parameter :: n = 5, species = 4
    integer :: ncid, dims(4), ids(4), req(4), st(4), grid(3), at(3), k
    integer(8) :: start(4), count(4)
    real(8) :: y(n, n, n, species), u(n, n, n, 3), p(n, n, n), t(n, n, n)
    real(8) :: y2(n, n, n, species), u2(n, n, n, 3), p2(n, n, n), t2(n, n, n), time(1)

    grid = 0
    call MPI_Dims_create(nprocs, 3, grid, err)
    at = (/ mod(me, grid(1)), mod(me / grid(1), grid(2)), me / (grid(1) * grid(2)) /)
    y = reshape((/ (me + k / 7d0, k=1, size(y)) /), shape(y))
    u = reshape((/ (me - k / 9d0, k=1, size(u)) /), shape(u))
    p = 100 * me + 1
    t = 100 * me + 2
    call ok('create', nfmpi_create(MPI_COMM_WORLD, 's3d.nc', ior(NF_CLOBBER, NF_64BIT_DATA), &
                                   MPI_INFO_NULL, ncid))
    time = 0.25d0
    call ok('time', nfmpi_put_att_double(ncid, NF_GLOBAL, 'time', NF_DOUBLE, 1_8, time))
    do k = 1, 3
      call ok('dim', nfmpi_def_dim(ncid, char(119 + k), int(n * grid(k), 8), dims(k)))
    end do
    call ok('dim', nfmpi_def_dim(ncid, 'species', int(species, 8), dims(4)))
    call ok('y', nfmpi_def_var(ncid, 'yspecies', NF_DOUBLE, 4, dims, ids(1)))
    call ok('dim', nfmpi_def_dim(ncid, 'three', 3_8, dims(4)))
    call ok('u', nfmpi_def_var(ncid, 'u', NF_DOUBLE, 4, dims, ids(2)))
    call ok('p', nfmpi_def_var(ncid, 'pressure', NF_DOUBLE, 3, dims, ids(3)))
    call ok('t', nfmpi_def_var(ncid, 'temp', NF_DOUBLE, 3, dims, ids(4)))
    call ok('enddef', nfmpi_enddef(ncid))
    start = (/ n * at(1) + 1_8, n * at(2) + 1_8, n * at(3) + 1_8, 1_8 /)
    count = (/ int(n, 8), int(n, 8), int(n, 8), int(species, 8) /)
    call ok('y', nfmpi_iput_vara_double(ncid, ids(1), start, count, y, req(1)))
    count(4) = 3
    call ok('u', nfmpi_iput_vara_double(ncid, ids(2), start, count, u, req(2)))
    call ok('p', nfmpi_iput_vara_double(ncid, ids(3), start, count, p, req(3)))
    call ok('t', nfmpi_iput_vara_double(ncid, ids(4), start, count, t, req(4)))
    call ok('wait_all', nfmpi_wait_all(ncid, 4, req, st))
    call ok('close', nfmpi_close(ncid))

    call ok('open', nfmpi_open(MPI_COMM_WORLD, 's3d.nc', NF_NOWRITE, MPI_INFO_NULL, ncid))
    time = 0
    call ok('time', nfmpi_get_att_double(ncid, NF_GLOBAL, 'time', time))
    call is('time', time(1) == 0.25d0)
    count(4) = 1
    do k = 1, species
      start(4) = k
      call ok('y', nfmpi_get_vara_double_all(ncid, ids(1), start, count, y2(:, :, :, k)))
    end do
    start(4) = 1
    count(4) = 3
    call ok('u', nfmpi_iget_vara_double(ncid, ids(2), start, count, u2, req(1)))
    call ok('p', nfmpi_iget_vara_double(ncid, ids(3), start, count, p2, req(2)))
    call ok('t', nfmpi_iget_vara_double(ncid, ids(4), start, count, t2, req(3)))
    call ok('wait_all', nfmpi_wait_all(ncid, 3, req, st))
    call is('fields', all(y == y2) .and. all(u == u2) .and. all(p == p2) .and. all(t == t2))
    call ok('close', nfmpi_close(ncid))
  end subroutine

  subroutine is(what, truth)
    character(len=*), intent(in) :: what
    logical, intent(in) :: truth
    integer :: code
    if (.not. truth) then
      print *, 'wrong: ', what
      call MPI_Abort(MPI_COMM_WORLD, 3, code)
    end if
  end subroutine

  subroutine ok(what, code)
    character(len=*), intent(in) :: what
    integer, intent(in) :: code
    if (code /= NF_NOERR) print *, what, ': ', nfmpi_strerror(code)
    call is(what, code == NF_NOERR)
  end subroutine
end program
