"""Front end of an engine: fetch, decode, operands, issue, dispatch, and checks."""
