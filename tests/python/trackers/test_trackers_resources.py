from pathlib import Path

from holdfast_worker.trackers.resources import Resources, gpu_metrics


def test_a_gpu_has_a_metric_for_each_number_that_it_says() -> None:
    assert gpu_metrics("12, 2048, 301.5\n99, 1024, [N/A]\n") == {
        "system/gpu_0_percent": 12.0,
        "system/gpu_0_memory_used_gib": 2.0,
        "system/gpu_0_power_w": 301.5,
        "system/gpu_1_percent": 99.0,
        "system/gpu_1_memory_used_gib": 1.0,
    }


def test_the_disk_is_that_of_the_home(tmp_path: Path) -> None:
    assert Resources(str(tmp_path)).now()["system/disk_free_gib"] > 0
    assert "system/disk_free_gib" not in Resources(str(tmp_path / "none")).now()
