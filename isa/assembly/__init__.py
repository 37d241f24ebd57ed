"""Assembly language: syntax, assembler, disassembler, listings."""
