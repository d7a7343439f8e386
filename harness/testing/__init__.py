"""The conformance kit: what every component must do, tried on a small fixed toy set."""
