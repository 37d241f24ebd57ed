"""Programs that the manual shows beside a rule; tests execute them."""

__all__ = ["EARLY_STORE", "SAFE_STORE"]

_HEAD = """\
    mov r10, #16                        ; elements
    set.vl r10
    mov r11, #0                         ; scratchpad: inputs
    mov r12, #256                       ; results
    add r6, r5, #256                    ; memory: results after the parameter block
    ld.sram [16-bit] r11, r5, r10
    v.v.add [16-bit] r12, r11, r11      ; hardware waits for the load
"""
_TAIL = """\
    st.sram [16-bit] r6, r12, r10
    halt
"""

#: Doubles 16 elements, and stores results that are still in the vector unit.
EARLY_STORE = _HEAD + _TAIL
#: The same with a drain before the store.
SAFE_STORE = (
    _HEAD + "    v.drain                             ; hardware does not wait by itself\n" + _TAIL
)
