! Tidelane's library for Fortran programs: the functions of tidelane.h under the same names.
!
! Compile this file with your program: module files belong to one compiler. It needs no HDF5 module; identifiers are
! HDF5's (kind HID_T of module hdf5), the result is negative after a failure. docs/library.md describes each function.
!
! Thread safety: as tidelane.h.
module tidelane
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_bool, c_double, c_ptr
  implicit none
  private

  integer(c_int64_t), parameter, public :: TIDELANE_DEFAULT_LIST = 0 ! H5P_DEFAULT, where a transfer list is asked for

  integer(c_int), parameter, public :: TIDELANE_AS_CONFIGURED = 0
  integer(c_int), parameter, public :: TIDELANE_WAIT = 1
  integer(c_int), parameter, public :: TIDELANE_DEFERRED = 2
  integer(c_int), parameter, public :: TIDELANE_PUBLISH_AS_CONFIGURED = 0
  integer(c_int), parameter, public :: TIDELANE_PUBLISH_INPLACE = 1
  integer(c_int), parameter, public :: TIDELANE_PUBLISH_ATOMIC = 2
  integer(c_int), parameter, public :: TIDELANE_JOURNAL_AS_CONFIGURED = 0
  integer(c_int), parameter, public :: TIDELANE_JOURNAL_OFF = 1
  integer(c_int), parameter, public :: TIDELANE_JOURNAL_PROCESS = 2
  integer(c_int), parameter, public :: TIDELANE_JOURNAL_POWER = 3

  public :: H5Pset_vol_async
  public :: H5Fwait, H5Dwait, H5Ftest, H5Dtest
  public :: H5Fstart, H5Dstart, H5Fpause, H5Dpause, H5Fset_delay_time, H5Dset_delay_time
  public :: H5Pset_fapl_pause, H5Pget_fapl_pause, H5Pset_dxpl_pause, H5Pget_dxpl_pause
  public :: H5Pset_fapl_delay, H5Pget_fapl_delay, H5Pset_dxpl_delay, H5Pget_dxpl_delay
  public :: H5Pset_fapl_disable_async_implicit, H5Pget_fapl_disable_async_implicit
  public :: H5Pset_dxpl_disable_async_implicit, H5Pget_dxpl_disable_async_implicit
  public :: H5Pset_dxpl_async, H5Pget_dxpl_async
  public :: H5Pset_dxpl_async_cp_limit, H5Pget_dxpl_async_cp_limit
  public :: tidelane_set_dxpl_gpu_stream, tidelane_get_dxpl_gpu_stream
  public :: tidelane_set_fapl_close, tidelane_get_fapl_close
  public :: tidelane_set_fapl_flush, tidelane_get_fapl_flush
  public :: tidelane_set_fapl_publish, tidelane_get_fapl_publish
  public :: tidelane_set_fapl_journal, tidelane_get_fapl_journal
  public :: tidelane_set_fapl_journal_required, tidelane_get_fapl_journal_required
  public :: tidelane_set_fapl_journal_commits, tidelane_get_fapl_journal_commits
  public :: tidelane_commit

  interface
    integer(c_int) function H5Pset_vol_async(fapl_id) bind(c, name='H5Pset_vol_async')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
    end function

    integer(c_int) function H5Fwait(file_id, dxpl_id) bind(c, name='H5Fwait')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: file_id, dxpl_id
    end function

    integer(c_int) function H5Dwait(dset_id, dxpl_id) bind(c, name='H5Dwait')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dset_id, dxpl_id
    end function

    integer(c_int) function H5Ftest(file_id, completed) bind(c, name='H5Ftest')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: file_id
      integer(c_int), intent(out) :: completed
    end function

    integer(c_int) function H5Dtest(dset_id, completed) bind(c, name='H5Dtest')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dset_id
      integer(c_int), intent(out) :: completed
    end function

    integer(c_int) function H5Fstart(file_id, dxpl_id) bind(c, name='H5Fstart')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: file_id, dxpl_id
    end function

    integer(c_int) function H5Dstart(dset_id, dxpl_id) bind(c, name='H5Dstart')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dset_id, dxpl_id
    end function

    integer(c_int) function H5Fpause(file_id, dxpl_id) bind(c, name='H5Fpause')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: file_id, dxpl_id
    end function

    integer(c_int) function H5Dpause(dset_id, dxpl_id) bind(c, name='H5Dpause')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dset_id, dxpl_id
    end function

    integer(c_int) function H5Fset_delay_time(file_id, dxpl_id, time_us) &
        bind(c, name='H5Fset_delay_time')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: file_id, dxpl_id, time_us
    end function

    integer(c_int) function H5Dset_delay_time(dset_id, dxpl_id, time_us) &
        bind(c, name='H5Dset_delay_time')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dset_id, dxpl_id, time_us
    end function

    integer(c_int) function H5Pset_fapl_pause(fapl_id, is_pause) bind(c, name='H5Pset_fapl_pause')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: fapl_id
      logical(c_bool), value :: is_pause
    end function

    integer(c_int) function H5Pget_fapl_pause(fapl_id, is_pause) bind(c, name='H5Pget_fapl_pause')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: fapl_id
      logical(c_bool), intent(out) :: is_pause
    end function

    integer(c_int) function H5Pset_dxpl_pause(dxpl_id, is_pause) bind(c, name='H5Pset_dxpl_pause')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: dxpl_id
      logical(c_bool), value :: is_pause
    end function

    integer(c_int) function H5Pget_dxpl_pause(dxpl_id, is_pause) bind(c, name='H5Pget_dxpl_pause')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: dxpl_id
      logical(c_bool), intent(out) :: is_pause
    end function

    integer(c_int) function H5Pset_fapl_delay(fapl_id, time_us) bind(c, name='H5Pset_fapl_delay')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id, time_us
    end function

    integer(c_int) function H5Pget_fapl_delay(fapl_id, time_us) bind(c, name='H5Pget_fapl_delay')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int64_t), intent(out) :: time_us
    end function

    integer(c_int) function H5Pset_dxpl_delay(dxpl_id, time_us) bind(c, name='H5Pset_dxpl_delay')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dxpl_id, time_us
    end function

    integer(c_int) function H5Pget_dxpl_delay(dxpl_id, time_us) bind(c, name='H5Pget_dxpl_delay')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dxpl_id
      integer(c_int64_t), intent(out) :: time_us
    end function

    integer(c_int) function H5Pset_fapl_disable_async_implicit(fapl_id, is_disable) &
        bind(c, name='H5Pset_fapl_disable_async_implicit')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: fapl_id
      logical(c_bool), value :: is_disable
    end function

    integer(c_int) function H5Pget_fapl_disable_async_implicit(fapl_id, is_disable) &
        bind(c, name='H5Pget_fapl_disable_async_implicit')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: fapl_id
      logical(c_bool), intent(out) :: is_disable
    end function

    integer(c_int) function H5Pset_dxpl_disable_async_implicit(dxpl_id, is_disable) &
        bind(c, name='H5Pset_dxpl_disable_async_implicit')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: dxpl_id
      logical(c_bool), value :: is_disable
    end function

    integer(c_int) function H5Pget_dxpl_disable_async_implicit(dxpl_id, is_disable) &
        bind(c, name='H5Pget_dxpl_disable_async_implicit')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: dxpl_id
      logical(c_bool), intent(out) :: is_disable
    end function

    integer(c_int) function H5Pset_dxpl_async(dxpl_id, is_async) bind(c, name='H5Pset_dxpl_async')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: dxpl_id
      logical(c_bool), value :: is_async
    end function

    integer(c_int) function H5Pget_dxpl_async(dxpl_id, is_async) bind(c, name='H5Pget_dxpl_async')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: dxpl_id
      logical(c_bool), intent(out) :: is_async
    end function

    integer(c_int) function H5Pset_dxpl_async_cp_limit(dxpl_id, size) &
        bind(c, name='H5Pset_dxpl_async_cp_limit')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dxpl_id, size
    end function

    integer(c_int) function H5Pget_dxpl_async_cp_limit(dxpl_id, size) &
        bind(c, name='H5Pget_dxpl_async_cp_limit')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: dxpl_id
      integer(c_int64_t), intent(out) :: size
    end function

    integer(c_int) function tidelane_set_dxpl_gpu_stream(dxpl_id, stream) &
        bind(c, name='tidelane_set_dxpl_gpu_stream')
      import :: c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: dxpl_id
      type(c_ptr), value :: stream
    end function

    integer(c_int) function tidelane_get_dxpl_gpu_stream(dxpl_id, stream) &
        bind(c, name='tidelane_get_dxpl_gpu_stream')
      import :: c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: dxpl_id
      type(c_ptr), intent(out) :: stream
    end function

    integer(c_int) function tidelane_set_fapl_close(fapl_id, when) &
        bind(c, name='tidelane_set_fapl_close')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), value :: when
    end function

    integer(c_int) function tidelane_get_fapl_close(fapl_id, when) &
        bind(c, name='tidelane_get_fapl_close')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), intent(out) :: when
    end function

    integer(c_int) function tidelane_set_fapl_flush(fapl_id, when) &
        bind(c, name='tidelane_set_fapl_flush')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), value :: when
    end function

    integer(c_int) function tidelane_get_fapl_flush(fapl_id, when) &
        bind(c, name='tidelane_get_fapl_flush')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), intent(out) :: when
    end function

    integer(c_int) function tidelane_set_fapl_publish(fapl_id, how) &
        bind(c, name='tidelane_set_fapl_publish')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), value :: how
    end function

    integer(c_int) function tidelane_get_fapl_publish(fapl_id, how) &
        bind(c, name='tidelane_get_fapl_publish')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), intent(out) :: how
    end function

    integer(c_int) function tidelane_set_fapl_journal(fapl_id, journal) &
        bind(c, name='tidelane_set_fapl_journal')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), value :: journal
    end function

    integer(c_int) function tidelane_get_fapl_journal(fapl_id, journal) &
        bind(c, name='tidelane_get_fapl_journal')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: fapl_id
      integer(c_int), intent(out) :: journal
    end function

    integer(c_int) function tidelane_set_fapl_journal_required(fapl_id, is_required) &
        bind(c, name='tidelane_set_fapl_journal_required')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: fapl_id
      logical(c_bool), value :: is_required
    end function

    integer(c_int) function tidelane_get_fapl_journal_required(fapl_id, is_required) &
        bind(c, name='tidelane_get_fapl_journal_required')
      import :: c_int, c_int64_t, c_bool
      integer(c_int64_t), value :: fapl_id
      logical(c_bool), intent(out) :: is_required
    end function

    integer(c_int) function tidelane_set_fapl_journal_commits(fapl_id, flushes, seconds) &
        bind(c, name='tidelane_set_fapl_journal_commits')
      import :: c_int, c_int64_t, c_double
      integer(c_int64_t), value :: fapl_id, flushes
      real(c_double), value :: seconds
    end function

    integer(c_int) function tidelane_get_fapl_journal_commits(fapl_id, flushes, seconds) &
        bind(c, name='tidelane_get_fapl_journal_commits')
      import :: c_int, c_int64_t, c_double
      integer(c_int64_t), value :: fapl_id
      integer(c_int64_t), intent(out) :: flushes
      real(c_double), intent(out) :: seconds
    end function

    integer(c_int) function tidelane_commit(file_id) bind(c, name='tidelane_commit')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: file_id
    end function
  end interface
end module tidelane
