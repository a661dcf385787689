"""Graphs of variables: which belong together, and how."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _esker
from ._attributes import encode
from .errors import MissingName

if TYPE_CHECKING:
    from ._dataset import Dataset

__all__ = ["Edge", "Graph", "Graphs", "Vertex"]


@dataclass(frozen=True)
class Edge:
    """How two vertices are related; one edge may join many pairs."""

    name: str
    weight: float
    #: Whether it leads from one vertex to the other, or is between them.
    directed: bool
    #: The vertices of the graph that it joins.
    pairs: tuple[tuple[str, str], ...] = ()


class _Set:
    """What is defined, as it was read."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.graphs: dict[str, tuple[dict[str, Any], list[str]]] = {n: (a, v) for n, a, v in found["graphs"]}
        self.vertices: dict[str, tuple[dict[str, Any], list[str], list[tuple[str, str]]]] = {
            name: (attrs, variables, links) for name, attrs, variables, links in found["vertices"]
        }
        self.edges: dict[str, Edge] = {n: Edge(n, w, d) for n, w, d in found["edges"]}
        self.missing: list[tuple[str, str, str]] = found["missing"]
        #: Links of each vertex by graph, worked out when they are first asked for.
        self.links: dict[str, dict[str, list[tuple[str, str]]]] = {}


def current(dataset: Dataset) -> _Set:
    """The graphs as they are defined now; read again only when definitions have changed."""
    kept: tuple[int, _Set] | None = dataset._graph_set
    if kept is None or dataset.closed or kept[0] != _esker.graph_generation(dataset._handle):
        generation, found = _esker.graph_set(dataset._handle)
        kept = dataset._graph_set = (generation, _Set(found))
    return kept[1]


