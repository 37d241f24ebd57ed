"""Independent tasks on several processors: local processes, or a Dask cluster."""
