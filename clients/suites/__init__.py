"""The clients: a module each, described in `harness`."""
