//! What a folder of checkpoints says of its run: `esker.json`.

use esker_codec::checksum;
use serde_json::{Value, json};

use crate::model::Layout;
use crate::names::MARK;

pub(crate) const WHAT: &str = "adjoint checkpoints";
const FORMAT: u64 = 2;
/// The last key, with the checksum of all before.
const SEAL: &str = "crc32c";

/// The end of the document after `text`.
fn seal(text: &str) -> String {
    format!(",\n  \"{SEAL}\": \"{:08x}\"\n}}\n", checksum(text.as_bytes()))
}

/// Whether the document is what was written: one digit of its numbers makes another run.
fn check_seal(bytes: &[u8]) -> std::result::Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let sealed = text.rfind(&format!(",\n  \"{SEAL}\"")).map(|at| text.split_at(at));
    match sealed {
        Some((before, end)) if seal(before) == end => Ok(()),
        _ => Err(format!("the checksum of {MARK} does not match")),
    }
}

/// What a folder says of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// The same in all files of one run.
    pub identity: u64,
    /// How many ranks there are.
    pub ranks: u32,
    /// How many steps.
    pub steps: u64,
    /// Budgets of memory and disk, a rank.
    pub budgets: [u64; 2],
    /// The filters by array, as text.
    pub filters: Vec<(String, String)>,
    /// The arrays of rank 0's state.
    pub state: Vec<Layout>,
    /// What the initial state of each rank was: a number made of its layout and samples.
    pub fingerprint: u64,
}

impl About {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let filters: serde_json::Map<String, Value> =
            self.filters.iter().map(|(name, text)| (name.clone(), json!(text))).collect();
        let state: Vec<Value> = self
            .state
            .iter()
            .map(|a| json!({"name": a.name, "type": a.ty.cdl_name(), "shape": a.shape}))
            .collect();
        let value = json!({
            "esker": WHAT,
            "format": FORMAT,
            "identity": format!("{:016x}", self.identity),
            "ranks": self.ranks,
            "steps": self.steps,
            "memory": self.budgets[0],
            "disk": self.budgets[1],
            "filters": filters,
            "state": state,
            "fingerprint": format!("{:016x}", self.fingerprint),
        });
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        let text = text.trim_end_matches('}').trim_end();
        format!("{text}{}", seal(text)).into_bytes()
    }

    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<About, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|e| format!("{MARK}: {e}"))?;
        if value["esker"] != WHAT {
            return Err(format!("{MARK} does not say that these are {WHAT}"));
        }
        match value["format"].as_u64() {
            // It had no checksum.
            Some(1) if value.get(SEAL).is_none() => {}
            Some(FORMAT) => check_seal(bytes)?,
            _ => {
                let found = &value["format"];
                return Err(format!("{MARK} has format {found}, and only {FORMAT} is known"));
            }
        }
        let number = |key: &str| {
            value[key].as_u64().ok_or_else(|| format!("{MARK}: {key} is {}", value[key]))
        };
        let hex = |key: &str| {
            let text = value[key].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
            text.ok_or_else(|| format!("{MARK}: {key} is {}", value[key]))
        };
        let ranks = u32::try_from(number("ranks")?).map_err(|e| format!("{MARK}: ranks: {e}"))?;
        let filters = value["filters"].as_object().into_iter().flatten();
        let filters = filters
            .map(|(name, text)| Some((name.clone(), text.as_str()?.to_string())))
            .collect::<Option<Vec<(String, String)>>>();
        let filters = filters.ok_or_else(|| format!("{MARK}: filters are {}", value["filters"]))?;
        let arrays = value["state"].as_array().into_iter().flatten();
        let layout = |array: &Value| {
            let types = esker_format::ExternalType::ALL;
            let ty = types.into_iter().find(|ty| array["type"] == ty.cdl_name())?;
            let shape = array["shape"].as_array()?.iter();
            let shape = shape.map(|len| usize::try_from(len.as_u64()?).ok());
            let shape = shape.collect::<Option<Vec<usize>>>()?;
            Some(Layout { name: array["name"].as_str()?.to_string(), ty, shape })
        };
        let state = arrays.map(layout).collect::<Option<Vec<Layout>>>();
        let state = state.ok_or_else(|| format!("{MARK}: state is {}", value["state"]))?;
        Ok(About {
            identity: hex("identity")?,
            ranks,
            steps: number("steps")?,
            budgets: [number("memory")?, number("disk")?],
            filters,
            state,
            fingerprint: hex("fingerprint")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> About {
        let state = vec![Layout {
            name: "u".into(),
            ty: esker_format::ExternalType::Double,
            shape: vec![3, 4],
        }];
        let filters = vec![("u".to_string(), "zstd,3".to_string())];
        let (identity, fingerprint) = (0xfeed, 77);
        About { identity, ranks: 2, steps: 100, budgets: [10, 20], filters, state, fingerprint }
    }

    #[test]
    fn every_changed_byte_of_the_mark_is_found() {
        let bytes = about().encode();
        assert_eq!(About::decode(&bytes), Ok(about()));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(About::decode(&damaged).is_err(), "byte {at}");
            assert!(About::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_mark_of_before_there_was_a_checksum_is_read() {
        let text = String::from_utf8(about().encode()).unwrap();
        let (text, _) = text.split_once(",\n  \"crc32c\"").unwrap();
        let old = format!("{text}\n}}\n").replace("\"format\": 2", "\"format\": 1");
        assert_eq!(About::decode(old.as_bytes()), Ok(about()));
    }
}
