//! Bytes to a graph. Written for hostile input: no count is believed before the bytes that are left
//! have room for it, so that memory is a small multiple of what was given.

use std::sync::Arc;

use super::error::GraphFault;
use super::set::Edge;
use super::{HEAD, MAGIC, NC_ATTRIBUTE, NC_EDGE, NC_VERTEX, NO_NUMBER, SUM, VERSION};
use crate::name;
use crate::schema::{Attribute, Named, NamedList};
use crate::types::ExternalType;
use crate::values::Values;

/// A graph as its bytes say it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StoredGraph {
    /// The graph's attributes.
    pub attrs: NamedList<Attribute>,
    /// Its edges.
    pub edges: NamedList<Edge>,
    /// Its vertices.
    pub vertices: Vec<StoredVertex>,
}

/// A vertex as the bytes say it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredVertex {
    /// Its name.
    pub name: Arc<str>,
    /// Its variables.
    pub vars: Vec<VarRef>,
    /// The numbers of an edge and of a neighbour in this graph's lists, for each link.
    pub links: Vec<(usize, usize)>,
    /// Its attributes.
    pub attrs: NamedList<Attribute>,
}

/// A variable by number and by name: tools that copy variables change the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarRef {
    /// Its number when the graph was written.
    pub number: Option<usize>,
    /// Its name.
    pub name: Arc<str>,
}

impl Named for StoredVertex {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
}

/// Reads the bytes of a graph, which may be longer than it. Its name is for the errors.
pub fn decode(graph: &str, bytes: &[u8]) -> Result<StoredGraph, GraphFault> {
    let mut reader = Reader { graph, bytes, at: 0 };
    let (kind, end) = reader.head()?;
    reader.bytes = &bytes[..end];
    reader.graph(kind)
}

struct Reader<'a> {
    graph: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// What is being read, told only when something is wrong.
#[derive(Clone, Copy)]
enum Object<'o> {
    Head,
    List(&'static str),
    Edge(u64),
    Vertex(u64, &'o str),
    Attr(&'o Object<'o>, u64),
}

impl Object<'_> {
    fn words(&self) -> String {
        match self {
            Object::Head => "the head".to_string(),
            Object::List(list) => (*list).to_string(),
            Object::Edge(number) => format!("edge {number}"),
            Object::Vertex(number, "") => format!("vertex {number}"),
            Object::Vertex(number, name) => format!("vertex {number} ({name:?})"),
            Object::Attr(of, number) => format!("attribute {number} of {}", of.words()),
        }
    }
}

type Outcome<T> = Result<T, GraphFault>;

impl<'a> Reader<'a> {
    fn fault<T>(&self, offset: usize, object: &Object<'_>, what: String) -> Outcome<T> {
        let graph = self.graph.to_string();
        Err(GraphFault { graph, offset: offset as u64, object: object.words(), what })
    }

    /// Kind of graph and where its lists end; the checksum is right.
    fn head(&mut self) -> Outcome<(u8, usize)> {
        let head = &Object::Head;
        let bytes = self.bytes;
        if bytes.len() < HEAD + SUM || !bytes.starts_with(MAGIC) {
            let what = match bytes.iter().all(|b| *b == 0) {
                true => "there are only zeros: the graph was never written".to_string(),
                false => {
                    let shown = bytes[..bytes.len().min(8)].escape_ascii();
                    let len = bytes.len();
                    format!("{len} bytes that begin with \"{shown}\", not with \"GRAPH\"")
                }
            };
            return self.fault(0, head, what);
        }
        let (kind, version) = (bytes[5], bytes[6]);
        if version != VERSION {
            return self.fault(6, head, format!("version {version}; this reads version 1"));
        }
        if !(1..=3).contains(&kind) {
            return self.fault(5, head, format!("graph type {kind}: 1, 2 and 3 exist"));
        }
        self.at = 8;
        let length = self.number("the length", head)?;
        let whole = usize::try_from(length).ok().filter(|n| *n >= HEAD + SUM && n % 4 == 0);
        let Some(whole) = whole.filter(|n| *n <= bytes.len()) else {
            let what = format!("the length is {length}, but the variable has {}", bytes.len());
            return self.fault(8, head, what);
        };
        let (body, sum) = bytes[..whole].split_at(whole - SUM);
        let expected = format!("{:08x}", crc32c::crc32c(body));
        if sum != expected.as_bytes() {
            let found = sum.escape_ascii();
            let what = format!("the checksum is \"{found}\", but the bytes have {expected}");
            return self.fault(whole - SUM, head, what);
        }
        Ok((kind, whole - SUM))
    }

