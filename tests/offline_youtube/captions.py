"""Subtitles and automatic captions: what the player response says of them, and what timedtext answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_WORDS = {"en": ("Hello", "World"), "de": ("Hallo", "Welt")}
_NAMES = {"en": "English", "de": "German", "fr": "French"}
_TIMES = ((0, 1500), (1500, 3500))  # milliseconds


def tracks(video_id: str, offered: Iterable[str]) -> dict[str, Any]:
    """
    The part `captions` of a player response.

    :param offered: languages; ``a.en``: made by machine.
    """
    listed = []
    for vss_id in offered:
        machine, language = vss_id.startswith("a."), vss_id.removeprefix("a.")
        kind = {"kind": "asr"} if machine else {}
        query = f"v={video_id}&lang={language}{'&kind=asr' if machine else ''}"
        listed.append(
            {
                "baseUrl": f"https://www.youtube.com/api/timedtext?{query}",
                "vssId": vss_id if machine else f".{language}",
                "languageCode": language,
                "name": {"simpleText": f"{_NAMES[language]}{' (auto-generated)' if machine else ''}"},
                "isTranslatable": True,
                **kind,
            }
        )
    translations = [{"languageCode": code, "languageName": {"simpleText": name}} for code, name in _NAMES.items()]
    renderer = {"captionTracks": listed, "translationLanguages": translations}
    return {"captions": {"playerCaptionsTracklistRenderer": renderer}} if listed else {}


def timed_text(query: Mapping[str, str]) -> tuple[str, str]:
    """Content type and text, in the form that is asked for."""
    language = query.get("tlang") or query.get("lang", "")
    words = _WORDS.get(language, (f"one ({language})", f"two ({language})"))
    if query.get("kind") == "asr":
        words = (f"{words[0]} ahem", words[1])
    cues = list(zip(_TIMES, words, strict=True))
    form = query.get("fmt", "srv1")
    if form == "vtt":
        listed = "".join(f"{_clock(start)} --> {_clock(end)}\n{text}\n\n" for (start, end), text in cues)
        return "text/vtt", f"WEBVTT\nKind: captions\nLanguage: {language}\n\n{listed}"
    if form == "srt":
        numbered = enumerate(cues, 1)
        return "application/x-subrip", "".join(
            f"{n}\n{_clock(start, ',')} --> {_clock(end, ',')}\n{text}\n\n" for n, ((start, end), text) in numbered
        )
    if form == "json3":
        events = [
            {"tStartMs": start, "dDurationMs": end - start, "segs": [{"utf8": text}]}
            for (start, end), text in cues
        ]
        return "application/json", json.dumps({"wireMagic": "pb3", "events": events})
    spoken = "".join(f'<text start="{start / 1000}">{text}</text>' for (start, _), text in cues)
    return "text/xml", f'<?xml version="1.0" encoding="utf-8" ?><transcript>{spoken}</transcript>'


def _clock(milliseconds: int, point: str = ".") -> str:
    return f"00:00:{milliseconds // 1000:02}{point}{milliseconds % 1000:03}"
