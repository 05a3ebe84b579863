"""The dump and its pages: zips, identifiers, and parsed LaTeXML HTML, passages and references."""
