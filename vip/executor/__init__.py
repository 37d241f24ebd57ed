"""Independent tasks on several processors: processes of this machine, or a Dask cluster."""
