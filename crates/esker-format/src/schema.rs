//! What a dataset holds: dimensions, attributes, variables, by name and by number.
//!
//! A [`Schema`] says nothing about where bytes are: that is [`crate::Placement`]. Names are
//! looked up by hash, so that a file with a hundred thousand variables opens in linear time.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::SchemaError;
use crate::name;
use crate::types::{ExternalType, Version};
use crate::values::Values;

/// The number of a dimension, in the order of definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DimId(pub usize);

/// The number of a variable, in the order of definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub usize);

/// How long a dimension is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DimLen {
    /// Of fixed length. (A stored length of 0 means unlimited, so this is at least 1 in a
    /// file; [`Schema::add_dim`] refuses 0.)
    Fixed(u64),
    /// The record dimension, as long as there are records.
    Unlimited,
}

/// Something that has a name that is unique in its list.
pub trait Named {
    /// The name, in normal form C.
    fn name(&self) -> &Arc<str>;
}

/// A named length.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: Arc<str>,
    /// Its length.
    pub len: DimLen,
}

/// A named list of values, of the whole dataset or of one variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: Arc<str>,
    /// Its values, which carry their type.
    pub values: Values,
}

/// A named array over some dimensions.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: Arc<str>,
    /// Its type in the file.
    pub ty: ExternalType,
    /// Its dimensions, slowest first; none for a scalar. One may occur more than once.
    pub dims: Vec<DimId>,
    /// Its attributes.
    pub attrs: NamedList<Attribute>,
}

impl Named for Dimension {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
}
impl Named for Attribute {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
}
impl Named for Variable {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
}

/// A list in the order of definition whose names are unique and found by hash.
#[derive(Debug, Clone)]
pub struct NamedList<T> {
    items: Vec<T>,
    // Short lists (most attribute lists) are searched; a map is made when one grows.
    index: Option<HashMap<Arc<str>, usize>>,
}

/// Above this many items a list keeps a hash map; below it a search is as fast.
const INDEX_ABOVE: usize = 16;

impl<T> Default for NamedList<T> {
    fn default() -> Self {
        NamedList { items: Vec::new(), index: None }
    }
}

impl<T: PartialEq> PartialEq for NamedList<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T: Named> NamedList<T> {
    /// The items in the order of definition.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The items in the order of definition.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The place of the item of this name (which is taken as it is: normalise first).
    pub fn position(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(name).copied(),
            None => self.items.iter().position(|item| &**item.name() == name),
        }
    }

    /// The item of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.position(name).map(|i| &self.items[i])
    }

    /// The item at this place.
    pub fn at(&self, position: usize) -> Option<&T> {
        self.items.get(position)
    }

    /// The item at this place, to change anything but its name.
    pub fn at_mut(&mut self, position: usize) -> Option<&mut T> {
        self.items.get_mut(position)
    }

    /// Appends an item; gives the item back when its name is taken.
    pub fn push(&mut self, item: T) -> Result<usize, T> {
        if self.position(item.name()).is_some() {
            return Err(item);
        }
        let position = self.items.len();
        if let Some(index) = &mut self.index {
            index.insert(item.name().clone(), position);
        }
        self.items.push(item);
        if self.index.is_none() && self.items.len() > INDEX_ABOVE {
            self.reindex();
        }
        Ok(position)
    }

    /// Puts `item` in the place of the item at `position`, which may have another name.
    /// The caller has made sure that the new name is free.
    pub fn replace(&mut self, position: usize, item: T) {
        self.items[position] = item;
        if self.index.is_some() {
            self.reindex();
        }
    }

    /// Takes the item at `position` out; the ones after it move up.
    pub fn remove(&mut self, position: usize) -> T {
        let item = self.items.remove(position);
        if self.index.is_some() {
            self.reindex();
        }
        item
    }

    fn reindex(&mut self) {
        let names = self.items.iter().enumerate();
        self.index = Some(names.map(|(i, item)| (item.name().clone(), i)).collect());
    }
}

