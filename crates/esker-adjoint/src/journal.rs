//! What a rank's journal says, one frame after the other. docs/format/adjoint.md has the bytes.

use esker_format::log::{Bodies, frame};
use esker_format::varint;

use crate::segment::Kind;

/// A segment that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The step of a checkpoint; the state that the adjoint is at.
    pub step: u64,
    /// What it holds.
    pub kind: Kind,
    /// The number in its name.
    pub number: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A segment is whole.
    Stored(Record),
    /// A segment was given up; its file may be gone.
    Dropped {
        /// The number in its name.
        number: u64,
    },
    /// The model has reached its end.
    EndForward,
    /// The adjoint has reached state 0.
    EndReverse,
}

const STORED: u8 = 16;
const DROPPED: u8 = 17;
const END_FORWARD: u8 = 18;
const END_REVERSE: u8 = 19;

impl Event {
    /// Its frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Event::Stored(record) => {
                body.push(STORED);
                varint::put(&mut body, record.step);
                varint::put(&mut body, record.kind.code().into());
                varint::put(&mut body, record.number);
                varint::put(&mut body, record.bytes);
            }
            Event::Dropped { number } => {
                body.push(DROPPED);
                varint::put(&mut body, *number);
            }
            Event::EndForward => body.push(END_FORWARD),
            Event::EndReverse => body.push(END_REVERSE),
        }
        frame(&body)
    }

    fn decode(body: &[u8]) -> Option<Event> {
        let (&code, mut rest) = body.split_first()?;
        let rest = &mut rest;
        let event = match code {
            STORED => {
                let step = varint::take(rest)?;
                let kind = Kind::from_code(varint::take(rest)?)?;
                let (number, bytes) = (varint::take(rest)?, varint::take(rest)?);
                Event::Stored(Record { step, kind, number, bytes })
            }
            DROPPED => Event::Dropped { number: varint::take(rest)? },
            END_FORWARD => Event::EndForward,
            END_REVERSE => Event::EndReverse,
            _ => return None,
        };
        rest.is_empty().then_some(event)
    }
}

/// What a journal says in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survivors {
    /// Segments that were stored and not given up, in order.
    pub kept: Vec<Record>,
    /// Whether the model has reached its end.
    pub end_forward: bool,
    /// Whether the adjoint has reached state 0.
    pub end_reverse: bool,
    /// The first number that no segment has had.
    pub next: u64,
    /// Places that could not be read, as sentences.
    pub damage: Vec<String>,
    /// Bytes up to the end of the last frame.
    pub length: u64,
}

/// Reads the frames of a journal, which begin at `base` of the file.
pub(crate) fn read(bytes: &[u8], base: u64) -> Survivors {
    let mut found = Survivors { length: base, ..Survivors::default() };
    let mut bodies = Bodies::new(bytes, base);
    while let Some(body) = bodies.next() {
        let body = match body {
            Ok(body) => body,
            Err(damage) => {
                found.damage.push(damage.to_string());
                continue;
            }
        };
        found.length = bodies.reached();
        match Event::decode(body) {
            Some(Event::Stored(record)) => {
                found.next = found.next.max(record.number.saturating_add(1));
                found.kept.retain(|other| other.number != record.number);
                found.kept.push(record);
            }
            Some(Event::Dropped { number }) => {
                found.next = found.next.max(number.saturating_add(1));
                found.kept.retain(|record| record.number != number);
            }
            Some(Event::EndForward) => found.end_forward = true,
            Some(Event::EndReverse) => found.end_reverse = true,
            None => found.damage.push(format!("a frame before byte {} is unknown", found.length)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<Event> {
        let record =
            |step, number| Event::Stored(Record { step, kind: Kind::Restart, number, bytes: 1000 });
        vec![record(0, 0), record(300, 1), Event::EndForward, Event::Dropped { number: 0 }]
    }

    #[test]
    fn what_was_stored_and_not_dropped_survives() {
        let bytes: Vec<u8> = events().iter().flat_map(Event::encode).collect();
        let found = read(&bytes, 40);
        let steps: Vec<u64> = found.kept.iter().map(|record| record.step).collect();
        assert_eq!((steps, found.next, found.end_forward), (vec![300], 2, true));
        assert_eq!((found.length, found.damage.len()), (40 + bytes.len() as u64, 0));
    }

    #[test]
    fn a_torn_tail_is_dropped_and_damage_is_told() {
        let frames: Vec<Vec<u8>> = events().iter().map(Event::encode).collect();
        let whole = frames.concat();
        for cut in 0..frames[3].len() {
            let found = read(&whole[..whole.len() - frames[3].len() + cut], 0);
            assert_eq!((found.kept.len(), found.damage.len()), (2, 0), "cut at {cut}");
        }
        let mut damaged = whole.clone();
        damaged[frames[0].len() + 18] ^= 1;
        let found = read(&damaged, 0);
        assert_eq!((found.kept.len(), found.damage.len()), (0, 1));
    }
}