    fn graph(mut self, kind: u8) -> Outcome<StoredGraph> {
        let attrs = self.attrs(&Object::List("the graph"))?;
        let edges = self.edges(kind)?;
        let vertices = self.vertices(edges.len())?;
        if self.at != self.bytes.len() {
            let left = self.bytes.len() - self.at;
            let what = format!("{left} bytes follow the last vertex");
            return self.fault(self.at, &Object::Head, what);
        }
        Ok(StoredGraph { attrs, edges, vertices })
    }

    fn edges(&mut self, kind: u8) -> Outcome<NamedList<Edge>> {
        let count = self.list("the list of edges", NC_EDGE, 20)?;
        let mut edges = NamedList::default();
        for number in 0..count {
            let object = Object::Edge(number);
            let begin = self.at;
            let name = self.name(&object)?;
            let at = self.at;
            let weight = f64::from_bits(self.raw("the weight", &object)?);
            if weight.is_nan() {
                return self.fault(at, &object, "the weight is NaN".to_string());
            }
            let at = self.at;
            let direction = self.u32("the direction", &object)?;
            let directed = match (direction, kind) {
                (1, 1 | 3) => true,
                (2, 2 | 3) => false,
                _ => {
                    let what = format!("direction {direction} in a graph of type {kind}");
                    return self.fault(at, &object, what);
                }
            };
            self.push(&mut edges, Edge { name, weight, directed }, begin, &object)?;
        }
        Ok(edges)
    }

    fn vertices(&mut self, edges: usize) -> Outcome<Vec<StoredVertex>> {
        let count = self.list("the list of vertices", NC_VERTEX, 52)?;
        let mut vertices = NamedList::default();
        for number in 0..count {
            let begin = self.at;
            let name = self.name(&Object::Vertex(number, ""))?;
            let object = Object::Vertex(number, &name);
            let vars = self.vars(&object)?;
            let links = self.links(&object, edges, count as usize)?;
            let attrs = self.attrs(&object)?;
            let at = self.at;
            let size = self.number("the vertex's size", &object)?;
            let stored = self.number("the vertex's begin", &object)?;
            let real = (self.at - begin) as u64;
            if (size, stored) != (real, begin as u64) {
                let what = format!(
                    "it says that it has {size} bytes from byte {stored}, but has {real} from {begin}"
                );
                return self.fault(at, &object, what);
            }
            let vertex = StoredVertex { name: name.clone(), vars, links, attrs };
            self.push(&mut vertices, vertex, begin, &object)?;
        }
        Ok(vertices.iter().cloned().collect())
    }

    fn vars(&mut self, object: &Object<'_>) -> Outcome<Vec<VarRef>> {
        let count = self.count("the number of variables", 16, object)?;
        let mut vars = Vec::new();
        for _ in 0..count {
            let number = self.number("a variable's number", object)?;
            let number = usize::try_from(number).ok().filter(|_| number != NO_NUMBER);
            vars.push(VarRef { number, name: self.name(object)? });
        }
        Ok(vars)
    }

    fn links(
        &mut self,
        object: &Object<'_>,
        edges: usize,
        vertices: usize,
    ) -> Outcome<Vec<(usize, usize)>> {
        let count = self.count("the number of links", 16, object)?;
        let mut links = Vec::new();
        for _ in 0..count {
            let at = self.at;
            let (edge, to) = (self.number("an edge", object)?, self.number("a neighbour", object)?);
            match (usize::try_from(edge), usize::try_from(to)) {
                (Ok(edge), Ok(to)) if edge < edges && to < vertices => links.push((edge, to)),
                _ => {
                    let what = format!(
                        "a link by edge {edge} to vertex {to}, but there are {edges} edges and \
                         {vertices} vertices"
                    );
                    return self.fault(at, object, what);
                }
            }
        }
        Ok(links)
    }

