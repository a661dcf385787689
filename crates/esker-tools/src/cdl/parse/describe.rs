//! Attributes, and the ones among them that speak of the file and are not in it.

use std::ops::Range;

use esker_format::{ExternalType, Owner, SchemaError, Version};

use super::attribute::{self, Misfit};
use super::constant::Constant;
use super::data;
use super::declare::{Reader, Type};
use super::lex::Token;
use crate::cdl::error::{CdlError, CdlFault};

/// Attributes that say how netCDF-4 stores a variable or a file. They are read and dropped.
const STORAGE: [&str; 12] = [
    "_Storage",
    "_ChunkSizes",
    "_Fletcher32",
    "_Checksum",
    "_DeflateLevel",
    "_Shuffle",
    "_Endianness",
    "_NoFill",
    "_Filter",
    "_Codecs",
    "_QuantizeBitGroomNumberOfSignificantDigits",
    "_QuantizeGranularBitRoundNumberOfSignificantDigits",
];
const PROVENANCE: [&str; 3] = ["_NCProperties", "_IsNetcdf4", "_SuperblockVersion"];

impl Reader<'_, '_> {
    /// `name = values ;` after the colon.
    pub(super) fn attribute(&mut self, owner: Owner, ty: Option<Type>) -> Result<(), CdlError> {
        self.lexer.skip()?;
        let start = self.lexer.at;
        let Token::Word(word) = self.lexer.next()? else {
            return Err(self.lexer.expected(start, "the name of an attribute"));
        };
        let name = self.lexer.name(word)?;
        self.mark(b'=', "`=` and the values of the attribute")?;
        let mut constants = Vec::new();
        let mut places = Vec::new();
        self.lexer.skip()?;
        if self.lexer.peek_byte() == Some(b';') {
            self.lexer.at += 1;
        } else {
            loop {
                self.lexer.skip()?;
                let at = self.lexer.at;
                let constant = super::constant_at(self.lexer)?;
                places.push(at..self.lexer.at);
                if constant == Constant::Fill {
                    return Err(self.wrong(&places, at, &name));
                }
                constants.push(constant);
                if data::ends(self.lexer)? {
                    break;
                }
            }
        }
        if self.special(owner, &name, &constants, start)? {
            return Ok(());
        }
        // Files with text for the fill value of numbers exist; it fills nothing, but stays.
        let number = |c: &Constant| !matches!(c, Constant::Text(_));
        let fill_type = self.fill_type(owner, &name);
        let fill_type = fill_type.filter(|_| constants.first().is_some_and(number));
        let ty = match (fill_type, ty) {
            (Some(ty), _) | (None, Some(Type::External(ty))) => ty,
            (None, Some(Type::String)) => match constants.as_slice() {
                [] | [Constant::Text(_)] => ExternalType::Char,
                _ => {
                    let what = "an attribute of several strings".to_string();
                    return Err(self.lexer.error(start, CdlFault::NotClassic(what)));
                }
            },
            (None, None) => match attribute::infer(&constants) {
                Some(ty) => ty,
                None => return Err(self.wrong(&places, start, &name)),
            },
        };
        let values = attribute::convert(&constants, ty).map_err(|misfit| match misfit {
            Misfit::Range(i) => {
                let place = places.get(i).cloned().unwrap_or_default();
                let constant = self.lexer.shown(place.clone());
                let fault = CdlFault::OutOfRange { constant, ty: ty.to_string() };
                self.lexer.error(place.start, fault)
            }
            Misfit::Kind(i) => {
                let place = places.get(i).cloned().unwrap_or_default();
                let owner = format!("{ty} attribute \"{name}\"");
                let constant = self.lexer.shown(place.clone());
                self.lexer.error(place.start, CdlFault::WrongKind { constant, owner })
            }
        })?;
        if !Version::Cdf1.has_type(ty) {
            let (object, version) = (format!("attribute \"{name}\""), Version::Cdf1);
            let error = SchemaError::TypeNotInVersion { object, ty, version };
            self.extended.get_or_insert((start, error));
        }
        self.schema
            .put_attr(owner, &name, values)
            .map_err(|error| self.lexer.error(start, error.into()))
    }

    fn wrong(&self, places: &[Range<usize>], at: usize, name: &str) -> CdlError {
        let whole = places.first().map_or(at, |p| p.start)..places.last().map_or(at, |p| p.end);
        let constant = self.lexer.shown(whole);
        let owner = format!("attribute \"{name}\"");
        self.lexer.error(at, CdlFault::WrongKind { constant, owner })
    }

    /// A fill value has its variable's type, however it is written.
    fn fill_type(&self, owner: Owner, name: &str) -> Option<ExternalType> {
        match owner {
            Owner::Var(var) if name == "_FillValue" => Some(self.schema.variable(var)?.ty),
            _ => None,
        }
    }

    /// Takes an attribute that speaks of the file and is not in it.
    fn special(
        &mut self,
        owner: Owner,
        name: &str,
        constants: &[Constant],
        at: usize,
    ) -> Result<bool, CdlError> {
        match owner {
            Owner::Global if name == "_Format" => {
                let text = match constants {
                    [Constant::Text(text)] => String::from_utf8_lossy(text).into_owned(),
                    _ => String::new(),
                };
                self.format = match text.as_str() {
                    "classic" | "netCDF-3" | "nc3" => Some(Version::Cdf1),
                    "64-bit offset" | "64-bit-offset" | "nc6" => Some(Version::Cdf2),
                    "cdf5" | "64-bit data" | "64-bit-data" | "nc5" => Some(Version::Cdf5),
                    "netCDF-4" | "netCDF-4 classic model" => {
                        self.notes.push(format!("_Format \"{text}\" is written as a classic file"));
                        None
                    }
                    _ => {
                        let (attribute, value) = ("_Format".to_string(), format!("{text:?}"));
                        return Err(self.lexer.error(at, CdlFault::Special { attribute, value }));
                    }
                };
                Ok(true)
            }
            Owner::Global if PROVENANCE.contains(&name) => Ok(true),
            Owner::Var(var) if STORAGE.contains(&name) => {
                let var = self.schema.variable(var).map_or("", |v| &v.name);
                self.notes.push(format!("{var}:{name} has no meaning in a classic file"));
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
