"""Starting runs from the command line and from a launcher, in this process and in others."""
