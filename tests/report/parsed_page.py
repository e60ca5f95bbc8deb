"""An HTML page, read so that tests can ask what is in it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "input", "link", "hr", "wbr"}


class Page(HTMLParser):
    """Collects what tests ask about, and checks that tags nest."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.data: dict[str, str] = {}
        self._script: str | None = None
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"an attribute twice in {tag}"
        self.tags.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "style"):
            self._script = found.get("id") or tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script:
            self.data[self._script] = self.data.get(self._script, "") + data
        else:
            self.text.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]

    def classed(self, name: str) -> list[dict[str, str | None]]:
        return [a for _, a in self.tags if name in (a.get("class") or "").split()]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())