    fn attrs(&mut self, of: &Object<'_>) -> Outcome<NamedList<Attribute>> {
        let at = self.at;
        let tag = self.u32("the tag of the attributes", of)?;
        if tag != 0 && tag != NC_ATTRIBUTE {
            return self.fault(at, of, format!("the tag of the attributes is {tag:#x}"));
        }
        let count = self.count("the number of attributes", 20, of)?;
        let mut attrs = NamedList::default();
        for number in 0..count {
            let begin = self.at;
            let object = &Object::Attr(of, number);
            let name = self.name(object)?;
            let at = self.at;
            let code = self.u32("the type", object)?;
            let Some(ty) = ExternalType::from_code(code) else {
                return self.fault(at, object, format!("unknown data type {code}"));
            };
            let elements = self.count("the number of values", ty.size(), object)? as usize;
            let bytes = self.take(elements * ty.size() as usize, "the values", object)?;
            let values = Values::decode(ty, elements, bytes).unwrap_or(Values::zeros(ty, 0));
            self.padding(bytes.len(), object)?;
            self.push(&mut attrs, Attribute { name, values }, begin, object)?;
        }
        Ok(attrs)
    }

    fn push<T: Named>(
        &self,
        list: &mut NamedList<T>,
        item: T,
        begin: usize,
        object: &Object<'_>,
    ) -> Outcome<()> {
        match list.push(item) {
            Ok(_) => Ok(()),
            Err(item) => {
                self.fault(begin, object, format!("the name {:?} occurs twice", item.name()))
            }
        }
    }

    /// A list's tag and count.
    fn list(&mut self, list: &'static str, tag: u32, least: u64) -> Outcome<u64> {
        let object = &Object::List(list);
        let at = self.at;
        let found = self.u32("the tag", object)?;
        if found != 0 && found != tag {
            return self.fault(
                at,
                object,
                format!("the tag is {found:#x}, expected {tag:#x} or 0"),
            );
        }
        let count = self.count("the number of elements", least, object)?;
        if found == 0 && count != 0 {
            return self.fault(at, object, format!("marked absent, with {count} elements"));
        }
        Ok(count)
    }

    fn name(&mut self, object: &Object<'_>) -> Outcome<Arc<str>> {
        let at = self.at;
        let len = self.count("the length of the name", 1, object)? as usize;
        let bytes = self.take(len, "the name", object)?;
        let name = match std::str::from_utf8(bytes) {
            Ok(name) => name,
            Err(_) => {
                let shown = bytes.escape_ascii();
                return self.fault(at, object, format!("the name \"{shown}\" is not UTF-8"));
            }
        };
        self.padding(len, object)?;
        if let Some(fault) = name::fault(name) {
            return self.fault(at, object, format!("the name {name:?} cannot be used: {fault}"));
        }
        match &*name::normalise(name) == name {
            true => Ok(Arc::from(name)),
            false => self.fault(at, object, format!("the name {name:?} is not in normal form C")),
        }
    }

    fn padding(&mut self, after: usize, object: &Object<'_>) -> Outcome<()> {
        let at = self.at;
        match self
            .take(after.next_multiple_of(4) - after, "padding", object)?
            .iter()
            .all(|b| *b == 0)
        {
            true => Ok(()),
            false => self.fault(at, object, "padding that is not zero".to_string()),
        }
    }

    /// A count of things that take at least `least` bytes each.
    fn count(&mut self, what: &'static str, least: u64, object: &Object<'_>) -> Outcome<u64> {
        let at = self.at;
        let count = self.number(what, object)?;
        let left = (self.bytes.len() - self.at) as u64;
        match count.saturating_mul(least) <= left {
            true => Ok(count),
            false => {
                self.fault(at, object, format!("{what} is {count}, but {left} bytes are left"))
            }
        }
    }

    /// NON_NEG.
    fn number(&mut self, what: &'static str, object: &Object<'_>) -> Outcome<u64> {
        let at = self.at;
        let value = self.raw(what, object)?;
        match value <= i64::MAX as u64 {
            true => Ok(value),
            false => self.fault(at, object, format!("{what} is negative ({})", value as i64)),
        }
    }

    fn raw(&mut self, what: &'static str, object: &Object<'_>) -> Outcome<u64> {
        let bytes = self.take(8, what, object)?;
        Ok(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn u32(&mut self, what: &'static str, object: &Object<'_>) -> Outcome<u32> {
        let bytes = self.take(4, what, object)?;
        Ok(bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    fn take(&mut self, len: usize, what: &'static str, object: &Object<'_>) -> Outcome<&'a [u8]> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            let left = self.bytes.len() - self.at;
            return self.fault(self.at, object, format!("{left} bytes are left for {what}"));
        };
        let found = &self.bytes[self.at..end];
        self.at = end;
        Ok(found)
    }
}
