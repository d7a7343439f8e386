"""What starts an author off: a working component of each kind, as one file or as a whole distribution."""
