//! The sections of a CDL text.

use std::ops::Range;

use esker_format::values::{default_fill, fill_value};
use esker_format::{
    DimId, DimLen, ExternalType, Owner, Schema, SchemaError, Values, VarId, Version,
};

use super::constant::Constant;
use super::data::{self, Target};
use super::file::CdlFile;
use super::lex::{Lexer, Token};
use crate::cdl::error::{CdlError, CdlFault};

/// The part of the text that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Start,
    Dimensions,
    Variables,
    Data,
}

/// The type before an attribute or variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    External(ExternalType),
    String,
}

fn type_named(word: &[u8]) -> Option<Type> {
    Some(Type::External(match word {
        b"byte" => ExternalType::Byte,
        b"char" => ExternalType::Char,
        b"short" => ExternalType::Short,
        b"int" | b"integer" | b"long" => ExternalType::Int,
        b"float" | b"real" => ExternalType::Float,
        b"double" => ExternalType::Double,
        b"ubyte" => ExternalType::UByte,
        b"ushort" => ExternalType::UShort,
        b"uint" | b"uinteger" | b"ulong" | b"unsigned" => ExternalType::UInt,
        b"int64" => ExternalType::Int64,
        b"uint64" => ExternalType::UInt64,
        b"string" => return Some(Type::String),
        _ => return None,
    }))
}

/// What is read so far.
pub(super) struct Reader<'l, 'a> {
    pub(super) lexer: &'l mut Lexer<'a>,
    pub(super) schema: Schema,
    /// By variable, the values given.
    given: Vec<Option<Values>>,
    pub(super) format: Option<Version>,
    /// What the comment after the unlimited dimension says.
    current: Option<u64>,
    /// The first use of something that only CDF-5 has, and the error it is in other versions.
    pub(super) extended: Option<(usize, SchemaError)>,
    pub(super) notes: Vec<String>,
}

/// How much of a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// Up to the section of data, which may be anything.
    Header,
}

/// Reads a text.
pub(super) fn file(lexer: &mut Lexer<'_>, extent: Extent) -> Result<CdlFile, CdlError> {
    let name = heading(lexer)?;
    let format = match extent {
        Extent::Whole => None,
        Extent::Header => told_version(lexer.text.get(lexer.at..).unwrap_or_default()),
    };
    let mut reader = Reader {
        lexer,
        // Everything may be declared; what the version allows is seen at the end, because
        // `_Format` may come late.
        schema: Schema::new(Version::Cdf5),
        given: Vec::new(),
        format,
        current: None,
        extended: None,
        notes: Vec::new(),
    };
    reader.body(extent)?;
    reader.finish(name)
}

/// The version in the comment that `ncmpidump` writes after the heading:
/// `// file format: CDF-2 (large file)`.
fn told_version(after_heading: &[u8]) -> Option<Version> {
    let lines = after_heading.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let comments =
        lines.skip_while(|line| line.is_empty()).take_while(|line| line.starts_with(b"//"));
    comments.filter_map(|line| line[2..].trim_ascii().strip_prefix(b"file format: CDF-")).find_map(
        |rest| match rest.first() {
            Some(b'1') => Some(Version::Cdf1),
            Some(b'2') => Some(Version::Cdf2),
            Some(b'5') => Some(Version::Cdf5),
            _ => None,
        },
    )
}

/// `netcdf name {`
fn heading(lexer: &mut Lexer<'_>) -> Result<String, CdlError> {
    if lexer.text.starts_with(b"\xef\xbb\xbf") {
        lexer.at = 3;
    }
    lexer.skip()?;
    let start = lexer.at;
    let first = lexer.next()?;
    let is_netcdf = matches!(&first, Token::Word(range)
        if lexer.slice(range.clone()).eq_ignore_ascii_case(b"netcdf"));
    if !is_netcdf {
        return Err(lexer.expected(start, "`netcdf`"));
    }
    let start = lexer.at;
    let mut escaped = false;
    let mut name = Vec::new();
    while let Some(byte) = lexer.peek_byte() {
        lexer.at += 1;
        match byte {
            b'{' if !escaped => {
                return String::from_utf8(name).map_err(|_| {
                    lexer.error(start, CdlFault::BadText("the name is not UTF-8".to_string()))
                });
            }
            b'\\' if !escaped => escaped = true,
            // White space is no part of the name unless escaped.
            0..=b' ' if !escaped => {}
            _ => {
                escaped = false;
                name.push(byte);
            }
        }
    }
    let end = lexer.text.len();
    Err(lexer.expected(end, "a name and `{`"))
}