impl<'a, T: Named> IntoIterator for &'a NamedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// Dimensions, global attributes and variables of a dataset, and the version that limits them.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// The file version, which decides the types and sizes that can be stored.
    pub version: Version,
    /// The dimensions.
    pub dims: NamedList<Dimension>,
    /// The global attributes.
    pub attrs: NamedList<Attribute>,
    /// The variables.
    pub vars: NamedList<Variable>,
}

/// Whose attributes are meant: the dataset's or one variable's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The whole dataset.
    Global,
    /// One variable.
    Var(VarId),
}

impl From<VarId> for Owner {
    fn from(var: VarId) -> Owner {
        Owner::Var(var)
    }
}

impl Schema {
    /// An empty schema.
    pub fn new(version: Version) -> Schema {
        Schema {
            version,
            dims: NamedList::default(),
            attrs: NamedList::default(),
            vars: NamedList::default(),
        }
    }

    /// The record dimension, if there is one.
    pub fn record_dim(&self) -> Option<DimId> {
        self.dims.iter().position(|d| d.len == DimLen::Unlimited).map(DimId)
    }

    /// The dimension of this name.
    pub fn dim(&self, name: &str) -> Option<DimId> {
        self.dims.position(&name::normalise(name)).map(DimId)
    }

    /// The variable of this name.
    pub fn var(&self, name: &str) -> Option<VarId> {
        self.vars.position(&name::normalise(name)).map(VarId)
    }

    /// The variable of this number.
    pub fn variable(&self, var: VarId) -> Option<&Variable> {
        self.vars.at(var.0)
    }

    /// The attributes of `owner`, if it exists.
    pub fn attrs_of(&self, owner: Owner) -> Option<&NamedList<Attribute>> {
        match owner {
            Owner::Global => Some(&self.attrs),
            Owner::Var(var) => self.vars.at(var.0).map(|v| &v.attrs),
        }
    }

    /// The attribute `name` of `owner`.
    pub fn attr(&self, owner: Owner, name: &str) -> Option<&Values> {
        self.attrs_of(owner)?.get(&name::normalise(name)).map(|a| &a.values)
    }

    /// Whether the slowest dimension of `var` is the record dimension.
    pub fn is_record(&self, var: &Variable) -> bool {
        var.dims.first().and_then(|d| self.dims.at(d.0)).is_some_and(|d| d.len == DimLen::Unlimited)
    }

    /// The lengths of `var`'s dimensions, with `records` for the unlimited one.
    pub fn shape(&self, var: &Variable, records: u64) -> Vec<u64> {
        let len = |d: &DimId| match self.dims.at(d.0).map(|d| d.len) {
            Some(DimLen::Fixed(n)) => n,
            Some(DimLen::Unlimited) | None => records,
        };
        var.dims.iter().map(len).collect()
    }

    /// Defines a dimension.
    pub fn add_dim(&mut self, name: &str, len: DimLen) -> Result<DimId, SchemaError> {
        let name = name::check(name, "dimension")?;
        match len {
            DimLen::Unlimited => {
                if let Some(first) = self.record_dim() {
                    return Err(SchemaError::SecondUnlimited {
                        name,
                        first: self.dims.as_slice()[first.0].name.clone(),
                    });
                }
            }
            DimLen::Fixed(len) => {
                let max = self.version.max_dim_len();
                if len == 0 || len > max {
                    return Err(SchemaError::DimLength { name, len, version: self.version, max });
                }
            }
        }
        let taken = |d: Dimension| SchemaError::Exists { kind: "dimension", name: d.name };
        self.dims.push(Dimension { name, len }).map(DimId).map_err(taken)
    }

