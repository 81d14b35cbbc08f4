"""
What the workers remove: only names of ours, strictly inside the home, through no link, and all of
it in one place.
"""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from holdfast_worker import weights
from holdfast_worker.removal import RemovalRefused, remove_tree

ROOT = Path(__file__).parents[2]
NAMED = r"own-\d+"
SEEDS = 40  # Forests of the property.


@pytest.fixture
def places(tmp_path):
    """A home with runs/a/own-1/deep/file, and a directory beside it that looks the same."""
    for name in ("home", "outside"):
        deep = tmp_path / name / "runs" / "a" / "own-1" / "deep"
        deep.mkdir(parents=True)
        (deep / "file").write_text(name)
    return tmp_path / "home", tmp_path / "outside"


def whole(place: Path) -> bool:
    return (place / "runs" / "a" / "own-1" / "deep" / "file").read_text() == place.name


def test_a_directory_of_ours_goes_with_all_in_it_and_a_missing_one_is_no_error(places):
    home, _ = places
    path = home / "runs" / "a" / "own-1"
    assert remove_tree(path, home=home, named=NAMED)
    assert not path.exists() and path.parent.is_dir()
    for missing in (path, home / "runs" / "b" / "own-1", home / "logs" / "a" / "own-1"):
        assert not remove_tree(missing, home=home, named=NAMED)


@pytest.mark.parametrize(
    "path",
    [
        "../outside/runs/a/own-1",
        "runs/../../outside/runs/a/own-1",
        "../homex/own-1",
        ".",
        "..",
        "/",
    ],
)
def test_what_is_not_strictly_inside_the_home_is_refused(places, path):
    home, outside = places
    (home.parent / "homex" / "own-1").mkdir(parents=True)
    with pytest.raises(RemovalRefused, match="it is not inside"):
        remove_tree(home / path, home=home, named=r".*")
    assert whole(home) and whole(outside)


def test_without_a_home_nothing_is_removed(places):
    home, _ = places
    with pytest.raises(RemovalRefused, match="not inside ''"):
        remove_tree(home / "runs" / "a" / "own-1", home="", named=NAMED)
    assert whole(home)


@pytest.mark.parametrize("name", ["mine", "own-1-copy", "my-own-1", ".own-1", "own-", "own-1\n"])
def test_a_name_that_is_not_of_the_pattern_from_end_to_end_is_refused(places, name):
    path = places[0] / "runs" / "a" / name
    path.mkdir()
    with pytest.raises(RemovalRefused, match="is not a name that Holdfast uses"):
        remove_tree(path, home=places[0], named=NAMED)
    assert path.is_dir()


def test_no_link_is_followed_at_the_path_on_the_way_to_it_or_inside_it(places):
    home, outside = places
    (home / "runs" / "a" / "own-2").symlink_to(outside / "runs" / "a" / "own-1")
    (home / "runs" / "b").symlink_to(outside / "runs" / "a")
    with pytest.raises(RemovalRefused, match="it is a link"):
        remove_tree(home / "runs" / "a" / "own-2", home=home, named=NAMED)
    with pytest.raises(RemovalRefused, match="'b' on the way"):
        remove_tree(home / "runs" / "b" / "own-1", home=home, named=NAMED)
    (home / "runs" / "a" / "own-1" / "deep" / "link").symlink_to(outside / "runs")
    assert remove_tree(home / "runs" / "a" / "own-1", home=home, named=NAMED)
    assert whole(outside)


def test_a_first_level_folder_may_be_a_link_and_so_may_the_home(places):
    home, outside = places
    (home / "checkpoints").symlink_to(outside / "runs")
    assert remove_tree(home / "checkpoints" / "a" / "own-1", home=home, named=NAMED)
    (outside / "link").symlink_to(home)
    assert remove_tree(
        outside / "link" / "runs" / "a" / "own-1", home=outside / "link", named=NAMED
    )
    assert (
        not (home / "runs" / "a" / "own-1").exists()
        and not (outside / "runs" / "a" / "own-1").exists()
    )


def test_a_directory_that_is_swapped_for_a_link_after_the_look_is_not_followed(places, monkeypatch):
    home, outside = places
    rmtree = shutil.rmtree

    def swapping(name, *, dir_fd):
        (home / "runs" / "a").rename(home / "moved")
        (home / "runs" / "a").symlink_to(outside / "runs" / "a")
        rmtree(name, dir_fd=dir_fd)

    monkeypatch.setattr(shutil, "rmtree", swapping)
    assert remove_tree(home / "runs" / "a" / "own-1", home=home, named=NAMED)
    assert whole(outside) and not (home / "moved" / "own-1").exists()


def test_replace_directory_leaves_a_link_a_file_and_a_directory_outside_of_the_home(tmp_path):
    home, outside = tmp_path / "home", tmp_path / "outside"
    for place in (home / "new", outside / "model"):
        place.mkdir(parents=True)
        (place / "file").write_text(place.name)
    (home / "link").symlink_to(outside / "model")
    (home / "file").write_text("mine")
    for target in (home / "link", home / "file", outside / "model", home / ".." / "outside", home):
        with pytest.raises(RemovalRefused):
            weights.replace_directory(home / "new", target, home=home)
    assert (outside / "model" / "file").read_text() == "model" and (
        home / "file"
    ).read_text() == "mine"
    assert os.readlink(home / "link") == str(outside / "model")


