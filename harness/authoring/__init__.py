"""Working components of each kind to start from, as one file or as a distribution."""
