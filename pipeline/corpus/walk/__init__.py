"""The fast parser's walk over a page, one room for each sort of element.

`state.py` holds what a walk knows and the loop that every element goes through, `nodes.py` asks a node questions; the
other modules are handlers, functions of (walk, node), that `html.py` gives out by an element's kind.
"""
