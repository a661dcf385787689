//! What turns into [`Values`]: numbers, lists of numbers, text.

use super::Values;
use super::native::{Char, Native};

impl<T: Native> From<Vec<T>> for Values {
    fn from(list: Vec<T>) -> Values {
        T::into_values(list)
    }
}

impl<T: Native> From<&[T]> for Values {
    fn from(list: &[T]) -> Values {
        T::into_values(list.to_vec())
    }
}

impl<T: Native, const N: usize> From<[T; N]> for Values {
    fn from(list: [T; N]) -> Values {
        T::into_values(list.to_vec())
    }
}

impl<T: Native, const N: usize> From<&[T; N]> for Values {
    fn from(list: &[T; N]) -> Values {
        T::into_values(list.to_vec())
    }
}

impl From<&str> for Values {
    fn from(text: &str) -> Values {
        Values::Char(text.as_bytes().to_vec())
    }
}

impl From<String> for Values {
    fn from(text: String) -> Values {
        Values::Char(text.into_bytes())
    }
}

impl From<&String> for Values {
    fn from(text: &String) -> Values {
        Values::from(text.as_str())
    }
}

// One by one, because `impl<T: Native> From<T>` would overlap with the lists above.
macro_rules! from_one {
    ($($t:ident)*) => {$(
        impl From<$t> for Values {
            fn from(value: $t) -> Values {
                <$t as Native>::into_values(vec![value])
            }
        }
    )*};
}
from_one! { i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 Char }
