! NF_COUNT_IGNORE in the functions of Fortran 77, with Fortran's types.
      program ignored
      implicit none
      include 'mpif.h'
      include 'pnetcdf.inc'
      integer err, ncid, rank, nprocs, dims(2), v, i, req, st, pair
      integer buf(4, 2), back(4, 2)
      real reals(4, 2)
      double precision doubles(4, 2)
      integer*8 start(2), count(2), stride(2), map(2), n
      integer*8 starts(2, 1), counts(2, 1)

      call MPI_Init(err)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
      call MPI_Comm_size(MPI_COMM_WORLD, nprocs, err)
      call is('create', nfmpi_create(MPI_COMM_WORLD, 'ignoredf.nc',
     +    IOR(NF_CLOBBER, NF_64BIT_DATA), MPI_INFO_NULL, ncid), 0)
      n = 4
      call is('def_dim', nfmpi_def_dim(ncid, 'x', n, dims(1)), 0)
      n = 2 * nprocs
      call is('def_dim', nfmpi_def_dim(ncid, 'y', n, dims(2)), 0)
      call is('def', nfmpi_def_var(ncid, 'v', NF_DOUBLE, 2, dims, v),
     +    0)
      call is('enddef', nfmpi_enddef(ncid), 0)
      do i = 1, 4
        buf(i, 1) = 100 * rank + i
        buf(i, 2) = 100 * rank + 10 + i
      end do
      start(1) = 1
      start(2) = 2 * rank + 1
      count(1) = 4
      count(2) = 2
      stride(1) = 1
      stride(2) = 1
      map(1) = 1
      map(2) = 4
      starts(1, 1) = start(1)
      starts(2, 1) = start(2)
      counts(1, 1) = 4
      counts(2, 1) = 2

      call is('vara', nfmpi_put_vara_all(ncid, v, start, count, buf,
     +    NF_COUNT_IGNORE, MPI_INTEGER), 0)
      call is('get', nfmpi_get_vara_all(ncid, v, start, count, reals,
     +    NF_COUNT_IGNORE, MPI_REAL), 0)
      call is('real', int(reals(3, 2)), 100 * rank + 13)
      call is('get', nfmpi_get_vara_all(ncid, v, start, count,
     +    doubles, NF_COUNT_IGNORE, MPI_DOUBLE_PRECISION), 0)
      call is('double', int(doubles(4, 1)), 100 * rank + 4)
      buf(1, 1) = 7
      call is('vars', nfmpi_put_vars_all(ncid, v, start, count, stride,
     +    buf, NF_COUNT_IGNORE, MPI_INTEGER), 0)
      call is('varm', nfmpi_get_varm_all(ncid, v, start, count, stride,
     +    map, back, NF_COUNT_IGNORE, MPI_INTEGER), 0)
      call is('varm', back(1, 1), 7)
      buf(1, 1) = 8
      call is('varn', nfmpi_put_varn_all(ncid, v, 1, starts, counts,
     +    buf, NF_COUNT_IGNORE, MPI_INTEGER), 0)
      call is('iget', nfmpi_iget_vara(ncid, v, start, count, back,
     +    NF_COUNT_IGNORE, MPI_INTEGER, req), 0)
      call is('wait', nfmpi_wait_all(ncid, 1, req, st), 0)
      call is('iget', back(1, 1), 8)
      call is('var1', nfmpi_get_var1_all(ncid, v, start, back(2, 1),
     +    NF_COUNT_IGNORE, MPI_INTEGER), 0)
      call is('var1', back(2, 1), 8)
      buf(1, 1) = 9
      n = 1024
      call is('attach', nfmpi_buffer_attach(ncid, n), 0)
      call is('bput', nfmpi_bput_vara(ncid, v, start, count, buf,
     +    NF_COUNT_IGNORE, MPI_INTEGER, req), 0)
      buf(1, 1) = 0
      call is('wait', nfmpi_wait_all(ncid, 1, req, st), 0)
      call is('detach', nfmpi_buffer_detach(ncid), 0)
      call is('get', nfmpi_get_vara_int_all(ncid, v, start, count,
     +    back), 0)
      call is('bput', back(1, 1), 9)

      call MPI_Type_contiguous(2, MPI_INTEGER, pair, err)
      call MPI_Type_commit(pair, err)
      call is('derived', nfmpi_put_vara_all(ncid, v, start, count, buf,
     +    NF_COUNT_IGNORE, pair), NF_EINVAL)
      call MPI_Type_free(pair, err)
      n = -2
      call is('negative', nfmpi_put_vara_all(ncid, v, start, count,
     +    buf, n, MPI_INTEGER), NF_EIOMISMATCH)
      call is('close', nfmpi_close(ncid), 0)
      if (rank .eq. 0) print *, 'ignored: good'
      call MPI_Finalize(err)

      contains
      subroutine is(what, number, wanted)
      character*(*) what
      integer number, wanted, code
      if (number .ne. wanted) then
        print *, what, number, wanted, ' ', nfmpi_strerror(number)
        call MPI_Abort(MPI_COMM_WORLD, 1, code)
      end if
      end subroutine
      end program
