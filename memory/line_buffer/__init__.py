"""The line buffer of a vault: columns that several requesters read are fetched once."""
