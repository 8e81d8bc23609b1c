"""Work beside the worker: who may use which accelerators, and what is put on hosts for a run."""
