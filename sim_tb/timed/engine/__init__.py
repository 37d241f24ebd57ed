"""The timing model of a processing engine, alone beside a memory."""
