"""Two runs side by side: what makes them comparable or not, and the differences paired by cell and seed. No torch."""
