! Fortran 90 with the module pnetcdf: optional arguments, parts of arrays, every type and rank.
program module_style
  use mpi
  use pnetcdf
  implicit none
  integer :: err, ncid, me, nprocs, old
  integer :: x, y, t, w, scalar, plane, series, words, letters, seven
  integer :: ndims, nvars, natts, unlimited, format, xtype, ids(4), num, req(2), st(2)
  integer(8) :: len, start(3)
  character(len=32) :: name
  integer(4) :: block(6, 4), back(6, 4), four(4)
  integer(1) :: tiny(4)
  integer(2) :: small(4)
  integer(8) :: large(4), table(2, 3)
  real(4) :: single, singles(4)
  real(8) :: doubles(4), wide(2, 1, 2, 1, 2, 1, 2), wide_back(2, 1, 2, 1, 2, 1, 2)
  character(len=5) :: list(3), list_back(3)
  integer :: i, j, subarray
  integer, allocatable :: grown(:, :)

  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, err)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, err)
  call ok('create', nf90mpi_create(MPI_COMM_WORLD, 'module.nc  ', &
                                   ior(NF90_CLOBBER, NF90_64BIT_DATA), MPI_INFO_NULL, ncid))
  call ok('set_fill', nf90mpi_set_fill(ncid, NF90_NOFILL, old))
  call ok('def_dim', nf90mpi_def_dim(ncid, 'x', 3_8, x))
  call ok('def_dim', nf90mpi_def_dim(ncid, 'y', 2_8 * nprocs, y))
  call ok('def_dim', nf90mpi_def_dim(ncid, 'w', 5_8, w))
  call ok('def_dim', nf90mpi_def_dim(ncid, 't', nf90mpi_unlimited, t))
  call ok('def_var', nf90mpi_def_var(ncid, 'scalar', NF90_FLOAT, scalar))
  call ok('def_var', nf90mpi_def_var(ncid, 'plane', NF90_INT, (/ x, y /), plane))
  call ok('def_var', nf90mpi_def_var(ncid, 'series', NF90_DOUBLE, t, series))
  call ok('def_var', nf90mpi_def_var(ncid, 'words', NF90_CHAR, (/ w, x /), words))
  call ok('def_var', nf90mpi_def_var(ncid, 'letters', NF90_CHAR, w, letters))
  call define_seven()
  call ok('put_att', nf90mpi_put_att(ncid, NF90_GLOBAL, 'title', 'a title  '))
  call ok('put_att', nf90mpi_put_att(ncid, plane, 'one', 7))
  call ok('put_att', nf90mpi_put_att(ncid, plane, 'many', (/ 1.5d0, 2.5d0, 3.5d0 /)))
  call ok('put_att', nf90mpi_put_att(ncid, plane, 'bytes', int((/ 1, 2 /), 1)))
  call ok('def_var_fill', nf90mpi_def_var_fill(ncid, plane, 0, -9))
  call ok('enddef', nf90mpi_enddef(ncid, v_align=512_8))

  ! What is there.
  call ok('inquire', nf90mpi_inquire(ncid, ndims, nvars, natts, unlimited, format))
  call same('dimensions', ndims, 3 + 1 + 7)
  call same('unlimited', unlimited, t)
  call same('format', format, NF90_FORMAT_CDF5)
  call ok('inquire', nf90mpi_inquire(ncid, nVariables=nvars))
  call same('variables', nvars, 6)
  call ok('dimension', nf90mpi_inquire_dimension(ncid, y, len=len))
  call same('length', int(len), 2 * nprocs)
  call ok('dimension', nf90mpi_inquire_dimension(ncid, y, name))
  call is('name of dimension', name == 'y')
  call ok('variable', nf90mpi_inquire_variable(ncid, plane, name, xtype, num, ids, natts))
  call is('name of variable', name == 'plane')
  call is('dimensions of variable', num == 2 .and. ids(1) == x .and. ids(2) == y)
  call ok('variable', nf90mpi_inquire_variable(ncid, plane, dimids=ids(4:1:-1)))
  call is('dimensions in reverse', ids(4) == x .and. ids(3) == y)
  call ok('variable', nf90mpi_inquire_variable(ncid, plane, ndims=num))
  call same('too few places', nf90mpi_inquire_variable(ncid, plane, dimids=ids(1:1)), NF90_EINVAL)
  call ok('attribute', nf90mpi_inquire_attribute(ncid, plane, 'many', len=len, attnum=num))
  call is('attribute', len == 3)
  call ok('get_att', nf90mpi_get_att(ncid, plane, 'many', doubles(1:3)))
  call is('values of attribute', doubles(3) == 3.5d0)
  doubles = 0
  call ok('get_att', nf90mpi_get_att(ncid, plane, 'one', num))
  call same('value of attribute', num, 7)
  call ok('get_att', nf90mpi_get_att(ncid, NF90_GLOBAL, 'title', name))
  call is('text of attribute', name == 'a title')
  call ok('attribute', nf90mpi_inquire_attribute(ncid, NF90_GLOBAL, 'title', len=len))
  call is('trailing blanks are not stored', len == 7)
  call ok('inq_var_fill', nf90mpi_inq_var_fill(ncid, plane, num, four(1)))
  call is('fill', four(1) == -9)

  ! One value, with and without a start.
  call ok('put scalar', nf90mpi_put_var_all(ncid, scalar, 2.25))
  call ok('get scalar', nf90mpi_get_var_all(ncid, scalar, single))
  call is('scalar', single == 2.25)
  call ok('put record', nf90mpi_put_var_all(ncid, series, dble(me), start=(/ int(me + 1, 8) /)))

  ! A part of an array, with gaps in memory: 3 of 6 rows, 2 of 4 columns.
  do j = 1, 4
    do i = 1, 6
      block(i, j) = 1000 * me + 10 * i + j
    end do
  end do
  start = (/ 1_8, 2_8 * me + 1, 1_8 /)
  call ok('put part', nf90mpi_put_var_all(ncid, plane, block(2:6:2, 1:4:2), start(1:2)))
  back = -1
  call ok('get part', nf90mpi_get_var_all(ncid, plane, back(1:3, 1:2), start(1:2)))
  call is('part of an array', all(back(1:3, 1:2) == block(2:6:2, 1:4:2)))
  call is('what is beside it', all(back(4:6, :) == -1) .and. all(back(:, 3:4) == -1))
  back = -1
  call ok('get part', nf90mpi_get_var_all(ncid, plane, back(6:1:-2, 4:2:-2), start(1:2), &
                                          (/ 3_8, 2_8 /)))
  call is('backwards', all(back(6:1:-2, 4:2:-2) == block(2:6:2, 1:4:2)))
  allocate(grown(0:2, -1:0))
  call ok('get allocated', nf90mpi_get_var_all(ncid, plane, grown, start(1:2)))
  call is('allocated', all(grown == block(2:6:2, 1:4:2)))
  ! A count that is not the array's shape: 6 values from a column.
  back = -1
  call ok('get other shape', nf90mpi_get_var_all(ncid, plane, back(:, 2), start(1:2), (/ 3_8, 2_8 /)))
  call is('other shape', all(back(:, 2) == reshape(block(2:6:2, 1:4:2), (/ 6 /))))
  ! The same into a row, which has gaps.
  back = -1
  call ok('get row', nf90mpi_get_var_all(ncid, plane, back(2, 1:4), start(1:2), (/ 2_8, 2_8 /)))
  call is('row', all(back(2, 1:4) == reshape(block(2:4:2, 1:4:2), (/ 4 /))))
  ! Stride and map.
  call ok('get strided', nf90mpi_get_var_all(ncid, plane, four(1:2), start(1:2), (/ 2_8, 1_8 /), &
                                             stride=(/ 2_8, 1_8 /)))
  call is('strided', four(1) == block(2, 1) .and. four(2) == block(6, 1))
  back = -1
  call ok('get mapped', nf90mpi_get_var_all(ncid, plane, back(1:6, 1), start(1:2), (/ 3_8, 2_8 /), &
                                            map=(/ 2_8, 1_8 /)))
  call is('mapped', back(1, 1) == block(2, 1) .and. back(2, 1) == block(2, 3))

  ! Posted: from a part of an array, whose values count when they are waited for.
  call ok('iput', nf90mpi_iput_var(ncid, plane, block(1:5:2, 2:4:2), req(1), start(1:2)))
  call ok('iput', nf90mpi_iput_var(ncid, series, dble(me) + 0.5d0, req(2), (/ int(me + 1, 8) /)))
  call ok('wait_all', nf90mpi_wait_all(ncid, 2, req, st))
  call is('statuses', all(st == NF90_NOERR))
  ! From a row with gaps, whose shape is not the count's: a copy is kept.
  back = -1
  back(3, :) = (/ 21, 22, 23, 24 /)
  call ok('iput', nf90mpi_iput_var(ncid, plane, back(3, 1:4), req(1), start(1:2), (/ 2_8, 2_8 /)))
  back = -1
  call ok('wait_all', nf90mpi_wait_all(ncid, 1, req, st))
  call ok('get', nf90mpi_get_var_all(ncid, plane, back(1:2, 1:2), start(1:2)))
  call is('copied', all(back(1:2, 1:2) == reshape((/ 21, 22, 23, 24 /), (/ 2, 2 /))))
  call ok('iput', nf90mpi_iput_var(ncid, plane, block(1:5:2, 2:4:2), req(1), start(1:2)))
  call ok('wait_all', nf90mpi_wait_all(ncid, 1, req, st))
  call ok('iget', nf90mpi_iget_var(ncid, plane, back(1:5:2, 1:3:2), req(1), start(1:2)))
  call ok('wait_all', nf90mpi_wait_all(ncid, 1, req, st))
  call is('posted', all(back(1:5:2, 1:3:2) == block(1:5:2, 2:4:2)))
  call same('iget of another shape with gaps', &
            nf90mpi_iget_var(ncid, plane, back(2, 1:4), req(1), start(1:2), (/ 2_8, 2_8 /)), &
            NF90_EINVAL)
  call ok('buffer_attach', nf90mpi_buffer_attach(ncid, 1024_8))
  call ok('bput', nf90mpi_bput_var(ncid, plane, block(2:6:2, 1:4:2), req(1), start(1:2)))
  call ok('wait_all', nf90mpi_wait_all(ncid, 1, req, st))
  call ok('buffer_detach', nf90mpi_buffer_detach(ncid))

  ! Lists of blocks, and types of MPI.
  table(:, 1) = (/ 1_8, start(2) /)
  table(:, 2) = (/ 3_8, start(2) /)
  table(:, 3) = (/ 2_8, start(2) + 1 /)
  four = -1
  call ok('get_varn', nf90mpi_get_varn_all(ncid, plane, four, 3, table))
  call is('varn', all(four == (/ block(2, 1), block(6, 1), block(4, 3), -1 /)))
  table = 1
  table(1, 1) = 3
  call ok('put_varn', nf90mpi_put_varn_all(ncid, plane, (/ 5, 6, 7 /), 1, &
          reshape((/ 1_8, start(2) /), (/ 2, 1 /)), reshape((/ 3_8, 1_8 /), (/ 2, 1 /))))
  call ok('get flexible', nf90mpi_get_var_all(ncid, plane, four, start(1:2), (/ 3_8, 1_8 /), &
                                              bufcount=3_8, buftype=MPI_INTEGER))
  call is('flexible', all(four(1:3) == (/ 5, 6, 7 /)))
  call MPI_Type_create_subarray(2, (/ 3, 2 * nprocs /), (/ 3, 1 /), (/ 0, 2 * me /), &
                                MPI_ORDER_FORTRAN, MPI_INTEGER, subarray, err)
  call MPI_Type_commit(subarray, err)
  four = -1
  call ok('get_vard', nf90mpi_get_vard_all(ncid, plane, subarray, four, 3_8, MPI_INTEGER))
  call MPI_Type_free(subarray, err)
  call is('vard', all(four(1:3) == (/ 5, 6, 7 /)))

  ! Every type, converted.
  call ok('int1', nf90mpi_get_var_all(ncid, plane, tiny(1:3), start(1:2), (/ 3_8, 1_8 /)))
  call ok('int2', nf90mpi_get_var_all(ncid, plane, small(1:3), start(1:2), (/ 3_8, 1_8 /)))
  call ok('int8', nf90mpi_get_var_all(ncid, plane, large(1:3), start(1:2), (/ 3_8, 1_8 /)))
  call ok('real', nf90mpi_get_var_all(ncid, plane, singles(1:3), start(1:2), (/ 3_8, 1_8 /)))
  call ok('double', nf90mpi_get_var_all(ncid, plane, doubles(1:3), start(1:2), (/ 3_8, 1_8 /)))
  call is('types', tiny(3) == 7 .and. small(3) == 7 .and. large(3) == 7 .and. singles(3) == 7 &
          .and. doubles(3) == 7)

  ! Texts.
  list = (/ 'one  ', 'two  ', 'three' /)
  call ok('put texts', nf90mpi_put_var_all(ncid, words, list))
  call ok('get texts', nf90mpi_get_var_all(ncid, words, list_back(3:1:-1)))
  call is('texts', all(list_back(3:1:-1) == list))
  call ok('put text', nf90mpi_put_var_all(ncid, letters, 'abcde'))
  name = 'x'
  call ok('get text', nf90mpi_get_var_all(ncid, letters, name(1:5)))
  call is('text', name == 'abcde')

  ! Seven dimensions.
  do i = 1, 16
    wide(1 + mod(i - 1, 2), 1, 1 + mod((i - 1) / 2, 2), 1, 1 + mod((i - 1) / 4, 2), 1, &
         1 + (i - 1) / 8) = i
  end do
  call ok('put seven', nf90mpi_put_var_all(ncid, seven, wide))
  call ok('get seven', nf90mpi_get_var_all(ncid, seven, wide_back))
  call is('seven dimensions', all(wide == wide_back))

  ! The functions of Fortran 77 are in the module too; errors have names.
  call ok('nfmpi_inq_ndims', nfmpi_inq_ndims(ncid, num))
  call is('strerrno', nf90mpi_strerrno(NF90_ENOTVAR) == 'NF90_ENOTVAR')
  call is('strerror', nf90mpi_strerror(NF90_NOERR) == nfmpi_strerror(NF_NOERR))
  call is('libvers', nf90mpi_inq_libvers() /= ' ')
  call is('issyserr', .not. nf90mpi_issyserr(NF90_EBADID) .and. nf90mpi_issyserr(2))
  call same('bad file', nf90mpi_sync(77), NF90_EBADID)
  call same('bad variable', nf90mpi_put_var_all(ncid, 99, block), NF90_ENOTVAR)
  call ok('begin_indep', nf90mpi_begin_indep_data(ncid))
  call ok('get record', nf90mpi_get_var(ncid, series, doubles(1), (/ int(me + 1, 8) /)))
  call is('record', doubles(1) == dble(me) + 0.5d0)
  call ok('end_indep', nf90mpi_end_indep_data(ncid))
  call ok('close', nf90mpi_close(ncid))
  call MPI_Finalize(err)
  if (me == 0) print *, 'module: good'

contains

  subroutine define_seven()
    integer :: d(7), k, n
    character(len=1) :: digit
    do k = 1, 7
      write (digit, '(i1)') k
      n = 1 + mod(k, 2)
      call ok('def_dim', nf90mpi_def_dim(ncid, 'd' // digit, int(n, 8), d(k)))
    end do
    call ok('def_var', nf90mpi_def_var(ncid, 'seven', NF90_DOUBLE, d, seven))
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
    if (code /= NF90_NOERR) print *, what, ': ', nf90mpi_strerror(code)
    call is(what, code == NF90_NOERR)
  end subroutine

  subroutine same(what, got, wanted)
    character(len=*), intent(in) :: what
    integer, intent(in) :: got, wanted
    if (got /= wanted) print *, what, got, wanted
    call is(what, got == wanted)
  end subroutine
end program
