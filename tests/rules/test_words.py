"""Messages say ``a float`` and ``an int``: the article is not written before a name that is put in."""

import re
from pathlib import Path

import wengert
from wengert.rules.words import with_article

FOLDERS = ("rules", "tracer", "transforms", "wengert")
BEFORE_A_NAME = re.compile(r"(?<![\w%-])an? \{[^{}!:\"']*(?:__name__|type_name|kind)\b")


def test_the_article_goes_by_the_sound():
    nouns = "float int array ndarray OrderedDict object uint8 str Empty UserDict".split()
    assert [with_article(x).partition(" ")[0] for x in nouns] == (
        "a an an an an an a a an a".split()
    )


def test_no_message_puts_a_name_behind_an_article_of_its_own():
    root = Path(wengert.__file__).parent.parent
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if BEFORE_A_NAME.search(line)
    ]
    assert found == []
