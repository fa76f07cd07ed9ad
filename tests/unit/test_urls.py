"""Canonical URLs, and hosts that are refused by their spelling."""

from __future__ import annotations

import pytest

from include.ytdlp_ops.errors import BadInput
from include.ytdlp_ops.urls import canonical_url, refuse_private_target

VIDEO = "dQw4w9WgXcQ"
CANONICAL = f"https://www.youtube.com/watch?v={VIDEO}"


@pytest.mark.parametrize(
    "spelling",
    [
        VIDEO,
        f"  {VIDEO}\n",
        CANONICAL,
        f"http://youtube.com/watch?v={VIDEO}",
        f"HTTPS://WWW.YOUTUBE.COM/watch?v={VIDEO}",
        f"https://www.youtube.com./watch?v={VIDEO}",
        f"https://www.youtube.com:443/watch?v={VIDEO}",
        f"https://www.youtube.com/watch/?v={VIDEO}",
        f"https://www.youtube.com/watch?list=PL123&v={VIDEO}&t=42s#comments",
        f"https://www.youtube.com/?v={VIDEO}",
        f"https://www.youtube.com/watch_popup?v={VIDEO}",
        f"https://www.youtube.com/watch/{VIDEO}",
        f"https://m.youtube.com/watch?v={VIDEO}&feature=share",
        f"https://music.youtube.com/watch?v={VIDEO}",
        f"https://tv.youtube.com/watch/{VIDEO}",
        f"https://www.youtubekids.com/watch?v={VIDEO}",
        f"https://youtu.be/{VIDEO}?si=abc",
        f"https://youtu.be/{VIDEO}/",
        f"https://y2u.be/{VIDEO}",
        f"https://www.youtube.com/shorts/{VIDEO}",
        f"https://www.youtube.com/live/{VIDEO}?feature=share",
        f"https://www.youtube.com/embed/{VIDEO}?start=3",
        f"https://www.youtube-nocookie.com/embed/{VIDEO}",
        f"https://www.youtube.com/v/{VIDEO}",
        f"https://www.youtube.com/e/{VIDEO}",
        f"https://www.youtube.com/attribution_link?a=x&u=%2Fwatch%3Fv%3D{VIDEO}%26feature%3Dshare",
    ],
)
def test_every_youtube_spelling_of_a_video_is_one_url(spelling: str) -> None:
    assert canonical_url(spelling) == CANONICAL


@pytest.mark.parametrize(
    "url",
    [
        "https://www.youtube.com/playlist?list=PL123",
        "https://www.youtube.com/@someone/videos",
        "https://www.youtube.com/embed/videoseries?list=PL123",
        "https://www.youtube.com/embed/live_stream?channel=UC123",
        "https://www.youtube.com/watch?v=too_short",
        f"https://notyoutube.com/watch?v={VIDEO}",
        f"https://youtube.com.example.org/watch?v={VIDEO}",
        "https://vimeo.com/76979871",
        "https://example.org/a%2Fb/?q='\"&x=%00#frag",
        "http://[2001:db8::1]:8080/v",
    ],
)
def test_other_urls_keep_what_they_say(url: str) -> None:
    assert canonical_url(url) == url


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("http://example.org:80/A?b=C", "http://example.org/A?b=C"),
        ("https://example.org:443", "https://example.org/"),
        ("https://example.org:444/", "https://example.org:444/"),
    ],
)
def test_scheme_host_and_port_have_one_spelling(given: str, wanted: str) -> None:
    assert canonical_url(given) == wanted


@pytest.mark.parametrize("url", [CANONICAL, "https://example.org:444/a?b#c", "http://[::1]:8080/"])
def test_a_canonical_url_stays_as_it_is(url: str) -> None:
    assert canonical_url(canonical_url(url)) == canonical_url(url)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("hello", "neither"),
        ("ftp://example.org/x", "neither"),
        ("file:///etc/passwd", "neither"),
        ("javascript:alert(1)", "neither"),
        ("http:///nowhere", "neither"),
        ("//example.org/x", "neither"),
        ("-o/tmp/x", "neither"),
        ("https://example.org/a b", "blanks"),
        ("https://example.org/\x00", "blanks"),
        ("https://exa\nmple.org/", "blanks"),
        ("https://example.org:99999/", "not a URL"),
        ("http://[::1", "not a URL"),
        ("https://user:secret@example.org/", "user name or password"),
        ("http://good.example\\@evil.example/", "backslash"),
        ("https://example.org/#__youtubedl_smuggle=%7B%7D", "smuggle"),
        ("https://example.org/" + "a" * 2048, "may have 2048"),
    ],
)
def test_what_is_no_http_url_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        canonical_url(text)


def test_a_refused_password_is_not_repeated() -> None:
    with pytest.raises(BadInput) as refusal:
        canonical_url("https://user:hunter2@example.org/")

    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "api.localhost", "printer.local", "db.internal", "localhost.", "127.0.0.1", "127.1",
        "2130706433", "0x7f000001", "0177.0.0.1", "10.0.0.8", "192.168.1.1", "169.254.169.254", "0.0.0.0",
        "[::1]", "[fe80::1]", "[::ffff:127.0.0.1]",
    ],
)  # fmt: skip
def test_a_private_host_is_refused_however_it_is_spelled(host: str) -> None:
    with pytest.raises(BadInput, match="allow_private_targets"):
        refuse_private_target(f"http://{host}/x")


@pytest.mark.parametrize("host", ["example.org", "1.1.1.1", "localhost.example.org", "[2606:4700:4700::1111]"])
def test_a_public_host_is_let_through(host: str) -> None:
    refuse_private_target(f"http://{host}/x")
