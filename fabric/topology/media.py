"""What a cable is made of, by its length: each medium has a longest length, and the shortest that reaches is taken.

Defaults are for 100 Gb/s lanes, which all ports of 200G and more have here: passive copper (DAC) to 2 m, copper with
retimers (AEC, or ACC) to 5 m, single-mode fibre beyond (DR optics reach 500 m, FR 2 km). Multimode fibre and active
optical cables count where the inventory says so: a site has one plant of fibre, and single mode serves all lengths.
Ref: NVIDIA, LinkX user guide (DAC to 2 m, 3 m as a splitter; active copper 3 to 5 m); IEEE 802.3ck, 802.3cu.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fabric.plan import Link

_TWISTED_PAIR = "cat6"


def medium(media: Mapping[str, int], speed: int, length: int) -> str:
    """Return the medium of a cable of `length` metres; empty when none reaches. Management ports are twisted pair."""
    if speed <= 1:
        return _TWISTED_PAIR
    reaching = [(most, name) for name, most in media.items() if most >= length]
    return min(reaching, key=lambda item: item[0])[1] if reaching else ""


def media_text(media: Mapping[str, int]) -> str:
    """Say the limits in words: `dac to 2 m, aec to 5 m, smf to 2000 m`."""
    return ", ".join(f"{name} to {most} m" for name, most in sorted(media.items(), key=lambda item: item[1]))


def one_medium_a_cage(links: Iterable[Link], media: Mapping[str, int]) -> dict[str, Link]:
    """Return the links by id, those of one broken-out cage with one medium: the legs of a cable are of one kind."""
    found = {link.id: link for link in links}
    cages: dict[tuple[str, str], list[str]] = {}
    for link in found.values():
        for end in (link.a, link.b):
            if end.port.startswith("E") and end.port.count("/") == 2:
                cages.setdefault((end.device, end.port.rpartition("/")[0]), []).append(link.id)
    for ids in cages.values():
        longest = max((found[one] for one in ids), key=lambda link: link.length_m)
        for one in ids:
            if found[one].medium != longest.medium:
                found[one] = replace(found[one], medium=medium(media, longest.speed, longest.length_m))
    return found
