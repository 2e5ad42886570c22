"""The fabrics file and the facts file: read, checked, compiled, watched; pydantic stops here."""
