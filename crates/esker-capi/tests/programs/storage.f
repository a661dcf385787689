! What Esker adds to PnetCDF, in Fortran 77: chunks, filters, layouts,
! decomposition maps and tokens. Expected values are those of plain
! arrays: v(x,y,t) has 1000 t + 20 y + x.
      program storage
      implicit none
      include 'mpif.h'
      include 'pnetcdf.inc'
      integer nx, ny
      parameter (nx = 6, ny = 8)
      integer err, rank, ranks, ncid, dims(3), v, w, c, map, n, ids(9)
      integer ndims, back(3), procs, layout, token, done, req(1), st(1)
      integer own, y, x, i, bad, total, outer(1)
      integer*8 chunk(3), got(3), lens, start(2, ny), count(2, ny)
      integer*8 first(1), many(1), blocks, elems, s3(3), c3(3), all8
      double precision blob(nx * ny), again(nx * ny), all(nx, ny)
      character*60 text
      bad = 0
      call MPI_Init(err)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, err)
      call ok(nfmpi_create(MPI_COMM_WORLD, 'storage_f.nc',
     +    IOR(nf_clobber, nf_64bit_data), MPI_INFO_NULL, ncid), 1, bad)
      call ok(nfmpi_def_dim(ncid, 't', nfmpi_unlimited, dims(3)), 2,
     +    bad)
      lens = nx
      call ok(nfmpi_def_dim(ncid, 'x', lens, dims(1)), 3, bad)
      lens = ny
      call ok(nfmpi_def_dim(ncid, 'y', lens, dims(2)), 4, bad)
      call ok(nfmpi_def_var(ncid, 'c', nf_double, 3, dims, c), 5, bad)
      chunk(1) = 4
      chunk(2) = 3
      chunk(3) = 1
      call ok(nfmpi_var_set_chunk(ncid, c, chunk), 6, bad)
      call ok(nfmpi_var_set_filter(ncid, c, 'shuffle deflate,2  '), 7,
     +    bad)
      call ok(nfmpi_var_get_layout(ncid, c, layout), 8, bad)
      call same(layout, nf_layout_chunked, 9, bad)
      call ok(nfmpi_var_set_layout(ncid, c, nf_layout_chunked), 10, bad)
      own = 0
      do y = rank + 1, ny, ranks
        own = own + 1
        start(1, own) = 1
        start(2, own) = y
        count(1, own) = nx
        count(2, own) = 1
      end do
      call ok(nfmpi_def_decom(ncid, 2, dims, own, start, count, map),
     +    11, bad)
      outer(1) = dims(3)
      call ok(nfmpi_def_decom_var(ncid, 'v', nf_double, 1, outer, map,
     +    v), 12, bad)
      call ok(nfmpi_def_decom_var(ncid, 'w', nf_int, 0, outer, map, w),
     +    13, bad)
      call ok(nfmpi_enddef(ncid), 14, bad)
      call ok(nfmpi_var_get_chunk(ncid, c, got), 15, bad)
      do i = 1, 3
        call same(int(got(i)), int(chunk(i)), 16, bad)
      end do
      call ok(nfmpi_var_get_filter(ncid, c, n, text), 17, bad)
      call same(n, 17, 18, bad)
      if (text .ne. 'shuffle deflate,2') bad = bad + 1
      call ok(nfmpi_inq_decoms(ncid, n, ids), 19, bad)
      call same(n, 1, 20, bad)
      call same(ids(1), map, 21, bad)
      call ok(nfmpi_inq_decom(ncid, map, ndims, back, procs, blocks,
     +    elems), 22, bad)
      call same(ndims, 2, 23, bad)
      call same(back(1), dims(1), 24, bad)
      call same(back(2), dims(2), 25, bad)
      call same(procs, ranks, 26, bad)
      call same(int(blocks), ny, 27, bad)
      call same(int(elems), nx * ny, 28, bad)
      call ok(nfmpi_inq_var_decom(ncid, v, n), 29, bad)
      call same(n, map, 30, bad)
      call ok(nfmpi_inq_var_decom(ncid, c, n), 31, bad)
      call same(n, nf_no_decom, 32, bad)
      call ok(nfmpi_inq_var_decom_size(ncid, v, elems), 33, bad)
      call same(int(elems), own * nx, 34, bad)
      i = 0
      do y = rank + 1, ny, ranks
        do x = 1, nx
          i = i + 1
          blob(i) = 2000 + 20 * y + x
        end do
      end do
      first(1) = 2
      many(1) = 1
      call ok(nfmpi_put_decom_all(ncid, v, first, many, blob, elems,
     +    MPI_DOUBLE_PRECISION), 35, bad)
      call ok(nfmpi_iput_decom(ncid, v, first, many, blob, elems,
     +    MPI_DOUBLE_PRECISION, req(1)), 36, bad)
      call ok(nfmpi_wait_all(ncid, 1, req, st), 37, bad)
      call ok(nfmpi_begin_indep_data(ncid), 38, bad)
      call ok(nfmpi_put_decom(ncid, v, first, many, blob, elems,
     +    MPI_DOUBLE_PRECISION), 39, bad)
      call ok(nfmpi_get_decom(ncid, v, first, many, again, elems,
     +    MPI_DOUBLE_PRECISION), 40, bad)
      call ok(nfmpi_end_indep_data(ncid), 41, bad)
      do i = 1, own * nx
        if (again(i) .ne. blob(i)) bad = bad + 1
        again(i) = 0
      end do
      all8 = 8 * nx * ny
      call ok(nfmpi_buffer_attach(ncid, all8), 42, bad)
      call ok(nfmpi_bput_decom(ncid, v, first, many, blob, elems,
     +    MPI_DOUBLE_PRECISION, req(1)), 43, bad)
      call ok(nfmpi_wait_all(ncid, 1, req, st), 44, bad)
      call ok(nfmpi_buffer_detach(ncid), 45, bad)
      call ok(nfmpi_get_decom_all(ncid, v, first, many, again, elems,
     +    MPI_DOUBLE_PRECISION), 46, bad)
      do i = 1, own * nx
        if (again(i) .ne. blob(i)) bad = bad + 1
        again(i) = 0
      end do
      call ok(nfmpi_iget_decom(ncid, v, first, many, again, elems,
     +    MPI_DOUBLE_PRECISION, req(1)), 47, bad)
      call ok(nfmpi_wait_all(ncid, 1, req, st), 48, bad)
      do i = 1, own * nx
        if (again(i) .ne. blob(i)) bad = bad + 1
      end do
      call ok(nfmpi_flush_start(ncid, token), 49, bad)
      call ok(nfmpi_token_test(ncid, token, done), 50, bad)
      call ok(nfmpi_token_wait(ncid, token), 51, bad)
      call ok(nfmpi_sync_start(ncid, token), 52, bad)
      call ok(nfmpi_token_wait(ncid, token), 53, bad)
      s3(1) = 1
      s3(2) = 1
      s3(3) = 2
      c3(1) = nx
      c3(2) = ny
      c3(3) = 1
      all8 = nx * ny
      call ok(nfmpi_get_vara_start(ncid, v, s3, c3, all, all8,
     +    MPI_DOUBLE_PRECISION, token), 54, bad)
      call ok(nfmpi_token_wait(ncid, token), 55, bad)
      do y = 1, ny
        do x = 1, nx
          if (all(x, y) .ne. 2000 + 20 * y + x) bad = bad + 1
        end do
      end do
      call ok(nfmpi_close(ncid), 56, bad)
      call MPI_Allreduce(bad, total, 1, MPI_INTEGER, MPI_SUM,
     +    MPI_COMM_WORLD, err)
      call MPI_Finalize(err)
      if (total .ne. 0) stop 1
      end

      subroutine ok(err, place, bad)
      implicit none
      include 'pnetcdf.inc'
      integer err, place, bad
      if (err .ne. nf_noerr) then
        print *, 'place', place, nfmpi_strerrno(err)
        bad = bad + 1
      end if
      end

      subroutine same(a, b, place, bad)
      implicit none
      integer a, b, place, bad
      if (a .ne. b) then
        print *, 'place', place, a, ' is not ', b
        bad = bad + 1
      end if
      end
