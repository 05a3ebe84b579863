"""The dump and its pages: zips, identifiers, and LaTeXML HTML to `Paper`."""
