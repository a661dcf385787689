"""Opens a mesh in its own convention and ours made of it, with uxarray, and ours with xugrid: the same faces, the same areas."""

import sys

import numpy as np
import uxarray
import xarray
import xugrid

original, ours = sys.argv[1:3]


def corners(grid):
    """Longitude and latitude of the corners of every face, as points of the sphere, whatever the nodes' numbers."""
    table = np.asarray(grid.face_node_connectivity.values)
    counts = np.asarray(grid.n_nodes_per_face.values)
    lon, lat = (np.radians(np.asarray(v.values)) for v in (grid.node_lon, grid.node_lat))
    points = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    return [points[row[:count]] for row, count in zip(table, counts)]


with xarray.open_dataset(ours) as dataset:
    has_degrees = dataset["mesh2d_node_x"].attrs.get("standard_name") == "longitude"

theirs, mine = uxarray.open_grid(original), uxarray.open_grid(ours)
assert theirs.n_face == mine.n_face, (theirs.n_face, mine.n_face)
if has_degrees:
    for face, (a, b) in enumerate(zip(corners(theirs), corners(mine))):
        a = [p for i, p in enumerate(a) if np.abs(p - a[i - 1]).max() > 1e-12]
        assert len(a) == len(b), (face, len(a), len(b))
        # The same ring, from whatever corner it begins.
        found = any(np.abs(np.roll(a, shift, axis=0) - b).max() < 1e-9 for shift in range(len(a)))
        assert found, (face, a, b)
    areas = [np.asarray(grid.face_areas) for grid in (theirs, mine)]
    assert np.allclose(*areas, rtol=1e-6, atol=1e-12), np.abs(areas[0] - areas[1]).max()

second = xugrid.open_dataset(ours).ugrid.grid
assert second.n_face == mine.n_face and second.n_node == mine.n_node
with xarray.open_dataset(ours, mask_and_scale=False) as dataset:
    assert (second.face_node_connectivity == dataset["mesh2d_face_nodes"].values).all()
print(mine.n_node, mine.n_face)
