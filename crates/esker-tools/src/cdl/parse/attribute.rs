//! The values of attributes: which type a list of constants has, and its values of that type.

use esker_format::{ExternalType, Values};

use super::constant::Constant;

/// The type of a list that is given without one: text if any of it is text (all must be), else
/// double if any is double, float if any is float, else the largest of the integer types, the
/// later of two of one size. A character constant counts as a byte.
pub(super) fn infer(constants: &[Constant]) -> Option<ExternalType> {
    let is_text = |c: &Constant| matches!(c, Constant::Text(_));
    if constants.iter().any(is_text) || constants.is_empty() {
        return constants.iter().all(is_text).then_some(ExternalType::Char);
    }
    if constants.iter().any(|c| matches!(c, Constant::Double(_))) {
        return Some(ExternalType::Double);
    }
    if constants.iter().any(|c| matches!(c, Constant::Float(_))) {
        return Some(ExternalType::Float);
    }
    let mut result = None;
    for constant in constants {
        let ty = match constant {
            Constant::Integer(_, ty) => *ty,
            Constant::Char(_) => ExternalType::Byte,
            _ => return None,
        };
        result = match result {
            Some(prior) if ExternalType::size(prior) > ty.size() => Some(prior),
            _ => Some(ty),
        };
    }
    // A number above the largest int64 needs the unsigned type, whatever stands after it.
    let large = |c: &Constant| matches!(c, Constant::Integer(v, _) if *v > i64::MAX.into());
    if constants.iter().any(large) {
        result = Some(ExternalType::UInt64);
    }
    result
}

/// Why constants are no values of a type: the place in the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The constant is a number that the type does not hold.
    Range(usize),
    /// The constant is text where a number is wanted, or the other way round.
    Kind(usize),
}

/// The constants as values of a type.
pub(super) fn convert(constants: &[Constant], ty: ExternalType) -> Result<Values, Misfit> {
    fn list<T>(
        constants: &[Constant],
        one: impl Fn(&Constant) -> Result<T, Unfit>,
    ) -> Result<Vec<T>, Misfit> {
        let mut values = Vec::with_capacity(constants.len());
        for (place, constant) in constants.iter().enumerate() {
            values.push(one(constant).map_err(|unfit| match unfit {
                Unfit::Range => Misfit::Range(place),
                Unfit::Kind => Misfit::Kind(place),
            })?);
        }
        Ok(values)
    }
    Ok(match ty {
        ExternalType::Char => {
            let mut text = Vec::new();
            for (place, constant) in constants.iter().enumerate() {
                match constant {
                    Constant::Text(bytes) => text.extend_from_slice(bytes),
                    Constant::Char(byte) => text.push(*byte),
                    Constant::Integer(v, ExternalType::Byte | ExternalType::UByte) => {
                        text.push(*v as u8);
                    }
                    _ => return Err(Misfit::Kind(place)),
                }
            }
            Values::Char(text)
        }
        ExternalType::Byte => Values::Byte(list(constants, to_byte)?),
        ExternalType::Short => Values::Short(list(constants, to_integer)?),
        ExternalType::Int => Values::Int(list(constants, to_integer)?),
        ExternalType::Int64 => Values::Int64(list(constants, to_integer)?),
        ExternalType::UByte => Values::UByte(list(constants, to_integer)?),
        ExternalType::UShort => Values::UShort(list(constants, to_integer)?),
        ExternalType::UInt => Values::UInt(list(constants, to_integer)?),
        ExternalType::UInt64 => Values::UInt64(list(constants, to_integer)?),
        ExternalType::Float => Values::Float(list(constants, to_float)?),
        ExternalType::Double => Values::Double(list(constants, to_double)?),
    })
}

/// Why a constant is no value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    Range,
    Kind,
}

/// As an integer; a fraction is cut off.
pub(super) fn to_integer<T: TryFrom<i128>>(constant: &Constant) -> Result<T, Unfit> {
    T::try_from(whole(constant)?).map_err(|_| Unfit::Range)
}

/// As a byte; 128 to 255 are the bits of a negative one.
pub(super) fn to_byte(constant: &Constant) -> Result<i8, Unfit> {
    let value = whole(constant)?;
    match value {
        128..=255 => Ok(value as u8 as i8),
        _ => i8::try_from(value).map_err(|_| Unfit::Range),
    }
}

fn whole(constant: &Constant) -> Result<i128, Unfit> {
    let value = match constant {
        Constant::Integer(v, _) => return Ok(*v),
        Constant::Char(byte) => return Ok(i128::from(*byte as i8)),
        Constant::Float(v) => f64::from(*v),
        Constant::Double(v) => *v,
        Constant::Text(_) | Constant::Fill => return Err(Unfit::Kind),
    };
    // Not exact at the ends of 64 bits, but the conversion that follows checks those.
    if value.abs() <= 2e19 { Ok(value as i128) } else { Err(Unfit::Range) }
}

/// As a float.
pub(super) fn to_float(constant: &Constant) -> Result<f32, Unfit> {
    match constant {
        Constant::Integer(v, _) => Ok(*v as f32),
        Constant::Char(byte) => Ok(f32::from(*byte as i8)),
        Constant::Float(v) => Ok(*v),
        Constant::Double(v) if v.is_finite() && !(*v as f32).is_finite() => Err(Unfit::Range),
        Constant::Double(v) => Ok(*v as f32),
        Constant::Text(_) | Constant::Fill => Err(Unfit::Kind),
    }
}

/// As a double.
pub(super) fn to_double(constant: &Constant) -> Result<f64, Unfit> {
    match constant {
        Constant::Integer(v, _) => Ok(*v as f64),
        Constant::Char(byte) => Ok(f64::from(*byte as i8)),
        Constant::Float(v) => Ok(f64::from(*v)),
        Constant::Double(v) => Ok(*v),
        Constant::Text(_) | Constant::Fill => Err(Unfit::Kind),
    }
}
