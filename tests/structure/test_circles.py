"""No module imports itself by way of others, imports for type checkers included."""

from graphlib import TopologicalSorter

import grimp

from vip_rooms import ROOMS


def test_no_imports_go_in_a_circle() -> None:
    graph = grimp.build_graph(*ROOMS, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 500
    # Raises CycleError with the modules of a circle.
    TopologicalSorter(imports).prepare()
