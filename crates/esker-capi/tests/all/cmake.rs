//! `find_package(PnetCDF)` on what the installer leaves.

use std::path::Path;
use std::process::Command;

use esker_testkit::programs;

use crate::compilers::mpis;
use crate::place::Place;

const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(PnetCDF 1.12 REQUIRED COMPONENTS C OPTIONAL_COMPONENTS CXX)
if(NOT PnetCDF_VERSION VERSION_EQUAL 1.15.0 OR NOT PnetCDF_HAS_BURST_BUFFERING OR PnetCDF_CXX_FOUND)
  message(FATAL_ERROR "version ${PnetCDF_VERSION}, classes ${PnetCDF_CXX_FOUND}")
endif()
find_package(PnetCDF 2.0 QUIET)
if(PnetCDF_FOUND)
  message(FATAL_ERROR "there is no version 2")
endif()
find_package(PnetCDF 1.15 REQUIRED)
add_executable(program ${PROGRAM})
target_link_libraries(program PRIVATE PnetCDF::PnetCDF_C)
"#;

#[test]
fn a_cmake_project_finds_the_library_and_its_program_runs() {
    if !programs::have("cmake") {
        return;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    for mpi in mpis("mpicc") {
        let place = Place::new();
        let prefix = place.path().join("prefix");
        let package = prefix.join("lib/cmake/PnetCDF");
        std::fs::create_dir_all(&package).unwrap();
        std::fs::create_dir(prefix.join("include")).unwrap();
        for name in ["PnetCDFConfig.cmake", "PnetCDFConfigVersion.cmake"] {
            std::fs::copy(sources.join("cmake").join(name), package.join(name)).unwrap();
        }
        for name in ["include/pnetcdf.h", "include/pnetcdf.inc", "lib/libpnetcdf.so"] {
            let file = place.path().join(Path::new(name).file_name().unwrap());
            std::os::unix::fs::symlink(file, prefix.join(name)).unwrap();
        }
        let project = place.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("CMakeLists.txt"), PROJECT).unwrap();
        let build = project.join("build");
        programs::good(
            Command::new("cmake")
                .arg("-S")
                .arg(&project)
                .arg("-B")
                .arg(&build)
                .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
                .arg(format!("-DCMAKE_C_COMPILER=mpicc.{}", mpi.suffix))
                .arg(format!(
                    "-DPROGRAM={}",
                    sources.join("tests/programs/small_iputs.c").display()
                )),
        );
        programs::good(Command::new("cmake").arg("--build").arg(&build));
        place.succeeds(&mpi, 2, &[], &build.join("program"), &[]);
    }
}

/// What the header says of threads is so.
#[test]
fn threads_use_files_of_their_own_at_the_same_time() {
    let place = Place::new();
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "threads.c");
        let ran = place.run(&mpi, 2, &[], &program, &[]);
        if ran.code == Some(77) {
            esker_testkit::skip!("{} gives no threads", mpi.name);
            continue;
        }
        assert!(ran.succeeded(), "{}: {ran:?}", mpi.name);
    }
}
