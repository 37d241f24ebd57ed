"""Programs and depth from stereo on the Verilog of an engine, a vault or a chip."""
