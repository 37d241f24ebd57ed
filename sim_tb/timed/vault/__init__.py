"""The timing model of a vault: crossbar, controller and banks beside its engines."""