    /// Defines a variable.
    pub fn add_var(
        &mut self,
        name: &str,
        ty: ExternalType,
        dims: &[DimId],
    ) -> Result<VarId, SchemaError> {
        let name = name::check(name, "variable")?;
        if !self.version.has_type(ty) {
            let object = format!("variable \"{name}\"");
            return Err(SchemaError::TypeNotInVersion { object, ty, version: self.version });
        }
        for (place, dim) in dims.iter().enumerate() {
            let Some(found) = self.dims.at(dim.0) else {
                return Err(SchemaError::NoSuchDim {
                    var: name,
                    id: dim.0,
                    defined: self.dims.len(),
                });
            };
            if place > 0 && found.len == DimLen::Unlimited {
                let dim = found.name.clone();
                return Err(SchemaError::UnlimitedNotFirst { var: name, dim, place });
            }
        }
        let var = Variable { name, ty, dims: dims.to_vec(), attrs: NamedList::default() };
        let taken = |v: Variable| SchemaError::Exists { kind: "variable", name: v.name };
        self.vars.push(var).map(VarId).map_err(taken)
    }

    /// Sets an attribute, in place of one of the same name.
    pub fn put_attr(
        &mut self,
        owner: Owner,
        name: &str,
        values: Values,
    ) -> Result<(), SchemaError> {
        let name = name::check(name, "attribute")?;
        if !self.version.has_type(values.ty()) {
            return Err(SchemaError::TypeNotInVersion {
                object: format!("attribute \"{name}\""),
                ty: values.ty(),
                version: self.version,
            });
        }
        let attrs = self.attrs_of_mut(owner)?;
        match attrs.position(&name) {
            Some(position) => attrs.replace(position, Attribute { name, values }),
            None => drop(attrs.push(Attribute { name, values })),
        }
        Ok(())
    }

    /// Removes an attribute and gives its values back.
    pub fn del_attr(&mut self, owner: Owner, name: &str) -> Result<Values, SchemaError> {
        let attrs = self.attrs_of_mut(owner)?;
        match attrs.position(&name::normalise(name)) {
            Some(position) => Ok(attrs.remove(position).values),
            None => Err(SchemaError::NotFound { kind: "attribute", name: name.to_string() }),
        }
    }

    /// Renames an attribute.
    pub fn rename_attr(&mut self, owner: Owner, old: &str, new: &str) -> Result<(), SchemaError> {
        let new = name::check(new, "attribute")?;
        let attrs = self.attrs_of_mut(owner)?;
        let make = |a: &Attribute, name| Attribute { name, values: a.values.clone() };
        rename(attrs, "attribute", old, new, make)
    }

    /// Renames a dimension.
    pub fn rename_dim(&mut self, old: &str, new: &str) -> Result<(), SchemaError> {
        let new = name::check(new, "dimension")?;
        let make = |d: &Dimension, name| Dimension { name, len: d.len };
        rename(&mut self.dims, "dimension", old, new, make)
    }

    /// Renames a variable.
    pub fn rename_var(&mut self, old: &str, new: &str) -> Result<(), SchemaError> {
        let new = name::check(new, "variable")?;
        let make = |v: &Variable, name| Variable { name, ..v.clone() };
        rename(&mut self.vars, "variable", old, new, make)
    }

    fn attrs_of_mut(&mut self, owner: Owner) -> Result<&mut NamedList<Attribute>, SchemaError> {
        let defined = self.vars.len();
        match owner {
            Owner::Global => Ok(&mut self.attrs),
            Owner::Var(var) => match self.vars.at_mut(var.0) {
                Some(var) => Ok(&mut var.attrs),
                None => Err(SchemaError::NoSuchVar { id: var.0, defined }),
            },
        }
    }
}

fn rename<T: Named>(
    list: &mut NamedList<T>,
    kind: &'static str,
    old: &str,
    new: Arc<str>,
    make: impl Fn(&T, Arc<str>) -> T,
) -> Result<(), SchemaError> {
    let Some(position) = list.position(&name::normalise(old)) else {
        return Err(SchemaError::NotFound { kind, name: old.to_string() });
    };
    match list.position(&new) {
        Some(other) if other != position => Err(SchemaError::Exists { kind, name: new }),
        _ => {
            let renamed = make(&list.as_slice()[position], new);
            list.replace(position, renamed);
            Ok(())
        }
    }
}
