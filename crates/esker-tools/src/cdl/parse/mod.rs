//! From CDL to a schema and values, as `ncgen` reads it.

mod attribute;
mod constant;
mod data;
mod declare;
mod describe;
mod file;
mod lex;

pub use file::CdlFile;

use constant::Constant;
use declare::Extent;
use lex::{Lexer, Token};

use super::error::{CdlError, CdlFault};

/// Reads CDL.
///
/// ```
/// let file = esker_tools::cdl::parse("netcdf t { variables: int64 n ; data: n = 9223372036854775807 ; }")?;
/// assert_eq!(file.name, "t");
/// # Ok::<(), esker_tools::cdl::CdlError>(())
/// ```
pub fn parse(text: &str) -> Result<CdlFile, CdlError> {
    parse_bytes(text.as_bytes())
}

/// Reads CDL whose strings need not be UTF-8, as the text of old files often is not.
pub fn parse_bytes(text: &[u8]) -> Result<CdlFile, CdlError> {
    declare::file(&mut Lexer::new(text), Extent::Whole)
}

/// Reads the header of a CDL text: its dimensions, variables and attributes. The data section is
/// not looked at. The version may stand in the comment that `ncmpidump` writes.
///
/// ```
/// let text = b"netcdf t {\n// file format: CDF-2 (large file)\ndimensions: x = 3 ;\n}";
/// let file = esker_tools::cdl::parse_header(text)?;
/// assert_eq!(file.schema.version, esker::Version::Cdf2);
/// # Ok::<(), esker_tools::cdl::CdlError>(())
/// ```
pub fn parse_header(text: &[u8]) -> Result<CdlFile, CdlError> {
    declare::file(&mut Lexer::new(text), Extent::Header)
}

/// Takes a constant.
fn constant_at(lexer: &mut Lexer<'_>) -> Result<Constant, CdlError> {
    lexer.skip()?;
    let start = lexer.at;
    match lexer.next()? {
        Token::Number(range) => constant::number(lexer.slice(range))
            .map_err(|why| data::not_constant(lexer, start, why)),
        Token::Text(range) => {
            let mut text = Vec::new();
            lexer.unquote(range, &mut text)?;
            Ok(Constant::Text(text))
        }
        Token::Char(range) => {
            let mut text = Vec::new();
            lexer.unquote(range, &mut text)?;
            match text.as_slice() {
                [byte] => Ok(Constant::Char(*byte)),
                _ => {
                    let fault = "a character constant is one byte between quotes".to_string();
                    Err(lexer.error(start, CdlFault::BadText(fault)))
                }
            }
        }
        Token::Word(range) => match lexer.slice(range) {
            b"_" => Ok(Constant::Fill),
            b"NIL" | b"nil" | b"Nil" => {
                Err(lexer.error(start, CdlFault::NotClassic("a null string".to_string())))
            }
            word => constant::number(word).map_err(|why| data::not_constant(lexer, start, why)),
        },
        Token::Mark(b'{') => {
            let fault = CdlFault::NotClassic("a list inside a list of values".to_string());
            Err(lexer.error(start, fault))
        }
        Token::Mark(_) | Token::End => Err(lexer.expected(start, "a value")),
    }
}
