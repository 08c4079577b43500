"""Who the users of an image are: its own /etc/passwd and /etc/group."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.embedded.node.imagesource import Account, UnknownUser

LARGEST_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class ImageAccounts:
    """`imagesource.Accounts`."""

    user: str  # of the image's configuration: NAME, UID, NAME:GROUP, …
    passwd: str
    group: str

    @property
    def is_named(self) -> bool:
        name = self.user.partition(":")[0]
        return bool(name) and not name.isdigit()

    def account(self, uid: int | None) -> Account:
        """The image's own user, or the one with this number. Raises UnknownUser."""
        stated, _, stated_group = ("", "", "") if uid is not None else self.user.partition(":")
        wanted = str(uid) if uid is not None else stated or "0"
        line = self._line(self.passwd, wanted)
        if line is None:
            if not wanted.isdigit():
                raise UnknownUser(f"unable to find user {wanted}: no matching entries in passwd file")
            line = [wanted, "", wanted, "0", "", "/"]
        number, group, home = int(line[2]), int(line[3]), line[5] or "/"
        if stated_group:
            found = self._line(self.group, stated_group)
            if found is None and not stated_group.isdigit():
                raise UnknownUser(f"unable to find group {stated_group}: no matching entries in group file")
            return Account(number, int(found[2]) if found else int(stated_group), (), home)
        return Account(number, group, self._groups(line[0]), home)

    def _groups(self, name: str) -> tuple[int, ...]:
        found = []
        for line in self.group.splitlines():
            parts = line.split(":")
            if len(parts) >= 4 and parts[2].isdigit() and name in parts[3].split(","):
                found.append(int(parts[2]))
        return tuple(found)

    @staticmethod
    def _line(text: str, wanted: str) -> list[str] | None:
        """By name, else by number."""
        number = 2
        lines = [line.split(":") for line in text.splitlines()]
        lines = [[*parts, *[""] * 6][: max(6, len(parts))] for parts in lines if len(parts) > 2]
        lines = [parts for parts in lines if parts[2].isdigit()]
        for parts in lines:
            parts[3] = parts[3] if parts[3].isdigit() else "0"
        by_name = next((parts for parts in lines if parts[0] == wanted), None)
        return by_name or next((parts for parts in lines if wanted.isdigit() and parts[number] == wanted), None)
