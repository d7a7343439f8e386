"""The store at work: how files get into it, what may leave it, whether it is sound, and copies of it elsewhere."""
