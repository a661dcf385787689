//! The data section: lists of values, straight into typed vectors.

use esker_format::{ExternalType, Values};

use super::attribute::{Unfit, to_byte, to_double, to_float, to_integer};
use super::constant::{self, Constant, NotConstant};
use super::lex::{Lexer, Token};
use crate::cdl::error::{CdlError, CdlFault};

/// What a list is to fill.
pub(super) struct Target<'a> {
    pub(super) name: &'a str,
    pub(super) ty: ExternalType,
    pub(super) fill: &'a Values,
    /// How many values there is room for; none for a record variable, which grows.
    pub(super) room: Option<u64>,
    /// The length of the fastest dimension, if the variable has two dimensions or more: text
    /// is then padded to rows of it.
    pub(super) row: Option<u64>,
    /// For a record variable how many values the comment after the dimension promises.
    pub(super) promised: Option<u64>,
}

/// Reads a list up to and with its semicolon.
pub(super) fn read(lexer: &mut Lexer<'_>, target: &Target<'_>) -> Result<Values, CdlError> {
    macro_rules! numbers {
        ($($variant:ident),*) => {
            match target.fill {
                $(Values::$variant(fill) => {
                    let fill = fill.first().copied().unwrap_or_default();
                    Ok(Values::$variant(numbers(lexer, target, fill)?))
                })*
                Values::Char(fill) => {
                    let fill = fill.first().copied().unwrap_or_default();
                    Ok(Values::Char(text(lexer, target, fill)?))
                }
            }
        };
    }
    numbers!(Byte, Short, Int, Float, Double, UByte, UShort, UInt, Int64, UInt64)
}

/// A number that data can be.
trait Element: Copy + Default {
    /// From the most common spelling of this type, quickly; nothing when it is another one.
    fn quick(literal: &[u8]) -> Option<Self>;
    /// From any constant.
    fn from_constant(constant: &Constant) -> Result<Self, Unfit>;
}

macro_rules! integer_element {
    ($($t:ty => $convert:path),*) => {
        $(impl Element for $t {
            #[inline]
            fn quick(literal: &[u8]) -> Option<$t> {
                <$t>::try_from(quick_integer(literal)?).ok()
            }
            fn from_constant(constant: &Constant) -> Result<$t, Unfit> {
                $convert(constant)
            }
        })*
    };
}
integer_element!(i8 => to_byte, i16 => to_integer, i32 => to_integer, i64 => to_integer,
    u8 => to_integer, u16 => to_integer, u32 => to_integer, u64 => to_integer);

impl Element for f32 {
    #[inline]
    fn quick(literal: &[u8]) -> Option<f32> {
        is_decimal(literal).then(|| constant::float(literal).ok()).flatten()
    }
    fn from_constant(constant: &Constant) -> Result<f32, Unfit> {
        to_float(constant)
    }
}

impl Element for f64 {
    #[inline]
    fn quick(literal: &[u8]) -> Option<f64> {
        is_decimal(literal).then(|| constant::double(literal).ok()).flatten()
    }
    fn from_constant(constant: &Constant) -> Result<f64, Unfit> {
        to_double(constant)
    }
}