class _GraphAttributes(MutableMapping[str, Any]):
    """Attributes of a graph or a vertex; setting one is a definition."""

    __slots__ = ("_dataset", "_is_vertex", "_name")

    def __init__(self, dataset: Dataset, is_vertex: bool, name: str) -> None:
        self._dataset, self._is_vertex, self._name = dataset, is_vertex, name

    def _all(self) -> dict[str, Any]:
        found = current(self._dataset)
        of = found.vertices if self._is_vertex else found.graphs
        if self._name not in of:
            raise MissingName(f"{self._dataset.path}: there is no {'vertex' if self._is_vertex else 'graph'} {self._name!r}")
        return of[self._name][0]

    def __getitem__(self, name: str) -> Any:
        attrs = self._all()
        if name not in attrs:
            raise MissingName(f"{self._dataset.path}: {self._name!r} has no attribute {name!r}: there are {', '.join(attrs)}")
        return attrs[name]

    def __setitem__(self, name: str, value: Any) -> None:
        # Graphs are stored with CDF-5's types in every file.
        stored = encode(value, "cdf5", name)
        _esker.graph_attribute(self._dataset._handle, self._is_vertex, self._name, name, stored)

    def __delitem__(self, name: str) -> None:
        _esker.graph_attribute(self._dataset._handle, self._is_vertex, self._name, name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(dict(self))


class Vertex:
    """A container of variables with neighbours."""

    __slots__ = ("_graph", "name")

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self.name = name

    def _of(self) -> tuple[dict[str, Any], list[str], list[tuple[str, str]]]:
        return self._graph._vertex(self.name)

    @property
    def attrs(self) -> MutableMapping[str, Any]:
        """Its attributes."""
        return _GraphAttributes(self._graph._dataset, True, self.name)

    @property
    def variables(self) -> list[str]:
        """The names of its variables."""
        return list(self._of()[1])

    @property
    def links(self) -> list[tuple[str, str]]:
        """Edges with the neighbours that they lead to; edges without direction from both ends."""
        self._of()
        return list(self._graph._links()[self.name])

    def neighbours(self, edge: str | None = None) -> list[str]:
        """The vertices that an edge leads to from this one, or that any edge does; each once."""
        if edge is not None:
            self._graph._edge(edge)
        return list(dict.fromkeys(to for by, to in self.links if edge in (None, by)))

    def attach(self, *variables: str) -> None:
        """Gives it variables."""
        for name in variables:
            self._graph._act("attach", self.name, name)

    def detach(self, *variables: str) -> None:
        """Takes variables from it."""
        for name in variables:
            self._graph._act("detach", self.name, name)

    def connect(self, edge: str, to: str | Vertex) -> None:
        """Joins it to a neighbour by an edge."""
        self._graph.connect(self.name, edge, to)

    def disconnect(self, edge: str, to: str | Vertex) -> None:
        """Takes the link to a neighbour away."""
        self._graph._act("disconnect", self.name, edge, _name(to))

    def rename(self, name: str) -> None:
        """Renames it, in all graphs."""
        self._graph._act("rename_vertex", self.name, name)
        self.name = name

    def delete(self) -> None:
        """Deletes it, out of all graphs and with all links to it."""
        self._graph._act("delete_vertex", self.name)

    def __repr__(self) -> str:
        return f"<esker.Vertex {self.name!r}: {', '.join(self.variables) or 'no variables'}>"


def _name(vertex: str | Vertex) -> str:
    return vertex.name if isinstance(vertex, Vertex) else vertex


class Graph:
    """Vertices that belong together.

    A vertex has variables, attributes and links: an edge and a neighbour. Everything is known by its name, and is merged by
    it when several ranks define::

        g = ds.create_graph("amr")
        g.create_edge("refines", weight=2.0)
        g.create_vertex("coarse", ["density_0"])
        g.create_vertex("fine", ["density_1"]).connect("refines", "coarse")
    """

    __slots__ = ("_dataset", "name")

    def __init__(self, dataset: Dataset, name: str) -> None:
        self._dataset = dataset
        self.name = name

    def _act(self, action: str, *names: str) -> None:
        _esker.graph_act(self._dataset._handle, action, list(names))

    def _of(self) -> tuple[dict[str, Any], list[str]]:
        graphs = current(self._dataset).graphs
        if self.name not in graphs:
            raise MissingName(f"{self._dataset.path}: there is no graph {self.name!r}: there are {', '.join(graphs) or 'none'}")
        return graphs[self.name]

    def _vertex(self, name: str) -> tuple[dict[str, Any], list[str], list[tuple[str, str]]]:
        own = self._of()[1]
        if name not in own:
            raise MissingName(f"{self._dataset.path}: graph {self.name!r} has no vertex {name!r}: it has {', '.join(own) or 'none'}")
        return current(self._dataset).vertices[name]

    def _edge(self, name: str) -> Edge:
        edges = current(self._dataset).edges
        if name not in edges:
            raise MissingName(f"{self._dataset.path}: there is no edge {name!r}: there are {', '.join(edges) or 'none'}")
        return edges[name]

    def _stored_links(self) -> list[tuple[str, str, str]]:
        """From, edge and to of each link between vertices of this graph, once."""
        found, names = current(self._dataset), self._of()[1]
        own = set(names)
        return [(name, edge, to) for name in names for edge, to in found.vertices[name][2] if to in own]

    def _links(self) -> dict[str, list[tuple[str, str]]]:
        found = current(self._dataset)
        if self.name not in found.links:
            links: dict[str, list[tuple[str, str]]] = {name: [] for name in self._of()[1]}
            for name, edge, to in self._stored_links():
                links[name].append((edge, to))
                if not found.edges[edge].directed and to != name:
                    links[to].append((edge, name))
            found.links[self.name] = links
        return found.links[self.name]

    @property
    def attrs(self) -> MutableMapping[str, Any]:
        """Its attributes."""
        return _GraphAttributes(self._dataset, False, self.name)

    @property
    def vertices(self) -> Mapping[str, Vertex]:
        """Its vertices by name, in the order of definition."""
        return {name: Vertex(self, name) for name in self._of()[1]}

    @property
    def edges(self) -> Mapping[str, Edge]:
        """The edges between its vertices by name, each with the pairs that it joins."""
        pairs: dict[str, list[tuple[str, str]]] = {}
        for name, edge, to in self._stored_links():
            pairs.setdefault(edge, []).append((name, to))
        known = current(self._dataset).edges
        return {
            name: Edge(name, edge.weight, edge.directed, tuple(pairs[name])) for name, edge in known.items() if name in pairs
        }

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Vertices with a variable that the file has no more, because another tool has left it out."""
        return [(vertex, name) for graph, vertex, name in current(self._dataset).missing if graph == self.name]

    def create_vertex(
        self, name: str, variables: Iterable[str] = (), *, attrs: Mapping[str, Any] | None = None
    ) -> Vertex:
        """Defines a vertex of this graph; one that another graph has is put into this one too."""
        self._act("add_vertex", name)
        self._act("put_in", self.name, name)
        vertex = Vertex(self, name)
        vertex.attach(*([variables] if isinstance(variables, str) else variables))
        for key, value in (attrs or {}).items():
            vertex.attrs[key] = value
        return vertex

    def create_edge(self, name: str, weight: float = 1.0, *, directed: bool = True) -> None:
        """Defines an edge, which joins nothing yet; all graphs of the dataset can use it."""
        _esker.graph_add_edge(self._dataset._handle, name, float(weight), bool(directed))

    def connect(self, vertex: str | Vertex, edge: str, to: str | Vertex) -> None:
        """Joins a vertex to a neighbour by an edge."""
        self._act("connect", _name(vertex), edge, _name(to))

    def remove(self, vertex: str | Vertex) -> None:
        """Takes a vertex out of this graph, which must be in another one or be deleted."""
        self._act("take_out", self.name, _name(vertex))

    def rename(self, name: str) -> None:
        """Renames the graph."""
        self._act("rename_graph", self.name, name)
        self.name = name

    def delete(self) -> None:
        """Deletes the graph. Its vertices stay, and must be in another one or be deleted too."""
        self._act("delete_graph", self.name)

    def rename_edge(self, old: str, new: str) -> None:
        """Renames an edge, in all graphs."""
        self._act("rename_edge", old, new)

    def delete_edge(self, name: str) -> None:
        """Deletes an edge, and all links by it, in all graphs."""
        self._act("delete_edge", name)

    def roots(self) -> list[str]:
        """The vertices that no directed edge of another one leads to."""
        edges = current(self._dataset).edges
        entered = {to for name, edge, to in self._stored_links() if edges[edge].directed and to != name}
        return [name for name in self._of()[1] if name not in entered]

    def breadth_first(self, vertex: str | Vertex) -> list[tuple[str, int]]:
        """What can be reached from a vertex, nearest first, each with the number of steps."""
        first = _name(vertex)
        self._vertex(first)
        links, steps, waiting = self._links(), {first: 0}, deque([first])
        while waiting:
            name = waiting.popleft()
            for _, to in links[name]:
                if to not in steps:
                    steps[to] = steps[name] + 1
                    waiting.append(to)
        return list(steps.items())

    def to_networkx(self) -> Any:
        """The graph as NetworkX has it: a ``MultiGraph`` if no edge has a direction, else a ``MultiDiGraph``, in which edges without a
        direction lead both ways.

        Nodes have their attributes and ``variables``; links have the edge's name as their key, its ``weight`` and whether it is ``directed``.
        """
        import networkx

        edges, found = self.edges, current(self._dataset)
        is_directed = any(edge.directed for edge in edges.values())
        made = networkx.MultiDiGraph() if is_directed else networkx.MultiGraph()
        made.graph.update(self._of()[0], name=self.name)
        for name in self._of()[1]:
            attrs, variables, _ = found.vertices[name]
            made.add_node(name, **{**attrs, "variables": list(variables)})
        for edge in edges.values():
            for begin, end in edge.pairs:
                of = {"weight": edge.weight, "directed": edge.directed}
                made.add_edge(begin, end, key=edge.name, **of)
                if is_directed and not edge.directed and begin != end:
                    made.add_edge(end, begin, key=edge.name, **of)
        return made

    def __len__(self) -> int:
        return len(self._of()[1])

    def __repr__(self) -> str:
        return f"<esker.Graph {self.name!r}: {len(self.vertices)} vertices, {len(self.edges)} edges>"


class Graphs(Mapping[str, Graph]):
    """The graphs of a dataset by name."""

    __slots__ = ("_dataset",)

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __getitem__(self, name: str) -> Graph:
        graph = Graph(self._dataset, name)
        graph._of()
        return graph

    def __iter__(self) -> Iterator[str]:
        return iter(current(self._dataset).graphs)

    def __len__(self) -> int:
        return len(current(self._dataset).graphs)

    def __repr__(self) -> str:
        return f"<esker.Graphs: {', '.join(self) or 'none'}>"