impl Reader<'_, '_> {
    fn body(&mut self, extent: Extent) -> Result<(), CdlError> {
        let mut section = Section::Start;
        loop {
            self.lexer.skip()?;
            let start = self.lexer.at;
            match self.lexer.next()? {
                Token::Mark(b'}') => break,
                Token::Mark(b':') => self.attribute(Owner::Global, None)?,
                Token::Word(word) => match self.section_keyword(&word, section) {
                    Some(b"dimensions") => section = Section::Dimensions,
                    Some(b"variables") => section = Section::Variables,
                    Some(b"data") if extent == Extent::Header => return Ok(()),
                    Some(b"data") => section = Section::Data,
                    Some(other) => {
                        let what = if other == b"group" { "a group" } else { "a section `types`" };
                        return Err(self
                            .lexer
                            .error(start, CdlFault::NotClassic(what.to_string())));
                    }
                    None => match section {
                        Section::Dimensions if !self.is_attribute(&word)? => {
                            self.dimension(word)?;
                        }
                        Section::Data if !self.is_attribute(&word)? => self.data(word)?,
                        _ => self.declaration(word)?,
                    },
                },
                _ => {
                    let expected = match section {
                        Section::Start => "a section, a global attribute or `}`",
                        Section::Dimensions => "a dimension, a section or `}`",
                        Section::Variables => "a variable, an attribute, a section or `}`",
                        Section::Data => "a variable's name or `}`",
                    };
                    return Err(self.lexer.expected(start, expected));
                }
            }
        }
        self.lexer.skip()?;
        let end = self.lexer.at;
        match self.lexer.next()? {
            Token::End => Ok(()),
            _ => Err(self.lexer.expected(end, "nothing after the last `}`")),
        }
    }

