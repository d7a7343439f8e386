"""What pyproject.toml cannot say: the folder ``suites`` is installed as the package ``harness.suites``."""

from setuptools import find_namespace_packages, setup

setup(
    packages=[
        *find_namespace_packages(include=["harness*", "plugins*"], exclude=["*.__pycache__*"]),
        "harness.suites",
        *(f"harness.suites.{folder}" for folder in find_namespace_packages("suites")),
    ]
)
