"""The command line. Commands import what they need when they run, so that ``bench --help`` is quick."""

try:
    from harness.cli.main import app, main
except KeyboardInterrupt:  # before the commands can answer it themselves
    raise SystemExit(130) from None

__all__ = ["app", "main"]
