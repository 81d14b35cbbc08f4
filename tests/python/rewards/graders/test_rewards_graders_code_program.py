"""The program in a completion."""

import pytest

from holdfast_worker.rewards.graders.code_program import program_of

F = "`" * 3


@pytest.mark.parametrize(
    ("completion", "program"),
    [
        (f"{F}python\na\n{F}\ntext\n{F}py\nb\n  c\n{F}", "b\n  c"),
        (f"{F}\na\n{F}", "a"),
        (f"{F}python\na\n{F}\n{F}bash\nls\n{F}", "a"),
        (f"{F}python\na\n{F}\n{F}python\ncut off", "a"),
        (f"{F}`python\n{F}\nx\n{F}\n{F}`", f"{F}\nx\n{F}"),
        (f"  {F}Python title=x\na\n  {F}", "a"),
        (f"{F}python\n{F}", ""),
        ("print(1)", None),
        (f"{F}python\ncut off", None),
        (f"{F}rust\na\n{F}", None),
        ("", None),
    ],
)
def test_program_of_is_the_last_closed_block_in_python(completion: str, program: str) -> None:
    assert program_of(completion) == program
