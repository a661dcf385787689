# find_package(PnetCDF [1.15] [COMPONENTS C Fortran CXX])
#
# Targets: PnetCDF::PnetCDF_C, PnetCDF::PnetCDF_Fortran (include 'pnetcdf.inc' and use pnetcdf), PnetCDF::PnetCDF_CXX,
# and PnetCDF::PnetCDF, which is all that is there. MPI is the program's own: compile with an MPI wrapper, or link with
# MPI::MPI_C. For build files that know variables only: PnetCDF_FOUND, PnetCDF_VERSION, PnetCDF_INCLUDE_DIRS,
# PnetCDF_LIBRARIES, and PnetCDF_<component>_FOUND. Features: PnetCDF_HAS_BURST_BUFFERING and so on.

get_filename_component(PnetCDF_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(PnetCDF_INCLUDE_DIRS "${PnetCDF_PREFIX}/include")
set(PnetCDF_LIBRARY_DIR "${PnetCDF_PREFIX}/lib")
set(PnetCDF_LIBRARIES PnetCDF::PnetCDF)

# As the header's macros and pnetcdf-config say.
set(PnetCDF_HAS_BURST_BUFFERING TRUE)
set(PnetCDF_HAS_ERANGE_FILL TRUE)
set(PnetCDF_HAS_RELAX_COORD_BOUND TRUE)
set(PnetCDF_HAS_THREAD_SAFE TRUE)
set(PnetCDF_HAS_SUBFILING FALSE)
set(PnetCDF_HAS_NETCDF4 FALSE)
set(PnetCDF_HAS_ADIOS FALSE)

set(PnetCDF_C_FOUND FALSE)
set(PnetCDF_Fortran_FOUND FALSE)
set(PnetCDF_CXX_FOUND FALSE)
if(EXISTS "${PnetCDF_INCLUDE_DIRS}/pnetcdf.h")
  set(PnetCDF_C_FOUND TRUE)
endif()
if(EXISTS "${PnetCDF_INCLUDE_DIRS}/pnetcdf.inc")
  set(PnetCDF_Fortran_FOUND TRUE)
endif()
if(EXISTS "${PnetCDF_INCLUDE_DIRS}/pnetcdf" AND EXISTS "${PnetCDF_LIBRARY_DIR}/libpnetcdf_cxx.so")
  set(PnetCDF_CXX_FOUND TRUE)
endif()

# Linked by name and folder, because libpnetcdf.so can be a linker's script that names the classes too.
if(NOT TARGET PnetCDF::PnetCDF)
  add_library(PnetCDF::PnetCDF INTERFACE IMPORTED)
  set_target_properties(PnetCDF::PnetCDF PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${PnetCDF_INCLUDE_DIRS}"
    INTERFACE_LINK_DIRECTORIES "${PnetCDF_LIBRARY_DIR}"
    INTERFACE_LINK_OPTIONS "LINKER:-rpath,${PnetCDF_LIBRARY_DIR}"
    INTERFACE_LINK_LIBRARIES "pnetcdf")
  foreach(component C Fortran CXX)
    if(PnetCDF_${component}_FOUND)
      add_library(PnetCDF::PnetCDF_${component} INTERFACE IMPORTED)
      set_target_properties(PnetCDF::PnetCDF_${component} PROPERTIES INTERFACE_LINK_LIBRARIES PnetCDF::PnetCDF)
    endif()
  endforeach()
endif()

set(PnetCDF_FOUND TRUE)
foreach(component ${PnetCDF_FIND_COMPONENTS})
  if(PnetCDF_FIND_REQUIRED_${component} AND NOT PnetCDF_${component}_FOUND)
    set(PnetCDF_FOUND FALSE)
    set(PnetCDF_NOT_FOUND_MESSAGE "${PnetCDF_PREFIX} has no ${component}")
  endif()
endforeach()
