"""Tables of the results of the verbs, printed on the console."""
