"""Measures several ways to the same kind of storage side by side. Standard library only."""
