! Fortran 77 with pnetcdf.inc: writes with the functions nfmpi_* and reads it back.
      program fixed
      implicit none
      include 'mpif.h'
      include 'pnetcdf.inc'
      integer err, ncid, rank, nprocs, x, y, t, dims(3), v, c, i, j
      integer got(3), ndims, natts, xtype, unlim, nvars, req(2), st(2)
      integer info, flag, id, nfiles, ids(8)
      integer*8 start(3), count(3), stride(3), map(3), n, len8
      integer*8 starts(3, 2), counts(3, 2)
      integer buf(4, 2), back(4, 2), turned(2, 4)
      integer*8 big(4)
      character*20 name, text
      character*80 words
      character*(MPI_MAX_INFO_VAL) value

      call MPI_Init(err)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
      call MPI_Comm_size(MPI_COMM_WORLD, nprocs, err)
      call MPI_Info_create(info, err)
      call MPI_Info_set(info, 'nc_var_align_size', '1024', err)

      call ok('create', nfmpi_create(MPI_COMM_WORLD, 'fixed.nc    ',
     +    IOR(NF_CLOBBER, NF_64BIT_DATA), info, ncid))
      call MPI_Info_free(info, err)
      n = 4
      call ok('def_dim', nfmpi_def_dim(ncid, 'x   ', n, x))
      n = 2 * nprocs
      call ok('def_dim', nfmpi_def_dim(ncid, 'y', n, y))
      call ok('def_dim', nfmpi_def_dim(ncid, 't', nfmpi_unlimited, t))
      call same('ids count from one', x, 1)
      dims(1) = x
      dims(2) = y
      dims(3) = t
      call ok('def_var', nfmpi_def_var(ncid, 'v', NF_INT, 3, dims, v))
      call ok('def_var', nfmpi_def_var(ncid, 'c', NF_CHAR, 1, dims,
     +    c))
      call same('ids count from one', v, 1)
      n = 5
      call ok('put_att_text', nfmpi_put_att_text(ncid, NF_GLOBAL,
     +    'title', n, 'hello'))
      n = 1
      big(1) = 5000000000_8
      call ok('put_att_int8', nfmpi_put_att_int8(ncid, v, 'far',
     +    NF_INT64, n, big))
      call ok('enddef', nfmpi_enddef(ncid))

      call ok('inq', nfmpi_inq(ncid, ndims, nvars, natts, unlim))
      call same('ndims', ndims, 3)
      call same('unlimited', unlim, t)
      call ok('inq_var', nfmpi_inq_var(ncid, v, name, xtype, ndims,
     +    got, natts))
      call same('order of dimensions', got(1), x)
      call same('order of dimensions', got(3), t)
      if (name .ne. 'v') call bad('name of variable')
      call ok('inq_attname', nfmpi_inq_attname(ncid, v, 1, name))
      if (name .ne. 'far') call bad('name of attribute')
      text = '####################'
      call ok('get_att_text', nfmpi_get_att_text(ncid, NF_GLOBAL,
     +    'title ', text))
      if (text(1:5) .ne. 'hello') call bad('text of attribute')
      call ok('inq_attlen', nfmpi_inq_attlen(ncid, v, 'far', len8))
      if (len8 .ne. 1) call bad('length of attribute')
      big(1) = 0
      call ok('get_att_int8', nfmpi_get_att_int8(ncid, v, 'far', big))
      if (big(1) .ne. 5000000000_8) call bad('int8 of attribute')
      call ok('inq_path', nfmpi_inq_path(ncid, i, text))
      if (text .ne. 'fixed.nc') call bad('path')
      call ok('inq_file_info', nfmpi_inq_file_info(ncid, info))
      call MPI_Info_get(info, 'nc_var_align_size', MPI_MAX_INFO_VAL,
     +    value, flag, err)
      call MPI_Info_free(info, err)
      call ok('inq_files_opened', nfmpi_inq_files_opened(nfiles, ids))
      call same('files', nfiles, 1)

      do j = 1, 2
        do i = 1, 4
          buf(i, j) = 100 * rank + 10 * j + i
        end do
      end do
      start(1) = 1
      start(2) = 2 * rank + 1
      start(3) = 1
      count(1) = 4
      count(2) = 2
      count(3) = 1
      call ok('put_vara', nfmpi_put_vara_int_all(ncid, v, start, count,
     +    buf))
      call ok('get_vara', nfmpi_get_vara_int_all(ncid, v, start, count,
     +    back))
      call equal('vara', buf, back)

