! What is asked of a file and of the library, in both styles: the functions that no data go through.
program questions
  use mpi
  use pnetcdf
  implicit none
  integer :: err, ncid, me, nprocs, x, t, v, w, num, other, ids(8), req(3), st(3), info
  integer(8) :: size8, other8
  integer :: values(2), back(2)
  character(len=80) :: text, more

  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, err)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, err)
  call ok('create', nfmpi_create(MPI_COMM_WORLD, 'questions.nc', NF_CLOBBER, MPI_INFO_NULL, ncid))
  call ok('def_dim', nfmpi_def_dim(ncid, 'x', int(2 * nprocs, 8), x))
  call ok('def_dim', nfmpi_def_dim(ncid, 't', nfmpi_unlimited, t))
  call ok('def_var', nfmpi_def_var(ncid, 'v', NF_INT, 1, (/ x /), v))
  call ok('def_var', nfmpi_def_var(ncid, 'w', NF_INT, 2, (/ x, t /), w))
  ! Attributes without a type in the name: the file's type is the memory's.
  values = (/ 11, 12 /)
  call ok('put_att', nfmpi_put_att(ncid, v, 'pair ', NF_INT, 2_8, values))
  call ok('get_att', nfmpi_get_att(ncid, v, 'pair', back))
  call is('pair', all(values == back))
  call ok('_enddef', nfmpi__enddef(ncid, 100_8, 64_8, 0_8, 128_8))
  call ok('varoffset', nfmpi_inq_varoffset(ncid, v, size8))
  call is('alignment', mod(size8, 64_8) == 0)
  call ok('varoffset', nf90mpi_inq_varoffset(ncid, w, size8))
  call is('alignment of records', mod(size8, 128_8) == 0)

  call ok('num_fix_vars', nfmpi_inq_num_fix_vars(ncid, num))
  call ok('num_fix_vars', nf90mpi_inq_num_fix_vars(ncid, other))
  call is('fixed variables', num == 1 .and. other == 1)
  call ok('num_rec_vars', nfmpi_inq_num_rec_vars(ncid, num))
  call is('record variables', num == 1)
  call ok('version', nfmpi_inq_version(ncid, num))
  call ok('format', nfmpi_inq_format(ncid, num))
  call is('format', num == NF_FORMAT_CLASSIC)
  call ok('striping', nfmpi_inq_striping(ncid, num, other))
  call ok('striping', nf90mpi_inq_striping(ncid, ids(1), ids(2)))
  call is('striping', num == ids(1) .and. other == ids(2))
  call ok('path', nf90mpi_inq_path(ncid, num, text))
  call is('path', num == 12 .and. text == 'questions.nc')
  call ok('files', nf90mpi_inq_files_opened(num, ids(8:1:-1)))
  call is('files', num == 1 .and. ids(8) == ncid)
  call ok('info', nf90mpi_get_file_info(ncid, info))
  call is('info', info /= MPI_INFO_NULL)
  call MPI_Info_free(info, err)

  ! Requests: counted, cancelled, waited for by each rank.
  call ok('attach', nfmpi_buffer_attach(ncid, 64_8))
  call ok('buffer_size', nfmpi_inq_buffer_size(ncid, size8))
  call ok('buffer_size', nf90mpi_inq_buffer_size(ncid, other8))
  call is('size of buffer', size8 == 64 .and. other8 == 64)
  call ok('bput', nf90mpi_bput_var(ncid, v, values, req(1), start=(/ 2_8 * me + 1 /)))
  call ok('buffer_usage', nfmpi_inq_buffer_usage(ncid, size8))
  call ok('buffer_usage', nf90mpi_inq_buffer_usage(ncid, other8))
  call is('usage of buffer', size8 == 8 .and. other8 == 8)
  call ok('iput', nfmpi_iput_vara_int(ncid, v, (/ 2_8 * me + 1 /), (/ 2_8 /), back, req(2)))
  call ok('nreqs', nfmpi_inq_nreqs(ncid, num))
  call ok('nreqs', nf90mpi_inq_nreqs(ncid, other))
  call is('requests', num == 2 .and. other == 2)
  call ok('cancel', nfmpi_cancel(ncid, 1, req(2), st))
  call ok('iput', nfmpi_iput_vara_int(ncid, v, (/ 2_8 * me + 1 /), (/ 2_8 /), back, req(2)))
  call ok('cancel', nf90mpi_cancel(ncid, 1, req(2:2), st))
  call ok('nreqs', nfmpi_inq_nreqs(ncid, num))
  call is('one is left', num == 1)
  call ok('begin', nfmpi_begin_indep_data(ncid))
  call ok('wait', nfmpi_wait(ncid, 1, req, st))
  back = -1
  call ok('iget', nf90mpi_iget_var(ncid, v, back, req(1), start=(/ 2_8 * me + 1 /)))
  call ok('wait', nf90mpi_wait(ncid, 1, req, st))
  call is('waited for alone', all(values == back))
  call ok('end', nfmpi_end_indep_data(ncid))
  call ok('detach', nfmpi_buffer_detach(ncid))
  ! All that is pending.
  call ok('iput', nfmpi_iput_vara_int(ncid, v, (/ 2_8 * me + 1 /), (/ 2_8 /), values, req(1)))
  call ok('wait_all', nfmpi_wait_all(ncid, NF_REQ_ALL, req, st))
  call ok('nreqs', nfmpi_inq_nreqs(ncid, num))
  call is('none is left', num == 0)

  call ok('sync_numrecs', nfmpi_sync_numrecs(ncid))
  call ok('sync_numrecs', nf90mpi_sync_numrecs(ncid))
  call ok('get_size', nfmpi_inq_get_size(ncid, size8))
  call ok('get_size', nf90mpi_inq_get_size(ncid, other8))
  call is('bytes read', size8 == other8 .and. size8 >= 8)
  call ok('put_size', nf90mpi_inq_put_size(ncid, size8))
  call is('bytes written', size8 >= 8)
  ! Only a build for debugging counts its memory.
  call is('malloc', nfmpi_inq_malloc_size(size8) == NF_ENOTENABLED)
  call is('malloc', nf90mpi_inq_malloc_max_size(size8) == NF_ENOTENABLED)
  call is('malloc', nfmpi_inq_malloc_list() == nf90mpi_inq_malloc_list())
  call ok('close', nfmpi_close(ncid))
  call ok('file_format', nfmpi_inq_file_format('questions.nc ', num))
  call is('file_format', num == NF_FORMAT_CLASSIC)

  call words()
  call MPI_Finalize(err)
  if (me == 0) print *, 'questions: good'

contains

  subroutine words()
    integer, external :: nfmpi_xstrerror, nfmpi_xstrerrno, nfmpi_xinq_libvers
    num = nfmpi_xstrerror(NF_EBADID, text)
    more = nfmpi_strerror(NF_EBADID)
    call is('words', text == more)
    num = nfmpi_xstrerrno(NF_EBADID, text)
    call is('name in C', text == 'NC_EBADID')
    num = nfmpi_xinq_libvers(text)
    more = nfmpi_inq_libvers()
    call is('version', text == more)
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
