//! Words, numbers, strings and marks of CDL.

use std::ops::Range;

use crate::cdl::error::{CdlError, CdlFault};

/// A piece of the text. Ranges are bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or keyword, escapes and all.
    Word(Range<usize>),
    /// A number with its sign and suffix, or a signed word such as `-Infinity`.
    Number(Range<usize>),
    /// A string with its quotes.
    Text(Range<usize>),
    /// A character constant with its quotes.
    Char(Range<usize>),
    /// Anything else, one byte.
    Mark(u8),
    /// The end of the text.
    End,
}

/// Reads tokens.
pub(super) struct Lexer<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// The comment that was skipped last.
    comment: Range<usize>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Lexer<'a> {
        Lexer { text, at: 0, comment: 0..0 }
    }

    pub(super) fn error(&self, at: usize, fault: CdlFault) -> CdlError {
        CdlError::at(self.text, at, fault)
    }

    /// The error that something else was expected than stands at `at`.
    pub(super) fn expected(&mut self, at: usize, expected: &str) -> CdlError {
        self.at = at;
        let found = match self.next() {
            Ok(Token::End) => "the end of the text".to_string(),
            Ok(Token::Mark(byte)) => format!("`{}`", byte.escape_ascii()),
            _ => {
                let end = self.at.max(at).min(at + 40);
                format!("`{}`", self.shown(at..end))
            }
        };
        let expected = expected.to_string();
        self.error(at, CdlFault::Syntax { expected, found })
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.text.get(range).unwrap_or_default()
    }

    pub(super) fn shown(&self, range: Range<usize>) -> String {
        String::from_utf8_lossy(self.slice(range)).trim().to_string()
    }

    #[inline]
    pub(super) fn peek_byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Goes to the next byte that is neither white space nor comment.
    #[inline]
    pub(super) fn skip(&mut self) -> Result<(), CdlError> {
        while let Some(byte) = self.peek_byte() {
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' | 12 | 11 => self.at += 1,
                b'/' => self.skip_comment()?,
                _ => break,
            }
        }
        Ok(())
    }

    #[cold]
    fn skip_comment(&mut self) -> Result<(), CdlError> {
        let start = self.at;
        let rest = self.slice(start..self.text.len());
        if rest.starts_with(b"//") {
            let len = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            self.at += len;
            self.comment = start..self.at;
            Ok(())
        } else if rest.starts_with(b"/*") {
            let body = rest.get(2..).unwrap_or_default();
            match body.windows(2).position(|pair| pair == b"*/") {
                Some(len) => {
                    self.at += len + 4;
                    Ok(())
                }
                None => Err(self.error(start, CdlFault::Unclosed("this comment"))),
            }
        } else {
            Err(self.error(start, CdlFault::NotClassic("a path of groups".to_string())))
        }
    }

    /// N of a comment `// (N currently)` that follows in the same line, as ncdump writes after
    /// an unlimited dimension.
    pub(super) fn current_length(&mut self) -> Result<Option<u64>, CdlError> {
        let from = self.at;
        self.comment = 0..0;
        self.skip()?;
        let comment = self.comment.clone();
        if comment.is_empty() || self.slice(from..comment.start).contains(&b'\n') {
            return Ok(None);
        }
        let comment = String::from_utf8_lossy(self.slice(comment)).into_owned();
        let inside = comment.trim_start_matches('/').trim();
        let number = inside.strip_prefix('(').and_then(|c| c.strip_suffix("currently)"));
        Ok(number.and_then(|n| n.trim().parse().ok()))
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token, CdlError> {
        self.skip()?;
        let start = self.at;
        let Some(byte) = self.peek_byte() else { return Ok(Token::End) };
        match byte {
            b'0'..=b'9' | b'.' | b'+' | b'-' => {
                self.number();
                Ok(Token::Number(start..self.at))
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'\\' | 0x80.. => {
                self.word();
                Ok(Token::Word(start..self.at))
            }
            b'"' => {
                self.quoted(b'"', "this string")?;
                Ok(Token::Text(start..self.at))
            }
            b'\'' => {
                self.quoted(b'\'', "this character constant")?;
                Ok(Token::Char(start..self.at))
            }
            mark => {
                self.at += 1;
                Ok(Token::Mark(mark))
            }
        }
    }

    /// The next token, which is not taken.
    pub(super) fn peek(&mut self) -> Result<Token, CdlError> {
        let at = self.at;
        let token = self.next();
        self.at = at;
        token
    }

    /// Goes past a number. Signs are part of it at its start and after the `e` of an exponent.
    #[inline]
    pub(super) fn number(&mut self) {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek_byte() {
            match byte {
                b'0'..=b'9' | b'.' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.at += 1,
                b'+' | b'-' => {
                    let before = self.text.get(self.at - 1);
                    let hex = self.slice(start..self.at).iter().any(|b| matches!(b, b'x' | b'X'));
                    if !matches!(before, Some(b'e' | b'E')) || hex {
                        break;
                    }
                    self.at += 1;
                }
                _ => break,
            }
        }
    }

    fn word(&mut self) {
        while let Some(byte) = self.peek_byte() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'@' | b'+' | b'-' => {}
                b'%' | 0x80.. => {}
                b'\\' => self.at += 1,
                _ => break,
            }
            self.at += 1;
        }
        self.at = self.at.min(self.text.len());
    }

    fn quoted(&mut self, quote: u8, what: &'static str) -> Result<(), CdlError> {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek_byte() {
            self.at += 1;
            if byte == quote {
                return Ok(());
            }
            if byte == b'\\' {
                self.at += 1;
            }
        }
        self.at = start;
        Err(self.error(start, CdlFault::Unclosed(what)))
    }

    /// A word as a name: escapes removed.
    pub(super) fn name(&self, word: Range<usize>) -> Result<String, CdlError> {
        let mut bytes = Vec::with_capacity(word.len());
        let mut escaped = false;
        let mut rest = self.slice(word.clone());
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte == b'\\' && !escaped {
                escaped = true;
                continue;
            }
            // What our dump writes for characters that a terminal would obey. (ASCII ones no name has.)
            if let (true, b'%', Some((digits, after))) =
                (escaped, byte, rest.split_first_chunk::<2>())
                && let Some(byte) = hex(digits).filter(|byte| *byte >= 0x80)
            {
                (escaped, rest) = (false, after);
                bytes.push(byte);
                continue;
            }
            escaped = false;
            bytes.push(byte);
        }
        String::from_utf8(bytes).map_err(|_| {
            self.error(word.start, CdlFault::BadText("this name is not UTF-8".to_string()))
        })
    }

    /// Appends the bytes of a string or character constant: quotes and escapes removed.
    pub(super) fn unquote(&self, token: Range<usize>, out: &mut Vec<u8>) -> Result<(), CdlError> {
        let inside = token.start + 1..token.end.saturating_sub(1).max(token.start + 1);
        let mut bytes = self.slice(inside).iter().copied().enumerate().peekable();
        while let Some((_, byte)) = bytes.next() {
            if byte != b'\\' {
                out.push(byte);
                continue;
            }
            let Some((place, escape)) = bytes.next() else { break };
            let mut digit = |radix: u32| {
                let (_, next) = bytes.peek().copied()?;
                let value = char::from(next).to_digit(radix)?;
                bytes.next();
                Some(value)
            };
            out.push(match escape {
                b'a' => 7,
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 11,
                b'?' => 127,
                b'x' | b'X' => {
                    let Some(first) = digit(16) else {
                        let fault = "`\\x` is not followed by hexadecimal digits".to_string();
                        return Err(self.error(token.start + place, CdlFault::BadText(fault)));
                    };
                    digit(16).map_or(first, |second| first * 16 + second) as u8
                }
                b'0'..=b'7' => {
                    let mut value = u32::from(escape - b'0');
                    for _ in 0..2 {
                        match digit(8) {
                            Some(next) => value = value * 8 + next,
                            None => break,
                        }
                    }
                    let Ok(value) = u8::try_from(value) else {
                        let fault = format!("octal escape {value:o} is more than 377");
                        return Err(self.error(token.start + place, CdlFault::BadText(fault)));
                    };
                    value
                }
                other => other,
            });
        }
        Ok(())
    }
}

/// Two hexadecimal digits as a number.
fn hex(digits: &[u8; 2]) -> Option<u8> {
    u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}
