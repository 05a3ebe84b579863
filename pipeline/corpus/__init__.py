"""The dump and its pages: zips, identifiers, and LaTeXML HTML to `Paper`. Not here: metadata, passages."""
