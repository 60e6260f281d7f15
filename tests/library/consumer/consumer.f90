! As consumer.c, in Fortran, and without HDF5's own Fortran library, which not every HDF5 has.
module hdf5_c
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), parameter :: TRUNCATE = 2, OPAQUE = 5
  integer(c_int64_t), parameter :: DEFAULT = 0

  interface
    integer(c_int64_t) function H5Fcreate(name, flags, fcpl, fapl) bind(c, name='H5Fcreate')
      import :: c_int64_t, c_int, c_char
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: flags
      integer(c_int64_t), value :: fcpl, fapl
    end function

    integer(c_int64_t) function H5Fget_access_plist(file) bind(c, name='H5Fget_access_plist')
      import :: c_int64_t
      integer(c_int64_t), value :: file
    end function

    integer(c_int) function H5Fclose(file) bind(c, name='H5Fclose')
      import :: c_int64_t, c_int
      integer(c_int64_t), value :: file
    end function

    integer(c_int64_t) function H5Tcreate(class, size) bind(c, name='H5Tcreate')
      import :: c_int64_t, c_int, c_size_t
      integer(c_int), value :: class
      integer(c_size_t), value :: size
    end function

    integer(c_int64_t) function H5Screate_simple(rank, extent, largest) bind(c, name='H5Screate_simple')
      import :: c_int64_t, c_int, c_ptr
      integer(c_int), value :: rank
      integer(c_int64_t), intent(in) :: extent(*)
      type(c_ptr), value :: largest
    end function

    integer(c_int64_t) function H5Dcreate2(place, name, type, space, lcpl, dcpl, dapl) bind(c, name='H5Dcreate2')
      import :: c_int64_t, c_char
      integer(c_int64_t), value :: place, type, space, lcpl, dcpl, dapl
      character(kind=c_char), intent(in) :: name(*)
    end function

    integer(c_int) function H5Dwrite(dataset, type, memory, space, dxpl, values) bind(c, name='H5Dwrite')
      import :: c_int64_t, c_int
      integer(c_int64_t), value :: dataset, type, memory, space, dxpl
      integer(c_int), intent(in) :: values(*)
    end function

    integer(c_int) function H5Dclose(dataset) bind(c, name='H5Dclose')
      import :: c_int64_t, c_int
      integer(c_int64_t), value :: dataset
    end function
  end interface
end module hdf5_c

program consumer
  use, intrinsic :: iso_c_binding
  use hdf5_c
  use tidelane
  implicit none
  integer, parameter :: elements = 2**20
  character(len=1024) :: path, expected
  integer(c_int), allocatable :: values(:)
  integer(c_int) :: completed, when, journal
  integer(c_int64_t) :: fapl, file, space, type, dataset, delay, flushes
  real(c_double) :: seconds
  logical(c_bool) :: flag

  call get_command_argument(1, path)
  call get_command_argument(2, expected)
  allocate (values(elements))
  values = 7

  file = H5Fcreate(trim(path)//c_null_char, TRUNCATE, DEFAULT, DEFAULT) ! for its access list
  fapl = H5Fget_access_plist(file)
  call check(H5Fclose(file) >= 0, 'close')
  call check(H5Pset_vol_async(fapl) >= 0, 'set_vol_async')
  call check(H5Pset_fapl_delay(fapl, 5_c_int64_t) >= 0, 'set delay')
  call check(H5Pget_fapl_delay(fapl, delay) >= 0 .and. delay == 5, 'get delay')
  call check(H5Pset_fapl_disable_async_implicit(fapl, .true._c_bool) >= 0, 'set disable implicit')
  call check(H5Pget_fapl_disable_async_implicit(fapl, flag) >= 0 .and. flag, 'get disable implicit')
  call check(H5Pset_fapl_disable_async_implicit(fapl, .false._c_bool) >= 0, 'unset disable implicit')
  call check(tidelane_set_fapl_close(fapl, TIDELANE_DEFERRED) >= 0, 'set close')
  call check(tidelane_get_fapl_close(fapl, when) >= 0 .and. when == TIDELANE_DEFERRED, 'get close')
  call check(tidelane_set_fapl_journal(fapl, TIDELANE_JOURNAL_OFF) >= 0, 'set journal')
  call check(tidelane_get_fapl_journal(fapl, journal) >= 0 .and. journal == TIDELANE_JOURNAL_OFF, 'get journal')
  call check(tidelane_set_fapl_journal_required(fapl, .true._c_bool) >= 0, 'set journal required')
  call check(tidelane_get_fapl_journal_required(fapl, flag) >= 0 .and. flag, 'get journal required')
  call check(tidelane_set_fapl_journal_required(fapl, .false._c_bool) >= 0, 'unset journal required')
  call check(tidelane_set_fapl_journal_commits(fapl, 10_c_int64_t, 0.5_c_double) >= 0, 'set journal commits')
  call check(tidelane_get_fapl_journal_commits(fapl, flushes, seconds) >= 0, 'get journal commits')
  call check(flushes == 10 .and. abs(seconds - 0.5_c_double) < 1e-9_c_double, 'what commits')
  call check(H5Pset_fapl_pause(fapl, .true._c_bool) >= 0, 'set pause')

  file = H5Fcreate(trim(path)//c_null_char, TRUNCATE, DEFAULT, fapl)
  space = H5Screate_simple(1, [int(elements, c_int64_t)], c_null_ptr)
  type = H5Tcreate(OPAQUE, 4_c_size_t)
  dataset = H5Dcreate2(file, 'd'//c_null_char, type, space, DEFAULT, DEFAULT, DEFAULT)
  call check(H5Dwrite(dataset, type, DEFAULT, DEFAULT, DEFAULT, values) >= 0, 'write')
  call check(H5Dtest(dataset, completed) >= 0, 'test of the dataset')
  call check((completed == 1) .eqv. (expected == 'stored'), 'what is stored')
  call check(H5Dstart(dataset, TIDELANE_DEFAULT_LIST) >= 0, 'start')
  call check(H5Fwait(file, TIDELANE_DEFAULT_LIST) >= 0, 'wait')
  call check(H5Ftest(file, completed) >= 0 .and. completed == 1, 'test of the file')
  call check(tidelane_commit(file) >= 0, 'commit')
  call check(H5Dclose(dataset) >= 0, 'close of the dataset')
  call check(H5Fclose(file) >= 0, 'close of the file')

contains
  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    print '(a)', 'not so: '//what
    stop 1
  end subroutine
end program consumer