def inventory(root: Path) -> dict[int, str]:
    """Where every file and every link lies, by its inode; no link is followed."""
    found = {}
    for directory, folders, files in os.walk(root):
        for name in [*folders, *files]:
            path = Path(directory, name)
            if path.is_symlink() or path.is_file():
                found[path.lstat().st_ino] = str(path)
    return found


def test_replace_directory_moves_nothing_where_a_link_leads_elsewhere(tmp_path):
    home, outside, name = tmp_path / "home", tmp_path / "outside", "0123456789abcdef"
    for place in (home / "runs" / "a" / "new", outside / name):
        place.mkdir(parents=True)
        (place / "file").write_text(place.name)
    (home / "runs" / "a" / "publications").symlink_to(outside)
    before = inventory(tmp_path)
    with pytest.raises(RemovalRefused, match="'publications' on the way"):
        weights.replace_directory(
            home / "runs/a/new", home / "runs/a/publications" / name, home=home
        )
    assert inventory(tmp_path) == before


WORDS = ["runs", "a", "b", "ab", "publications", "own-1", "own-12", "mine", "0123456789abcdef"]


class Forest:
    """Two homes and a directory beside them with random trees, in which links lead anywhere."""

    def __init__(self, root: Path, random: Random):
        self.random, self.root = random, root
        self.homes = [root / "home", root / "homes"]
        for top in (*self.homes, root / "outside"):
            self._grow(top, depth=0)
        places = [path for path in root.rglob("*") if path.is_dir() and path.parent != root]
        for _ in range(random.randint(0, 6)):
            link = random.choice(places) / random.choice(WORDS)
            if not link.exists() and not link.is_symlink():
                link.symlink_to(random.choice(places))

    def _grow(self, directory: Path, *, depth: int) -> None:
        directory.mkdir()
        (directory / "file").write_text(directory.name)
        for name in self.random.sample(WORDS, self.random.randint(1, 3)) if depth < 4 else ():
            self._grow(directory / name, depth=depth + 1)

    def path(self, home: Path) -> Path:
        """Mostly one that is there, reached through whatever there is."""
        path = home
        for _ in range(self.random.randint(1, 5)):
            there = [name for name in os.listdir(path) if name != "file"] if path.is_dir() else []
            up = [".."] if self.random.random() < 0.1 else []
            path = path / self.random.choice([*up, *(there * 3), self.random.choice(WORDS)])
        return path


def real_place(path: Path, home: Path) -> str | None:
    """
    Where it really lies, if it is inside the home and no link is on the way below the first folder.
    """
    parts = (
        Path(os.path.abspath(path)).relative_to(home).parts
        if Path(os.path.abspath(path)).is_relative_to(home)
        else ()
    )
    if not parts:
        return None
    top = Path(os.path.realpath(home / parts[0])) if len(parts) > 1 else home
    real = Path(top, *parts[1:]) if len(parts) > 1 else home / parts[0]
    return str(real) if os.path.realpath(real) == str(real) else None


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_links_there_are_nothing_but_the_named_directory_of_the_home_goes_or_moves(
    tmp_path, seed
):
    random = Random(seed)
    forest = Forest(tmp_path, random)
    for turn in range(12):
        home = random.choice(forest.homes)
        path, new = forest.path(home), tmp_path / f"new{turn}"
        mine = real_place(path, home)
        act = random.choice(["remove", "clear", "replace"])
        new.mkdir()
        (new / "file").write_text("new")
        before = inventory(tmp_path)
        refused = False
        try:
            if act == "remove":
                remove_tree(path, home=home, named=NAMED)
            elif act == "clear":
                weights.clear_directory(path, home=home, named=NAMED)
            else:
                weights.replace_directory(new, path, home=home)
        except RemovalRefused:
            refused = True
        except (FileExistsError, FileNotFoundError, NotADirectoryError):
            pass  # Of a path whose middle went, or is a file.
        after = inventory(tmp_path)
        for inode, place in before.items():
            if after.get(inode) == place or place.startswith(f"{new}/"):
                continue
            assert not refused and mine and f"{place}/".startswith(f"{mine}/"), (
                act,
                str(path),
                place,
            )
            assert act == "replace" or Path(mine).name in ("own-1", "own-12"), (
                act,
                str(path),
                place,
            )


REMOVING = {"rmtree", "removedirs", "rmdir"}


def removals(source: str) -> list[str]:
    """
    How a file removes directories, other than through `remove_tree`: by attribute, by import, or by
    a command.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in REMOVING:
            found.append(node.attr)
        if isinstance(node, ast.ImportFrom):
            found += [alias.name for alias in node.names if alias.name in REMOVING]
        if isinstance(node, ast.Constant) and node.value in (
            "rm",
            "/bin/rm",
            "/usr/bin/rm",
            "rmtree",
        ):
            found.append(node.value)
    return found


def test_the_rule_sees_every_way_to_remove_a_tree():
    for source in (
        "import shutil; shutil.rmtree(x)",
        "from shutil import rmtree as gone; gone(x)",
        "import os; os.removedirs(x)",
        "getattr(shutil, 'rmtree')(x)",
        "import subprocess; subprocess.run(['rm', '-rf', x])",
        "Path(x).rmdir()",
    ):
        assert removals(source), source
    assert (
        removals("from holdfast_worker.removal import remove_tree; remove_tree(x); os.unlink(y)")
        == []
    )


def test_trees_are_removed_in_one_place():
    files = [*(ROOT / "workers").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    found = {path.relative_to(ROOT).as_posix(): removals(path.read_text()) for path in files}
    assert {path for path, used in found.items() if used} == {
        "workers/python/holdfast_worker/removal.py"
    }
    assert len(files) > 50