! Record 2: flexible, by a type of MPI.
      start(3) = 2
      n = 8
      call ok('put_vara flexible', nfmpi_put_vara_all(ncid, v, start,
     +    count, buf, n, MPI_INTEGER))
      back(1, 1) = -1
      call ok('get_vara', nfmpi_get_vara_int_all(ncid, v, start, count,
     +    back))
      call equal('flexible', buf, back)

! Transposed in memory.
      stride(1) = 1
      stride(2) = 1
      stride(3) = 1
      map(1) = 2
      map(2) = 1
      map(3) = 8
      call ok('get_varm', nfmpi_get_varm_int_all(ncid, v, start, count,
     +    stride, map, turned))
      do j = 1, 2
        do i = 1, 4
          back(i, j) = turned(j, i)
        end do
      end do
      call equal('varm', buf, back)

! Record 3: two requests, and a list.
      start(3) = 3
      count(2) = 1
      call ok('iput', nfmpi_iput_vara_int(ncid, v, start, count,
     +    buf(1, 1), req(1)))
      start(2) = 2 * rank + 2
      call ok('iput', nfmpi_iput_vara_int(ncid, v, start, count,
     +    buf(1, 2), req(2)))
      call ok('wait_all', nfmpi_wait_all(ncid, 2, req, st))
      call same('status', st(2), NF_NOERR)
      do i = 1, 2
        starts(1, i) = 1
        starts(2, i) = 2 * rank + i
        starts(3, i) = 3
        counts(1, i) = 4
        counts(2, i) = 1
        counts(3, i) = 1
      end do
      call ok('get_varn', nfmpi_get_varn_int_all(ncid, v, 2, starts,
     +    counts, back))
      call equal('varn', buf, back)

      call ok('put_var_text', nfmpi_put_var_text_all(ncid, c, 'abcd'))
      text = ' '
      call ok('get_var_text', nfmpi_get_var_text_all(ncid, c, text))
      if (text .ne. 'abcd') call bad('text of variable')

! Errors have their codes, names and words.
      call same('no such name', nfmpi_inq_varid(ncid, 'nope', id),
     +    NF_ENOTVAR)
      call same('no such variable', nfmpi_put_vara_int_all(ncid, 99,
     +    start, count, buf), NF_ENOTVAR)
      if (nfmpi_strerrno(NF_ENOTVAR) .ne. 'NF_ENOTVAR')
     +    call bad('strerrno')
      if (nfmpi_strerror(NF_NOERR) .ne. 'No error')
     +    call bad('strerror')
      words = nfmpi_inq_libvers()
      if (words(1:4) .ne. '1.15') call bad('libvers')
      if (nfmpi_issyserr(NF_ENOTVAR)) call bad('issyserr')
      if (.not. nfmpi_issyserr(2)) call bad('issyserr')
      call ok('close', nfmpi_close(ncid))
! The test made it: a file with a name that no program has room for.
      call same('a name that is too long', nfmpi_open(MPI_COMM_WORLD,
     +    'long.nc', NF_NOWRITE, MPI_INFO_NULL, ncid), NF_EMAXNAME)
      call MPI_Finalize(err)
      if (rank .eq. 0) print *, 'fixed form: good'
      end

      subroutine bad(what)
      character*(*) what
      integer err
      include 'mpif.h'
      print *, 'wrong: ', what
      call MPI_Abort(MPI_COMM_WORLD, 3, err)
      end

      subroutine ok(what, code)
      character*(*) what
      integer code
      include 'pnetcdf.inc'
      if (code .ne. NF_NOERR) then
        print *, what, ': ', nfmpi_strerror(code)
        call bad(what)
      end if
      end

      subroutine same(what, got, wanted)
      character*(*) what
      integer got, wanted
      if (got .ne. wanted) then
        print *, what, got, wanted
        call bad(what)
      end if
      end

      subroutine equal(what, a, b)
      character*(*) what
      integer a(8), b(8), i
      do i = 1, 8
        if (a(i) .ne. b(i)) call bad(what)
      end do
      end
