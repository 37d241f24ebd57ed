"""What a unit offers stays until it is accepted, at all times, if what it takes does."""