    /// The keyword, when the word with the colon at it begins a section.
    fn section_keyword(&mut self, word: &Range<usize>, section: Section) -> Option<&'static [u8]> {
        const SECTIONS: [&[u8]; 5] = [b"dimensions", b"variables", b"data", b"types", b"group"];
        if self.lexer.peek_byte() != Some(b':') {
            return None;
        }
        let text = self.lexer.slice(word.clone());
        let keyword = SECTIONS.into_iter().find(|keyword| *keyword == text)?;
        // In the section of variables it can be the attribute of a variable of that name,
        // except for `data`, before whose colon ncdump puts a space.
        let known = std::str::from_utf8(text).is_ok_and(|name| self.schema.var(name).is_some());
        if section == Section::Variables && known && keyword != b"data" {
            return None;
        }
        self.lexer.at += 1;
        Some(keyword)
    }

    /// Whether an attribute begins with this word: `word:` or `type word:`.
    fn is_attribute(&mut self, word: &Range<usize>) -> Result<bool, CdlError> {
        let at = self.lexer.at;
        let mut next = self.lexer.next()?;
        if let Token::Word(_) = next
            && type_named(self.lexer.slice(word.clone())).is_some()
        {
            next = self.lexer.next()?;
        }
        self.lexer.at = at;
        Ok(next == Token::Mark(b':'))
    }

    /// `name = length`, after the name, with what ends it.
    fn dimension(&mut self, word: Range<usize>) -> Result<(), CdlError> {
        let mut word = word;
        loop {
            let name = self.lexer.name(word.clone())?;
            self.mark(b'=', "`=` and the length of the dimension")?;
            self.lexer.skip()?;
            let start = self.lexer.at;
            let len = match self.lexer.next()? {
                Token::Word(range)
                    if matches!(self.lexer.slice(range.clone()), b"UNLIMITED" | b"unlimited") =>
                {
                    DimLen::Unlimited
                }
                Token::Number(range) => match super::constant::number(self.lexer.slice(range)) {
                    Ok(Constant::Integer(len, _)) if len >= 0 => DimLen::Fixed(len as u64),
                    _ => return Err(self.lexer.expected(start, "the length of the dimension")),
                },
                _ => return Err(self.lexer.expected(start, "a length or `UNLIMITED`")),
            };
            if let Err(error) = self.schema.add_dim(&name, len) {
                return Err(self.lexer.error(word.start, error.into()));
            }
            if let DimLen::Fixed(len) = len
                && len > Version::Cdf1.max_count()
            {
                let (version, max) = (Version::Cdf1, Version::Cdf1.max_count());
                let error =
                    SchemaError::DimLength { name: name.as_str().into(), len, version, max };
                self.extended.get_or_insert((word.start, error));
            }
            if data::ends(self.lexer)? {
                if len == DimLen::Unlimited {
                    self.current = self.lexer.current_length()?;
                }
                return Ok(());
            }
            self.lexer.skip()?;
            let start = self.lexer.at;
            word = match self.lexer.next()? {
                Token::Word(word) => word,
                _ => return Err(self.lexer.expected(start, "the name of a dimension")),
            };
        }
    }

    /// A variable or an attribute, after its first word.
    fn declaration(&mut self, word: Range<usize>) -> Result<(), CdlError> {
        let colon_at_once = self.lexer.peek_byte() == Some(b':');
        let name = self.lexer.name(word.clone())?;
        let ty = type_named(self.lexer.slice(word.clone()));
        let next = self.lexer.peek()?;
        match (ty, next) {
            // A variable may be called as a type is.
            (Some(ty), Token::Mark(b':'))
                if !(colon_at_once && self.schema.var(&name).is_some()) =>
            {
                self.lexer.next()?;
                self.attribute(Owner::Global, Some(ty))
            }
            (_, Token::Mark(b':')) => {
                let Some(var) = self.schema.var(&name) else {
                    let fault = CdlFault::Undeclared { kind: "variable", name };
                    return Err(self.lexer.error(word.start, fault));
                };
                self.lexer.next()?;
                self.attribute(Owner::Var(var), None)
            }
            (Some(ty), Token::Word(second)) => {
                self.lexer.next()?;
                if self.lexer.peek()? == Token::Mark(b':') {
                    let name = self.lexer.name(second.clone())?;
                    let Some(var) = self.schema.var(&name) else {
                        let fault = CdlFault::Undeclared { kind: "variable", name };
                        return Err(self.lexer.error(second.start, fault));
                    };
                    self.lexer.next()?;
                    return self.attribute(Owner::Var(var), Some(ty));
                }
                match ty {
                    Type::External(ty) => self.variables(ty, second),
                    Type::String => {
                        let fault = CdlFault::NotClassic("a variable of type string".to_string());
                        Err(self.lexer.error(word.start, fault))
                    }
                }
            }
            (Some(_), _) => {
                let at = self.lexer.at;
                Err(self.lexer.expected(at, "the name of a variable"))
            }
            (None, _) => Err(self.lexer.expected(word.start, "a type, an attribute or a section")),
        }
    }

    /// `name(dim, …), name …;` after the first name.
    fn variables(&mut self, ty: ExternalType, word: Range<usize>) -> Result<(), CdlError> {
        let mut word = word;
        loop {
            let name = self.lexer.name(word.clone())?;
            let mut dims = Vec::new();
            if self.lexer.peek()? == Token::Mark(b'(') {
                self.lexer.next()?;
                loop {
                    dims.push(self.dimension_named()?);
                    self.lexer.skip()?;
                    let at = self.lexer.at;
                    match self.lexer.next()? {
                        Token::Mark(b',') => {}
                        Token::Mark(b')') => break,
                        _ => return Err(self.lexer.expected(at, "`,` or `)`")),
                    }
                }
            }
            if let Err(error) = self.schema.add_var(&name, ty, &dims) {
                return Err(self.lexer.error(word.start, error.into()));
            }
            self.given.push(None);
            if !Version::Cdf1.has_type(ty) {
                let (object, version) = (format!("variable \"{name}\""), Version::Cdf1);
                let error = SchemaError::TypeNotInVersion { object, ty, version };
                self.extended.get_or_insert((word.start, error));
            }
            if data::ends(self.lexer)? {
                return Ok(());
            }
            self.lexer.skip()?;
            let start = self.lexer.at;
            word = match self.lexer.next()? {
                Token::Word(word) => word,
                _ => return Err(self.lexer.expected(start, "the name of a variable")),
            };
        }
    }

    fn dimension_named(&mut self) -> Result<DimId, CdlError> {
        self.lexer.skip()?;
        let start = self.lexer.at;
        let Token::Word(word) = self.lexer.next()? else {
            return Err(self.lexer.expected(start, "the name of a dimension"));
        };
        let name = self.lexer.name(word)?;
        self.schema.dim(&name).ok_or_else(|| {
            self.lexer.error(start, CdlFault::Undeclared { kind: "dimension", name })
        })
    }

    /// `name = values ;` after the name, in the data section.
    fn data(&mut self, word: Range<usize>) -> Result<(), CdlError> {
        let name = self.lexer.name(word.clone())?;
        let Some(id) = self.schema.var(&name) else {
            let fault = CdlFault::Undeclared { kind: "variable", name };
            return Err(self.lexer.error(word.start, fault));
        };
        self.mark(b'=', "`=` and the values of the variable")?;
        let Some(var) = self.schema.variable(id) else { return Ok(()) };
        let record = self.schema.is_record(var);
        let shape = self.schema.shape(var, 1);
        let size = shape.iter().fold(1u64, |size, len| size.saturating_mul(*len));
        let fill = fill_value(var);
        let target = Target {
            name: &name,
            ty: var.ty,
            fill: &fill,
            room: (!record).then_some(size),
            row: if shape.len() > 1 { shape.last().copied() } else { None },
            promised: self.current.filter(|_| record).map(|n| n.saturating_mul(size)),
        };
        let values = data::read(self.lexer, &target)?;
        self.given[id.0] = Some(values);
        Ok(())
    }

    pub(super) fn mark(&mut self, mark: u8, expected: &str) -> Result<(), CdlError> {
        self.lexer.skip()?;
        let at = self.lexer.at;
        match self.lexer.next()? {
            Token::Mark(found) if found == mark => Ok(()),
            _ => Err(self.lexer.expected(at, expected)),
        }
    }

    fn finish(mut self, name: String) -> Result<CdlFile, CdlError> {
        let version = match (self.format, self.extended) {
            (Some(Version::Cdf5), _) | (None, Some(_)) => Version::Cdf5,
            (Some(version), None) => version,
            (None, None) => Version::Cdf1,
            (Some(told), Some((at, error))) => {
                let error = match error {
                    SchemaError::TypeNotInVersion { object, ty, .. } => {
                        SchemaError::TypeNotInVersion { object, ty, version: told }
                    }
                    SchemaError::DimLength { name, len, max, .. } => {
                        SchemaError::DimLength { name, len, version: told, max }
                    }
                    error => error,
                };
                return Err(self.lexer.error(at, error.into()));
            }
        };
        self.schema.version = version;
        let mut numrecs = 0;
        let mut has_records = false;
        let mut given = Vec::with_capacity(self.given.len());
        for (id, values) in self.given.into_iter().enumerate() {
            let Some(var) = self.schema.variable(VarId(id)) else { continue };
            let values = values.unwrap_or_else(|| CdlFile::nothing(&default_fill(var.ty)));
            if self.schema.is_record(var) {
                has_records = true;
                let shape = self.schema.shape(var, 1);
                let record = shape.iter().fold(1u64, |size, len| size.saturating_mul(*len));
                numrecs = numrecs.max((values.len() as u64).div_ceil(record.max(1)));
            }
            given.push(values);
        }
        // Without a record variable only the comment knows.
        if !has_records && self.schema.record_dim().is_some() {
            numrecs = self.current.unwrap_or(0);
        }
        let (schema, format, notes) = (self.schema, self.format, self.notes);
        Ok(CdlFile { name, schema, format, numrecs, given, notes })
    }
}
