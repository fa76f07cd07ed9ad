"""What a video does, by the prefix of its id; what an egress does, by the prefix of its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.offline_youtube.media import DURATION, ITAGS, Media
from tests.offline_youtube.offers import LANGUAGES, SPARSE, STILL, TENBIT, VERTICAL
from tests.offline_youtube.streams import NO_STREAM, SEGMENTS, Kind


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """
    How the site answers for one video.

    :param means: what a person would say of it.
    :param play: the playabilityStatus.
    :param http: status of the watch page and of the API, instead of an answer.
    :param itags: the usual formats that it has; None: all that there are.
    :param offers: formats that it has beside those.
    :param stream: what it has in segments; by default nothing.
    :param seconds: how long it lasts; 0: the site does not say.
    :param title: its title, instead of one that names its id.
    :param description: what the uploader says of it.
    :param chapters: seconds and title of each, in the page's panel.
    :param captions: languages of its subtitles; ``a.en``: captions made by machine.
    :param small_pictures: whether of its thumbnails the site has the small JPEGs only.
    :param live: the key of videoDetails that makes it a live.
    :param starts_in: seconds until the start of a live.
    :param countries: where it plays.
    :param members: whether an account with the cookie ``LOGIN_INFO=member`` plays it.
    :param drm: whether its formats are locked.
    :param sabr: whether its formats come without URLs.
    :param bad_json: whether the API's answer is cut short.
    :param answers_for: the id of another video, of which the answer speaks.
    :param ad_seconds: when the media may be asked for, after extraction.
    :param media: what googlevideo does: a status, or a word that `Handler` knows.
    :param times: how often googlevideo does so, per format, before it serves; None: always.
    :param ttl: seconds that a media URL lives, instead of the server's.
    """

    means: str
    play: Mapping[str, Any] = field(default_factory=lambda: {"status": "OK"})
    http: int | None = None
    itags: tuple[int, ...] | None = None
    offers: tuple[Media, ...] = ()
    stream: Kind = NO_STREAM
    seconds: float = DURATION
    title: str | None = None
    description: str = "Made with ffmpeg."
    chapters: tuple[tuple[int, str], ...] = ()
    captions: tuple[str, ...] = ()
    small_pictures: bool = False
    live: str | None = None
    starts_in: int = 7200
    countries: tuple[str, ...] = ("US", "DE", "GE")
    members: bool = False
    drm: bool = False
    sabr: bool = False
    bad_json: bool = False
    answers_for: str | None = None
    ad_seconds: int | None = None
    media: str | None = None
    times: int | None = None
    ttl: int | None = None

    @property
    def formats(self) -> tuple[Media, ...]:
        """What it has behind plain URLs."""
        usual = ITAGS if self.itags is None else self.itags
        return (*(ITAGS[itag] for itag in usual), *self.offers)


def _says(status: str, reason: str, detail: str | None = None) -> dict[str, Any]:
    """A playabilityStatus that refuses; `detail` is what the error screen adds."""
    said: dict[str, Any] = {"status": status, "reason": reason}
    if detail:
        texts = {"reason": {"simpleText": reason}, "subreason": {"simpleText": detail}}
        said["errorScreen"] = {"playerErrorMessageRenderer": texts}
    return said


def _gone(detail: str | None = None) -> dict[str, Any]:
    return _says("ERROR", "Video unavailable", detail)


def _unplayable(detail: str) -> dict[str, Any]:
    return _says("UNPLAYABLE", "Video unavailable", detail)


_PERKS = "members-only content like this video, and other exclusive perks."
_LEVEL = (
    "This video is available to this channel's members on level: Gold (or any higher level). Join this channel "
    "to get access to members-only content and other exclusive perks."
)
_TERMINATED = (
    "This video is no longer available because the YouTube account associated with this video has been terminated."
)
_COUNTRY = "This video contains content from SME, who has blocked it in your country on copyright grounds"
_APP = "The following content is not available on this app.. Watch on the latest version of YouTube."
_CAPTCHA = {
    "status": "UNPLAYABLE",
    "reason": "This content is not available",
    "errorScreen": {"playerCaptchaViewModel": {"x": 1}},
}

GOOD = Scenario(means="plays in every format")

_CONTENT = {
    "private": Scenario(
        means="only for those invited",
        play=_says("LOGIN_REQUIRED", "Private video", "Sign in if you've been granted access to this video"),
    ),
    "deleted": Scenario(means="deleted", play=_gone("This video has been removed by the uploader")),
    "gone": Scenario(means="gone, and no word why", play=_gone()),
    "never": Scenario(means="an id never given out", play=_says("ERROR", "This video is unavailable")),
    "tos": Scenario(
        means="removed by the site",
        play=_gone("This video has been removed for violating YouTube's Terms of Service"),
    ),
    "ended": Scenario(means="its channel is gone", play=_gone(_TERMINATED)),
    "claim": Scenario(
        means="blocked everywhere",
        play=_unplayable("This video contains content from SME, who has blocked it on copyright grounds"),
    ),
    "geo": Scenario(
        means="not in this country",
        play=_unplayable("The uploader has not made this video available in your country"),
        countries=("DE", "AT"),
    ),
    "geo2": Scenario(means="not in this country, and yt-dlp does not see that", play=_unplayable(_COUNTRY)),
    "members": Scenario(
        means="for members", play=_says("UNPLAYABLE", f"Join this channel to get access to {_PERKS}"), members=True
    ),
    "level": Scenario(means="for members of a level", play=_says("UNPLAYABLE", _LEVEL), members=True),
    "age": Scenario(
        means="for adults",
        play=_says(
            "LOGIN_REQUIRED", "Sign in to confirm your age", "This video may be inappropriate for some users."
        ),
    ),
    "rental": Scenario(means="to be paid for", play=_says("UNPLAYABLE", "This video requires payment to watch.")),
    "premium": Scenario(
        means="for Premium accounts", play=_unplayable("This video is only available to Music Premium members")
    ),
    "drm": Scenario(means="locked", drm=True),
    "only18": Scenario(means="has the small joined format only", itags=(18,)),
    "live": Scenario(
        means="live now; plays, as HLS, and never ends",
        live="isLive",
        itags=(),
        seconds=0,
        stream=Kind(hls=True, every=1.0, ends=False),
    ),
    "norec": Scenario(
        means="a live without recording", play=_says("UNPLAYABLE", "This live stream recording is not available.")
    ),
}

_NOT_YET = {
    "upcoming": Scenario(
        means="a live to come",
        play=_says("LIVE_STREAM_OFFLINE", "This live event will begin in 2 hours."),
        live="isUpcoming",
    ),
    "premiere": Scenario(
        means="a premiere to come", play=_says("LIVE_STREAM_OFFLINE", "Premieres in 2 hours"), live="isUpcoming"
    ),
    "ended2": Scenario(
        means="a live that ended; its recording is being made",
        play=_says("LIVE_STREAM_OFFLINE", "This live event has ended."),
        live="isPostLiveDvr",
        starts_in=-7200,
    ),
    "process": Scenario(
        means="just uploaded", play=_says("UNPLAYABLE", "We're processing this video. Check back later.")
    ),
}

_SYSTEMIC = {
    "bot": Scenario(
        means="the egress is flagged",
        play=_says(
            "LOGIN_REQUIRED",
            "Sign in to confirm you\u2019re not a bot",
            "This helps protect our community. Learn more",
        ),
    ),
    "limit": Scenario(
        means="the session asked too often", play=_gone("This content isn't available, try again later.")
    ),
    "blocked": Scenario(means="the account is blocked", play=_gone("This content isn\u2019t available.")),
    "captcha": Scenario(means="a captcha first", play=_CAPTCHA),
    "reload": Scenario(
        means="the client is broken for everybody", play=_says("UNPLAYABLE", "The page needs to be reloaded.")
    ),
    "app": Scenario(means="this client is refused", play=_says("UNPLAYABLE", _APP)),
    "wrongid": Scenario(means="the answer speaks of another video", answers_for="aQvGIIdgFDM"),
    "sabr": Scenario(means="formats without URLs", sabr=True),
    "empty": Scenario(means="plays, with nothing in it", itags=()),
    "h429": Scenario(means="429 of the site", http=429),
    "h403": Scenario(means="403 of the site", http=403),
    "h500": Scenario(means="500 of the site", http=500),
    "badjson": Scenario(means="an answer cut short", bad_json=True),
    "ads": Scenario(means="plays, but media may be asked for after three seconds", ad_seconds=3),
}

_MEDIA = {
    "m403": Scenario(means="media forbidden", media="403"),
    "m404": Scenario(means="media not found", media="404"),
    "m410": Scenario(means="media gone", media="410"),
    "m429": Scenario(means="media asked for too often", media="429"),
    "m503": Scenario(means="media out of service", media="503"),
    "m503x2": Scenario(means="media out of service twice, then served", media="503", times=2),
    "mcut": Scenario(means="every answer stops half-way; a Range resume gets there", media="cut"),
    "mcut1": Scenario(means="the first answer stops half-way", media="cut", times=1),
    "mreset": Scenario(means="the connection drops", media="reset"),
    "mempty": Scenario(means="an answer without bytes", media="empty"),
    "mtrunc": Scenario(means="half the file, and says that is all", media="trunc"),
    "mhtml": Scenario(means="a portal's page instead of media", media="html"),
    "mslow": Scenario(means="64 kB a second", media="slow"),
    "expired": Scenario(means="media URLs that are past their time", ttl=-60),
}

_CHAPTERS = ((0, "Intro"), (1, "Middle = part; #2"), (3, "End"))

_SHAPES = {
    "hls": Scenario(means="HLS alone, in two heights", itags=(), seconds=SEGMENTS, stream=Kind(hls=True)),
    "hlsaes": Scenario(
        means="HLS with AES-128", itags=(), seconds=SEGMENTS, stream=Kind(hls=True, encrypted=True)
    ),
    "dash": Scenario(means="DASH alone", itags=(), seconds=SEGMENTS, stream=Kind(dash=True)),
    "manifests": Scenario(
        means="HLS and DASH beside a plain format",
        itags=(18,),
        seconds=SEGMENTS,
        stream=Kind(hls=True, dash=True),
    ),
    "langs": Scenario(means="sound in two languages, and described", itags=(136,), offers=LANGUAGES),
    "vertical": Scenario(means="higher than wide", itags=(140,), offers=(VERTICAL,)),
    "tenbit": Scenario(means="VP9 of 10 bits, with Opus", itags=(251,), offers=(TENBIT,)),
    "still": Scenario(means="one frame", itags=(), offers=(STILL,), seconds=0),
    "subs": Scenario(means="subtitles in two languages, and captions by machine", captions=("en", "de", "a.en")),
    "asr": Scenario(means="captions by machine only", captions=("a.en",)),
    "smallpic": Scenario(means="thumbnails are small JPEGs", small_pictures=True),
    "chapters": Scenario(means="chapters in the page's panel", chapters=_CHAPTERS),
    "chaptext": Scenario(
        means="chapters in the description",
        description="\n".join(["A talk.", "", *(f"0:{second:02} {title}" for second, title in _CHAPTERS)]),
    ),
    "sparse": Scenario(means="2 GB of silence", itags=(), offers=(SPARSE,), seconds=round(SPARSE.seconds)),
    "growing": Scenario(
        means="a live of eight seconds that comes in three, ends, and then is a video",
        live="isLive",
        itags=(),
        seconds=SEGMENTS,
        stream=Kind(hls=True, every=0.5),
    ),
    "postlive": Scenario(
        means="a live that ended, before its recording is made; plays, as DASH",
        live="isPostLiveDvr",
        starts_in=-7200,
        itags=(),
        seconds=SEGMENTS,
        stream=Kind(dash=True),
    ),
}

_TITLES = {
    "tup": "../../etc/passwd",
    "troot": "/etc/passwd",
    "tpercent": "a%00b%2e%2e%2f%(id)s%n",
    "tnul": "a\0b",
    "temoji": "\N{CLAPPER BOARD}" * 75,
    "tcon": "CON",
    "tnuldot": "nul.",
    "trtl": "\u202egnp.exe\u2066\u200b",
    "tdash": "-rf",
    "tlines": "one\ntwo\r\n\tthree",
    "tdots": "...",
    "thome": "~/$HOME/`id`",
    "thalf": "half a pair \ud83d",
    "twindows": 'C:\\a:*?"<>|b',
}

SCENARIOS: Mapping[str, Scenario] = {**_CONTENT, **_NOT_YET, **_SYSTEMIC, **_MEDIA}

SHAPES: Mapping[str, Scenario] = {
    **_SHAPES,
    **{prefix: Scenario(means=f"is called {title!a}", title=title) for prefix, title in _TITLES.items()},
}
"""All of these play; what is played is of every shape."""

EGRESS_FAULTS: Mapping[str, str] = {
    "p403": "the proxy forbids the host",
    "p407": "the proxy wants other credentials",
    "p429": "the proxy's own limit",
    "p502": "the exit is gone",
    "p503": "the proxy is out of service",
    "hang": "the proxy does not answer",
    "reset": "the proxy drops the connection",
    "badtls": "the proxy speaks nonsense after CONNECT",
    "botip": "every video asks whether this is a bot",
    "blind": "every video is unavailable, and no word why",
    "ip429": "the site answers 429 to everything",
    "slow": "media comes at 64 kB a second",
}


def scenario_of(video_id: str) -> Scenario:
    """What the video with this id does."""
    prefix, dash, _ = video_id.partition("-")
    return (SCENARIOS.get(prefix) or SHAPES.get(prefix) or GOOD) if dash else GOOD


def media_of(video_id: str, itag: int, xtags: str) -> Media:
    """The format of a video that a media URL names."""
    formats = (*scenario_of(video_id).offers, *ITAGS.values())
    return next(media for media in formats if (media.itag, media.xtags) == (itag, xtags))


def egress_fault_of(egress: str) -> str | None:
    """The key of `EGRESS_FAULTS` that this egress's name starts with."""
    return next((fault for fault in EGRESS_FAULTS if egress.startswith(fault)), None)
