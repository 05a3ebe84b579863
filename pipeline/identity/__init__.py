"""Identifiers, months, titles and people: what says that two records are one paper."""
