"""The version: stated here, read by pyproject.toml."""

VERSION = "0.1.0"
