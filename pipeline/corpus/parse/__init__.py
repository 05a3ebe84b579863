"""LaTeXML's HTML to Paper: the fast parser, the reference parser, and the rules that both apply."""
