//! What people say of a version when it is committed.

use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a message of a version has at most.
pub const LONGEST_MESSAGE: usize = 4096;

/// Why a text cannot be the message of a version, if it cannot.
pub(crate) fn refusal(text: &str) -> Option<String> {
    if text.len() > LONGEST_MESSAGE {
        let len = text.len();
        return Some(format!(
            "a message of {len} bytes is too long: it has at most {LONGEST_MESSAGE}"
        ));
    }
    let control = text.char_indices().find(|(_, c)| c.is_control())?;
    let (at, c) = control;
    Some(format!(
        "a message is one line of text, and this one has the control character U+{:04X} at byte {at}",
        u32::from(c)
    ))
}

/// The message of the next commit, while there is none that it belongs to.
#[derive(Debug, Clone, Default)]
pub(crate) struct NextMessage(Arc<Mutex<Option<String>>>);

impl NextMessage {
    /// Another one; `None` takes it back.
    pub(crate) fn set(&self, message: Option<&str>) {
        let message = message.filter(|text| !text.is_empty());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = message.map(str::to_string);
    }

    /// What it is.
    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_of_bounded_length() {
        for good in ["", "spin-up done", "Größe = 3; ok", &"x".repeat(LONGEST_MESSAGE)] {
            assert_eq!(refusal(good), None, "{good:?}");
        }
        let long = refusal(&"ä".repeat(LONGEST_MESSAGE / 2 + 1)).unwrap();
        assert!(long.contains("4098 bytes is too long"), "{long}");
        for (bad, said) in [("a\nb", "U+000A at byte 1"), ("é\u{9b}", "U+009B at byte 2")] {
            let why = refusal(bad).unwrap();
            assert!(why.contains(said), "{why}");
        }
    }
}
