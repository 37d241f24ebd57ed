"""The timing model of a vault: engines, crossbar, controller and banks."""