/// At most 18 decimal digits that are not octal, with or without a minus.
#[inline]
fn quick_integer(literal: &[u8]) -> Option<i64> {
    let (negative, digits) = match literal {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let mut value = 0i64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

/// Whether a literal is a decimal number without suffix that is not an octal integer.
#[inline]
fn is_decimal(literal: &[u8]) -> bool {
    let digits = literal.strip_prefix(b"-").unwrap_or(literal);
    let octal = digits.len() > 1 && digits[0] == b'0' && digits[1] != b'.';
    !octal && matches!(digits.last(), Some(b'0'..=b'9' | b'.'))
}

fn numbers<T: Element>(
    lexer: &mut Lexer<'_>,
    target: &Target<'_>,
    fill: T,
) -> Result<Vec<T>, CdlError> {
    let mut values: Vec<T> = Vec::new();
    if ends_at_once(lexer)? {
        return Ok(values);
    }
    loop {
        lexer.skip()?;
        let start = lexer.at;
        if target.room.is_some_and(|room| values.len() as u64 >= room) {
            return Err(too_many(lexer, target, start));
        }
        let value = match lexer.peek_byte() {
            Some(b'0'..=b'9' | b'-' | b'.' | b'+') => {
                lexer.number();
                match T::quick(lexer.slice(start..lexer.at)) {
                    Some(value) => value,
                    None => any(lexer, target, start, fill)?,
                }
            }
            _ => any(lexer, target, start, fill)?,
        };
        values.push(value);
        if ends(lexer)? {
            return Ok(values);
        }
    }
}

/// A value in any spelling.
#[cold]
fn any<T: Element>(
    lexer: &mut Lexer<'_>,
    target: &Target<'_>,
    start: usize,
    fill: T,
) -> Result<T, CdlError> {
    lexer.at = start;
    let constant = super::constant_at(lexer)?;
    if constant == Constant::Fill {
        return Ok(fill);
    }
    T::from_constant(&constant).map_err(|unfit| {
        let constant = lexer.shown(start..lexer.at);
        lexer.error(start, fault(unfit, constant, target))
    })
}

fn fault(unfit: Unfit, constant: String, target: &Target<'_>) -> CdlFault {
    match unfit {
        Unfit::Range => CdlFault::OutOfRange { constant, ty: target.ty.to_string() },
        Unfit::Kind => CdlFault::WrongKind {
            constant,
            owner: format!("{} variable \"{}\"", target.ty, target.name),
        },
    }
}

pub(super) fn not_constant(lexer: &mut Lexer<'_>, start: usize, why: NotConstant) -> CdlError {
    match why {
        NotConstant::Spelling => lexer.expected(start, "a value"),
        NotConstant::Range(ty) => {
            let constant = lexer.shown(start..lexer.at);
            lexer.error(start, CdlFault::OutOfRange { constant, ty: ty.to_string() })
        }
    }
}

fn too_many(lexer: &Lexer<'_>, target: &Target<'_>, at: usize) -> CdlError {
    let room = target.room.or(target.promised).unwrap_or(0);
    lexer.error(at, CdlFault::TooManyValues { var: target.name.to_string(), room })
}

fn ends_at_once(lexer: &mut Lexer<'_>) -> Result<bool, CdlError> {
    lexer.skip()?;
    let empty = lexer.peek_byte() == Some(b';');
    if empty {
        lexer.at += 1;
    }
    Ok(empty)
}

/// Takes what stands after a value: whether it is the semicolon.
#[inline]
pub(super) fn ends(lexer: &mut Lexer<'_>) -> Result<bool, CdlError> {
    lexer.skip()?;
    match lexer.peek_byte() {
        Some(b',') => {
            lexer.at += 1;
            Ok(false)
        }
        Some(b';') => {
            lexer.at += 1;
            Ok(true)
        }
        _ => {
            let at = lexer.at;
            Err(lexer.expected(at, "`,` or `;`"))
        }
    }
}

/// A string, or character constants that follow each other.
struct Piece {
    len: usize,
    quoted: bool,
    /// The string ends with a newline and goes on in the next line in the way of ncdump.
    goes_on: bool,
}

/// How ncdump goes on after a newline inside a row.
const GOES_ON: &[u8] = b",\n    \"";

fn text(lexer: &mut Lexer<'_>, target: &Target<'_>, fill: u8) -> Result<Vec<u8>, CdlError> {
    let begin = lexer.at;
    let mut bytes = Vec::new();
    let mut pieces: Vec<Piece> = Vec::new();
    if ends_at_once(lexer)? {
        return Ok(bytes);
    }
    loop {
        lexer.skip()?;
        let start = lexer.at;
        let before = bytes.len();
        let mut goes_on = false;
        let mut quoted = false;
        match lexer.peek()? {
            Token::Text(range) => {
                lexer.at = range.end;
                lexer.unquote(range, &mut bytes)?;
                quoted = true;
                goes_on = bytes.len() > before
                    && bytes.ends_with(b"\n")
                    && lexer.slice(lexer.at..lexer.at + GOES_ON.len()) == GOES_ON;
            }
            _ => match super::constant_at(lexer)? {
                Constant::Fill => bytes.push(fill),
                Constant::Char(byte) => bytes.push(byte),
                Constant::Integer(v, ExternalType::Byte | ExternalType::UByte) => {
                    bytes.push(v as u8);
                }
                _ => {
                    let constant = lexer.shown(start..lexer.at);
                    return Err(lexer.error(start, fault(Unfit::Kind, constant, target)));
                }
            },
        }
        let len = bytes.len() - before;
        match pieces.last_mut() {
            Some(piece) if !quoted && !piece.quoted => piece.len += len,
            _ => pieces.push(Piece { len, quoted, goes_on }),
        }
        if ends(lexer)? {
            break;
        }
    }
    let row = target.row.unwrap_or(1);
    let most = target.room.or(target.promised);
    let fits = |size: u64| most.is_none_or(|most| size <= most);
    let apart = padded_len(&pieces, row, false);
    let together = padded_len(&pieces, row, true);
    // ncgen's reading, in which each string begins a row, unless only the other one fits.
    let join = !fits(apart) && fits(together);
    let size = if join { together } else { apart };
    if target.room.is_some_and(|room| size > room) {
        return Err(too_many(lexer, target, begin));
    }
    if size > MUCH_PADDING && size / 16 > bytes.len() as u64 {
        let fault = format!("these strings are too short to be padded to rows of {row}");
        return Err(lexer.error(begin, CdlFault::BadText(fault)));
    }
    Ok(pad(&bytes, &pieces, row, join, fill))
}

/// The rows that pieces make: each piece alone, or with the ones before it that go on.
fn spans(pieces: &[Piece], join: bool) -> impl Iterator<Item = usize> + '_ {
    let mut rest = pieces.iter();
    std::iter::from_fn(move || {
        let mut piece = rest.next()?;
        let mut len = piece.len;
        while join && piece.goes_on {
            match rest.next() {
                Some(next) => piece = next,
                None => break,
            }
            len += piece.len;
        }
        Some(len)
    })
}

fn rounded(len: usize, row: u64) -> u64 {
    (len as u64).max(1).div_ceil(row).saturating_mul(row)
}

fn padded_len(pieces: &[Piece], row: u64, join: bool) -> u64 {
    spans(pieces, join).fold(0, |sum: u64, len| sum.saturating_add(rounded(len, row)))
}

fn pad(bytes: &[u8], pieces: &[Piece], row: u64, join: bool, fill: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    for len in spans(pieces, join) {
        let (part, after) = rest.split_at(len.min(rest.len()));
        rest = after;
        out.extend_from_slice(part);
        let missing = rounded(len, row) - len as u64;
        out.resize(out.len() + missing as usize, fill);
    }
    out
}

/// A few characters in a variable of huge rows must not cost the rows' size: beyond this many
/// bytes most of them must be given.
const MUCH_PADDING: u64 = 1 << 28;
