"""Parse LaTeXML's HTML: the fast parser, the reference parser, and the rules that both apply."""
