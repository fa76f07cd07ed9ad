"""
Why a site refused: the one place that says so, for the ops server and for the workers alike.

`signals` turns what yt-dlp raises, warns of and drops into a `Signal`; `diagnose` says what it means. The order
is what keeps it from rotting: this machine's own errors, exception class and HTTP status with host, playability
status, text (what concerns egress, account or client before what concerns the video), and last unknown, which is
tried again and counted, never skipped.
"""

from __future__ import annotations

from include.ytdlp_ops.diagnosis.classification import diagnose
from include.ytdlp_ops.diagnosis.values import Diagnosis, Playability, Signal

__all__ = ["Diagnosis", "Playability", "Signal", "diagnose"]
