"""Graph sets. What is wrong with a file or a setting is a ``DataError`` everywhere here."""
