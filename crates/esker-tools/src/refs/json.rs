//! References as one JSON document: Kerchunk's version 1, written as it comes.

use std::io::{self, Write};

use super::array::{Array, Content};
use super::location::Urls;
use super::metadata::{base64, quoted};
use super::sink::Sink;

/// A document that is being written.
#[derive(Debug)]
pub(super) struct Document<W> {
    out: W,
    urls: Urls,
    /// Whether references have URLs and no templates.
    plain: bool,
    /// What all keys of the array begin with, not closed.
    prefix: String,
    first: bool,
}

impl<W: Write> Document<W> {
    pub(super) fn begin(mut out: W, urls: &Urls) -> io::Result<Document<W>> {
        // Braces in a template would be taken for another one.
        let plain = urls.classic.contains("{{") || urls.classic.contains("}}");
        let chunks = urls.chunks.as_ref().map(|url| format!(",\"c\":{}", quoted(url)));
        let templates = match plain {
            true => String::new(),
            false => {
                let (classic, chunks) = (quoted(&urls.classic), chunks.unwrap_or_default());
                format!("\"templates\":{{\"u\":{classic}{chunks}}},")
            }
        };
        write!(out, "{{\"version\":1,{templates}\"refs\":{{")?;
        Ok(Document { out, urls: urls.clone(), plain, prefix: String::new(), first: true })
    }

    /// Ends the document; gives what it was written to.
    pub(super) fn end(mut self) -> io::Result<W> {
        self.out.write_all(b"\n}}\n")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn separate(&mut self) -> io::Result<()> {
        let separator: &[u8] = if self.first { b"\n" } else { b",\n" };
        self.first = false;
        self.out.write_all(separator)
    }
}

impl<W: Write> Sink for Document<W> {
    fn metadata(&mut self, key: &str, text: &str) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{}:{}", quoted(key), quoted(text))
    }

    fn begin(&mut self, array: &Array) -> io::Result<()> {
        self.prefix = quoted(&format!("{}/", array.name));
        self.prefix.pop();
        Ok(())
    }

    fn chunk(&mut self, index: &[u64], content: Content<'_>) -> io::Result<()> {
        self.separate()?;
        self.out.write_all(self.prefix.as_bytes())?;
        for (i, at) in index.iter().enumerate() {
            write!(self.out, "{}{at}", if i > 0 { "." } else { "" })?;
        }
        // The one chunk of a scalar is called 0.
        let scalar = if index.is_empty() { "0" } else { "" };
        write!(self.out, "{scalar}\":")?;
        match content {
            Content::At { file, offset, size } => {
                match (self.plain, file) {
                    (true, _) => write!(self.out, "[{}", quoted(&self.urls.of(file))),
                    (false, 0) => write!(self.out, "[\"{{{{u}}}}\""),
                    (false, _) => write!(self.out, "[\"{{{{c}}}}{file}\""),
                }?;
                write!(self.out, ",{offset},{size}]")
            }
            Content::Inline(bytes) => {
                self.out.write_all(b"\"base64:")?;
                base64(&mut self.out, bytes)?;
                self.out.write_all(b"\"")
            }
        }
    }

    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
