"""Sheets on which people rate and grade what systems wrote."""
