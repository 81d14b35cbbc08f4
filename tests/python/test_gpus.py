from pathlib import Path

import pytest

from holdfast_worker.gpus import gpu_order, visible_gpus


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("4, GPU-8932f937", ["4", "GPU-8932f937"]),
        ("2,-1,3", ["2"]),
        ("", []),
        ("-1", []),
    ],
)
def test_the_environment_names_the_gpus(given: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "nvidia0").touch()
    env = {"CUDA_VISIBLE_DEVICES": given}
    assert visible_gpus(env, devices_directory=str(tmp_path)) == expected


def test_else_the_device_files_are_counted(tmp_path: Path) -> None:
    assert visible_gpus({}, devices_directory=str(tmp_path)) == []
    for name in ["null", "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"]:
        (tmp_path / name).touch()
    assert visible_gpus({}, devices_directory=str(tmp_path)) == ["0", "1"]
    assert visible_gpus({}, devices_directory=str(tmp_path / "missing")) == []


def test_the_linux_of_windows_shows_one_device(tmp_path: Path) -> None:
    (tmp_path / "dxg").touch()
    assert visible_gpus({}, devices_directory=str(tmp_path)) == ["0"]


def test_the_order_is_ours_unless_the_environment_has_one() -> None:
    assert gpu_order({}) == "PCI_BUS_ID"
    assert gpu_order({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}) is None
    assert gpu_order({"CUDA_VISIBLE_DEVICES": "0"}) is None
