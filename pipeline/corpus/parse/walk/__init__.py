"""The fast parser's walk over a page, a module for each sort of element.

`state.py` holds what a walk knows, the loop that every element goes through, and questions to a
node; the other modules are handlers, functions of (walk, node), that `html.py` gives out by an
element's kind.
"""
