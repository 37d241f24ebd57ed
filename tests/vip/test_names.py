"""Names: options that were renamed, and what is said of a word that is no command or name."""

import pytest

from vip.cli.errors import RENAMED

from .test_help import every_command

COMMANDS = {" ".join(words): command for words, command in every_command()}
OPTIONS = {
    name: {option for one in command.params for option in one.opts}
    for name, command in COMMANDS.items()
}
OLD = [
    (command, old, new)
    for command, names in RENAMED.items()
    for old, new in names.items()
    if command
]


def test_what_replaces_an_option_exists() -> None:
    everywhere = set().union(*OPTIONS.values())
    for command, names in RENAMED.items():
        options = OPTIONS[command] if command else everywhere
        for old, new in names.items():
            assert old not in options
            option = new.split(",")[0]
            assert option in options or option.startswith("vip "), (command, old)


@pytest.mark.parametrize("command", ["asm --max-cycles 3", "mrf stereo --image x"])
def test_an_option_is_not_replaced_by_one_that_the_command_lacks(vip, command) -> None:
    code, _, err = vip(*command.split())
    assert (code, "is now" in err, "there is no option" in err) == (2, False, True)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        *OLD,
        ("trim", "--figure", "--picture"),
        ("bench kernels", "--image", "--picture"),
        ("power", "--max-cycles", "--limit"),
        ("cosim bp", "--pes", "--engines"),
        ("synth", "--seeds", "--placements"),
    ],
)
def test_an_old_option_is_refused_with_the_new_one(vip, command, old, new) -> None:
    code, out, err = vip(*command.split(), old, "x")
    assert (code, out, err) == (2, "", f"vip: {command}: {old} is now {new}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("trm bp", "there is no command 'trm'; did you mean trim?"),
        ("sums.s", "sums.s is not a command; did you mean vip run sums.s?"),
        (
            "cosim sums.s",
            "sums.s is not a command; did you mean vip cosim program sums.s?",
        ),
        ("cosim bpp", "cosim: there is no command 'bpp'; did you mean bp?"),
        ("model x", "model: there is no command 'x'; there are: certify"),
        ("nn m.onnx", "m.onnx is not a command; did you mean vip nn check m.onnx?"),
        ("mrf a.png", "a.png is not a command; did you mean vip mrf stereo a.png RIGHT?"),
        ("bench kernel", "bench: there is no command 'kernel'; did you mean kernels"),
        ("cosim bp --pictur x", "cosim bp: there is no option --pictur; did you mean --picture?"),
        (
            "cosim bp --width x",
            "cosim bp: invalid value for '--width': not a whole number; see vip",
        ),
        (
            "report k.vip",
            "k.vip is not a result (its name must end in .json): vip cosim program k.vip",
        ),
        (
            "report -o a.html",
            "a.html: a page on an engine is a folder; for one on a result, name RUN.json",
        ),
        ("nn run m.onnx", "m.onnx is not compiled: run vip nn compile m.onnx --cal"),
        ("synth --target ecp5-25k", "--target ecp5-25k is an FPGA: use --device ecp5-25k"),
    ],
)
def test_what_was_meant(vip, words, message) -> None:
    code, out, err = vip(*words.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"vip: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "what", "near"),
    [
        ("trim bpp -o x", "no such file, and unknown application 'bpp'", "bp or bp-copy"),
        ("prove bpp", "no such file, and unknown application 'bpp'", "bp or bp-copy"),
        ("power cnv", "no such file, and unknown kernel 'cnv'", "conv"),
        ("generate --preset vualt -o x", "unknown preset 'vualt'", "vault"),
        ("synth isue", "unknown unit 'isue'", "issue"),
        ("synth --target xc8", "unknown target 'xc8'", "xc7"),
        ("synth --device ecp5-25", "unknown device 'ecp5-25'", "ecp5-25k"),
        ("trim bp -o x --device xc7a10t", "unknown device 'xc7a10t'", "xc7a100t"),
        ("model certify --only vualt", "unknown machine 'vualt'", "vault"),
        ("bench kernels --only fc9", "--only: unknown part 'fc9'", "fc"),
        ("bench networks --only vgg", "--only: unknown network 'vgg'", "vgg19 or vgg16"),
    ],
)
def test_a_name_that_is_nearly_right(vip, words, what, near) -> None:
    code, out, err = vip(*words.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"vip: {what}; there are: ")
    assert f"; did you mean {near}" in err
