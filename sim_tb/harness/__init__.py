"""The cocotb test that serves runs within a simulator, and the structures shared with C++."""
