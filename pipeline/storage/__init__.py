"""Files of the data root: where a month of a table lies, how it is read, and how it is written whole or not at all."""
