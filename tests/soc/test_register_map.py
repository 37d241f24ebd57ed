"""The register map fits itself, and the manual is what it generates."""

from soc.host.register_manual import MANUAL_PATH, manual
from soc.host.register_map import BLOCKS, CHIP, MAP_ADDRESS_BITS, PE, VAULT
from soc.host.register_types import WORD_BYTES


def test_no_two_registers_share_an_address():
    seen = {}
    for block in BLOCKS:
        for page in {0, block.pages - 1}:
            for register in block.registers:
                for index in range(register.count):
                    address = block.address(register.name, index, page=page)
                    name = f"{block.name}.{register.name}"
                    assert address not in seen, f"{name} and {seen.get(address)} at {address:#x}"
                    seen[address] = name
                    assert address % WORD_BYTES == 0
                    assert address < 1 << MAP_ADDRESS_BITS


def test_arrays_are_aligned_so_that_their_index_is_a_part_of_the_address():
    for block in BLOCKS:
        assert block.base % (block.page_bytes * block.pages) == 0
        for register in block.registers:
            assert register.offset & register.index_mask == 0, register.name
            assert register.offset + register.index_mask < block.page_bytes


def test_fields_fit_and_do_not_overlap():
    for block in BLOCKS:
        for register in block.registers:
            taken = 0
            for field in register.fields:
                bits = field.place(-1)
                assert not taken & bits
                assert bits < 1 << 8 * WORD_BYTES
                taken |= bits


def test_halves_of_an_address_follow_each_other():
    for block in (CHIP, PE):
        low = block.address("PARAMETERS_LOW")
        assert block.address("PARAMETERS_HIGH") == low + WORD_BYTES


def test_addresses_of_a_few_registers_never_change():
    """Drivers in other languages have them written down."""
    assert CHIP.address("IDENTITY") == 0
    assert CHIP.address("START") == 0x38
    assert CHIP.address("PROGRAM", 5) == 0x8014
    assert PE.address("COUNTER_HIGH", 2, page=3) == 0x40394
    assert VAULT.address("NETWORK_LOW", 1, page=1) == 0x80308


def test_fields_of_the_status_never_move():
    places = {field.name: (field.low, field.bits) for field in PE.register("STATUS").fields}
    assert places == {"state": (0, 2), "memory_error": (2, 1), "cause": (8, 8), "pc": (16, 16)}


def test_signed_fields_come_back():
    pc = PE.register("STATUS").field("pc")
    assert [pc.extract(pc.place(value)) for value in (-8192, -1, 0, 8191)] == [-8192, -1, 0, 8191]


def test_the_manual_is_up_to_date():
    assert MANUAL_PATH.read_text(encoding="utf-8") == manual(), "run make docs"
