# The parallel HDF5s that scripts/setup/hdf5-parallel.sh built, one for each MPI, for tests and benches: one build of the
# plugin serves them all, so the programs that prove it are built once for each, in the same tree.
#
#   TIDELANE_MPIS                those that are there: mpich, openmpi, or none
#   tidelane_hdf5_<mpi>          include path and library of that HDF5 and of its MPI
#   TIDELANE_HDF5_<mpi>_ROOT     its prefix
#   TIDELANE_HDF5_<mpi>_ASSERTS  whether that HDF5 was built with its assertions on
#   TIDELANE_MPIRUN_<mpi>        what starts its programs
#   TIDELANE_MPI_ENVIRONMENT     what programs run under, for both: root may, and there may be more ranks than cores

find_package(PkgConfig QUIET)
set(TIDELANE_HDF5_MPICH_ROOT "" CACHE PATH "Prefix of a parallel HDF5 built with MPICH")
set(TIDELANE_HDF5_OPENMPI_ROOT "" CACHE PATH "Prefix of a parallel HDF5 built with Open MPI")
set(TIDELANE_MPIS)
set(TIDELANE_MPI_ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1" "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
  "OMPI_MCA_rmaps_base_oversubscribe=1")

function(tidelane_mpi mpi package root)
  if(NOT PkgConfig_FOUND OR NOT EXISTS "${root}/include/H5public.h")
    return()
  endif()
  pkg_check_modules(${mpi} QUIET IMPORTED_TARGET GLOBAL ${package})
  find_program(TIDELANE_MPIRUN_${mpi} "mpirun.${mpi}")
  if(NOT ${mpi}_FOUND OR NOT TIDELANE_MPIRUN_${mpi})
    return()
  endif()
  add_library(tidelane_hdf5_${mpi} INTERFACE)
  target_include_directories(tidelane_hdf5_${mpi} SYSTEM INTERFACE "${root}/include")
  target_compile_definitions(tidelane_hdf5_${mpi} INTERFACE MPICH_SKIP_MPICXX OMPI_SKIP_MPICXX)  # C's interface is enough
  find_library(library NAMES hdf5 hdf5_debug PATHS "${root}/lib" NO_DEFAULT_PATH NO_CACHE REQUIRED)
  target_link_libraries(tidelane_hdf5_${mpi} INTERFACE "${library}" PkgConfig::${mpi})
  message(STATUS "HDF5 for ${mpi}: ${root}")
  set(TIDELANE_MPIS ${TIDELANE_MPIS} ${mpi} PARENT_SCOPE)
  set(TIDELANE_HDF5_${mpi}_ROOT "${root}" PARENT_SCOPE)
  if(library MATCHES "hdf5_debug")
    set(TIDELANE_HDF5_${mpi}_ASSERTS ON PARENT_SCOPE)
  endif()
endfunction()
tidelane_mpi(mpich mpich "${TIDELANE_HDF5_MPICH_ROOT}")
tidelane_mpi(openmpi ompi-c "${TIDELANE_HDF5_OPENMPI_ROOT}")
