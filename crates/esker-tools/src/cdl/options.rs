//! What to print, and how: the options of `ncdump`.

/// The options of `ncdump` that mean something for a classic file.
#[derive(Debug, Clone, PartialEq)]
pub struct DumpOptions {
    /// `-h`: the header only, no data.
    pub header_only: bool,
    /// `-c`: data of coordinate variables only.
    pub coordinates_only: bool,
    /// `-v`: data of these variables only; all when empty.
    pub variables: Vec<String>,
    /// `-k`: the kind of file and nothing else.
    pub kind_only: bool,
    /// `-s`: special virtual attributes, of which classic files have `_Format`.
    pub special_attributes: bool,
    /// `-t`: times as dates.
    pub decode_times: bool,
    /// `-i`: with `T` between date and time. Means `decode_times` too.
    pub iso_separator: bool,
    /// `-x`: NcML, an XML form of the header.
    pub xml: bool,
    /// `-p`: significant digits of floats; 7 unless told, and then `C_format` does not count.
    pub float_digits: Option<u8>,
    /// `-p`: significant digits of doubles; 15 unless told, and then `C_format` does not count.
    pub double_digits: Option<u8>,
    /// `-n`: the name after `netcdf`; from the file's name unless told.
    pub name: Option<String>,
    /// `-l`: how long lines of data may be; 80 unless told.
    pub line_len: usize,
    /// `-b` and `-f`: comments that tell the indices of values.
    pub annotation: Annotation,
    /// What `-x` gives as location; the source's path unless told.
    pub location: Option<String>,
}

impl Default for DumpOptions {
    fn default() -> DumpOptions {
        DumpOptions {
            header_only: false,
            coordinates_only: false,
            variables: Vec::new(),
            kind_only: false,
            special_attributes: false,
            decode_times: false,
            iso_separator: false,
            xml: false,
            float_digits: None,
            double_digits: None,
            name: None,
            line_len: 80,
            annotation: Annotation::None,
            location: None,
        }
    }
}

/// Comments in the data section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotation {
    /// None.
    None,
    /// `-b`: one before each row.
    Brief(IndexStyle),
    /// `-f`: one after each value.
    Full(IndexStyle),
}

/// How indices are counted and ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStyle {
    /// From 0, slowest first.
    C,
    /// From 1, fastest first.
    Fortran,
}
