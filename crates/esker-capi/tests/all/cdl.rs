//! `cdl_hdr_*`: programs read the header of a CDL text.

use std::process::Command;

use esker_testkit::programs;

use crate::compilers::mpis;
use crate::place::Place;

/// All types, escapes, several dimensions, and a data section that has no meaning.
const TEXT: &str = r#"netcdf all {
dimensions:
	time = UNLIMITED ; // (2 currently)
	x = 5 ;
	strange\ name = 3 ;
variables:
	double pressure(time, x) ;
		pressure:units = "hPa" ;
		pressure:_FillValue = -999.5 ;
		pressure:range = 1.5, 2.5e300 ;
	int scalar ;
		scalar:empty = "" ;
		scalar:numbers = 1, -2, 2147483647 ;
	byte b(x, strange\ name) ;
		b:flags = 1b, -2b ;
		b:few = 3s, -4s ;
		b:part = 1.25f, NaNf ;
	char text(x) ;
		text:long_name = "two\nlines, a \"quote\" and a \\ and ; // no comment" ;

// global attributes:
		:title = "a title" ;
		:history = "first\n",
			"second" ;
"#;

const DATA: &str = "data:\n\n pressure = nonsense that nobody reads";

/// The attributes and variables that only CDF-5 has.
const NEWER: &str = r#"		:bytes = 200UB ;
		:shorts = 60000US ;
		:ints = 4000000000U ;
		:longs = 9223372036854775807LL, -5LL ;
		:unsigned_longs = 18446744073709551615ULL ;
"#;

#[test]
fn a_header_in_cdl_becomes_the_file_that_it_describes() {
    let place = Place::new();
    let formats = [
        ("", 1, TEXT.to_string()),
        ("// file format: CDF-1\n", 1, TEXT.to_string()),
        ("// file format: CDF-2 (large file)\n", 2, TEXT.to_string()),
        ("// file format: CDF-5 (big variables)\n", 5, format!("{TEXT}{NEWER}")),
        // Without a word about the format it is the oldest that has the types.
        ("", 5, format!("{TEXT}{NEWER}")),
    ];
    for mpi in mpis("mpicc") {
        let program = place.compile(&mpi, "cdl_header.c");
        for (comment, format, text) in &formats {
            let text = text.replacen("netcdf all {\n", &format!("netcdf all {{\n{comment}"), 1);
            let whole = format!("{text}{DATA}");
            std::fs::write(place.path().join("all.cdl"), &whole).unwrap();
            let said = place.succeeds(&mpi, 1, &[], &program, &["all.cdl", "all.nc"]);
            assert!(said.contains(&format!("format {format}")), "{comment}{said}");
            if !programs::have("ncgen") || !programs::have("ncdump") {
                continue;
            }
            // The peer makes its own file of the header, and both look alike to its dump.
            std::fs::write(place.path().join("peer.cdl"), format!("{text}}}\n")).unwrap();
            let kind = ["classic", "64-bit offset", "64-bit data"][*format as usize / 2];
            let mut generate = Command::new("ncgen");
            programs::good(
                generate.args(["-k", kind, "-o", "peer.nc", "peer.cdl"]).current_dir(place.path()),
            );
            let dump = |file: &str| {
                let mut command = Command::new("ncdump");
                let header = programs::good(
                    command.args(["-h", "-n", "all", file]).current_dir(place.path()),
                );
                // ncgen 4.9.0 makes other numbers of these (FACTS of the peers): compared below.
                header.lines().filter(|l| !l.contains("longs =")).collect::<Vec<_>>().join("\n")
            };
            // What is written is read: no records in either.
            assert_eq!(dump("all.nc"), dump("peer.nc"), "format {format}");
            if *format == 5 {
                let mut command = Command::new("ncdump");
                let header =
                    programs::good(command.args(["-h", "all.nc"]).current_dir(place.path()));
                for line in NEWER.lines() {
                    assert!(header.contains(line.trim()), "{line}\n{header}");
                }
            }
        }
    }
}
