"""How files of users are read: YAML, csv cells, sealed parquet, and Python files of their own."""
