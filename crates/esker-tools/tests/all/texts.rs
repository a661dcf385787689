//! Texts of files with something unusual in each, and where two texts differ.

/// Where two texts first differ, with some of what stands there.
pub(crate) fn difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b);
    let at = at.unwrap_or(ours.len().min(theirs.len()));
    let shown = |text: &[u8]| {
        let end = text.len().min(at + 60);
        String::from_utf8_lossy(&text[at.saturating_sub(60)..end]).into_owned()
    };
    Some(format!("at byte {at}:\nours:   …{:?}\ntheirs: …{:?}", shown(ours), shown(theirs)))
}

/// Texts with something unusual in each. ncgen reads them too, but for `cdf5`.
pub(crate) const AWKWARD: &[(&str, &str)] = &[
    ("empty", "netcdf empty {\n}\n"),
    ("dims", "netcdf dims { dimensions: n = 3, m = 4 ; t = UNLIMITED ; }"),
    (
        "all_types",
        r#"netcdf all_types {
dimensions: t = UNLIMITED ; n = 4 ;
variables:
  byte b(n) ; char c(n) ; short s(n) ; int i(n) ; float f(n) ; double d(n) ; long l ; real r(t) ;
  byte fb(n) ; fb:_FillValue = 7b ;
  float ff(n) ; ff:_FillValue = NaNf ;
  double fd(n) ; fd:_FillValue = -1.e300 ;
  float fi(n) ; fi:_FillValue = Infinityf ;
  b:a = 1b, -128b, 127b ; s:a = 1s, -32768s ; i:a = 1, -2147483648 ; f:a = 1.f, -1.5e10f, 0.f, -0.f ;
  f:b = NaNf, Infinityf, -Infinityf ; d:a = 1., 1e100, .1, 123456789.125, -0. ; d:b = NaN, Infinity, -Infinity ;
  c:a = "text" ; c:empty = "" ; c:mixed = 1b, 2s, 3 ; c:mixed2 = 1, 2.5f ; c:mixed3 = 1s, 2.5f, 3. ;
  c:quoted = 'a', 'b' ; c:octal = 010 ; int c:typed = 1.9, -1.9 ; double c:typed2 = 1, 2b ; char c:typed3 = "x", 'y', 65b ;
  :global = "yes" ; float :gf = 1 ;
data:
  b = -128, 0, 127, -127 ; c = "ab\tc" ; s = -32768, 32767, _, -32767 ;
  i = 1, _, 2147483647, -2147483648 ;
  f = 0.1, 1e10, _, 3.4028235e38 ; d = 0.1, 1e300, _, -5e-324 ; l = 5 ; r = 1, NaN, -Infinity, Infinityf, 1.5 ;
  fb = 1, 7, _, -127 ; ff = 1, NaN, _, 2 ; fd = 1, -1e300, _, -1.0000000000000001e300 ; fi = Infinity, -Infinity, 1, _ ;
}"#,
    ),
    (
        "names",
        r#"netcdf na\ me {
dimensions: \1st = 2 ; a\ b = 2 ; größe = 2 ; x.y@z+1-2 = 2 ;
variables:
  int \1st(\1st) ; int a\(b\)\[c\](a\ b, größe) ; int data ; int group ; int dimensions ; int variables ; int types ; int variable ;
  \1st:a\:b = 1 ; a\(b\)\[c\]:größe = "ü" ; data :units = "m" ; group :units = "m" ; dimensions :x = 1 ; variables :x = 1 ; types :x = 1 ; variable:x = 1 ;
  :\2 = 1 ;
data: \1st = 1, 2 ; data = 4 ;
}"#,
    ),
    (
        "text",
        r#"netcdf text {
dimensions: t = UNLIMITED ; n = 5 ; m = 2 ; one = 1 ;
variables:
  char scalar ; char row(n) ; char rows(m, n) ; char cube(m, m, n) ; char thin(n, one) ;
  char filled(m, n) ; filled:_FillValue = "*" ; char trec(t) ;
  row:escapes = "tab\t bell\a\b\f\r\v quote\" back\\ apos' nl\nmore\n" ;
  row:bytes = "\001\037\177\240\377é" ; row:zeros = "a\000b\000\000" ; row:parts = "0123456789", "abc" ;
  row:lines = "one\n", "two\n", "" ;
data:
  scalar = "x" ; row = "é\001\"" ; rows = "ab", "abcde" ; 
  cube = "a", "b", "c" ; thin = "abcde" ; filled = "ab" ; trec = 'a', 'b', 'c' ;
}"#,
    ),
    (
        // ncgen crashes on it.
        "part_records",
        r#"netcdf part_records {
dimensions: t = UNLIMITED ; n = 5 ; k = 2 ;
variables: char recs(t, n) ; char chars(t, n) ;
  double w(t, k, n) ; byte b(t, n) ;
data: w = 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5 ; b = 1, 2, 3, 4 ; recs = "a", "abcdefg", "hij", "" ; chars = 'a', 'b', 'c', 'd', 'e', 'f' ;
}"#,
    ),
    (
        "records",
        r#"netcdf records {
dimensions: t = UNLIMITED ; n = 3 ; k = 2 ;
variables: short a(t) ; int v(t, n) ; double w(t, k, n) ; char c(t, n) ; float late(t) ; int none(t) ; byte pad(t, n) ;
data:
  v = 1, 2, 3, 4 ; w = 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18 ; c = "ab", "c" ; a = 1, 2, 3 ; late = 1 ; pad = 1, 2, 3 ;
}"#,
    ),
    (
        "no_records",
        r#"netcdf no_records { dimensions: t = UNLIMITED ; n = 2 ; variables: int v(t, n) ; int w(n) ; int x(t) ; x:a = 1 ; }"#,
    ),
    (
        "formats",
        r#"netcdf formats {
dimensions: n = 3 ;
variables:
  float f(n) ; f:C_format = "%8.3f" ; double d(n) ; d:C_format = "%.2e" ; int i(n) ; i:C_format = "%05d" ;
  short x(n) ; x:C_format = "%x" ; float g(n) ; g:C_format = "%g m" ; double p(n) ; p:C_format = "%+-10.4g|" ;
  byte b(n) ; b:C_format = "%3d" ;
data: f = 1.23456, -1000.5, _ ; d = 1, 2e-10, 3e100 ; i = 1, -2, 3 ; x = 255, 16, 1 ; g = 1, 2.5, NaN ;
  p = 1, -2, 3.14159265 ; b = 1, -2, 100 ;
}"#,
    ),
    (
        "times",
        r#"netcdf times {
dimensions: t = 8 ; two = 2 ;
variables:
  double a(t) ; a:units = "days since 2000-02-28 12:00" ; a:actual_range = 0., 7. ; a:bounds = "a_bnds" ;
    a:three = 1., 2., 3., 4., 5., 6., 7., 8. ; a:n = 5 ;
  double a_bnds(t, two) ;
  int b(t) ; b:units = "hours since 1582-10-1" ; b:_FillValue = 3 ;
  float c(t) ; c:units = "months since 1-1-1" ; c:calendar = "noleap" ;
  double d(t) ; d:units = "seconds since 1970-01-01T00:00:00Z" ; d:calendar = "proleptic_gregorian" ;
  double e(t) ; e:units = "minutes since 1850-1-1 0:0:0" ; e:calendar = "360_day" ;
  double f(t) ; f:units = "years since 1900-1-1" ; f:calendar = "julian" ;
  double g(t) ; g:units = "weeks since 0001-01-01 00:00:00" ; g:calendar = "all_leap" ;
  double h(t) ; h:units = "days since 1-1" ; h:calendar = "none" ;
  double i(t) ; i:units = "seasons since 2000" ; i:calendar = "gregorian" ;
  double j(t) ; j:units = "days" ; double k(t) ; k:units = "DAYS SINCE 2000-1-1" ; double l(t) ; l:units = "hour since 1900-01-01 06:30:15.25 +1:00" ;
  short m(t) ; m:units = "day since 2001-13-40" ;
  double n(t) ; n:units = "d since 2000-1-1" ; double o(t) ; o:units = "days since 100-1-1" ; o:calendar = "standard" ;
data:
  a = 0, 0.5, 1, 2, 3.25, -1000000.123456, 1e6, 0.0000001 ;
  a_bnds = 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8 ;
  b = 0, 24, 95, 96, 97, 3, -1000000, 100000 ;
  c = 0, 1, 1.5, -1, 12, 13, 100, 24000 ;
  d = 0, 1, 0.5, 1e9, -1e9, 86399.9999999, 1234567890.123, 3 ;
  e = 0, 1, 59.99999, 43200, 518400, -1, 0.5, 1e8 ;
  f = 0, 1, 0.5, 100, -1000, 1.26, 2.99, 10000 ;
  g = 0, 1, 0.1, 52, 53, 1000, 100000, -1 ;
  h = 0, 1, 58, 59, 364, 365, -1, 0.25 ;
  i = 0, 1, 2, 3, -1, 0.4, 100, 1000 ;
  j = 0, 1, 2, 3, 4, 5, 6, 7 ;
  k = 0, 1, 2, 3, 4, 5, 6, 7 ; l = 0, 1, 2.123, 3, 4, 5, 6, NaN ;
  n = 0, 1, 2, 3, 4, 5, 6, 7 ;
  o = 0, 541439, 541440, 541441, 541450, -1, 700000.75, 1e5 ;
}"#,
    ),
    (
        "coordinates",
        r#"netcdf coordinates {
dimensions: lat = 3 ; lon = 4 ; x = 2 ;
variables: float lat(lat) ; int lon ; double x(lon) ; float t(lat, lon) ; char lon2(lon) ;
data: lat = 1, 2, 3 ; x = 1, 2, 3, 4 ; t = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ; lon = 3 ; lon2 = "abcd" ;
}"#,
    ),
    (
        "long_lines",
        r#"netcdf long_lines {
dimensions: n = 40 ; one = 1 ; many = 3 ;
variables: double a_rather_long_name_for_a_variable_so_that_lines_break_early(n) ; int v(many, n) ;
  int w(many, one) ; float u(one, one, one) ; short sixtyfour_characters_are_not_too_many_for_a_name_in_netcdf_files_1(one) ;
data:
  a_rather_long_name_for_a_variable_so_that_lines_break_early = 0.123456789012345, 1, 22, 333, 4444, 55555, 666666,
    7777777, 88888888, 999999999, 1e10, 1e-10, 1.5, 2.25, 3.125, 4.0625, 0.1, 0.01, 0.001 ;
  v = 1, 22, 333, 4444, 55555, 666666, 7777777, 88888888, 999999999 ; w = 1, 2, 3 ; u = 1 ;
  sixtyfour_characters_are_not_too_many_for_a_name_in_netcdf_files_1 = 12345 ;
}"#,
    ),
    (
        "xml",
        r#"netcdf xml {
dimensions: n = 2 ; t = UNLIMITED ;
variables: int v(n) ; int w(t) ; float x ;
  x:a = "<a href=\"x\">&'</a>\n\ttab\r\001" ; x:b = 1.5, 2., 1e20 ; x:c = 1.5f, 1e-5f ; x:d = 1b, -2b ; x:e = 1s ; x:f = 100000 ;
  x:g = "" ; x:h = "a\000b\000" ; :t = "ü" ; :nans = NaN, Infinity, -Infinity ; :nansf = NaNf ;
}"#,
    ),
    (
        "cdf5",
        r#"netcdf cdf5 {
dimensions: t = UNLIMITED ; n = 3 ;
variables:
  ubyte ub(n) ; ushort us(n) ; uint ui(n) ; int64 i64(n) ; uint64 ui64(n) ; int64 r(t, n) ;
  ubyte fu(n) ; fu:_FillValue = 3UB ;
  ub:a = 255UB, 0ub ; us:a = 65535US ; ui:a = 4294967295U ; i64:a = 9223372036854775807LL, -9223372036854775808LL ;
  ui64:a = 18446744073709551615ULL ; ub:inferred = 3000000000 ; ub:inferred2 = -3000000000 ; ub:inferred3 = 1UB, 2 ;
  ub:inferred4 = 18446744073709551615 ; ub:inferred5 = 9223372036854775807 ;
data:
  ub = 255, 0, 254 ; us = 65535, 0, 65534 ; ui = 4294967295, 0, 1 ; i64 = 9223372036854775807, -9223372036854775808, _ ;
  ui64 = 18446744073709551615, 18446744073709551614, 0 ; r = 1, 2, 3, -9223372036854775807 ; fu = 3, 4, 255 ;
}"#,
    ),
];
